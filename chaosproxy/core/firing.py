"""The one place where a fault that has acted becomes an event.

Takes the rule, its turn and the exchange it acted on; gives the effect that is written down, the rule's own count being kept.
"""

from chaosproxy.core.effect import Applied, Fired, Outcome, Told
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.match import Exchange
from chaosproxy.core.when import Turn


def fired(
    live: LiveRule,
    turn: Turn,
    exchange: Exchange,
    now: float,
    *,
    applied: Applied = "no",
    told: Told = "nothing",
    outcome: Outcome = "ok",
    delay: float | None = None,
    detail: str = "",
    keys: tuple[bytes, ...] | None = None,
    writes: tuple[tuple[str, tuple[bytes, ...], int], ...] = (),
) -> Fired:
    """Count that a rule has acted, and give its event. `keys`: where they are not the command's own."""
    live.fire(now)
    command = exchange.command
    return Fired(
        fault=live.name,
        type=live.fault.type,
        position=str(live.rule.at),
        command=command.name,
        keys=command.keys if keys is None else keys,
        db=exchange.db,
        client=exchange.client.decode("utf-8", "backslashreplace") or exchange.address,
        connection=exchange.connection,
        match=turn.match,
        applied=applied,
        told=told,
        outcome=outcome,
        digest=command.digest(),
        generation=live.generation,
        delay=delay,
        draw=turn.draw,
        detail=detail,
        per=turn.per,
        ordinal=turn.ordinal,
        writes=writes,
    )
