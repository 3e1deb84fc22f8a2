"""What a new connection meets: the rules of fault `admit`, asked before a conversation begins.

Takes a connection's number and address; gives what is to be done with it, and the effects that write it down.
"""

from chaosproxy.core.command import Command
from chaosproxy.core.decision import Admit
from chaosproxy.core.effect import Effect, Fired
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.engine import Chosen, Engine, LiveRule
from chaosproxy.core.fault import Context, ServerInfo
from chaosproxy.core.match import Exchange

#: What events call the command of a new connection.
CONNECT = "(connect)"
_TOLD: dict[str, Seen] = {"error": "error", "accept_silent": "nothing", "accept": "late"}


def admit(
    engine: Engine,
    server: ServerInfo,
    connection: int,
    address: str,
    now: float,
    *,
    open_connections: int,
) -> tuple[list[Admit], list[Effect]]:
    """Ask the rules about a new connection: what it meets, in order (waits first, at most one end), and effects."""
    effects: list[Effect] = []
    met: list[Admit] = []
    if not engine.connection_rules:
        return met, effects
    exchange = _exchange(connection, address, now)
    ended = False
    for chosen in engine.select_connection(exchange, now, effects):
        decision = (
            None
            if ended
            else chosen.live.fault.decide(_context(chosen, exchange, server, now, open_connections))
        )
        if not isinstance(decision, Admit):
            chosen.live.skip("ended" if ended else "not_applicable", effects)
            continue
        met.append(decision)
        ended = decision.what != "accept"
        effects.append(_fired(chosen, exchange, decision, now))
    return met, effects


def shut_door(engine: Engine, live: LiveRule, now: float) -> tuple[float, list[Effect]]:
    """Nobody is to listen from now on: until when, and the effects that write it down."""
    effects: list[Effect] = []
    until = live.armed_at + (getattr(live.fault, "for_", None) or 0.0)
    exchange = _exchange(0, "", now)
    chosen = engine.take_rule(live, exchange, now, effects)
    effects += [_fired(each, exchange, Admit("refuse", until - now), now) for each in chosen]
    return until, effects


def door_keeper(engine: Engine, now: float) -> LiveRule | None:
    """The rule by which nobody is to listen now: `refuse` with `for`, and nothing that picks among connections."""
    for live in engine.connection_rules:
        fault, when, match = live.fault, live.rule.when, live.rule.match
        picks = (
            match.clients,
            match.connection,
            when.nth,
            when.first,
            when.every,
            when.limit,
            when.chance,
            when.trigger,
        )
        if getattr(fault, "new_connections", "") != "refuse" or any(
            each is not None for each in picks
        ):
            continue
        others = (
            getattr(fault, "limit", None),
            getattr(fault, "next", None),
            getattr(fault, "delay", None),
        )
        lasts = getattr(fault, "for_", None)
        if lasts is None or when.skip or any(each is not None for each in others):
            continue
        if (
            live.counter.armed
            and live.counter.enabled
            and not live.fired
            and live.counter.awake(now)
        ):
            return live
    return None


def _exchange(connection: int, address: str, now: float) -> Exchange:
    command = Command((b"",), b"", None, CONNECT, ())
    return Exchange(command, connection, b"", address, 0, opened=now)


def _context(
    chosen: Chosen, exchange: Exchange, server: ServerInfo, now: float, open_connections: int
) -> Context:
    live = chosen.live
    return Context(
        fault=live.name,
        command=exchange.command,
        position=chosen.at,
        protocol=2,
        db=0,
        match=chosen.turn.match,
        server=server,
        stream=chosen.turn.stream,
        connection=exchange.connection,
        now=now,
        state=live.state,
        armed_at=live.armed_at,
        fired=live.fired,
        open_connections=open_connections,
    )


def _fired(chosen: Chosen, exchange: Exchange, decision: Admit, now: float) -> Fired:
    live = chosen.live
    live.fire(now)
    return Fired(
        fault=live.name,
        type=live.fault.type,
        position=str(chosen.at),
        command=CONNECT,
        keys=(),
        db=0,
        client=exchange.address,
        connection=exchange.connection,
        match=chosen.turn.match,
        applied="no",
        told=_TOLD.get(decision.what, "reset"),
        outcome="ok" if decision.what == "accept" else "fail",
        digest=exchange.command.digest(),
        generation=live.generation,
        delay=decision.delay or None,
        draw=chosen.turn.draw,
        detail=decision.what,
        per=chosen.turn.per,
        ordinal=chosen.turn.ordinal,
    )
