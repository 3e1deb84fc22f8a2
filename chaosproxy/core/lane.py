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
from chaosproxy.core.glance import Glance
from chaosproxy.core.intake import Intake
from chaosproxy.core.line import Line
from chaosproxy.core.match import Exchange
from chaosproxy.core.measuring import Body, arguments, begins, count, ends, unfinished
from chaosproxy.core.opening import Opening, read_opening
from chaosproxy.core.returns import Returns
from chaosproxy.core.slot import Slot
from chaosproxy.core.strides import is_long_reply, replies, whole_reply
from chaosproxy.core.syntax import LINES, ProtocolError
from chaosproxy.core.world import Name, Tally

#: Where an error may say where to go, and that is to be translated.
_NO_ERRORS: Final = LINES.replace(b"-", b"")
#: So many that were answered are kept before they are thrown away together.
_MANY: Final = 1024
#: So many replies may be owed to a client, those of commands that came together for one; until then it is not read.
MOST_UNANSWERED: Final = 250_000
#: No command's name ends before this, counted from the command's first byte.
_BEFORE_NAME: Final = 10
#: Stands for a command where only its connection matters.
_NONE: Final[Sequence[bytes]] = ()
_ANY: Final = Command((b"",), b"", None, "", ())
#: Stands for how a command begins where none has come.
_NOTHING: Final = Opening(Name(b"", Tally(""), False, False, False, False, False), b"", 0)

#: Commands that went on: their name, when they did, and how many of it one behind the other.
_Passed = tuple[Name, float, int]


class Lane:
    """One line's fast lane. `open`: requests may use it; replies may while any that used it is unanswered.

    `taken`: how many bytes of a chunk that has to be received went by it all the same, up to the command that may not. `upto`: how
    many bytes that command is, if a rule is to act on it; 0: all that is left has to be received.
    """

    __slots__ = (
        "_body", "_counted", "_first", "_here", "_inside", "_intake", "_line", "_lines", "_opening", "_owed", "_place", "_reply", "_returns", "_unanswered", "_world", "open", "taken", "upto",
    )  # fmt: skip

    def __init__(self, line: Line, intake: Intake, returns: Returns) -> None:
        self._line = line
        self._lines = LINES if line.translate is None else _NO_ERRORS
        self._world = line.world
        self._intake = intake
        self._returns = returns
        self._here: Exchange | None = None
        # What those before `_first` say is answered; `_owed` is how many commands the others are. An empty list takes nothing,
        # which a deque does not: most connections are idle.
        self._unanswered: list[_Passed] = []
        self._first = self._owed = 0
        # How the command began that came last.
        self._opening = _NOTHING
        # How many of the batch went this way, or began to, and whether any did, since the lane was left last.
        self._place: int | None = None
        self._counted = False
        # The large value that is passing in each direction; of a command's, whose it is and how many arguments follow.
        self._body: Body | None = None
        self._inside: tuple[Name, int] | None = None
        self._reply: Body | None = None
        self.open = False
        self.taken = self.upto = 0

    def __len__(self) -> int:
        """How many commands that went this way are unanswered."""
        return self._owed

    @property
    def crowded(self) -> bool:
        """Whether so many commands are unanswered, in whichever way, that no more are taken for now."""
        return len(self._line.slots) + len(self._unanswered) > MOST_UNANSWERED

    @property
    def unanswered(self) -> Sequence[_Passed]:
        """The commands that went this way and are unanswered."""
        return self._unanswered[self._first :]

    def look(self) -> None:
        """Something has happened on the line: see whether the lane is open now."""
        line = self._line
        self.open = self._quiet and not (line.slots or line.expect)

    @property
    def _quiet(self) -> bool:
        """Whether nothing keeps a command that no rule acts on from being forwarded at once."""
        line, returns = self._line, self._returns
        return (
            not (line.closed or line.raw or line.lost)
            and line.head is None
            and line.upstream_silent is None
            and line.client_silent is None
            and line.modes.simple
            and self._intake.between
            and not (returns.framer.started or returns.leaving.ended)
        )

    def leave(self) -> None:
        """Something is about to happen on the line: from here on what is unanswered is answered the long way."""
        self.open = False
        intake = self._intake
        if self._place is not None:
            intake.place, self._place = self._place, None
            intake.handshake = intake.handshake and not self._counted
            self._counted = False
        if self._body is not None:
            intake.framer = self._body.show(intake.framer)
            intake.cutting = True
            self._body = self._inside = None
        if self._reply is not None:
            self._returns.framer = self._reply.show(self._returns.framer)
            self._reply = None
        for passed in self.unanswered:
            self._wait_for(*passed)
        self._unanswered.clear()
        self._first = self._owed = 0

    def requests(self, data: bytes, now: float) -> bool:
        """Whether these bytes from the client may go on as they are; else they must be received next."""
        if not self.open:
            return False
        if not (self._owed or self._body):
            # What comes most: one command of the kind that came last, and nothing is unanswered.
            opening = self._opening
            match, end = opening.whole(data), len(data)
            if match and match.lastindex == opening.rest:
                match, end = opening.ends_long(data, 0)
            if match and end == len(data) and (opening.glance is None or opening.alone(match, now)):
                opening.tally.count += 1
                self._unanswered.append((opening.name, now, 1))
                self._owed = self._place = 1
                self._counted = True
                return True
        elif self._body and self._body.passes(len(data)):
            return True
        return self._each(data, now)

    def follow(self, data: bytes, now: float) -> int:
        """As `requests`, behind what is under way: how many bytes may go on, all that is to be done for them being done.

        Of what is under way nothing may change what a command means.
        """
        line = self._line
        self.upto = 0
        if not self._quiet or not all(slot.simple for slot in line.expect):
            return 0
        passed, taken, _, _ = self._read(data, now)
        for name, since, times in passed:
            name.tally.count += times
            self._intake.place += times
            self._wait_for(name, since, times)
        if passed:
            self._intake.handshake = False
            line.out_upstream.append(data[:taken])
        return taken

    def _wait_for(self, name: Name, since: float, times: int) -> None:
        """Commands that were forwarded are answered the long way, those of a kind in one slot."""
        line = self._line
        # Whether a command blocks is counted slot by slot.
        number, share = (times, 1) if name.blocking else (1, times)
        for _ in range(number):
            slot = Slot(name, (), since, frames=share, times=share)
            line.slots.append(slot)
            line.expect.append(slot)
            line.blocking += name.blocking

    def _each(self, data: bytes, now: float) -> bool:
        """As `requests`: command by command, those of one kind together."""
        passed, taken, body, begun = self._read(data, now)
        if not (passed or body):
            return False
        idle = not (self._owed or self._body)
        place = 0 if idle else self._place or 0
        for name, _, times in passed:
            name.tally.count += times
            place += times
            self._owed += times
        self._place = place
        self._counted = self._counted or bool(passed)
        self._unanswered += passed
        self.open = not self.crowded
        self._body, self._inside = body, begun if body else None
        if taken == len(data) or body:
            return True
        self.taken = taken
        return False

    def _read(
        self, data: bytes, now: float
    ) -> tuple[list[_Passed], int, Body | None, tuple[Name, int] | None]:
        """Read a chunk: which commands pass, where they end, and the large value that it breaks off in, with whose it is."""
        known, find = self._world.openings.get, data.find
        inside, body = self._inside, None
        begun: tuple[Name, int] | None = None
        passed: list[_Passed] = []
        # All before `start` passes, all before `pos` is read.
        start, end = 0, len(data)
        try:
            while start < end:
                times, args = 1, _NONE
                if inside is None:
                    opening = known(data[start : find(b"\r", start + _BEFORE_NAME)])
                    opening = opening or read_opening(self._world, data, start)
                    if opening is None:
                        break
                    self._opening = opening
                    name, left, glance = opening.name, opening.arguments, opening.glance
                    times, pos = opening.alike(data, start, now)
                    if times:
                        passed.append((name, now, times))
                        start = pos
                        continue
                    times, pos = 1, start + opening.size
                else:
                    (name, left), glance, pos = inside, None, self._body.owed if self._body else 0
                if glance is not None:
                    pos, args = arguments(data, pos, left, name.upper)
                else:
                    pos, missing, size = ends(data, pos, left)
                    if pos > end and inside is None:
                        body = unfinished(data, start, pos - size, size)
                        begun = name, missing
                if pos > end:
                    break
                if glance and not self._let_alone(glance, args, data[start:pos], now):
                    self.upto = pos - start
                    break
                passed.append((name, now, 1))
                start, inside = pos, None
        except ProtocolError:
            pass
        return passed, start, body, begun

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
        if (
            self._owed == 1
            and not self._reply
            and (((match := whole_reply(data)) and not match.lastindex) or is_long_reply(data))
        ):
            name, since, _ = self._unanswered.pop()
            self._owed = 0
            if self._first:
                self._unanswered.clear()
                self._first = 0
            if not name.blocking:
                name.tally.took(now - since)
            return True
        if not self._owed:
            return False
        body = self._reply
        if body is not None and body.passes(len(data)):
            return True
        try:
            number = self._count(data)
        except ProtocolError:
            return False
        if number is None:
            return self._reply is not body
        number += body is not None
        if not 0 < number <= self._owed:
            return False
        self._reply = None
        self._answered(number, now)
        return True

    def _count(self, data: bytes) -> int | None:
        """How many replies a chunk is, behind the large one that has begun; None if it is not just that."""
        body = self._reply
        if body is not None:
            return count(data, self._lines, body.owed)
        if self._owed > 1:
            found = replies(data)
            if not found[-1]:
                return len(found)
        number = count(data, self._lines, 0)
        if number is None:
            self._reply = begins(data)
        return number

    def _answered(self, number: int, now: float) -> None:
        """So many replies have passed."""
        self._owed -= number
        unanswered, first = self._unanswered, self._first
        while number:
            name, since, times = unanswered[first]
            if times > number:
                unanswered[first] = name, since, times - number
                times = number
            else:
                first += 1
            number -= times
            if not name.blocking:
                name.tally.took(now - since, times)
        if first == len(unanswered) or first >= _MANY:
            del unanswered[:first]
            first = 0
        self._first = first
