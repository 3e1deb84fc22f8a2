"""What faults have done to a reply that has not left yet, or to a request: written down once it is known what came of that.

Takes what was decided; gives events that say what really came of it, such as how long it was late when its client went.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from chaosproxy.core.effect import Applied, Outcome, Told
from chaosproxy.core.firing import fired

if TYPE_CHECKING:
    from chaosproxy.core.line import Line
    from chaosproxy.core.live_rule import Chosen
    from chaosproxy.core.slot import Slot, Work
    from chaosproxy.core.slot import Told as Done

#: So many seconds are no time: sums of times are not exact.
TINY: Final = 1e-6
#: What a client saw that saw a whole reply.
ANSWERED: Final = frozenset({"ok", "error", "late"})


@dataclass(slots=True)
class Pending:
    """One fault's event. `delay`: what it adds to how late the reply is, which is so `since` the same time for all of them.

    `acted`: it did that before there was a reply, which is counted already; only what the client sees of that is not known.
    """

    chosen: "Chosen"
    work: "Work"
    applied: Applied
    told: Told
    since: float
    outcome: Outcome = "ok"
    delay: float | None = None
    detail: str = ""
    acted: bool = False


def tell(line: "Line", slot: "Slot", work: "Work", applied: Applied, told: Told) -> None:
    """The reply to a command is here, which tells the client so: what was done before is written down once it has that."""
    for done in work.told:
        seen, outcome = came_of(done, applied, told)
        if seen in ANSWERED:
            hold(line, slot, work, done, applied, seen, outcome)
        else:
            line.fire(
                done.chosen, work, applied, seen, outcome, delay=done.delay, detail=done.detail
            )
    work.told.clear()


def hold(  # noqa: PLR0917 - one call's worth of what is at hand
    line: "Line",
    slot: "Slot",
    work: "Work",
    done: "Done",
    applied: Applied,
    told: Told,
    outcome: Outcome,
) -> None:
    """A fault has acted already: count it, and arm those that wait for it; its event waits for the reply in `slot` to leave."""
    done.chosen.live.fire(line.now)
    slot.pending += (
        Pending(
            done.chosen, work, applied, told, line.now, outcome, done.delay, done.detail, acted=True
        ),
    )


def write_down(line: "Line", slot: "Slot", now: float, seen: Told | None = None) -> None:
    """The reply has left, as it was to, if sooner; or it never will, and `seen` is what the client saw of it."""
    if not slot.pending:
        return
    passed = now - slot.pending[0].since
    for each in slot.pending:
        delay, outcome = each.delay, each.outcome
        if delay is not None and not each.acted:
            delay, passed = spent(delay, passed)
        if seen is not None:
            outcome = missed(outcome, each.applied)
        line.effects.append(
            fired(
                each.chosen.live,
                each.chosen.turn,
                each.work.exchange,
                now,
                applied=each.applied,
                told=seen or each.told,
                outcome=outcome,
                delay=delay,
                detail=each.detail,
                counted=each.acted,
            )
        )
    slot.pending = ()


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
