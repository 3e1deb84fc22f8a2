"""The fast lane: chunks of whole commands on which no rule acts, and their replies, pass as the bytes they came in.

Takes a received chunk; gives True if it may go on as it is and that is all that happens, the books being kept. In any doubt
it gives False, and the chunk, or what is left of it, goes the long way through `intake` and `returns`.

It is open only while nothing else is under way on its line: what went through it and is unanswered is a queue of names, and
nothing more. Whatever else happens on the line begins with `leave`, which makes of that queue the slots that the long way
would have made, so nothing but this module and its door knows that there is another way. What passes:

requests   whole arrays of bulk strings whose name is `plain` (no rule in force looks at it, nothing follows from it), or that the
           rules left alone at a `glance`
replies    whole replies, no more than are owed; no pushes, no attributes, no errors where those tell addresses to translate

Lengths are read as the framers read them, from the same tables.
"""

from collections.abc import Sequence
from typing import Final

from chaosproxy.core.command import Command
from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES
from chaosproxy.core.glance import Glance
from chaosproxy.core.intake import Intake
from chaosproxy.core.line import Line
from chaosproxy.core.match import Exchange
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
from chaosproxy.core.world import Name, Opening

#: How many bytes a bulk string takes, by what it begins with.
_SIZES: Final = {key: length + size + 2 for key, (length, size) in ARGUMENTS.items()}
#: What may be inside a reply: anything but pushes and attributes, which no count of values tells.
_AGGREGATES: Final = {kind: WIDTH[kind] for kind in b"*~%"}
#: Where an error may say where to go, and that is to be translated.
_NO_ERRORS: Final = LINES.replace(b"-", b"")
#: So many that were answered are kept before they are thrown away together.
_MANY: Final = 1024
#: No command's name ends before this, counted from the command's first byte.
_BEFORE_NAME: Final = 10
_STAR: Final = ord("*")
#: Stands for a command where only its connection matters.
_NONE: Final[Sequence[bytes]] = ()
_ANY: Final = Command((b"",), b"", None, "", ())


class Lane:
    """One line's fast lane. `open`: requests may use it; replies may while any that used it is unanswered.

    `taken`: how many bytes of a chunk that has to be received went by it all the same, up to the command that may not.
    """

    __slots__ = (
        "_first", "_here", "_intake", "_line", "_lines", "_place", "_returns", "_unanswered", "_world", "open", "taken",
    )  # fmt: skip

    def __init__(self, line: Line, intake: Intake, returns: Returns) -> None:
        self._line = line
        self._lines = LINES if line.translate is None else _NO_ERRORS
        self._world = line.world
        self._intake = intake
        self._returns = returns
        self._here: Exchange | None = None
        # Each command's name and when it was forwarded; one and the same entry for those of a name that came together. Those
        # before `_first` are answered. An empty list takes nothing, which a deque does not: most connections are idle.
        self._unanswered: list[tuple[Name, float]] = []
        self._first = 0
        # How many of the batch went this way since the lane was left last.
        self._place = 0
        self.open = False
        self.taken = 0

    def __len__(self) -> int:
        """How many commands that went this way are unanswered."""
        return len(self._unanswered) - self._first

    @property
    def unanswered(self) -> Sequence[tuple[Name, float]]:
        """The names of the commands that went this way and are unanswered, and when they did."""
        return self._unanswered[self._first :]

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
        if self._place:
            self._intake.place, self._place = self._place, 0
            self._intake.handshake = False
        for name, since in self.unanswered:
            slot = Slot(name, (), since)
            line.slots.append(slot)
            line.expect.append(slot)
            line.blocking += name.blocking
        self._unanswered.clear()
        self._first = 0

    def requests(self, data: bytes, now: float) -> bool:  # noqa: C901 - every command: one loop
        """Whether these bytes from the client may go on as they are; else they must be received next."""
        if not self.open:
            return False
        find, size_of, known = data.find, _SIZES.get, self._world.openings.get
        passed = []
        entry, args = None, _NONE
        # All before `start` passes, all before `pos` is read.
        start, end = 0, len(data)
        try:
            while start < end:
                found = known(data[start : find(b"\r", start + _BEFORE_NAME)])
                found = found or self._read_opening(data, start)
                if found is None:
                    break
                name, left, size, glance = found
                pos = start + size
                if glance is None:
                    while left:
                        pos += (
                            size_of(data[pos : pos + 4])
                            or size_of(data[pos : pos + 5])
                            or sum(_header(data, pos)) + 2
                        )
                        left -= 1
                else:
                    pos, args = _arguments(data, pos, left, name.upper)
                if pos > end or (
                    glance and not self._let_alone(glance, args, data[start:pos], now)
                ):
                    break
                if entry is None or name is not entry[0]:
                    entry = name, now
                passed.append(entry)
                start = pos
        except ProtocolError:
            pass
        if not passed:
            return False
        self._place = len(passed) + (self._place if self._unanswered else 0)
        for name, _ in passed:
            name.tally.count += 1
        self._unanswered += passed
        if start == end:
            return True
        self.taken = start
        return False

    def _read_opening(self, data: bytes, pos: int) -> Opening | None:
        """Read a command as far as its name; None if it is not for this lane."""
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
        if not name.upper or not (name.plain or name.glance):
            return None
        found = name, header[0] - 1, end + 2 - pos, name.glance
        openings = self._world.openings
        if len(openings) < MOST_NAMES and len(sent) <= LONGEST_NAME:
            openings[data[pos:end]] = found
        return found

    def _let_alone(self, glance: Glance, args: Sequence[bytes], raw: bytes, now: float) -> bool:
        """Whether the rules leave a command alone; what they have chosen for it is kept for the long way."""
        line = self._line
        here = self._here = self._here or line.where(_ANY)
        chosen = glance.choose(args, raw, here, line.where, now, line.effects)
        if chosen:
            self._intake.chosen = chosen
        return chosen == []

    def replies(self, data: bytes, now: float) -> bool:
        """Whether these bytes from the upstream may go on as they are; else they must be received next."""
        unanswered, first = self._unanswered, self._first
        if not unanswered:
            return False
        try:
            count = _count(data, self._lines)
        except ProtocolError:
            return False
        last = first + count
        if not 0 < count <= len(unanswered) - first:
            return False
        while first < last:
            entry = name, since = unanswered[first]
            begin = first
            first += 1
            while first < last and unanswered[first] is entry:
                first += 1
            if not name.blocking:
                name.tally.took(now - since, first - begin)
        if first == len(unanswered):
            unanswered.clear()
            first = 0
        elif first >= _MANY:
            del unanswered[:first]
            first = 0
        self._first = first
        return True


def _header(data: bytes, pos: int) -> tuple[int, int]:
    """Read an argument's header: its length, the header's size; raises ProtocolError if it is none, or not here yet."""
    header = read_argument(data, pos) if pos < len(data) else None
    if header is None:
        raise ProtocolError("an unfinished command")
    return header


def _arguments(data: bytes, pos: int, left: int, name: bytes) -> tuple[int, list[bytes]]:
    """Read so many arguments: where they end, and what they are, with a name before them; raises as `_header` does."""
    args = [name]
    while left:
        header = ARGUMENTS.get(data[pos : pos + 4]) or ARGUMENTS.get(data[pos : pos + 5])
        length, begin = header or _header(data, pos)
        begin += pos
        pos = begin + length + 2
        args.append(data[begin : pos - 2])
        left -= 1
    return pos, args


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
