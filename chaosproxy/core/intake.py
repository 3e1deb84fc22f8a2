"""From the client to the upstream: each request meets the rules, and goes on, waits, or ends here.

Takes the client's bytes; gives the upstream's bytes and reply slots. Requests are taken one at a time: while the one at the
head waits, all behind it on this connection wait too, as they would behind it in a socket.
"""

from typing import assert_never

from chaosproxy.core import before, modes, pretending, remembering, swallow, undoing
from chaosproxy.core.after import works_of
from chaosproxy.core.awaited import MOST_AT_ONCE, is_full
from chaosproxy.core.beginning import judge
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Answer, Cut, NoRenewal, Past, Silence, Swallow
from chaosproxy.core.effect import Applied, ProtocolFault
from chaosproxy.core.ending import answer, cut, lose, silence
from chaosproxy.core.failing import meets, refuse_late
from chaosproxy.core.framers import NO_REQUESTS, own
from chaosproxy.core.line import FOREVER, Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.past import read_past
from chaosproxy.core.renewing import withhold
from chaosproxy.core.resp import RequestFrame
from chaosproxy.core.slot import Slot, Stage, Work
from chaosproxy.core.swallowing import swallow_write
from chaosproxy.core.syntax import ProtocolError

#: Stages in which the head waits for a time.
TIMED = (Stage.DELAY, Stage.HOLD, Stage.SEND)


class Intake:
    """The client's side of one line. `decided`: of the request that is `cutting` the rules want nothing, that is counted."""

    __slots__ = ("_before", "chosen", "cutting", "decided", "ended", "frame", "framer", "handshake", "left", "line", "place", "raw", "stopped", "waiting")  # fmt: skip

    def __init__(self, line: Line) -> None:
        self.line, self.framer = line, NO_REQUESTS
        self.raw = self.ended = self.cutting = self.decided = self.stopped = False
        self.handshake, self.waiting, self.place, self.left = True, 0, 0, MOST_AT_ONCE
        self._before: CommandSpec | None = None
        #: What the rules have chosen already for the next command, and that command, if it is all that is received next.
        self.chosen: list[Chosen] | None = None
        self.frame: RequestFrame | None = None

    def receive(self, data: bytes, now: float, *, again: bool = False) -> None:
        """Bytes have come from the client; `again`: right behind others."""
        if self._idle and not again:
            self.place = 0
        self.waiting += len(data)
        frame, self.frame = self.frame, None
        if frame is not None and self.left > 0 and not is_full(self.line):
            self._take(frame, now)
        else:
            self.framer = own(self.framer)
            self.framer.feed(data)
        self.pump(now)

    @property
    def between(self) -> bool:
        """Whether all that came was sent on, and the next byte begins a command."""
        return not (self.waiting or self.cutting or self.raw or self.ended)

    @property
    def _idle(self) -> bool:
        """Whether the client waits for nothing and has begun nothing; pushes are nothing that it waits for."""
        owed = any(slot.name.upper for slot in self.line.slots)
        return not (owed or self.waiting or self.cutting or self.line.head)

    def pump(self, now: float) -> None:
        """Take what can be taken now."""
        line, self.stopped = self.line, False
        while not (line.closed or line.lost or self.ended) and line.upstream_silent is None:
            if line.world.held:
                return
            if line.raw or self.raw:
                self.pass_on()
                return
            if line.head is not None:
                if not self._advance(line.head, now):
                    return
                continue
            if self.left <= 0 or is_full(line):
                self.stopped = True
                return
            try:
                frame = self.framer.next()
            except ProtocolError as error:
                # The server will say what it thinks of it.
                self.raw = True
                line.effects.append(ProtocolFault("client", error.text))
                continue
            if frame is None:
                self._pass_partial(now)
                return
            self._take(frame, now)

    def pass_on(self) -> None:
        """What is here, and what comes from here on, is not for us to understand: an end without a beginning, or none."""
        line, work = self.line, self.line.head
        if work is not None:
            raws = list(work.pieces) or [work.raw]
            self._drop(work, "raw", "unknown")
            line.out_upstream += raws
        if self.framer.partial or self.waiting:
            line.out_upstream.append(self.framer.rest())
        self.waiting = 0

    def _pass_partial(self, now: float) -> None:
        """Forward what is here of an unfinished request, unless a rule may want to hold or replace the whole."""
        if not self.waiting:
            return
        if not (self.cutting or self.decided) and self.line.engine.rules:
            how = judge(self.line, self.framer, now)
            self.decided = how == "let_alone"
            if how == "wanted" and self.framer.size_hint() <= self.line.world.max_buffer:
                return
        self.cutting = self.framer.started
        self.line.out_upstream.append(self.framer.cut_through())
        self.waiting = 0

    def _take(self, frame: RequestFrame, now: float) -> None:
        self.cutting = False
        self.waiting -= len(frame.raw)
        line = self.line
        self.place += 1
        name = line.world.name(frame.args[0] or b"")
        name.tally.count += 1
        decided, self.decided = self.decided, False
        if name.plain or decided:
            self.handshake = False
            slot = Slot(name, frame.args if name.blocking else (), now)
            line.slots.append(slot)
            line.send(slot, frame.raw)
            return
        self.left -= 1
        self.handshake = handshake = self.handshake and name.handshake
        command = Command.parse(line.world.table, frame.args, frame.raw)
        exchange = line.where(command, handshake=handshake)
        exchange.place, exchange.last = self.place, self._next() is None
        exchange.before, self._before = self._before, command.spec
        line.head = Work(exchange, name, frame.args, frame.raw, frame.whole, command)

    def _next(self) -> bytes | None:
        """The name of the command behind this one, as far as it is here; None if nothing of it is."""
        frame = self.framer.peek()
        if frame is not None:
            return frame.args[0] or b""
        return (self.framer.name or b"") if self.framer.started else None

    # -- the request at the head

    def _advance(self, work: Work, now: float) -> bool:
        """Move the head on, stage by stage; False if it has to wait."""
        line = self.line
        if work.stage is Stage.SETTLE:
            # Whether the line is still one on which requests are taken has to be asked anew.
            return self._settle(work, now)
        if work.stage is Stage.DELAY:
            if now < work.due:
                return False
            before.enter_barriers(line, work, now)
            work.stage = Stage.HOLD
        if work.stage is Stage.HOLD:
            if before.held(work, now):
                return False
            before.pass_barriers(line, work, now)
            work.stage = Stage.RUN
        if work.stage is Stage.RUN:
            if not (before.has_run(line, work, now) and self._is_taken_down(work, now)):
                return False
            work.due, work.stage = now, Stage.SEND
        if work.stage is Stage.SEND:
            if now < work.due or not before.pace(line, work, now):
                return False
            work.stage = Stage.ACT
        refuse_late(line, work)
        return self._act(work, now)

    def _settle(self, work: Work, now: float) -> bool:
        """Ask the rules, once nothing unanswered can change what this command means."""
        line = self.line
        name = work.name
        if name.upper in modes.RAW:
            # What follows on either side is no RESP, once all before it is answered; at HTTP a server ends the connection,
            # and what it has not said by then is never said: so it has to come with what is before it.
            line.raw, self.raw = not (line.expect or line.slots), name.upper in modes.HTTP
            if self.raw:
                line.effects.append(ProtocolFault("client", "HTTP, as a browser sends it"))
            return line.raw or self.raw
        gate = name.upper == b"MULTI" and line.world.swallows and work.whole
        if name.interest or gate:
            if not line.settled or remembering.must_wait(line, work):
                return False
            if gate and not work.gated and line.modes.transaction is None:
                work.gated = True
                line.means = swallow.UNKNOWN
                if line.takes_ours(keys=False):
                    self._gate(now)
                    return False
            exchange = work.exchange
            exchange.db, exchange.client = line.db, line.modes.name
            exchange.states = line.modes.states(blocking=line.blocking)
            if line.engine.failovers and not meets(line, work, now):
                return False
            if name.interest:
                before.place_in_transaction(line, work, self._next())
                chosen, self.chosen = self.chosen, None
                if chosen is None:
                    chosen = line.engine.select(exchange, now, line.effects)
                work.candidates = line.engine.waiting_for_reply(exchange)
                before.fold(line, work, chosen, now)
                work.watched = line.engine.watches(name.upper.decode("utf-8", "backslashreplace"))
        work.stage = Stage.DELAY
        return True

    def _is_taken_down(self, work: Work, now: float) -> bool:
        """Whether it is known what a failover may have to undo."""
        transaction = self.line.modes.transaction
        carried = works_of(transaction) if transaction is not None else []
        return undoing.ready(self.line, work, carried, now)

    def _gate(self, now: float) -> None:
        """Find out what there is before a MULTI in which a write may be swallowed."""
        line = self.line

        def done(replies: list[bytes], then: float) -> None:
            del then
            line.means = swallow.means(replies)

        line.send_hidden(swallow.gate_before_multi(line.modes.db, line.world.scratch_db), now, done)

    def _act(self, work: Work, now: float) -> bool:
        """Forward the request, or do with it what was decided; False if that has to wait."""
        line = self.line
        if pretending.answers(line, work, now):
            return True
        if work.final is None:
            before.forward(line, work, now)
            return True
        chosen, decision = work.final
        match decision:
            case Answer():
                answer(line, work, chosen, decision, now)
                return True
            case Swallow():
                return swallow_write(line, work, chosen, now)
            case NoRenewal():
                return withhold(line, work, chosen, now)
            case Past():
                return read_past(line, work, chosen, decision, now)
            case Cut():
                return cut(line, work, chosen, decision)
            case Silence():
                return silence(line, work, chosen, decision, now)
            case _:
                assert_never(decision)

    def let_go(self, now: float) -> None:
        """Another profile is in force: what waits for the old one goes on."""
        work = self.line.head
        # What came before was before the profile came into force.
        self._before, self.decided = None, False
        if work is None or (work.stage is Stage.ACT and work.waiting):
            return
        if work.stage is Stage.SETTLE:
            work.name = self.line.world.name(work.args[0] or b"")
            return
        if work.stage is Stage.DELAY:
            before.cut_short(work, now)
        if work.stage is Stage.HOLD:
            before.pass_barriers(self.line, work, now, "let go because another profile is in force")
            self.line.leave_barriers(work)
        self._drop_before(work, "switched")
        self.line.forget(work, "switched")
        work.due = now
        if work.pieces:
            work.raw = b"".join(work.pieces)
            work.pieces.clear()
        work.paces.clear()

    def _drop_before(self, work: Work, reason: str) -> None:
        """What was still to happen before it is forwarded will not."""
        line = self.line
        waits = work.stage in (Stage.SETTLE, Stage.DELAY)
        dropped = [chosen for chosen, _ in work.holds if waits]
        dropped += [chosen for chosen, _ in work.runs[work.ran :]]
        if work.final is not None:
            dropped.append(work.final[0])
        if work.stage is Stage.HOLD:
            for chosen, _, ticket in work.tickets:
                held = line.now - ticket.since
                detail = f"dropped while it was held: {reason}"
                line.fire(chosen, work, "no", "nothing", "fail", delay=held, detail=detail)
        for chosen in dropped:
            line.skip(chosen, reason)
        work.holds.clear()
        work.runs.clear()
        work.final = None

    @property
    def due(self) -> float:
        """When the head wants to be woken."""
        work = self.line.head
        if self.stopped and not is_full(self.line, later=True):
            return self.line.now
        if work is None or work.stage not in TIMED or self.line.upstream_silent is not None:
            return FOREVER
        if self.line.world.held:  # it is woken when that is over
            return FOREVER
        return work.due or FOREVER

    def gone(self, reason: str) -> None:
        """One end of the line is gone: the request at the head ends here, and no more are taken."""
        self.ended = True
        if (head := self.line.head) is not None:
            lose(self.line, head)
            self._drop(head, reason, "no")

    def _drop(self, work: Work, reason: str, applied: Applied) -> None:
        """Let the request at the head go, and with it what was decided for it."""
        line = self.line
        line.head = None
        if work.stage is Stage.DELAY:
            before.cut_short(work, line.now)
        line.tell(work, applied, "nothing")
        self._drop_before(work, reason)
        line.forget(work, reason)
