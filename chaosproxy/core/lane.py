"""The fast lane: chunks of whole commands that no rule looks at, and their replies, pass as the bytes they came in.

Takes a received chunk; gives True if it may go on as it is and that is all that happens, the books being kept. In any doubt
it gives False, having changed nothing, and the chunk goes the long way through `intake` and `returns`.

It is open only while nothing else is under way on its line: what went through it and is unanswered is a queue of names, and
nothing more. Whatever else happens on the line begins with `leave`, which makes of that queue the slots that the long way
would have made, so nothing but this module and its door knows that there is another way. What passes:

requests   whole arrays of bulk strings whose name is `plain`: no rule in force looks at it, nothing follows from it
replies    whole replies, no more than are owed; no pushes, no attributes, no errors where those tell addresses to translate

Lengths are read as the framers read them, from the same tables.
"""

from collections import deque
from typing import Final

from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES
from chaosproxy.core.intake import Intake
from chaosproxy.core.line import Line
from chaosproxy.core.returns import Returns
from chaosproxy.core.slot import Slot
from chaosproxy.core.syntax import (
    ARGUMENTS,
    ARRAYS,
    BLOBS,
    LINES,
    WIDTH,
    ProtocolError,
    read_argument,
    read_header,
    read_length,
)
from chaosproxy.core.world import Name

#: How many bytes a bulk string takes, by what it begins with.
_SIZES: Final = {key: length + size + 2 for key, (length, size) in ARGUMENTS.items()}
#: What may be inside a reply: anything but pushes and attributes, which no count of values tells.
_AGGREGATES: Final = {kind: WIDTH[kind] for kind in b"*~%"}
#: Where an error may say where to go, and that is to be translated.
_NO_ERRORS: Final = LINES.replace(b"-", b"")
#: No command's name ends before this, counted from the command's first byte.
_BEFORE_NAME: Final = 10
_STAR: Final = ord("*")


class Lane:
    """One line's fast lane. `open`: requests may use it; replies may while any that used it is unanswered."""

    __slots__ = ("_intake", "_line", "_lines", "_returns", "_unanswered", "_world", "open")

    def __init__(self, line: Line, intake: Intake, returns: Returns) -> None:
        self._line = line
        self._lines = LINES if line.translate is None else _NO_ERRORS
        self._world = line.world
        self._intake = intake
        self._returns = returns
        # Each command's name, and when it was forwarded.
        self._unanswered: deque[tuple[Name, float]] = deque()
        self.open = False

    def __len__(self) -> int:
        """How many commands that went this way are unanswered."""
        return len(self._unanswered)

    def look(self) -> None:
        """Something has happened on the line: see whether the lane is open now."""
        line, returns = self._line, self._returns
        self.open = (
            not (line.closed or line.raw or line.lost or line.slots or line.expect)
            and line.head is None
            and line.upstream_silent is None
            and line.client_silent is None
            and line.modes.simple
            and self._intake.between
            and not (returns.framer.started or returns.leaving.ended)
        )

    def leave(self) -> None:
        """Something is about to happen on the line: from here on what is unanswered is answered the long way."""
        line = self._line
        self.open = False
        for name, since in self._unanswered:
            slot = Slot(name, (), since)
            line.slots.append(slot)
            line.expect.append(slot)
            line.blocking += name.blocking
        self._unanswered.clear()

    def requests(self, data: bytes, now: float) -> bool:  # noqa: C901 - every command: one loop
        """Whether these bytes from the client may go on as they are."""
        if not self.open:
            return False
        find, size_of, known = data.find, _SIZES.get, self._world.openings.get
        names = []
        pos, end = 0, len(data)
        try:
            while pos < end:
                found = known(data[pos : find(b"\r", pos + _BEFORE_NAME)])
                if found is None:
                    found = self._read_opening(data, pos)
                    if found is None:
                        return False
                name, left, size = found
                pos += size
                while left:
                    size = size_of(data[pos : pos + 4]) or size_of(data[pos : pos + 5]) or 0
                    if not size:
                        if pos >= end or (header := read_argument(data, pos)) is None:
                            return False
                        size = sum(header) + 2
                    pos += size
                    left -= 1
                names.append((name, now))
        except ProtocolError:
            return False
        if pos != end or not names:
            return False
        intake = self._intake
        if not self._unanswered:
            intake.place = 0
        intake.place += len(names)
        intake.handshake = False
        for name, _ in names:
            name.tally.count += 1
        self._unanswered += names
        return True

    def _read_opening(self, data: bytes, pos: int) -> tuple[Name, int, int] | None:
        """Read a command as far as its name: that, how many arguments follow, and how many bytes it was; None: not plain."""
        if data[pos] != _STAR:
            return None
        header = ARRAYS.get(data[pos : pos + 4]) or read_header(data, pos)
        if header is None or header[0] <= 0 or pos + header[1] >= len(data):
            return None
        argument = read_argument(data, pos + header[1])
        if argument is None:
            return None
        begin = pos + header[1] + argument[1]
        end = begin + argument[0]
        if end > len(data):
            return None
        sent = data[begin:end]
        name = self._world.name(sent)
        # A slot without a name is a push's.
        if not name.plain or not name.upper:
            return None
        found = name, header[0] - 1, end + 2 - pos
        openings = self._world.openings
        if len(openings) < MOST_NAMES and len(sent) <= LONGEST_NAME:
            openings[data[pos:end]] = found
        return found

    def replies(self, data: bytes, now: float) -> bool:
        """Whether these bytes from the upstream may go on as they are."""
        unanswered = self._unanswered
        if not unanswered:
            return False
        try:
            count = _count(data, self._lines)
        except ProtocolError:
            return False
        if not 0 < count <= len(unanswered):
            return False
        for _ in range(count):
            name, since = unanswered.popleft()
            if not name.blocking:
                name.tally.took(now - since)
        return True


def _count(data: bytes, lines: bytes) -> int:
    """How many replies these bytes are; 0 if they are not just whole replies. `lines`: the kinds that are one line."""
    find, size_of = data.find, _SIZES.get
    # `left`: how many values the reply still lacks.
    pos = left = count = 0
    end = len(data)
    while pos < end:
        left = left or 1
        kind = data[pos]
        if kind in lines:
            pos = find(b"\r\n", pos) + 2
            if pos < 2:
                return 0
            left -= 1
        elif kind in BLOBS:
            size = size_of(data[pos : pos + 4]) or size_of(data[pos : pos + 5])
            if not size:
                header = read_length(data, pos)
                if header is None:
                    return 0
                size = header[1] + (header[0] + 2 if header[0] >= 0 else 0)
            pos += size
            left -= 1
        elif kind in _AGGREGATES:
            header = ARRAYS.get(data[pos : pos + 4]) or read_length(data, pos)
            if header is None:
                return 0
            left += max(0, header[0]) * _AGGREGATES[kind] - 1
            pos += header[1]
        else:
            return 0
        if not left:
            count += 1
    return count if pos == end and not left else 0
