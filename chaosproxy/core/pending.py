"""What faults have done to a reply that has not left yet, or to a request: written down once it is known what came of that.

Takes what was decided; gives events that say what really came of it, such as how long it was late when its client went.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from chaosproxy.core.effect import Applied, Outcome, Told

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
    """One fault's event. `delay`: what it adds to how late the reply is, which is so `since` the same time for all of them."""

    chosen: "Chosen"
    work: "Work"
    applied: Applied
    told: Told
    since: float
    outcome: Outcome = "ok"
    delay: float | None = None
    detail: str = ""


def write_down(line: "Line", slot: "Slot", now: float, seen: Told | None = None) -> None:
    """The reply has left, as it was to, if sooner; or it never will, and `seen` is what the client saw of it."""
    if not slot.pending:
        return
    passed = now - slot.pending[0].since
    for each in slot.pending:
        delay, outcome = each.delay, each.outcome
        if delay is not None:
            delay, passed = spent(delay, passed)
        if seen is not None:
            outcome = missed(outcome)
        line.fire(
            each.chosen,
            each.work,
            each.applied,
            seen or each.told,
            outcome,
            delay=delay,
            detail=each.detail,
        )
    slot.pending = ()


def came_of(done: "Done", applied: Applied, told: Told | None) -> tuple[Told, Outcome]:
    """What the client saw of a command that this was done to before it was forwarded, and the outcome; `told` None: it wanted no reply."""
    if told is None:
        return "nothing", done.outcome
    seen: Told = "late" if done.delay is not None and told == "ok" else done.seen or told
    if seen in ANSWERED:
        return seen, done.outcome
    return seen, "fail" if (applied, done.outcome) == ("no", "ok") else missed(done.outcome)


def spent(delay: float, passed: float) -> tuple[float, float]:
    """How much of a delay was over after so many seconds, and how many of these are left."""
    if passed < delay - TINY:
        delay = max(0.0, passed)
    return delay, passed - delay


def missed(outcome: Outcome) -> Outcome:
    """What an outcome becomes where the client saw no reply, or not all of it."""
    return "unknown" if outcome == "ok" else outcome
