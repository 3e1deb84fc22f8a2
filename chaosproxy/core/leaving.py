"""How replies leave for the client: in its order, each at its time, with what ends an exchange at its turn.

Takes a line's full slots; gives the client's bytes, and the close or the silence that a decision asked for.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from chaosproxy.core.after import abandon, ask_to_run, drop, must_change, works_of
from chaosproxy.core.decision import Cut, Position, Silence
from chaosproxy.core.effect import Applied, AwaitFlush, CloseClient, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import close, silence_detail
from chaosproxy.core.line import FOREVER, Line
from chaosproxy.core.pending import ANSWERED, seen_of, write_down
from chaosproxy.core.slot import Final, LastRun, Slot

if TYPE_CHECKING:
    from chaosproxy.core.returns import Returns


class Leaving:
    """The client's end of the queue of slots."""

    __slots__ = ("_flushing", "ended", "line", "returns")

    def __init__(self, line: Line, returns: "Returns") -> None:
        self.line = line
        self.returns = returns
        self.ended = False
        self._flushing: list[LastRun] | None = None

    def release(self, now: float) -> None:
        """Give the client every reply whose turn it is, unless its side of the line is silent."""
        line = self.line
        slots = line.slots
        while slots and not line.closed and line.client_silent is None:
            slot = slots[0]
            if not slot.full:
                if self.ended:
                    self._break_off(slot)
                elif slot.before or slot.parts:
                    line.flush(slot, reply=not slot.whole)
                return
            if slot.never or slot.waiting or slot.due > now:
                return
            if not self._give(slot, now):
                return
            if slot.final is not None and not self._finish(slot, slot.final, now):
                return
            self._left(slots.popleft(), now)
        if self.ended and not (slots or line.closed) and line.client_silent is None:
            self._hang_up(rest=not line.expect)

    def _left(self, slot: Slot, now: float) -> None:
        """A reply has left: what comes right behind it, and what is to happen once the client has it."""
        line = self.line
        write_down(line, slot, now)
        if slot.behind:
            line.flush(slot)
        if slot.last_runs:
            self._flushing = self._flushing or []
            self._flushing += slot.last_runs
            line.effects.append(AwaitFlush())

    def _give(self, slot: Slot, now: float) -> bool:
        """Give the client its share of a reply, in pieces where that was decided; False while there is more to come."""
        line = self.line
        if slot.pieces is None:
            if not (slot.cuts or slot.paces or slot.final):
                line.flush(slot)
                return True
            slot.pieces = self._cut(slot)
            slot.due = _next_due(slot, now, now)
        while slot.pieces:
            if slot.due > now:
                return False
            piece = slot.pieces.popleft()[1]
            line.held -= len(piece)
            line.give(piece)
            slot.due = _next_due(slot, slot.due, now)
        return True

    def _cut(self, slot: Slot) -> deque[tuple[float, bytes]]:
        """A reply's pieces, as far as the client is to get it; the rest is `owed`."""
        line = self.line
        raw = b"".join(slot.parts)
        slot.parts.clear()
        line.flush(slot, reply=False)
        given = len(raw)
        if slot.final is not None:
            given = _share(slot.final, raw)[0]
        slot.owed = raw[given:]
        slot.reply = raw
        line.held -= len(slot.owed)
        edges = [0, *sorted(cut for cut in slot.cuts if 0 < cut < given), given]
        pieces: deque[tuple[float, bytes]] = deque()
        for low, high in pairwise(edges):
            if low == high:
                break
            pieces.append((slot.cuts.get(low, 0.0), raw[low:high]))
        return pieces

    def _break_off(self, slot: Slot) -> None:
        """The upstream is gone before this reply was whole: the client gets what came of it, and nothing after it."""
        line = self.line
        as_it_is = not must_change(line, slot)
        line.flush(slot, reply=as_it_is)
        passing = self.returns.push is slot or line.expect[0] is slot
        self._hang_up(rest=passing and as_it_is)

    def _hang_up(self, *, rest: bool) -> None:
        """The line ends as the upstream did; `rest`: the unfinished reply is the client's."""
        line = self.line
        if rest and self.returns.framer.partial:
            line.give(self.returns.framer.rest())
        line.closed = True
        line.effects.append(CloseClient("close"))

    def _finish(self, slot: Slot, final: Final, now: float) -> bool:
        """Carry out what ends an exchange, its share of the reply given; False if nothing behind it may leave."""
        line = self.line
        chosen, decision, work = final.chosen, final.decision, final.work
        slot.final = None
        _, told, detail = _share(final, slot.reply)
        if told in ANSWERED:
            write_down(line, slot, now)
        elif isinstance(decision, Cut):
            write_down(line, slot, now, told)
        outcome: Outcome = "unknown" if slot.owed else "ok"
        if isinstance(decision, Cut):
            line.fire(chosen, work, final.applied, told, outcome, detail=detail)
            close(line, chosen, decision)
            return False
        about = silence_detail(decision)
        detail = f"{detail}, {about}" if detail else about
        line.fire(chosen, work, final.applied, told, outcome, detail=detail)
        if decision.what == "reply":
            slot.never = True
            return False
        line.hush(decision, now)
        if not slot.owed:
            return True
        slot.pieces = deque([(0.0, slot.owed)])
        line.held += len(slot.owed)
        slot.owed = b""
        return False

    def flushed(self) -> None:
        """The client's stack has acknowledged all bytes: what was to come after a reply comes now."""
        flushing, self._flushing = self._flushing or (), None
        for last in flushing:
            ask_to_run(self.line, last)

    @property
    def due(self) -> float:
        """When the next reply wants to leave."""
        slots = self.line.slots
        if not slots or not slots[0].full or slots[0].never or slots[0].waiting:
            return FOREVER
        return slots[0].due if slots[0].due and self.line.client_silent is None else FOREVER

    def let_go(self, now: float) -> None:
        """Another profile is in force: what waits for the old one leaves."""
        line = self.line
        for slot in line.slots:
            slot.due = min(slot.due, now)
            slot.cuts.clear()
            slot.paces.clear()
            if slot.pieces is not None:
                slot.pieces = deque((0.0, piece) for _, piece in slot.pieces)
            if slot.never:
                slot.never = False
                line.give(slot.owed)
            if slot.work is not None:
                line.forget(slot.work, "switched")
            self._forget_last(slot, "switched")
        if line.modes.transaction is not None:
            for work in works_of(line.modes.transaction):
                line.forget(work, "switched")
        self._forget_flushing("switched")
        self.release(now)

    def _forget_last(self, slot: Slot, reason: str) -> None:
        """What was to happen when a reply leaves, or after it, will not."""
        if slot.final is not None:
            self.line.skip(slot.final.chosen, reason)
            slot.final = None
            if (
                slot.pieces is not None and slot.owed
            ):  # it is on its way already, as far as the cut would have let it
                slot.pieces.append((0.0, slot.owed))
                self.line.held += len(slot.owed)
                slot.owed = b""
        self._forget_runs(slot.last_runs, reason)
        slot.last_runs.clear()

    def _forget_flushing(self, reason: str) -> None:
        flushing, self._flushing = self._flushing or (), None
        self._forget_runs(flushing, reason)

    def _forget_runs(self, runs: Sequence[LastRun], reason: str) -> None:
        self.line.running -= len(runs)
        for last in runs:
            self.line.skip(last.chosen, reason)

    def hand_over(self, reason: str) -> list[bytes]:
        """Nothing is understood any more: give what is held, in order, and let go of what was decided for it."""
        line = self.line
        self.gone(reason, seen="ok")
        held: list[bytes] = []
        for slot in line.slots:
            if slot.never:  # nothing may take the place of what is lost
                line.client_silent = FOREVER
                slot.pieces = deque([(0.0, slot.owed)])
                line.held += len(slot.owed)
            reply = slot.parts if slot.pieces is None else [raw for _, raw in slot.pieces]
            held += (*slot.before, *reply, *slot.behind)
        line.slots.clear()
        return held

    def gone(self, reason: str, seen: Seen = "nothing") -> None:
        """One end of the line is gone: what had not happened will not."""
        line = self.line
        for slot in line.slots:
            write_down(line, slot, line.now, None if seen == "ok" else seen_of(slot))
            if slot.work is not None:
                line.tell(slot.work, "unknown", seen)
                drop(line, slot.work, reason)
            self._forget_last(slot, reason)
        transaction = line.modes.transaction
        if transaction is not None:
            under_way = any(slot.name.upper == b"EXEC" for slot in line.expect)
            # What is no longer understood goes on all the same.
            applied: Applied = "unknown" if under_way or seen == "ok" else "no"
            abandon(line, transaction, reason, applied, seen)
        self._forget_flushing(reason)


def _next_due(slot: Slot, since: float, now: float) -> float:
    """When the next piece may leave: after its gap, which counts from now, and as fast as its buckets let it."""
    if not slot.pieces:
        return now
    gap, piece = slot.pieces[0]
    if slot.paces and len(piece) > slot.paces[0].size:
        parts = slot.paces[0].split(piece)
        piece = parts[0]
        slot.pieces.popleft()
        slot.pieces.extendleft((0.0, part) for part in reversed(parts))
    start = now + gap if gap else since
    return max([start, *(bucket.take(len(piece), start) for bucket in slot.paces)])


def _share(final: Final, raw: bytes) -> tuple[int, Seen, str]:
    """How much of a reply the client still gets, what that makes it see, and a detail for the event."""
    at, decision = final.chosen.at, final.decision
    whole: Seen = "error" if raw[:1] == b"-" else "ok"
    if isinstance(decision, Silence) and decision.direction == "to_upstream":
        return len(raw), whole, ""
    none: Seen = "nothing"
    if not isinstance(decision, Silence):
        none = "reset" if decision.how == "reset" else "closed"
    match at:
        case Position.AFTER_APPLY:
            return 0, none, ""
        case Position.MID_REPLY:
            size = len(raw) if final.size is None else final.size
            given = final.start + _spot(decision.count, size)
            return given, "partial" if given else none, f"{given} of {len(raw)} bytes"
        case _:
            return len(raw), whole, ""


def _spot(count: int | None, size: int) -> int:
    """How many bytes of a reply of `size` the client gets: at least none, never all."""
    if count is None:
        return size // 2
    if count < 0:
        count += size
    return max(0, min(count, size - 1))
