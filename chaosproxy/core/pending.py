"""What faults have done to a reply that has not left yet, or to a request: written down once it is known what came of that.

Takes what was decided; gives events that say what really came of it, such as how long it was late when its client went.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from chaosproxy.core.effect import Applied, Fired, Outcome, Told
from chaosproxy.core.firing import fired

if TYPE_CHECKING:
    from chaosproxy.core.line import Line
    from chaosproxy.core.live_rule import Chosen
    from chaosproxy.core.slot import Element, Slot, Work
    from chaosproxy.core.slot import Told as Done

#: So many seconds are no time: sums of times are not exact.
TINY: Final = 1e-6
#: What a client saw that saw a whole reply.
ANSWERED: Final = frozenset({"ok", "error", "late"})


@dataclass(slots=True)
class Pending:
    """One fault's event. `delay`: what it adds to how late the reply is, which is so `since` the same time for all of them."""

    chosen: "Chosen"
    work: "Work"
    applied: Applied
    told: Told
    since: float
    outcome: Outcome = "ok"
    delay: float | None = None
    detail: str = ""


#: What is to be written down once a reply has left; of a fault that had acted before there was one the event is made: nothing
#: but what the client sees is still open, and the request need not be kept for it.
Events = tuple[Pending | Fired, ...]


def tell(line: "Line", place: "Slot | Element", work: "Work", applied: Applied, told: Told) -> None:
    """The reply to a command is here, which tells the client so: what was done before is written down once it has that."""
    for done in work.told:
        seen, outcome = came_of(done, applied, told)
        if seen in ANSWERED:
            hold(line, place, work, done, applied, seen, outcome)
        else:
            line.fire(
                done.chosen, work, applied, seen, outcome, delay=done.delay, detail=done.detail
            )
    work.told.clear()


def hold(  # noqa: PLR0917 - one call's worth of what is at hand
    line: "Line",
    place: "Slot | Element",
    work: "Work",
    done: "Done",
    applied: Applied,
    told: Told,
    outcome: Outcome,
) -> None:
    """A fault has acted already: count it, and arm those that wait for it; its event waits for the reply that has this place."""
    event = fired(
        done.chosen.live,
        done.chosen.turn,
        work.exchange,
        line.now,
        applied=applied,
        told=told,
        outcome=outcome,
        delay=done.delay,
        detail=done.detail,
    )
    place.pending += (event,)


def write_down(line: "Line", place: "Slot | Element", now: float, seen: Told | None = None) -> None:
    """The reply has left, as it was to, if sooner; or it never will, and `seen` is what the client saw of it."""
    if not place.pending:
        return
    passed = now - _since(place.pending, now)
    for each in place.pending:
        outcome = each.outcome if seen is None else missed(each.outcome, each.applied)
        told = seen or each.told
        if isinstance(each, Fired):
            same = each.told == told and each.outcome == outcome
            line.effects.append(each if same else replace(each, told=told, outcome=outcome))
            continue
        delay = each.delay
        if delay is not None:
            delay, passed = spent(delay, passed)
        line.fire(
            each.chosen,
            each.work,
            each.applied,
            told,
            outcome,
            delay=delay,
            detail=each.detail,
        )
    place.pending = ()


def _since(events: Events, now: float) -> float:
    """When the reply came."""
    return next((each.since for each in events if isinstance(each, Pending)), now)


def join(line: "Line", slot: "Slot | None", pending: Pending) -> None:
    """A fault has acted on a command after its reply came: write it down with the others, or now if that has left or never will."""
    if slot is None or not any(each is slot for each in line.slots):
        slot = None
    elif not line.closed:
        pending.since = _since(slot.pending, pending.since)
        slot.pending += (pending,)
        return
    seen = None if slot is None else seen_of(slot)
    line.fire(
        pending.chosen,
        pending.work,
        pending.applied,
        seen or pending.told,
        missed(pending.outcome, pending.applied) if seen else pending.outcome,
        detail=pending.detail,
    )


def seen_of(slot: "Slot") -> Told | None:
    """What the client saw of a reply of which nothing more will leave; None: all of it."""
    if slot.pieces is None:
        return "nothing"
    given = len(slot.reply) - len(slot.owed) - sum(len(raw) for _, raw in slot.pieces)
    if given == len(slot.reply):
        return None
    return "partial" if given else "nothing"


def came_of(done: "Done", applied: Applied, told: Told | None) -> tuple[Told, Outcome]:
    """What the client saw of a command that this was done to before it was forwarded, and the outcome; `told` None: it wanted no reply."""
    if told is None:
        return "nothing", done.outcome
    seen: Told = "late" if done.delay is not None and told == "ok" else done.seen or told
    if seen in ANSWERED:
        return seen, done.outcome
    return seen, missed(done.outcome, applied)


def spent(delay: float, passed: float) -> tuple[float, float]:
    """How much of a delay was over after so many seconds, and how many of these are left."""
    if passed < delay - TINY:
        delay = max(0.0, passed)
    return delay, passed - delay


def missed(outcome: Outcome, applied: Applied) -> Outcome:
    """What an outcome becomes where the client saw no reply, or not all of it."""
    if outcome not in {"ok", "false_ok"}:
        return outcome
    return "fail" if applied == "no" else "unknown"
