"""Whether a real reply has the shape that the command table says: the other direction of reply_maker.

Takes a shape's node and a raw reply, gives yes or no.
"""

import re
from collections.abc import Iterator

from chaosproxy.core.reply_shape import Either, Leaf, Many, Node
from tests.wire import reply_end


def fits(node: Node, raw: bytes, protocol: int) -> bool:
    """Whether all of `raw` is one reply of this shape in this protocol (2 or 3)."""
    return len(raw) in _ends(node, raw, 0, protocol)


def _ends(node: Node, raw: bytes, at: int, protocol: int) -> Iterator[int]:
    """Give the places where a value of this shape that begins at `at` may end; none if it does not fit."""
    match node:
        case Either(options):
            for option in options:
                yield from _ends(option, raw, at, protocol)
        case Leaf(kind):
            end = reply_end(raw, at)
            if _leaf_fits(kind, raw[at:end], protocol):
                yield end
        case Many():
            header = re.compile(rb"([*~%])(\d+)\r\n").match(raw, at)
            if header is not None and header[1] == _sigil(node.kind, protocol):
                count = int(header[2]) * (2 if header[1] == b"%" else 1)
                flat = (node.kind == "map") == (protocol == 3)
                items = tuple(_flattened(node.items, flat))
                yield from _items_ends(node, items, count, raw, header.end(), protocol)


def _items_ends(
    node: Many, items: tuple[Node, ...], count: int, raw: bytes, at: int, protocol: int
) -> Iterator[int]:
    if node.repeat is None:
        if count != len(items):
            return
    elif not items or count % len(items):
        return
    ends = {at}
    for index in range(count):
        item = items[index % len(items)]
        ends = {end for start in ends for end in _ends(item, raw, start, protocol)}
    yield from ends


def _flattened(items: tuple[Node, ...], flat: bool) -> Iterator[Node]:
    for item in items:
        if flat and isinstance(item, Many) and item.kind == "pair":
            yield from item.items
        else:
            yield item


def _sigil(kind: str, protocol: int) -> bytes:
    return {"set": b"~", "map": b"%"}.get(kind, b"*") if protocol == 3 else b"*"


_NULL = {"nil": b"$-1\r\n", "nil[]": b"*-1\r\n"}
_BULK = rb"\$\d+\r\n%s\r\n"
_PATTERNS = {
    "int": (rb":-?\d+\r\n",) * 2,
    "bulk": (_BULK % rb"(?s:.*)",) * 2,
    "id": (_BULK % rb"\d+-\d+",) * 2,
    "score": (_BULK % rb"(-?[\d.e+-]+|-?inf)", rb",(-?[\d.e+-]+|-?inf)\r\n"),
    "bool": (rb":[01]\r\n", rb"#[tf]\r\n"),
    "true": (rb":1\r\n", rb"#t\r\n"),
    "false": (rb":0\r\n", rb"#f\r\n"),
    "any": (rb"(?s:.*)",) * 2,
}


def _leaf_fits(kind: str, raw: bytes, protocol: int) -> bool:
    if kind in _NULL:
        return raw == (b"_\r\n" if protocol == 3 else _NULL[kind])
    if kind in _PATTERNS:
        return re.fullmatch(_PATTERNS[kind][protocol == 3], raw) is not None
    if kind[0] == '"':
        text = kind[1:-1].encode()
        return raw == b"$%d\r\n%s\r\n" % (len(text), text)
    if kind.lstrip("-").isdigit():
        return raw == b":%s\r\n" % kind.encode()
    return raw == b"+%s\r\n" % kind.encode()
