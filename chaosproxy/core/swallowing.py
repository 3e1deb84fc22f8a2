"""Carries a swallowed write out: proves the scratch database, sends the plan, gives the client its reply.

Takes the work at the head of a line; gives hidden commands, then a local reply and an event that says how it was made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from chaosproxy.core import modes, reply_maker, swallow
from chaosproxy.core.decision import Past, Swallow
from chaosproxy.core.effect import Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import end, hidden, local
from chaosproxy.core.engine import Chosen
from chaosproxy.core.line import Line
from chaosproxy.core.reply import elements
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Slot, Work
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import errors_in

Replies = Sequence[bytes] | None


def swallow_write(line: Line, work: Work, chosen: Chosen, now: float) -> bool:
    """Let the server compute the reply without the write (see `swallow`); False while it does."""
    if work.waiting:
        return False
    decision = work.final[1] if work.final is not None else None
    images: dict[bytes, bytes | None] = {}
    if isinstance(decision, Past) and chosen.key is not None:
        images[chosen.key] = decision.image
    renewal = isinstance(decision, Swallow) and decision.renewal
    return _Swallowing(line, work, chosen, images, renewal).start(now)


@dataclass(frozen=True, slots=True)
class _Swallowing:
    """One write being swallowed."""

    line: Line
    work: Work
    chosen: Chosen
    images: Mapping[bytes, bytes | None]
    renewal: bool

    def start(self, now: float) -> bool:
        line, command = self.line, self.work.sent
        queued = line.modes.transaction is not None
        usable = line.db != line.world.scratch_db
        if swallow.waits(command, queued=queued):
            return self._let_pass("blocking")
        if self.renewal and not self.work.renews:
            return self._ask_ttl(now)
        if not line.modes.answers:
            local(line, self.work, b"", now)
            self._end("nothing", "no reply was asked for")
            return True
        if line.asking or not swallow.computable(command, scratch=usable):
            return self._make_up(now)
        if queued:
            proven = usable and line.scratch_proven
            if not (proven or swallow.computable(command, scratch=False)):
                return self._make_up(now)
            self._queue(self._plan(scratch=proven), now)
            return True
        if line.modes.watching and line.expect:
            return False  # the side connection must not be ahead of what the client sent before
        self.work.waiting = 1
        self._prove(usable, now)
        return False

    def _ask_ttl(self, now: float) -> bool:
        """Find out whether the key has a time to live that this command would renew."""
        line, key = self.line, self.chosen.key
        if key is None:
            return self._let_pass("not_applicable")
        self.work.waiting = 1

        def told(replies: Replies, then: float) -> None:
            del then
            self.work.waiting = 0
            if replies is None or replies[0][:2] == b":-" or replies[0][:1] == b"-":
                self._let_pass("no_ttl")
            else:
                self.work.renews = True

        if line.takes_ours:
            line.send_hidden([(b"PTTL", key)], now, told)
        else:
            line.ask_side([encode_command(b"PTTL", key)], line.db, told)
        return False

    def _prove(self, usable: bool, now: float) -> None:
        """Ask whether the scratch database is there and empty, then send the plan that the answer allows."""
        command = self.work.sent

        def gated(replies: Replies, then: float) -> None:
            proven = usable and swallow.proven(replies)
            if proven or swallow.computable(command, scratch=False):
                self._compute(self._plan(scratch=proven), then)
            else:
                self._make_up(then)

        gate = swallow.gate(self.line.modes.db, self.line.world.scratch_db)
        self._carry(gate, (), now, gated)

    def _compute(self, plan: swallow.Plan, now: float) -> None:
        """Have the server compute the reply, and give it to the client."""
        requests, raws, index = plan.alone()

        def computed(replies: Replies, then: float) -> None:
            if replies is None:
                self._make_up(then, "the side connection failed")
                return
            queued, result = replies[index], replies[-1]
            reply = _element(result, index - 1)
            if queued[:1] == b"-":
                # Refused before it was queued: what it would have been told anyway.
                self._reply(queued, plan.how, then)
            elif reply is not None:
                self._reply(plan.restore(reply), plan.how, then)
            else:
                self._make_up(then, errors_in(replies))

        self._carry(requests, raws, now, computed)

    def _plan(self, *, scratch: bool) -> swallow.Plan:
        command = self.work.sent
        if scratch:
            return swallow.in_scratch(
                command, self.line.db, self.line.world.scratch_db, self.images
            )
        token = f"{self.line.connection}-{self.chosen.turn.match}"
        return swallow.on_temporary_keys(command, token, self.images)

    def _carry(
        self,
        requests: Sequence[modes.Args],
        raws: Sequence[bytes | None],
        now: float,
        on_done: Callable[[Replies, float], None],
    ) -> None:
        """Send requests of our own: on the client's connection, or aside if an EXEC there would end its WATCH."""

        def answered(replies: Replies, then: float) -> None:
            if self.line.head is self.work:  # not if it was let go in the meantime
                on_done(replies, then)

        if not self.line.modes.watching:
            self.line.send_hidden(requests, now, answered, raws)
            return
        packed = [
            raw or encode_command(*(arg or b"" for arg in args))
            for args, raw in zip_longest(requests, raws)
        ]
        self.line.ask_side(packed, self.line.db, answered)

    def _reply(self, raw: bytes, how: str, now: float) -> None:
        self.work.waiting = 0
        local(self.line, self.work, raw, now)
        self._end("error" if raw[:1] == b"-" else "ok", how)

    def _end(self, told: Seen, how: str) -> None:
        outcome: Outcome = "fail" if told == "error" else "false_ok"
        if self.images:
            outcome = "ok"
        end(self.line, self.work, self.chosen, told, outcome=outcome, detail=how)

    def _make_up(self, now: float, why: str = "") -> bool:
        """Answer from the reply table; where even the type cannot be known, leave the write alone."""
        line = self.line
        self.work.waiting = 0
        clock = int((now + line.world.epoch) * 1000)
        raw = reply_maker.plausible(self.work.sent, line.modes.protocol, clock)
        if raw is None:
            return self._let_pass("unknown_reply")
        if line.modes.transaction is not None:
            entry = modes.Entry(1, None, Element(inserted=raw), absent=True)
            line.modes.transaction.entries.append(entry)
            raw = b"+QUEUED\r\n"
        detail = "reply made from the reply table" + (f": {why}" if why else "")
        self._reply(raw, detail, now)
        return True

    def _let_pass(self, reason: str) -> bool:
        """It cannot be swallowed truthfully: forward it, and say why."""
        self.line.skip(self.chosen, reason)
        self.work.final = None
        return True

    def _queue(self, plan: swallow.Plan, now: float) -> None:
        """Inside the client's transaction the write runs on its copies; only its element reaches the client."""
        line, work = self.line, self.work
        self._hide(plan.before, now)
        work.swallowed = (self.chosen, plan.how, "ok" if self.images else "false_ok")
        element = Element(work=work, renamed=plan.renamed)
        slot = Slot(work.name, work.args, now, work, element=element)
        line.slots.append(slot)
        line.send(slot, plan.raw or encode_command(*(arg or b"" for arg in plan.args)))
        self._hide(plan.after, now)
        line.forget(work, "ended")
        work.final = None
        line.head = None

    def _hide(self, requests: Sequence[modes.Args], now: float) -> None:
        for request in requests:
            packed = tuple(arg or b"" for arg in request)
            hidden(self.line, packed, now, Element(hidden=True))


def _element(raw: bytes, index: int) -> bytes | None:
    """One element of EXEC's array; None if it is none, or has no such element."""
    if raw[:1] != b"*":
        return None
    try:
        found = elements(raw)[1]
    except ProtocolError:  # nested in ways that no server's are
        return None
    return found[index] if index < len(found) else None
