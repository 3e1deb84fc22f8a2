"""What a user asks of a profile in force: a fault is to act now, or no longer.

Takes an engine and a fault's name; gives the rule that was steered, or raises with what would be right.
"""

from chaosproxy.core.engine import Engine
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.scalar import closest


class UnknownFaultError(LookupError):
    """The profile in force has no fault of that name; the text says which it has."""


class CannotTriggerError(Exception):
    """The fault is there and cannot be asked to act; the text says why."""


def find(engine: Engine, name: str) -> LiveRule:
    """Give the rule of that name. Raises UnknownFaultError."""
    live = engine.by_name.get(name)
    if live is not None:
        return live
    near = closest(name, engine.by_name)
    known = ", ".join(engine.by_name) or "no fault at all"
    meant = f"did you mean '{near}'?" if near else f"it has {known}"
    raise UnknownFaultError(
        f"no fault of profile {engine.profile.name} is called '{name}'; {meant}"
    )


def trigger(engine: Engine, name: str, now: float) -> LiveRule:
    """Ask a `trigger: manual` rule to act: on its next match, once.

    A fault that goes on for a time or a number of connections of its own (`Fault.spans`) begins now, and acts as long
    as that lasts. Raises UnknownFaultError and CannotTriggerError.
    """
    live = find(engine, name)
    counter = live.counter
    if live.rule.when.trigger is None:
        raise CannotTriggerError(
            f"fault {name} acts by itself: only one with `when: {{trigger: manual}}` can be triggered"
        )
    if not counter.enabled:
        raise CannotTriggerError(f"fault {name} is switched off")
    if engine.recording is not None:
        raise CannotTriggerError("a replay fires what was recorded, and nothing else")
    if live.fault.spans:
        # Once is enough: it stays open, and its own settings say for how long.
        counter.requests, counter.spends = 1, False
        live.armed_at, live.fired_before, live.asked = now, live.fired, False
    else:
        counter.requests += 1
    return live


def enable(engine: Engine, name: str, enabled: bool) -> LiveRule:
    """Switch a rule off, or on again: matches pass it by meanwhile, uncounted. What it holds already stays its own.

    Raises UnknownFaultError.
    """
    live = find(engine, name)
    if enabled and not live.counter.enabled:
        live.asked = False
    live.counter.enabled = enabled
    return live
