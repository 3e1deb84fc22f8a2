"""What happens to an exchange once Redis has applied it: positions in their order, rules in theirs.

Takes a whole reply and the work it answers; gives the reply the client is to get, and sets on its slot what delays or ends it.
"""

from collections.abc import Sequence
from itertools import pairwise

from chaosproxy.core import remembering, undoing
from chaosproxy.core.decision import (
    Answer,
    Beside,
    Cut,
    Decision,
    Delay,
    Pieces,
    Position,
    Run,
    Silence,
)
from chaosproxy.core.effect import Applied, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import ENDED
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.pending import Pending, hold, join, tell, write_down
from chaosproxy.core.repeating import repeat_later
from chaosproxy.core.reply import elements
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Final, LastRun, Slot, Told, Work
from chaosproxy.core.transaction import Transaction
from chaosproxy.core.value import errors_in

_ORDER = {position: index for index, position in enumerate(Position)}


def apply_after(line: Line, work: Work, raw: bytes, slot: Slot, now: float) -> bytes:
    """Add up what happens to an applied command's reply: positions in their order, rules in theirs; give the reply."""
    raw = raw if work.retold is None else work.retold(raw)
    seen: Seen = "error" if raw[:1] == b"-" else "ok"
    swallowed = work.swallowed is not None and (work.acted is None or work.acted(raw))
    applied: Applied = "no" if seen == "error" or swallowed else "yes"
    _settle(line, slot, work, raw, applied, seen, now, swallowed=swallowed)
    late = line.engine.select_by_reply(work.candidates, work.exchange, raw, now, line.effects)
    work.candidates.clear()
    places = line.engine.places
    todo = sorted(work.after + late, key=lambda c: (_ORDER[c.at], places.get(c.live, 0)))
    work.after.clear()
    ended = False
    delay = 0.0
    ahead = behind = b""
    sliced: list[Chosen] = []
    for chosen in todo:
        over = ended or slot.final is not None
        if over or not chosen.live.counter.spend(chosen.turn):
            line.skip(chosen, "ended" if over else "limit")
            continue
        decision = line.decide(chosen, work.exchange, reply=raw)
        match decision:
            case Delay(seconds):
                delay += seconds
                slot.pending += (Pending(chosen, work, applied, "late", now, delay=seconds),)
            case Answer():
                raw, ended = decision.raw, True
                if line.seat is not None:
                    line.seat.heed(raw)
                told: Seen = ("error" if raw[:1] == b"-" else "ok") if raw else "nothing"
                outcome: Outcome = "unknown" if told == "error" else "ok"
                slot.pending += (Pending(chosen, work, applied, told, now, outcome),)
            case Beside():
                ahead, behind = ahead + decision.ahead, decision.behind + behind
                slot.pending += (Pending(chosen, work, applied, seen, now),)
            case Pieces():
                sliced.append(chosen)
            case _:
                _set_on(line, slot, chosen, work, decision, applied, seen)
    for chosen in sliced:
        _cut_up(line, slot, chosen, work, applied, raw, len(ahead))
    if delay:
        slot.due = max(slot.due, now) + delay
    return ahead + raw + behind if ahead or behind else raw


def _settle(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line, slot: Slot, work: Work, raw: bytes, applied: Applied, seen: Seen, now: float, *, swallowed: bool
) -> None:  # fmt: skip
    """It is known now what became of a command: write down what was done to it, and let go who waited for it."""
    tell(line, slot, work, applied, seen)
    if work.watched and applied == "yes":
        line.wake(line.engine.applied(work.exchange))
    line.leave_barriers(work)
    repeat_later(line, slot, work, applied, now)
    undoing.settle(line, work, raw, now)
    if work.swallowed is None:
        if applied == "yes":
            remembering.keep(line, work, raw, now)
        return
    chosen, detail, outcome = work.swallowed
    work.swallowed = None
    if swallowed:
        came = outcome if seen == "ok" else "fail"
        hold(line, slot, work, Told(chosen, detail=detail), "no", seen, came)
    else:
        line.skip(chosen, "not_longer")


def _cut_up(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line,
    slot: Slot,
    chosen: Chosen,
    work: Work,
    applied: Applied,
    raw: bytes,
    start: int,
) -> None:
    """Cut what the client gets in the end, be it the server's or not; several rules' cuts add up, and so do gaps."""
    decision = line.decide(chosen, work.exchange, reply=raw)
    if not isinstance(decision, Pieces):
        line.skip(chosen, "not_applicable")
        return
    for cut in decision.cuts:
        slot.cuts[start + cut] = slot.cuts.get(start + cut, 0.0) + decision.gap
    seen: Seen = "error" if raw[:1] == b"-" else "ok"
    detail = pieces_detail(decision.cuts, len(raw))
    slot.pending += (Pending(chosen, work, applied, seen, line.now, detail=detail),)


def _set_on(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line,
    slot: Slot,
    chosen: Chosen,
    work: Work,
    decision: Decision | None,
    applied: Applied,
    seen: Seen,
) -> None:
    """Set on the slot what happens when its reply leaves."""
    match decision:
        case Run():
            run_after(line, LastRun(chosen, decision, work, applied, seen), slot)
        case Cut() | Silence():
            slot.final = Final(chosen, decision, work, applied)
        case _:  # it belongs to another position
            line.skip(chosen, "not_applicable")


def run_after(line: Line, run: LastRun, slot: Slot) -> None:
    """Have commands run once this one was applied; its reply waits for them."""
    if run.chosen.at is Position.AFTER_REPLY:
        slot.last_runs.append(run)
        line.running += 1
        return
    slot.waiting += 1
    ask_to_run(line, run, slot)


def ask_to_run(line: Line, last: LastRun, slot: Slot | None = None) -> None:
    """Have commands run on the side connection, and write down that they have run, or could not; the reply in `slot` waits for that."""
    chosen, run, work = last.chosen, last.run, last.work

    def ran(detail: str) -> None:
        line.touched(chosen, "run", 1 if chosen.key is not None else 0)
        pending = Pending(chosen, work, last.applied, last.told, line.now, detail=detail)
        join(line, slot, pending)

    def answered(replies: Sequence[bytes] | None, now: float) -> None:
        del now
        if slot is None:
            line.running -= 1
        else:
            slot.waiting -= 1
        if replies is None:
            line.skip(chosen, line.world.unanswered(run.where))
        else:
            ran(errors_in(replies))

    raws = [encode_command(*request) for request in run.requests(chosen.key)]
    line.ask_side(
        raws,
        work.exchange.db,
        answered,
        run.where,
        on_gone=lambda: ran("the connection ended before it was known whether they ran"),
    )


def rebuild_exec(line: Line, slot: Slot, transaction: Transaction, now: float) -> list[bytes]:
    """Carry out on EXEC's array what was decided for its elements; give the array as the server sent it.

    Elements of our own go, elements of commands the server never saw come in, and the header counts what is there. Where
    nothing changes the bytes stay as they are.
    """
    _, array, pushes = elements(slot.parts[0])
    array += slot.parts[1:]
    shares = transaction.shares(array)
    if len(array) != (shares[-1].stop if shares else 0):
        # Whose elements these are only the server knows.
        abandon(line, transaction, "raw", "unknown", "ok")
        return []
    for entry, share in zip(transaction.entries, shares, strict=True):
        # What became of ours is known before the client's are looked at.
        if isinstance(entry.element, Element) and entry.element.hidden and entry.element.change:
            entry.element.change(b"".join(array[share.start : share.stop]))
    out: list[bytes] = []
    cuts: dict[int, float] = {}
    changed = False
    count = 0
    for entry, share in zip(transaction.entries, shares, strict=True):
        element = entry.element if isinstance(entry.element, Element) else Element()
        changed = changed or element.changes
        if element.inserted is not None:
            raw = element.inserted
            slot.pending += element.pending
            element.pending = ()
        else:
            if element.hidden:
                continue
            sent = raw = b"".join(array[share.start : share.stop])
            if element.change is not None:
                raw = element.change(raw)
            if element.work is not None:
                raw = _apply_element(line, element.work, raw, slot, now, cuts, sum(map(len, out)))
            ends = slot.final is not None
            changed = changed or raw is not sent or bool(cuts) or ends
        out.append(raw)
        count += 1
    if changed:
        head = b"".join(pushes) + b"*%d\r\n" % count
        _behind(slot, len(head), cuts)
        line.replace(slot, [head + b"".join(out)])
    return array


def _behind(slot: Slot, head: int, cuts: dict[int, float]) -> None:
    """What was set on elements counts from the array's start, `head` bytes before the first of them."""
    slot.cuts = {head + cut: gap for cut, gap in cuts.items()}
    if slot.final is not None:
        slot.final.start += head


def _apply_element(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line,
    work: Work,
    raw: bytes,
    slot: Slot,
    now: float,
    cuts: dict[int, float],
    start: int,
) -> bytes:
    """Add up what happens to one element of EXEC's array, `start` bytes behind the array's header."""
    raw = apply_after(line, work, raw, slot, now)
    cuts.update((start + cut, gap) for cut, gap in slot.cuts.items())
    slot.cuts.clear()
    if slot.final is not None and slot.final.work is work:
        slot.final.start, slot.final.size = start, len(raw)
    slot.paces += [bucket for bucket in work.reply_buckets if bucket not in slot.paces]
    return raw


def must_change(line: Line, slot: Slot) -> bool:
    """Whether this reply is an array in which elements of our own stand, or some are missing."""
    transaction = line.modes.transaction
    if slot.name.upper != b"EXEC" or transaction is None:
        return False
    return changes(transaction)


def changes(transaction: Transaction) -> bool:
    """Whether the array that its EXEC is to give is not the server's."""
    return any(isinstance(e.element, Element) and e.element.changes for e in transaction.entries)


def works_of(transaction: Transaction) -> list[Work]:
    """The commands of a transaction for which something was decided."""
    elements_ = [e.element for e in transaction.entries if isinstance(e.element, Element)]
    return [element.work for element in elements_ if element.work is not None]


def abandon(
    line: Line,
    transaction: Transaction,
    reason: str,
    applied: Applied = "no",
    told: Seen = "error",
) -> None:
    """A transaction ended without being carried out, as far as is known."""
    for entry in transaction.entries:
        if isinstance(entry.element, Element):
            write_down(line, entry.element, line.now, told)
    for work in works_of(transaction):
        line.tell(work, applied, told)
        if (
            work.swallowed is not None
            and work.acted is None
            and (applied, told) == ("unknown", "nothing")
        ):
            # Its EXEC was on its way. Whatever became of that, this write was no part of it.
            chosen, detail, _ = work.swallowed
            work.swallowed = None
            line.fire(chosen, work, "no", told, "fail", detail=f"{detail}; {ENDED}")
        drop(line, work, reason)


def drop(line: Line, work: Work, reason: str) -> None:
    """The exchange is over as far as rules are concerned: nothing more will happen to it."""
    line.forget(work, reason)
    if work.swallowed is not None:
        line.skip(work.swallowed[0], reason)
        work.swallowed = None


def unpaced(line: Line, work: Work) -> None:
    """Its reply is too large to be held: it does not pass through the buckets that it was to pass through."""
    for told, pace in work.paces:
        if pace.replies is not None and pace.requests is None:
            work.told = [each for each in work.told if each is not told]
            line.skip(told.chosen, "too_large")
        elif pace.replies is not None:
            told.detail += ", the request only: the reply is too large to be held"


def pieces_detail(cuts: Sequence[int], size: int) -> str:
    """What an event says of a reply that leaves in pieces."""
    edges = [0, *cuts, size]
    sizes = [str(high - low) for low, high in pairwise(edges)]
    shown = " + ".join(sizes[:8]) + (" + …" if len(sizes) > 8 else "")
    return f"in pieces of {shown} bytes"
