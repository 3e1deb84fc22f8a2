"""How a command is applied again: right behind itself, or later and aside.

Takes work that was forwarded or applied; gives hidden commands on the client's connection or requests for the side connection,
and the events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from chaosproxy.core.decision import Answer, Repeat
from chaosproxy.core.effect import Applied, LimitReached
from chaosproxy.core.ending import hidden
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.memory import COST
from chaosproxy.core.pending import TINY, Pending, join
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Slot, Told, Work
from chaosproxy.core.value import errors_in

if TYPE_CHECKING:
    from chaosproxy.core.failover import Failover


def repeat_behind(line: Line, work: Work, now: float) -> None:
    """Send copies of a request that has just been forwarded: those that are to follow without a gap.

    In a transaction, and where no replies are wanted, there is no other time: it may be over, or nobody will know when.
    """
    at_once = line.modes.transaction is not None or not line.modes.answers
    later = []
    for chosen, repeat in work.repeats:
        if repeat.gap and not at_once:
            later.append((chosen, repeat))
            continue
        work.told.append(Told(chosen, detail=f"sent {repeat.times} times"))
        for _ in range(1, repeat.times):
            element = Element(hidden=True) if at_once else None
            hidden(line, _request(work), now, element)
    work.repeats = later


def repeat_later(line: Line, slot: Slot, work: Work, applied: Applied, now: float) -> None:
    """Have copies of a request that was applied follow on the side connection, a gap between two of them."""
    for chosen, repeat in work.repeats:
        size = len(work.raw) + COST * repeat.times
        if applied != "yes":
            line.skip(chosen, "refused")
        elif line.copied + size > line.world.max_buffer:
            line.effects.append(LimitReached("kept"))
            line.skip(chosen, "too_large")
        else:
            line.copied += size
            copies = _Copies(line, slot, work, chosen, repeat, now, now)
            for number in range(1, repeat.times):
                line.later(now + number * repeat.gap, copies.send)
    work.repeats.clear()


def _request(work: Work) -> tuple[bytes, ...]:
    return tuple(arg or b"" for arg in work.args)


@dataclass(slots=True)
class _Copies:
    """The copies of one command; the event is written down when it is known what became of the last of them.

    The command was applied at `since`, the last copy was sent at `last`: at once, if another profile came or the line ended.
    """

    line: Line
    slot: Slot
    work: Work
    chosen: Chosen
    repeat: Repeat
    since: float
    last: float
    replies: list[bytes] = field(default_factory=list)
    failed: int = 0
    unknown: int = 0

    def send(self) -> None:
        self.last = self.line.now
        if (refused := self._refused()) is not None:
            self._answered([refused], self.last)
            return
        raw = encode_command(*_request(self.work))
        self.line.ask_side([raw], self.work.exchange.db, self._answered, on_gone=self._gone)

    def _refused(self) -> bytes | None:
        """What it is answered where the first one went, if that is an old primary by now, or does not serve."""
        for live in self.line.engine.failovers:
            if cast("Failover", live.state).refusal(self.line.opened):
                chosen = Chosen(live, self.chosen.turn, None)
                decision = self.line.decide(chosen, self.work.exchange)
                if isinstance(decision, Answer):
                    return decision.raw
        return None

    def _answered(self, replies: Sequence[bytes] | None, now: float) -> None:
        del now
        if replies is None:
            self.failed += 1
        else:
            self.replies += replies
        self._tell()

    def _gone(self) -> None:
        self.unknown += 1
        self._tell()

    def _tell(self) -> None:
        heard = len(self.replies) + self.unknown
        if heard + self.failed < self.repeat.times - 1:
            return
        self.line.copied -= len(self.work.raw) + COST * self.repeat.times
        if not heard:
            self.line.skip(self.chosen, "side_connection")
            return
        took, gap = self.last - self.since, self.repeat.gap
        early = took < (self.repeat.times - 1) * gap - TINY
        apart = f"within {took:.3g} s instead of {gap:g} s apart" if early else f"{gap:g} s apart"
        detail = f"sent {1 + heard} times, {apart}"
        if self.unknown:
            detail += "; the connection ended before all were answered"
        if errors := errors_in(self.replies):
            detail += f"; answered {errors}"
        now = self.line.now
        pending = Pending(self.chosen, self.work, "yes", "ok", now, detail=detail)
        join(self.line, self.slot, pending)
