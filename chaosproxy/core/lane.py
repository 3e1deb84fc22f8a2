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
from chaosproxy.core.measuring import Body, begins, count
from chaosproxy.core.modes import Args
from chaosproxy.core.opening import Opening
from chaosproxy.core.reading import Inside, Passed, Reading, read
from chaosproxy.core.resp import RequestFrame
from chaosproxy.core.returns import Returns
from chaosproxy.core.slot import Slot
from chaosproxy.core.strides import BULKS, END, MOST_AT_ONCE, OK, OKS, is_long_reply, replies
from chaosproxy.core.syntax import LINES, ProtocolError
from chaosproxy.core.tally import MOST_TIMES, Tally
from chaosproxy.core.world import Name

#: Where an error may say where to go, and that is to be translated.
_NO_ERRORS: Final = LINES.replace(b"-", b"")
#: So many that were answered are kept before they are thrown away together.
_MANY: Final = 1024
#: So many replies may be owed to a client, those of commands that came together for one; until then it is not read.
MOST_UNANSWERED: Final = 250_000
#: Nothing is unanswered: an empty list that is everybody's, so nobody's to change.
_NONE: Final[list[Passed]] = []
#: Stands for a command where only its connection matters.
_ANY: Final = Command((b"",), b"", None, "", ())
#: Stands for how a command begins where none has come.
_NOTHING: Final = Opening(Name(b"", Tally(""), False, False, False, False, False), b"", 0)


class Lane:
    """One line's fast lane. `open`: requests may use it; replies may while any that used it is unanswered.

    `taken`: how many bytes of a chunk that has to be received went by it all the same, up to the command that may not. `upto`: how
    many bytes that command is, if a rule is to act on it; 0: all that is left has to be received.
    """

    __slots__ = (
        "_body", "_counted", "_first", "_here", "_inside", "_intake", "_joined", "_line", "_lines", "_opening", "_owed", "_place", "_reply", "_returns",
        "_since", "_unanswered", "open", "taken", "upto",
    )  # fmt: skip

    def __init__(self, line: Line, intake: Intake, returns: Returns) -> None:
        self._line = line
        self._lines = LINES if line.translate is None else _NO_ERRORS
        self._intake = intake
        self._returns = returns
        self._here: Exchange | None = None
        # What those before `_first` say is answered; `_owed` is how many commands the others are. Where it is empty all that are owed began as `_opening` says and
        # went on at `_since`: this is what comes most.
        self._unanswered: list[Passed] = _NONE
        self._first = self._owed = 0
        self._since = 0.0
        # How the command began that came last.
        self._opening = _NOTHING
        # How many of the batch went this way, or began to, and whether any did, since the lane was left last.
        self._place: int | None = None
        self._counted = False
        # The large value that is passing in each direction; of a command's, whose it is and how many arguments follow.
        self._body: Body | None = None
        self._inside: Inside | None = None
        self._reply: Body | None = None
        self.open = False
        self._joined = True
        self.taken = self.upto = 0

    def __len__(self) -> int:
        """How many commands that went this way are unanswered."""
        return self._owed

    @property
    def crowded(self) -> bool:
        """Whether so many commands are unanswered, in whichever way, that no more are taken for now."""
        return len(self._line.slots) + len(self._unanswered) > MOST_UNANSWERED

    @property
    def unanswered(self) -> Sequence[Passed]:
        """The commands that went this way and are unanswered."""
        if self._owed and not self._unanswered:
            return [(self._opening.name, self._since, self._owed, ())]
        return self._unanswered[self._first :]

    def look(self) -> None:
        """Something has happened on the line: see whether the lane is open now."""
        line = self._line
        self.open = self._joined and self._quiet and not (line.slots or line.expect)

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

    def close(self) -> None:
        """One of the two sides is not there: nothing goes this way until they `join`, and what is unanswered will not be answered."""
        self.open = self._joined = False
        self._unanswered, self._reply = _NONE, None
        self._first = self._owed = 0

    def join(self) -> None:
        """Both sides are there."""
        self._joined = True
        self.look()

    def leave(self) -> None:
        """Something is about to happen on the line: from here on what is unanswered is answered the long way."""
        self.open = False
        intake = self._intake
        if self._place is not None:
            intake.place, self._place = self._place, None
            intake.handshake = intake.handshake and not (self._counted or intake.place)
            self._counted = False
        if self._body is not None and self._inside is not None:
            intake.decided = not self._inside[0].plain
            intake.framer = self._body.show(intake.framer)
            intake.cutting = True
            self._body = self._inside = None
        if self._reply is not None:
            self._returns.framer = self._reply.show(self._returns.framer)
            self._reply = None
        for passed in self.unanswered:
            self._wait_for(*passed)
        self._unanswered = _NONE
        self._first = self._owed = 0

    def requests(self, data: bytes, now: float) -> bool:
        """Whether these bytes from the client may go on as they are; else they must be received next."""
        if not self.open:
            return False
        if self._owed or self._body:
            return self._each(data, now)
        # What comes most: short commands of the kind that came last, and nothing is unanswered.
        opening, most = self._opening, MOST_AT_ONCE
        if 0 < len(data) <= most and (not (found := opening.all(data))[-1]) is opening.unkeyed:
            times, glance = len(found), opening.glance
            if glance is not None and not glance.lets_by(found, times):
                return self._each(data, now)
        elif opening.is_long(data, now):
            times = 1
        else:
            return self._each(data, now)
        opening.tally.count += times
        self._since = now
        self._owed = self._place = times
        return True

    def follow(self, data: bytes, now: float) -> int:
        """As `requests`, behind what is under way: how many bytes may go on, all that is to be done for them being done.

        Of what is under way nothing may change what a command means.
        """
        line = self._line
        self.upto = 0
        if not self._quiet or not all(slot.simple for slot in line.expect):
            return 0
        found = self._read(data, now)
        for passed in found.passed:
            passed[0].tally.count += passed[2]
            self._intake.place += passed[2]
            self._wait_for(*passed)
        self._intake.decided = found.inside is not None and not found.inside[0].plain
        if found.passed:
            self._intake.handshake = False
            line.out_upstream.append(data[: found.taken])
        return found.taken

    def _wait_for(self, name: Name, since: float, times: int, args: Args) -> None:
        """Commands that were forwarded are answered the long way, those of a kind in one slot."""
        line = self._line
        # Those that block never share a slot: each has come by itself.
        slot = Slot(name, args, since, frames=times, times=times)
        line.slots.append(slot)
        line.expect.append(slot)
        line.blocking += name.blocking

    def _each(self, data: bytes, now: float) -> bool:
        """As `requests`: command by command, those of one kind together."""
        if self._body is not None and self._body.passes(len(data)):
            return True
        if not self._unanswered:
            self._unanswered = [*self.unanswered]
        found = self._read(data, now)
        if not (found.passed or found.body):
            return False
        idle, place = not (self._owed or self._body), self._place or 0
        if idle:
            self._counted, place = self._counted or place > 0, 0
        for name, _, times, _ in found.passed:
            name.tally.count += times
            place += times
            self._owed += times
        self._place = place
        self._unanswered += found.passed
        self.open = not self.crowded
        self._body, self._inside = found.body, found.inside
        if found.taken == len(data) or found.body:
            return True
        self.taken = found.taken
        return False

    def _read(self, data: bytes, now: float) -> Reading:
        """Read a chunk command by command."""
        found = read(
            self._line.world, data, now, self._body, self._inside, self._opening, self._let_alone
        )
        self._opening, self.upto = found.opening, found.upto
        return found

    def _let_alone(self, glance: Glance, args: Sequence[bytes], raw: bytes, now: float) -> bool:
        """Whether the rules leave a command alone; what they have chosen for it is kept for the long way."""
        line = self._line
        here = self._here = self._here or line.where(_ANY)
        chosen = glance.choose(args, raw, here, line.where, now)
        if chosen == []:
            return True
        self._intake.chosen = chosen
        self._intake.frame = RequestFrame([*args], raw, whole=True, inline=False)
        return False

    def replies(self, data: bytes, now: float) -> bool:
        """Whether these bytes from the upstream may go on as they are; else see `others`.

        Knows what comes most: short replies, no more than are owed; or a long one.
        """
        owed = self._owed
        if not owed or self._reply is not None:
            return False
        size = len(data)
        if data == OK or (size < len(BULKS) and data.startswith(BULKS[size]) and data[-2:] == END):
            number = 1
        elif not size % len(OK) and OKS.startswith(data):
            number = size // len(OK)
        elif 0 < size <= MOST_AT_ONCE and not (found := replies(data))[-1]:
            number = len(found)
        else:
            number = int(is_long_reply(data))
        if number == 1 and not self._unanswered:
            self._owed = owed - 1
            times = (timed := self._opening.timed).times
            times.append(now - self._since)
            if len(times) >= MOST_TIMES:
                timed.sort()
            return True
        if not 0 < number <= owed:
            return False
        self._answered(number, now)
        return True

    def others(self, data: bytes, now: float) -> bool:
        """As `replies`, which it follows: those of several values, errors, and large ones in parts; else they must be received next."""
        owed, body = self._owed, self._reply
        if not owed:
            return False
        if body is not None and body.passes(len(data)):
            return True
        try:
            number = self._count(data)
        except ProtocolError:
            return False
        if number is None:
            return self._reply is not body
        number += body is not None
        if not 0 < number <= owed:
            return False
        self._reply = None
        self._answered(number, now)
        return True

    def _count(self, data: bytes) -> int | None:
        """How many replies a chunk is, behind the large one that has begun; None if it is not just that."""
        body = self._reply
        if body is not None:
            return count(data, self._lines, body.owed)
        number = count(data, self._lines, 0)
        if number is None:
            self._reply = begins(data)
        return number

    def _answered(self, number: int, now: float) -> None:
        """So many replies have passed."""
        self._owed -= number
        unanswered, first = self._unanswered, self._first
        if not unanswered:
            self._opening.timed.took(now - self._since, number)
            return
        while number:
            name, since, times, args = unanswered[first]
            if times > number:
                unanswered[first] = name, since, times - number, args
                times = number
            else:
                first += 1
            number -= times
            if not name.blocking:
                name.tally.took(now - since, times)
        if first == len(unanswered):
            self._unanswered, first = _NONE, 0
        elif first >= _MANY:
            del unanswered[:first]
            first = 0
        self._first = first
