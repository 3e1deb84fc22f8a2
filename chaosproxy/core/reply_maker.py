"""Replies made where no server can be asked: right in type, plausible in value.

Takes a Command and the shape codes of its spec, gives a raw reply: a write's where none can be had from
the server itself, or what absent keys are answered with.
"""

import re
from dataclasses import dataclass
from typing import assert_never

from chaosproxy.core.command import Command
from chaosproxy.core.reply_shape import Either, Leaf, Many, Node, argument, choose, words_of

_STREAM_ID = re.compile(rb"\d{1,20}-\d{1,20}")


def plausible(command: Command, protocol: int, clock_ms: int = 0) -> bytes | None:
    """Make the reply of a write that succeeded: right in type, plausible in value.

    `protocol` is 2 or 3, `clock_ms` the time for a new stream ID in milliseconds since 1970. None where
    the command's reply can be anything (scripts) or is not known.
    """
    return _answer(command.spec.reply if command.spec else "", command, protocol, clock_ms)


def miss(command: Command, protocol: int) -> bytes | None:
    """Make what the command answers when none of its keys exists; None where it has no such answer.

    A few of these answers are errors, as the server's are (XINFO, LSET).
    """
    return _answer(command.spec.miss if command.spec else "", command, protocol, 0)


def _answer(code: str, command: Command, protocol: int, clock_ms: int) -> bytes | None:
    node = choose(code, command)
    if node is None:
        return None
    try:
        return _Maker(command, protocol, clock_ms).make(node)
    except _AnythingError:
        return None


# In RESP2, in RESP3.
_FIXED = {
    "nil": (b"$-1\r\n", b"_\r\n"),
    "nil[]": (b"*-1\r\n", b"_\r\n"),
    "bool": (b":1\r\n", b"#t\r\n"),
    "true": (b":1\r\n", b"#t\r\n"),
    "false": (b":0\r\n", b"#f\r\n"),
}


class _AnythingError(Exception):
    """The shape says no more than that something comes."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """What one reply is made from and for."""

    command: Command
    protocol: int
    clock_ms: int

    def make(self, node: Node) -> bytes:
        match node:
            case Either(options):
                return self.make(options[0])
            case Many():
                count, body = self._items(node)
                return b"%c%d\r\n%s" % (self._sigil(node.kind), count, body)
            case Leaf(kind, hint):
                return self._leaf(kind, hint)
            case _:
                assert_never(node)

    def _sigil(self, kind: str) -> int:
        return {"set": b"~", "map": b"%"}.get(kind, b"*")[0] if self.protocol == 3 else b"*"[0]

    def _items(self, many: Many) -> tuple[int, bytes]:
        """Make the items, and count them as the aggregate's header does."""
        times = 1 if many.repeat is None else self._repeat(many.repeat)
        flat_pairs = (many.kind == "map") == (self.protocol == 3)
        count, body = 0, b""
        for item in many.items * times:
            if isinstance(item, Many) and item.kind == "pair" and flat_pairs:
                body += b"".join(map(self.make, item.items))
                count += len(item.items)
            else:
                body += self.make(item)
                count += 1
        if many.kind == "map" and self.protocol == 3:
            count //= 2
        return count, body

    def _repeat(self, measure: str) -> int:
        # A client may claim any number; no reply has more items than its command has arguments.
        return min(max(self._measure(measure), 0), len(self.command.args)) if measure else 0

    def _measure(self, measure: str) -> int:
        args = self.command.args
        kind, rest = measure[:1], measure[1:]
        if kind == "k":
            return len(self.command.key_positions)
        if kind == "l":
            return len(argument(self.command, int(rest)) or b"")
        if kind == "n":
            start, _, parts = rest.partition("/")
            return max(len(args) - int(start), 0) // int(parts or 1)
        if kind == "#":
            wanted = {word.encode() for word in rest.split(",")}
            return sum(word in wanted for word in words_of(self.command, 2))
        if rest.isdigit():
            return _number(argument(self.command, int(rest)))
        words = [(arg or b"").upper() for arg in args]
        place = words.index(rest.encode()) if rest.encode() in words else len(args)
        return _number(argument(self.command, place + 1))

    def _leaf(self, kind: str, hint: str) -> bytes:
        fixed = _FIXED.get(kind)
        if fixed is not None:
            return fixed[self.protocol == 3]
        match kind:
            case "int":
                return b":%d\r\n" % (self._measure(hint) if hint else 1)
            case "bulk":
                return _bulk((argument(self.command, int(hint[1:])) or b"") if hint else b"")
            case "score":
                number = _float(argument(self.command, int(hint[1:])) if hint else b"1")
                return b",%s\r\n" % number if self.protocol == 3 else _bulk(number)
            case "id":
                return _bulk(self._stream_id())
            case "any":
                raise _AnythingError
        return self._literal(kind)

    def _literal(self, text: str) -> bytes:
        if text[0] == '"':
            return _bulk(text[1:-1].encode())
        if text[0] == "!":
            return b"-%s\r\n" % self._fill(text[1:])
        if text.lstrip("-").isdigit():
            return b":%s\r\n" % text.encode()
        return b"+%s\r\n" % text.encode()

    def _stream_id(self) -> bytes:
        given = (arg for arg in self.command.args[2:] if arg and _STREAM_ID.fullmatch(arg))
        return next(given, b"%d-0" % self.clock_ms)

    def _fill(self, text: str) -> bytes:
        """Put arguments into an error's text, without what would end its line."""
        keys = self.command.keys

        def value(found: re.Match[bytes]) -> bytes:
            name = found[1]
            key = keys[0] if keys else b""
            arg = key if name == b"key" else argument(self.command, int(name)) or b""
            return arg.replace(b"\r", b" ").replace(b"\n", b" ")

        return re.sub(rb"\{(key|\d+)\}", value, text.encode())


def _bulk(value: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(value), value)


def _number(arg: bytes | None) -> int:
    """Read an argument as a number; 0 for one that is none."""
    return int(arg) if arg is not None and re.fullmatch(rb"-?\d{1,18}", arg) else 0


def _float(arg: bytes | None) -> bytes:
    try:
        return b"%.17g" % float(arg or b"")
    except ValueError:
        return b"0"
