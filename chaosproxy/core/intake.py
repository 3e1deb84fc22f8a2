"""From the client to the upstream: each request meets the rules, and goes on, waits, or ends here.

Takes the client's bytes; gives the upstream's bytes and reply slots. Requests are taken one at a time: while the one at the
head waits, all behind it on this connection wait too, as they would behind it in a socket.
"""

from collections.abc import Sequence
from typing import assert_never

from chaosproxy.core import modes, swallow
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Answer, Cut, Decision, Delay, Position, Run, Silence, Swallow
from chaosproxy.core.effect import ProtocolFault
from chaosproxy.core.ending import answer, cut, drop_after, silence
from chaosproxy.core.engine import Chosen
from chaosproxy.core.line import FOREVER, Line, errors_in, run_requests
from chaosproxy.core.resp import RequestFrame, RequestFramer, encode_command
from chaosproxy.core.slot import Slot, Stage, Told, Work
from chaosproxy.core.swallowing import swallow_write
from chaosproxy.core.syntax import ProtocolError

SIDE_FAILED = "the side connection failed"


class Intake:
    """The client's side of one line."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.framer = RequestFramer()
        self.raw = False
        self.waiting = 0
        self._cutting = False
        self._handshake = True
        self._place = 0
        self._before: CommandSpec | None = None

    def receive(self, data: bytes, now: float) -> None:
        """Bytes have come from the client."""
        if self.raw:
            self.line.out_upstream.append(data)
            return
        self.waiting += len(data)
        self.framer.feed(data)
        self.pump(now)

    def pump(self, now: float) -> None:
        """Take what can be taken now."""
        line = self.line
        while not (line.closed or self.raw):
            if line.head is not None:
                if not self._advance(line.head, now):
                    return
                continue
            if line.upstream_silent is not None:
                return
            try:
                frame = self.framer.next()
            except ProtocolError as error:
                self._go_raw()
                line.effects.append(ProtocolFault("client", error.text))
                return
            if frame is None:
                self._pass_partial()
                return
            self._take(frame, now)

    def _go_raw(self) -> None:
        """What comes from here on is not for us to understand; the server will say what it thinks of it."""
        self.line.out_upstream.append(self.framer.rest())
        self.raw = True
        self.waiting = 0

    def _pass_partial(self) -> None:
        """Forward what is here of an unfinished request, unless a rule may want to hold or replace the whole."""
        framer = self.framer
        if not self.waiting:
            return
        if not self._cutting and self.line.engine.rules:
            name = framer.name
            wanted = name is None or not self.line.world.name(name).plain
            if wanted and framer.size_hint() <= self.line.world.max_buffer:
                return
        self._cutting = framer.started
        self.line.out_upstream.append(framer.cut_through())
        self.waiting = 0

    def _take(self, frame: RequestFrame, now: float) -> None:
        self._cutting = False
        self.waiting -= len(frame.raw)
        line = self.line
        self._place = self._place + 1 if line.expect or line.slots else 1
        name = line.world.name(frame.args[0] or b"")
        name.tally.count += 1
        if name.plain:
            self._handshake = False
            slot = Slot(name, (), now)
            line.slots.append(slot)
            line.send(slot, frame.raw)
            return
        handshake = self._handshake and name.handshake
        self._handshake = handshake
        command = Command.parse(line.world.table, frame.args, frame.raw)
        exchange = line.where(command, handshake=handshake)
        exchange.place, exchange.last = self._place, self.framer.peek() is None
        exchange.before, self._before = self._before, command.spec
        line.head = Work(exchange, name, frame.args, frame.raw, frame.whole)

    # -- the request at the head

    def _advance(self, work: Work, now: float) -> bool:
        """Move the head one stage on; False if it has to wait."""
        match work.stage:
            case Stage.SETTLE:
                return self._settle(work, now)
            case Stage.DELAY:
                if now < work.due:
                    return False
                work.stage = Stage.RUN
                return self._run_before(work, now)
            case Stage.RUN:
                if work.waiting:
                    return False
                work.stage = Stage.ACT
                return True
            case Stage.ACT:
                return self._act(work, now)
            case Stage.STUCK:
                return False
            case _:
                assert_never(work.stage)

    def _settle(self, work: Work, now: float) -> bool:
        """Ask the rules, once nothing unanswered can change what this command means."""
        line = self.line
        name = work.name
        if name.upper in modes.RAW:
            if line.expect or line.slots:
                return False
            line.out_upstream.append(work.raw)
            line.head = None
            self._go_raw()
            return True
        gate = name.upper == b"MULTI" and line.world.swallows
        if name.interest or gate:
            if not line.settled:
                return False
            if gate and not work.gated and line.modes.answers:
                work.gated = True
                self._gate(now)
                return False
            exchange = work.exchange
            exchange.db, exchange.client, exchange.states = line.db, line.modes.name, line.states()
            if name.interest:
                self._place_in_transaction(work)
                chosen = line.engine.select(exchange, now, line.effects)
                work.candidates = line.engine.waiting_for_reply(exchange)
                self._fold(work, chosen, now)
        work.stage = Stage.DELAY
        return True

    def _place_in_transaction(self, work: Work) -> None:
        """Count a queued command among the commands of its transaction, not of its pipeline."""
        transaction = self.line.modes.transaction
        if transaction is None or work.name.upper in modes.NEVER_QUEUED:
            return
        mine = [e for e in transaction.entries if not getattr(e.element, "hidden", False)]
        following = self.framer.peek()
        work.exchange.place = 1 + len(mine)
        work.exchange.last = following is None or (following.args[0] or b"").upper() == b"EXEC"

    def _gate(self, now: float) -> None:
        """Prove the scratch database before a MULTI in which a write may be swallowed."""
        line = self.line

        def done(replies: list[bytes], then: float) -> None:
            del then
            line.scratch_proven = swallow.proven(replies)

        line.send_hidden(swallow.gate(line.modes.db, line.world.scratch_db), now, done)

    def _fold(self, work: Work, chosen: list[Chosen], now: float) -> None:
        """Add up what happens before the request is forwarded: delays sum, the first final decision ends the chain."""
        line = self.line
        queued = line.modes.transaction is not None and work.name.upper not in modes.NEVER_QUEUED
        delay = 0.0
        for each in chosen:
            if each.at is not Position.BEFORE_FORWARD:
                work.after.append(each)
            elif work.final is not None:
                line.skip(each, "ended")
            elif not work.whole:
                line.skip(each, "too_large")
            else:
                decision = line.decide(each, work.exchange, queued=queued)
                delay += self._note(work, each, decision)
        work.due = now + delay if delay else 0.0

    def _note(self, work: Work, chosen: Chosen, decision: Decision | None) -> float:
        """Keep one decision for when its time comes; give the delay it adds."""
        match decision:
            case None:
                self.line.skip(chosen, "not_applicable")
            case Delay(seconds):
                work.told.append(Told(chosen, delay=seconds))
                return seconds
            case Run():
                work.runs.append((chosen, decision))
            case Answer() | Swallow() | Cut() | Silence():
                work.final = (chosen, decision)
            case _:
                assert_never(decision)
        return 0.0

    def _run_before(self, work: Work, now: float) -> bool:
        """Carry out what is to run exactly before this command, on its own connection where that is possible."""
        line = self.line
        for chosen, run in work.runs:
            requests = run_requests(chosen, run)
            told = Told(chosen)
            work.told.append(told)
            line.touched(chosen, "run", 1 if chosen.key is not None else 0)
            here = line.modes.transaction is None and line.modes.answers and not line.modes.asking
            if here and run.where == "upstream":

                def done(replies: list[bytes], then: float, told: Told = told) -> None:
                    del then
                    told.detail = errors_in(replies)

                line.send_hidden(requests, now, done)
                continue
            work.waiting += 1

            def answered(replies: Sequence[bytes] | None, then: float, told: Told = told) -> None:
                del then
                work.waiting -= 1
                told.detail = SIDE_FAILED if replies is None else errors_in(replies)

            raws = [encode_command(*request) for request in requests]
            line.ask_side(raws, work.exchange.db, answered, run.where)
        return True

    def _act(self, work: Work, now: float) -> bool:
        """Forward the request, or do with it what was decided; False if that has to wait."""
        line = self.line
        if work.final is None:
            slot = Slot(work.name, work.args, now, work if work.matters else None)
            line.slots.append(slot)
            line.send(slot, work.raw)
            line.head = None
            return True
        chosen, decision = work.final
        match decision:
            case Answer():
                answer(line, work, chosen, decision, now)
                return True
            case Swallow():
                return swallow_write(line, work, chosen, now)
            case Cut():
                return cut(line, work, chosen, decision)
            case Silence():
                return silence(line, work, chosen, decision, now)
            case _:
                assert_never(decision)

    def let_go(self, now: float) -> None:
        """Another profile is in force: what waits for the old one goes on."""
        work = self.line.head
        if work is None or work.stage in (Stage.SETTLE, Stage.RUN) or work.waiting:
            return
        if work.final is not None:
            self.line.skip(work.final[0], "switched")
            work.final = None
        drop_after(self.line, work, "switched")
        work.due = now
        if work.stage is Stage.STUCK:
            work.stage = Stage.ACT

    @property
    def due(self) -> float:
        """When the head wants to be woken."""
        work = self.line.head
        return work.due if work is not None and work.stage is Stage.DELAY else FOREVER

    def gone(self, reason: str) -> None:
        """One end of the line is gone: the request at the head ends here."""
        line = self.line
        work, line.head = line.head, None
        if work is None:
            return
        line.tell(work, "no", "nothing")
        if work.final is not None:
            line.skip(work.final[0], reason)
        drop_after(line, work, reason)
