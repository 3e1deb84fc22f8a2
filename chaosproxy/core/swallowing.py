"""Carries a swallowed write out: proves the scratch database, sends the plan, gives the client its reply.

Takes the work at the head of a line; gives hidden commands, then a local reply and an event that says how it was made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chaosproxy.core import modes, reply_maker, rights, swallow
from chaosproxy.core.computing import Replies, ask_for_copies, carry, let_pass, scratch_usable
from chaosproxy.core.effect import Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import REFUSED, end, hidden, insert, local
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.passing import TOO_LARGE
from chaosproxy.core.reach import is_a_modules
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Slot, Work
from chaosproxy.core.value import errors_in

NO_COPIES = "no copies can be made"
SIDE_FAILED = "the side connection failed"
OTHER_RIGHTS = "the side connection is another user"
#: Its reply counts for what it was given: keys it did not declare were not there.
LEFT = ", where the script wrote keys that it did not declare"


def swallow_write(line: Line, work: Work, chosen: Chosen, now: float) -> bool:
    """Let the server compute the reply without the write (see `swallow`); False while it does."""
    if work.waiting:
        return False
    return _Swallowing(line, work, chosen).start(now)


@dataclass(frozen=True, slots=True)
class _Swallowing:
    """One write being swallowed."""

    line: Line
    work: Work
    chosen: Chosen

    @property
    def waits(self) -> bool:
        """Whether it may block; one that would is left alone."""
        return swallow.waits(self.work.sent, queued=self.line.modes.transaction is not None)

    def start(self, now: float) -> bool:
        line, command = self.line, self.work.sent
        if line.modes.restricted:  # by the server itself, as all but what a subscriber may say
            return self._let_pass("refused")
        if not line.modes.answers:
            if self.waits:
                return self._let_pass("blocking")
            local(line, self.work, b"", now)
            self._end("nothing", "no reply was asked for")
            return True
        scratch = scratch_usable(line) and swallow.computable(command, scratch=True)
        on_keys = swallow.computable(command, scratch=False)
        transaction = line.modes.transaction
        if transaction is not None:
            if not (scratch or on_keys):
                return self._make_up(now)
            if not line.means.allow(scratch=scratch):
                return self._make_up(now, NO_COPIES)
            if self._made(now) is None:
                return self._try_copies(scratch, now)
            self._queue(self._plan(scratch=scratch), now)
            return True
        if line.modes.watching and line.expect:
            return False  # the side connection must not be ahead of what the client sent before
        if line.modes.watching and not line.world.same_rights(line.modes.user):
            return self._ask_rights(scratch, on_keys)
        return self._alone(scratch, on_keys, now)

    def _ask_rights(self, scratch: bool, on_keys: bool) -> bool:
        """Find out whether the client may do it; what it may not do the server refuses."""

        def asked(allowed: bool | None, then: float) -> None:
            if allowed is False:
                self._let_pass("refused")
            elif allowed is None and (scratch or on_keys):
                self._make_up(then, OTHER_RIGHTS)
            else:
                self._alone(scratch, on_keys, then)

        self.work.waiting = 1
        rights.ask(self.line, self.work, asked)
        return False

    def _alone(self, scratch: bool, on_keys: bool, now: float) -> bool:
        """In no transaction of the client's; False: not yet."""
        if self.line.asking or not (scratch or on_keys):
            return self._make_up(now)
        self.work.waiting = 1
        self._prove(scratch, on_keys, now)
        return False

    def _prove(self, scratch: bool, on_keys: bool, now: float) -> None:
        """Find out whether a transaction is allowed, and the scratch database there and empty; send the plan for that."""

        def gated(replies: Replies, then: float) -> None:
            if replies is None:
                self._make_up(then, SIDE_FAILED)
            elif not swallow.transactions_allowed(replies):
                self._make_up(then, errors_in(replies[:1]))
            elif scratch and swallow.proven(swallow.carried_out(replies)):
                self._compute(self._plan(scratch=True), then)
            elif on_keys:
                self._compute(self._plan(scratch=False), then)
            else:
                self._make_up(then)

        gate = swallow.gate_alone(self.line.modes.db, self.line.world.scratch_db)
        self._carry(gate, (), now, gated)

    def _compute(self, plan: swallow.Plan, now: float) -> None:
        """Have the server compute the reply, and give it to the client."""
        requests, raws, index = plan.alone()

        def computed(replies: Replies, then: float) -> None:
            if replies is None:
                self._make_up(then, SIDE_FAILED)
                return
            if replies[-1] == TOO_LARGE:
                self._let_pass("too_large")
                return
            queued, array = replies[index], swallow.carried_out(replies) or []
            if queued[:1] == b"-":
                self._refused(plan, queued, then)
            elif len(array) != len(requests) - 2 or errors_in(array[: index - 1]):
                self._make_up(then, errors_in(array or replies))
            elif self.waits and swallow.is_null(array[index - 1]):
                self._let_pass("blocking")
            elif array[index - 1][:1] == b"-" and is_a_modules(self.work.sent.name):
                self._let_pass("unknown_reply")  # there are no copies of keys it hides
            else:
                how = plan.how + self._clean(plan, array, then)
                self._reply(plan.restore(array[index - 1]), how, then)

        self._carry(requests, raws, now, computed)

    def _refused(self, plan: swallow.Plan, error: bytes, now: float) -> None:
        """The write was refused before it was queued: what the client would have been told anyway.

        Unless it is not the client who may not do it, or not the client's key.
        """
        other = bool(plan.names) or self.line.modes.watching
        if (other and error.startswith((b"-NOPERM", b"-NOAUTH"))) or self._only_queued(error):
            self._make_up(now, errors_in([error]))
        else:
            self._reply(plan.restore(error), plan.how, now)

    def _only_queued(self, error: bytes) -> bool:
        """Whether a server short of memory, which takes no command into a transaction, would carry this one out."""
        spec = self.work.sent.spec
        return error.startswith(b"-OOM") and spec is not None and "denyoom" not in spec.flags

    def _clean(self, plan: swallow.Plan, array: Sequence[bytes], now: float) -> str:
        """Remove what a script has left in the scratch database; give what the event says of it."""
        left = swallow.leftovers(array[-2]) if plan.scans else []
        if not left:
            return ""
        there, back = b"%d" % self.line.world.scratch_db, b"%d" % self.line.db
        self._carry([(b"SELECT", there), (b"DEL", *left), (b"SELECT", back)], (), now, _nothing)
        return LEFT

    def _plan(self, *, scratch: bool) -> swallow.Plan:
        command = self.work.sent
        if scratch:
            return swallow.in_scratch(command, self.line.db, self.line.world.scratch_db)
        return swallow.on_temporary_keys(command, self._token)

    @property
    def _token(self) -> str:
        return f"{self.line.connection}-{self.chosen.turn.match}"

    def _carry(
        self,
        requests: Sequence[modes.Args],
        raws: Sequence[bytes | None],
        now: float,
        on_done: Callable[[Replies, float], None],
    ) -> None:
        """Send requests of our own: on the client's connection, or aside if an EXEC there would end its WATCH."""
        watching = self.line.modes.watching
        carry(self.line, self.work, requests, now, on_done, raws=raws, aside=watching)

    def _reply(self, raw: bytes, how: str, now: float, inserted: Element | None = None) -> None:
        self.work.waiting = 0
        local(self.line, self.work, raw, now)
        self._end("error" if raw[:1] == b"-" else "ok", how, inserted)

    def _end(self, told: Seen, how: str, inserted: Element | None = None) -> None:
        outcome = self._outcome(told)
        end(self.line, self.work, self.chosen, told, outcome=outcome, detail=how, inserted=inserted)

    def _outcome(self, told: Seen) -> Outcome:
        return "fail" if told == "error" else "false_ok"

    # -- where no copy can give the reply

    def _made(self, now: float) -> bytes | None:
        clock = int((now + self.line.world.epoch) * 1000)
        return reply_maker.plausible(self.work.sent, self.line.modes.protocol, clock)

    def _make_up(self, now: float, why: str = "") -> bool:
        """Answer from the reply table; where even the type cannot be known, leave the write alone. False: not yet."""
        line, command = self.line, self.work.sent
        self.work.waiting = 0
        raw = self._made(now)
        if self.waits or raw is None or command.spec is None:
            return self._let_pass("blocking" if self.waits else "unknown_reply")
        how = _made_up(why)
        transaction = line.modes.transaction
        if not (transaction or line.modes.watching or line.asking):
            self._ask_refusal(raw, how, now)
            return False
        forbidden = transaction is not None and command.name in line.means.forbidden
        if forbidden or not command.spec.takes(len(command.args)):
            return self._let_pass("refused")
        if transaction is not None:
            instead = swallow.stand_in(command, self._token, line.means)
            if instead is not None:
                self._queue(swallow.Plan((), instead, None, (), (), how), now, raw)
                return True
            self._reply(b"+QUEUED\r\n", how, now, insert(transaction, raw))
        else:
            self._reply(raw, how, now)
        return True

    def _ask_refusal(self, raw: bytes, how: str, now: float) -> None:
        """Answer with `raw`, unless the server would refuse the command: it queues it, in a transaction that cannot be carried out.

        MULTI goes alone: if it is not allowed, what follows it would be carried out.
        """
        line, work = self.line, self.work
        work.waiting = 1

        def begun(replies: Sequence[bytes], then: float) -> None:
            if replies[0] == b"+OK\r\n":
                line.send_hidden([work.args, REFUSED, (b"EXEC",)], then, asked, [work.raw])
            elif replies[0].startswith(b"-NOAUTH"):
                asked(replies, then)
            elif work.sent.spec is None or work.sent.spec.takes(len(work.args)):
                self._reply(raw, _made_up(errors_in(replies)), then)
            else:
                self._let_pass("refused")

        def asked(replies: Sequence[bytes], then: float) -> None:
            if replies[0][:1] == b"-" and not self._only_queued(replies[0]):
                self._reply(replies[0], "refused by the server", then)
            else:
                self._reply(raw, how, then)

        line.send_hidden([(b"MULTI",)], now, begun)

    def _let_pass(self, reason: str) -> bool:
        """It cannot be swallowed truthfully."""
        self.work.waiting = 0
        return let_pass(self.line, self.work, self.chosen, reason)

    # -- inside the client's transaction

    def _try_copies(self, scratch: bool, now: float) -> bool:
        """Queue the write if copies can be made: once one has failed inside nobody knows the reply. False: not yet."""

        def tried(why_not: str, then: float) -> None:
            if why_not:
                self._let_pass(why_not)
            else:
                self._queue(self._plan(scratch=scratch), then)

        ask_for_copies(self.line, self.work, self._token, now, tried)
        return False

    def _queue(self, plan: swallow.Plan, now: float, instead: bytes | None = None) -> None:
        """Inside the client's transaction the write runs on its copies; only its element is seen, or what is put `instead`."""
        line, work = self.line, self.work
        failed: list[bytes] = []

        def copied(raw: bytes) -> bytes:
            failed.extend([raw] if raw[:1] == b"-" else [])
            return raw

        def computed(raw: bytes) -> bytes:
            if instead is not None:
                return instead
            made = self._made(line.now) if failed else None
            if made is None:
                return plan.restore(raw)
            work.swallowed = (self.chosen, _made_up(errors_in(failed)), self._outcome("ok"))
            return made

        def left(raw: bytes) -> bytes:
            keys = swallow.leftovers(raw)
            if keys:
                # What the client sent behind EXEC may have selected another database by now.
                line.ask_side([encode_command(b"DEL", *keys)], line.world.scratch_db, _nothing)
                work.swallowed = (self.chosen, plan.how + LEFT, self._outcome("ok"))
            return raw

        for request in plan.before:
            self._hide(request, now, copied)
        work.swallowed = (self.chosen, plan.how, self._outcome("ok"))
        element = Element(work=work, change=computed)
        slot = Slot(work.name, work.args, now, work, element=element)
        line.slots.append(slot)
        line.send(slot, plan.raw or encode_command(*(arg or b"" for arg in plan.args)))
        for request in plan.after:
            self._hide(request, now, left if request[0] == b"SCAN" else None)
        line.forget(work, "ended")
        work.final = None
        line.head = None

    def _hide(
        self, request: modes.Args, now: float, change: Callable[[bytes], bytes] | None
    ) -> None:
        packed = tuple(arg or b"" for arg in request)
        hidden(self.line, packed, now, Element(hidden=True, change=change))


def _made_up(why: str) -> str:
    return "reply made from the reply table" + (f": {why}" if why else "")


def _nothing(_replies: Replies, _now: float) -> None:
    pass
