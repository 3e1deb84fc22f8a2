"""How replies leave for the client: in its order, each at its time, with what ends an exchange at its turn.

Takes a line's full slots; gives the client's bytes, and the close or the silence that a decision asked for.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from chaosproxy.core.after import abandon, drop, ran
from chaosproxy.core.decision import Cut, Position, Run, Silence
from chaosproxy.core.effect import AwaitFlush, CloseClient, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import close, silence_detail
from chaosproxy.core.engine import Chosen
from chaosproxy.core.line import FOREVER, Line, run_requests
from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Final, Slot, Work


class Leaving:
    """The client's end of the queue of slots."""

    def __init__(self, line: Line, framer: ReplyFramer) -> None:
        self.line = line
        self.framer = framer
        self.ended = False
        self._flushing: list[tuple[Chosen, Run, Work]] = []

    def release(self, now: float) -> None:
        """Give the client every reply whose turn it is."""
        line = self.line
        slots = line.slots
        while slots and not line.closed:
            slot = slots[0]
            if not slot.full:
                if self.ended:
                    self._lose(slot)
                    continue
                if not slot.whole and (slot.before or slot.parts):
                    line.flush(slot)
                return
            if slot.never or slot.waiting or slot.due > now:
                return
            if not self._give(slot, now):
                return
            if slot.final is not None and not self._finish(slot, slot.final, now):
                return
            slots.popleft()
            if slot.last_runs:
                self._flushing += slot.last_runs
                line.effects.append(AwaitFlush())
        if self.ended and not slots and not line.closed and line.client_silent is None:
            line.give(self.framer.rest())
            line.closed = True
            line.effects.append(CloseClient("close"))

    def _give(self, slot: Slot, now: float) -> bool:
        """Give the client its share of a reply, in pieces where that was decided; False while there is more to come."""
        line = self.line
        if slot.pieces is None:
            if not (slot.cuts or slot.paces or slot.final):
                line.flush(slot)
                return True
            slot.pieces = self._cut(slot)
            slot.due = self._piece_due(slot, now, now)
        while slot.pieces:
            if slot.due > now:
                return False
            piece = slot.pieces.popleft()
            line.held -= len(piece)
            line.give(piece)
            if slot.pieces:
                slot.due = self._piece_due(slot, now, now + slot.gap)
        return True

    def _cut(self, slot: Slot) -> deque[bytes]:
        """A reply's pieces, as far as the client is to get it; the rest is `owed`."""
        line = self.line
        raw = b"".join(slot.parts)
        slot.parts.clear()
        line.flush(slot)
        given = len(raw)
        if slot.final is not None:
            given = _share(slot.final.chosen.at, slot.final.decision, raw)[0]
        slot.owed = raw[given:]
        slot.reply = raw
        line.held -= len(slot.owed)
        edges = [0, *(cut for cut in slot.cuts if 0 < cut < given), given]
        pieces = [raw[low:high] for low, high in pairwise(edges) if high > low]
        if slot.paces:
            pieces = [part for piece in pieces for part in slot.paces[0].pieces(piece)]
        return deque(pieces)

    def _piece_due(self, slot: Slot, now: float, due: float) -> float:
        """When the next piece may leave."""
        if slot.paces and slot.pieces:
            size = len(slot.pieces[0])
            due = max(due, *(bucket.take(size, now) for bucket in slot.paces))
        return due

    def _lose(self, slot: Slot) -> None:
        """The upstream is gone in the middle of this reply: the client gets what came of it."""
        line = self.line
        line.slots.popleft()
        if slot.work is not None:
            line.tell(slot.work, "unknown", "nothing")
            drop(line, slot.work, "upstream_gone")
        line.flush(slot)

    def _finish(self, slot: Slot, final: Final, now: float) -> bool:
        """Carry out what ends an exchange, its share of the reply given; False if nothing behind it may leave."""
        line = self.line
        chosen, decision, work = final.chosen, final.decision, final.work
        slot.final = None
        _, told, detail = _share(chosen.at, decision, slot.reply)
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
        if slot.owed:
            line.give(slot.owed)
        return True

    def flushed(self, now: float) -> None:
        """The client's stack has acknowledged all bytes: what was to come after a reply comes now."""
        del now
        line = self.line
        for chosen, run, work in self._flushing:

            def answered(
                replies: Sequence[bytes] | None,
                then: float,
                chosen: Chosen = chosen,
                work: Work = work,
            ) -> None:
                del then
                ran(line, chosen, work, replies)

            raws = [encode_command(*request) for request in run_requests(chosen, run)]
            line.ask_side(raws, work.exchange.db, answered, run.where)
        self._flushing.clear()

    @property
    def due(self) -> float:
        """When the next reply wants to leave."""
        slots = self.line.slots
        if slots and slots[0].full and not (slots[0].never or slots[0].waiting) and slots[0].due:
            return slots[0].due
        return FOREVER

    def let_go(self, now: float) -> None:
        """Another profile is in force: what waits for the old one leaves."""
        line = self.line
        for slot in line.slots:
            slot.due = min(slot.due, now)
            slot.gap = 0.0
            slot.paces.clear()
            if slot.never:
                slot.never = False
                line.give(slot.owed)
            if slot.work is not None:
                drop(line, slot.work, "switched")
            if slot.final is not None:
                line.skip(slot.final.chosen, "switched")
                slot.final = None
        self.release(now)

    def gone(self, reason: str) -> None:
        """One end of the line is gone: what had not happened will not."""
        line = self.line
        for slot in line.slots:
            if slot.work is not None:
                line.tell(slot.work, "unknown", "nothing")
                drop(line, slot.work, reason)
            if slot.final is not None:
                line.skip(slot.final.chosen, reason)
            for chosen, _run, _work in slot.last_runs:
                line.skip(chosen, reason)
        if line.modes.transaction is not None:
            abandon(line, line.modes.transaction, reason)
        for chosen, _run, _work in self._flushing:
            line.skip(chosen, reason)


def _share(at: Position, decision: Cut | Silence, raw: bytes) -> tuple[int, Seen, str]:
    """How much of a reply the client still gets, what that makes it see, and a detail for the event."""
    whole: Seen = "error" if raw[:1] == b"-" else "ok"
    if isinstance(decision, Silence) and decision.direction == "to_upstream":
        return len(raw), whole, ""
    match at:
        case Position.AFTER_APPLY:
            if isinstance(decision, Silence):
                return 0, "nothing", ""
            return 0, "reset" if decision.how == "reset" else "closed", ""
        case Position.MID_REPLY:
            given = _spot(decision.count, len(raw))
            return given, "partial", f"{given} of {len(raw)} bytes"
        case _:
            return len(raw), whole, ""


def _spot(count: int | None, size: int) -> int:
    """How many bytes of a reply of `size` the client gets: at least none, never all."""
    if count is None:
        return size // 2
    if count < 0:
        count += size
    return max(0, min(count, size - 1))
