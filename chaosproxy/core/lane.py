"""The fast lane: chunks of whole commands on which no rule acts, and their replies, pass as the bytes they came in.

Takes a received chunk; gives True if it may go on as it is and that is all that happens, the books being kept. In any doubt
it gives False, and the chunk, or what is left of it, goes the long way through `intake` and `returns`.

It is open only while nothing else is under way on its line: what went through it and is unanswered is a queue of names, and
nothing more. Whatever else happens on the line begins with `leave`, which makes of that queue the slots that the long way
would have made, so nothing but this module and its door knows that there is another way. What passes:

requests   whole arrays of bulk strings whose name is `plain` (no rule in force looks at it, nothing follows from it), or that the
           rules left alone at a `glance`
replies    whole replies, no more than are owed; no pushes, no attributes, no errors where those tell addresses to translate

Of both also the parts of one that has a large value, which is only counted off.
"""

from collections.abc import Sequence
from typing import Final

from chaosproxy.core.command import Command
from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES
from chaosproxy.core.glance import Glance
from chaosproxy.core.intake import Intake
from chaosproxy.core.line import Line
from chaosproxy.core.match import Exchange
from chaosproxy.core.measuring import SIZES, Body, arguments, count, header_of, unfinished
from chaosproxy.core.returns import Returns
from chaosproxy.core.slot import Slot
from chaosproxy.core.syntax import (
    ARRAYS,
    LINES,
    ProtocolError,
    read_argument,
    read_header,
    read_length,
)
from chaosproxy.core.world import Name, Opening

#: Where an error may say where to go, and that is to be translated.
_NO_ERRORS: Final = LINES.replace(b"-", b"")
#: So many that were answered are kept before they are thrown away together.
_MANY: Final = 1024
#: No command's name ends before this, counted from the command's first byte.
_BEFORE_NAME: Final = 10
_STAR: Final = ord("*")
_BULK: Final = ord("$")
#: Stands for a command where only its connection matters.
_NONE: Final[Sequence[bytes]] = ()
_ANY: Final = Command((b"",), b"", None, "", ())


class Lane:
    """One line's fast lane. `open`: requests may use it; replies may while any that used it is unanswered.

    `taken`: how many bytes of a chunk that has to be received went by it all the same, up to the command that may not.
    """

    __slots__ = (
        "_body", "_counted", "_first", "_here", "_inside", "_intake", "_line", "_lines", "_place", "_reply", "_returns", "_unanswered", "_world", "open", "taken",
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
        # How many of the batch went this way, or began to, and whether any did, since the lane was left last.
        self._place: int | None = None
        self._counted = False
        # The large value that is passing in each direction; of a command's, whose it is and how many arguments follow.
        self._body: Body | None = None
        self._inside: tuple[Name, int] | None = None
        self._reply: Body | None = None
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
        intake = self._intake
        if self._place is not None:
            intake.place, self._place = self._place, None
            intake.handshake = intake.handshake and not self._counted
            self._counted = False
        if self._body is not None:
            self._body.show(intake.framer)
            intake.cutting = True
            self._body = self._inside = None
        if self._reply is not None:
            self._reply.show(self._returns.framer)
            self._reply = None
        for name, since in self.unanswered:
            slot = Slot(name, (), since)
            line.slots.append(slot)
            line.expect.append(slot)
            line.blocking += name.blocking
        self._unanswered.clear()
        self._first = 0

    def requests(self, data: bytes, now: float) -> bool:  # noqa: C901, PLR0915 - every command: one loop
        """Whether these bytes from the client may go on as they are; else they must be received next."""
        if not self.open:
            return False
        find, size_of, known = data.find, SIZES.get, self._world.openings.get
        inside, body, args = self._inside, None, _NONE
        begun: tuple[Name, int] | None = None
        passed: list[tuple[Name, float]] = []
        entry = None
        # All before `start` passes, all before `pos` is read.
        start, end = 0, len(data)
        if self._body is not None and self._body.passes(end):
            return True
        try:
            while start < end:
                if inside is None:
                    found = known(data[start : find(b"\r", start + _BEFORE_NAME)])
                    found = found or self._read_opening(data, start)
                    if found is None:
                        break
                    name, left, size, glance = found
                    pos = start + size
                else:
                    (name, left), glance, pos = inside, None, self._body.owed if self._body else 0
                if glance is None:
                    while left:
                        size = size_of(data[pos : pos + 4]) or size_of(data[pos : pos + 5]) or 0
                        if not size:
                            size = sum(header_of(data, pos)) + 2
                        left -= 1
                        pos += size
                        if pos > end:
                            if inside is None:
                                body = unfinished(data, start, pos - size, size)
                                begun = name, left
                            break
                else:
                    pos, args = arguments(data, pos, left, name.upper)
                if pos > end or (
                    glance and not self._let_alone(glance, args, data[start:pos], now)
                ):
                    break
                if entry is None or name is not entry[0]:
                    entry = name, now
                passed.append(entry)
                start, inside = pos, None
        except ProtocolError:
            pass
        if not (passed or body):
            return False
        idle = not (self._unanswered or self._body)
        self._place = len(passed) + (0 if idle else self._place or 0)
        self._counted = self._counted or bool(passed)
        for passing, _ in passed:
            passing.tally.count += 1
        self._unanswered += passed
        self._body, self._inside = body, begun if body else None
        if start == end or body:
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

    def replies(self, data: bytes, now: float) -> bool:  # noqa: C901 - one step after the other
        """Whether these bytes from the upstream may go on as they are; else they must be received next."""
        unanswered, first, body = self._unanswered, self._first, self._reply
        if not unanswered:
            return False
        if body is not None and body.passes(len(data)):
            return True
        try:
            replies = count(data, self._lines, body.owed if body else 0)
            if replies is None and body is None:
                self._reply = _begins(data)
        except ProtocolError:
            return False
        if replies is None:
            return self._reply is not body
        last = first + replies + (body is not None)
        if not first < last <= len(unanswered):
            return False
        self._reply = None
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


def _begins(data: bytes) -> Body | None:
    """The large value that a chunk begins and does not end, if it is nothing else."""
    header = read_length(data, 0) if data[0] == _BULK else None
    if header is None or sum(header) + 2 <= len(data):
        return None
    return unfinished(data, 0, 0, sum(header) + 2)
