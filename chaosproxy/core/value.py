"""What a reply says, to be looked at: no reply is ever made from it.

Takes one whole reply as received, gives a plain Python value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaosproxy.core.syntax import BLOBS, CONFIRMATIONS, LINES, WIDTH, ProtocolError, read_length


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error as a value; `text` begins with its code."""

    text: bytes

    def __str__(self) -> str:
        return self.text.decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class _Open:
    """An aggregate of which not all values are read; a push `confirms` by what it begins with."""

    kind: bytes
    owed: int
    values: list[object] = field(default_factory=list)
    confirms: bool | None = None


def decode(raw: bytes) -> object:
    """Give the value of one whole reply; raises ProtocolError if it is not one.

    Strings of all kinds are bytes (a verbatim one without its format), numbers int and float,
    booleans bool, nulls None, errors ErrorReply. Arrays, sets and pushes are lists, a map is a list
    of pairs (a key may be anything, and come twice). Attributes, and pushes that are no element
    (see `reply`), are left out.
    """
    pos = 0
    above: list[_Open] = []
    while True:
        kind, text, owed, pos = _item(raw, pos)
        if above and above[-1].confirms is None:
            above[-1].confirms = kind in {b"$", b"+"} and text in CONFIRMATIONS
        if owed:
            above.append(_Open(kind, owed))
            continue
        value = _leaf(kind, text)
        aside = kind == b"|" or (kind == b">" and bool(above))
        while not aside:
            if not above:
                if pos != len(raw):
                    raise ProtocolError("more than one reply")
                return value
            top = above[-1]
            top.values.append(value)
            if len(top.values) < top.owed:
                break
            above.pop()
            pairs = zip(top.values[::2], top.values[1::2], strict=True)
            value = list(pairs) if top.kind == b"%" else top.values
            aside = top.kind == b"|" or (top.kind == b">" and bool(above) and not top.confirms)


def _item(raw: bytes, pos: int) -> tuple[bytes, bytes | None, int, int]:
    """Read the line, blob or header at `pos`: its type, text, number of values owed, its end."""
    kind = raw[pos : pos + 1]
    if kind and kind in LINES:
        end = raw.find(b"\r\n", pos)
        if end >= 0:
            return kind, raw[pos + 1 : end], 0, end + 2
    elif kind:
        header = read_length(raw, pos)
        if header is not None:
            size, start = header[0], pos + header[1]
            if kind not in BLOBS:
                # An aggregate without values has a text, unless it is null.
                return kind, b"" if size >= 0 else None, max(0, size) * WIDTH[kind[0]], start
            end = start + size + 2 if size >= 0 else start
            if end <= len(raw):
                return kind, raw[start : end - 2] if size >= 0 else None, 0, end
    raise ProtocolError("a reply that goes on")


def _leaf(kind: bytes, text: bytes | None) -> object:
    """Give the value of a reply that has no values in it."""
    if text is None or kind == b"_":
        return None
    try:
        match kind:
            case b"+" | b"$":
                return text
            case b"=":
                return text[4:]
            case b"-" | b"!":
                return ErrorReply(text)
            case b":" | b"(":
                return int(text)
            case b",":
                return float(text)
            case b"#":
                return {b"t": True, b"f": False}[text]
            case _:
                return []
    except (KeyError, ValueError) as error:
        raise ProtocolError(f"what {kind!r} begins has no value") from error


def errors_in(replies: Sequence[bytes]) -> str:
    """The errors among whole replies, for an event's detail."""
    return "; ".join(str(decode(raw)) for raw in replies if raw[:1] == b"-")
