"""Where commands and replies end, for bytes that are neither kept nor looked at.

Takes a received chunk; gives sizes and counts, read as the framers read them, from the same tables.
"""

from dataclasses import dataclass
from typing import Final

from chaosproxy.core.framers import Framer, own
from chaosproxy.core.resp import KEEP
from chaosproxy.core.syntax import (
    ARGUMENTS,
    ARRAYS,
    BLOBS,
    HEADER,
    WIDTH,
    ProtocolError,
    read_argument,
    read_length,
)

#: How many bytes a bulk string takes, by what it begins with.
SIZES: Final = {key: length + size + 2 for key, (length, size) in ARGUMENTS.items()}
#: What may be inside a reply: anything but pushes and attributes, which no count of values tells.
AGGREGATES: Final = {kind: WIDTH[kind] for kind in b"*~%"}


_BULK: Final = ord("$")
_ANYTHING: Final = bytes(1 << 16)


@dataclass(slots=True)
class Body:
    """A large value, a part of which has passed: what came ahead of it, and how many bytes of it have passed and are owed."""

    head: bytes
    passed: int
    owed: int

    def passes(self, size: int) -> bool:
        """Whether so many bytes more are in it, and not its last ones; then they have passed."""
        if size >= self.owed:
            return False
        self.passed += size
        self.owed -= size
        return True

    def show(self, framer: Framer) -> Framer:
        """Let a framer see it as far as it has passed, and hand nothing out: of a large value it looks at the length alone.

        Gives the framer, a new one in place of one that all share.
        """
        framer = own(framer)
        pieces = [self.head, *(_ANYTHING for _ in range(self.passed // len(_ANYTHING)))]
        pieces.append(_ANYTHING[: self.passed % len(_ANYTHING)])
        for piece in pieces:
            framer.feed(piece)
            framer.cut_through()
        return framer


def unfinished(data: bytes, begin: int, pos: int, size: int) -> Body | None:
    """The value that begins at `pos` and takes `size` bytes, more than there are, in what begins at `begin`.

    None if it is small, its header aside: framers keep what is here of such a one; or if its header is not here.
    """
    value = data.find(b"\r", pos) + 2
    if not 2 <= value <= len(data) or pos + size - value <= KEEP + HEADER:
        return None
    return Body(data[begin:value], len(data) - value, pos + size - len(data))


def header_of(data: bytes, pos: int) -> tuple[int, int]:
    """Read an argument's header: its length, the header's size; raises ProtocolError if it is none, or not here yet."""
    header = read_argument(data, pos) if pos < len(data) else None
    if header is None:
        raise ProtocolError("an unfinished command")
    return header


def ends(data: bytes, pos: int, left: int) -> tuple[int, int, int]:
    """Read past so many arguments: where they end, and the last one's size in bytes.

    If one ends behind the data, no more are read: that is the last one, and the number between is how many follow it.
    """
    size_of, end, size = SIZES.get, len(data), 0
    while left:
        size = size_of(data[pos : pos + 4]) or size_of(data[pos : pos + 5]) or 0
        if not size:
            size = sum(header_of(data, pos)) + 2
        left -= 1
        pos += size
        if pos > end:
            break
    return pos, left, size


def arguments(data: bytes, pos: int, left: int, name: bytes) -> tuple[int, list[bytes]]:
    """Read so many arguments: where they end, and what they are, with a name before them; raises as `header_of` does."""
    args = [name]
    while left:
        header = ARGUMENTS.get(data[pos : pos + 4]) or ARGUMENTS.get(data[pos : pos + 5])
        length, begin = header or header_of(data, pos)
        begin += pos
        pos = begin + length + 2
        args.append(data[begin : pos - 2])
        left -= 1
    return pos, args


def begins(data: bytes) -> Body | None:
    """The large value that a chunk of replies begins and does not end, if it is nothing else."""
    header = read_length(data, 0) if data[0] == _BULK else None
    if header is None or sum(header) + 2 <= len(data):
        return None
    return unfinished(data, 0, 0, sum(header) + 2)


def count(data: bytes, lines: bytes, pos: int = 0) -> int | None:
    """How many replies the bytes from `pos` on are; None if they are not just whole replies.

    `lines`: the kinds that are one line. Raises ProtocolError where `ReplyFramer` would.
    """
    find, size_of = data.find, SIZES.get
    # `left`: how many values the reply still lacks.
    left = replies = 0
    end = len(data)
    while pos < end:
        left = left or 1
        kind = data[pos]
        if kind in lines:
            pos = find(b"\r\n", pos) + 2
            if pos < 2:
                return None
            left -= 1
        elif kind in BLOBS:
            size = size_of(data[pos : pos + 4]) or size_of(data[pos : pos + 5])
            if not size:
                header = read_length(data, pos)
                if header is None:
                    return None
                size = header[1] + (header[0] + 2 if header[0] >= 0 else 0)
            pos += size
            left -= 1
        elif kind in AGGREGATES:
            header = ARRAYS.get(data[pos : pos + 4]) or read_length(data, pos)
            if header is None:
                return None
            left += max(0, header[0]) * AGGREGATES[kind] - 1
            pos += header[1]
        else:
            return None
        if not left:
            replies += 1
    return replies if pos == end and not left else None
