"""What a new connection meets: the rules of fault `admit`, asked before a conversation begins.

Takes a connection's number and address; gives what is to be done with it, and what writes it down once it was.
"""

from dataclasses import dataclass, replace

from chaosproxy.core.circumstances import ConnectionTest
from chaosproxy.core.command import Command
from chaosproxy.core.decision import Admit
from chaosproxy.core.effect import Effect, Fired, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.engine import Engine
from chaosproxy.core.failing import following, newcomers
from chaosproxy.core.fault import Context, ServerInfo
from chaosproxy.core.firing import fired
from chaosproxy.core.live_rule import Chosen, LiveRule
from chaosproxy.core.match import LISTENER, Exchange

FOREVER = float("inf")
#: What events call the command of a new connection.
CONNECT = "(connect)"
_TOLD: dict[str, Seen] = {"error": "error", "accept_silent": "nothing", "accept": "late"}


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a new connection is to meet, and the event that says so once it has."""

    decision: Admit
    fired: Fired

    def let_in(self, waited: float) -> Fired:
        """The event for one that was let in before that, for another profile came into force."""
        return self._otherwise(waited, "late", "ok", "let in at a switch")

    def gone(self, waited: float) -> Fired:
        """The event for one that ended before that."""
        return self._otherwise(
            waited, "nothing", "fail", "the connection ended while it was kept waiting"
        )

    def _otherwise(self, waited: float, told: Seen, outcome: Outcome, why: str) -> Fired:
        detail = f"{self.decision.what}: {why}"
        return replace(self.fired, delay=waited, told=told, outcome=outcome, detail=detail)


def admit(
    engine: Engine,
    server: ServerInfo,
    connection: int,
    address: str,
    now: float,
    *,
    open_connections: int,
    listener: str = LISTENER,
) -> tuple[list[Meeting], list[Effect]]:
    """Ask the rules about a new connection: what it meets, in order (the last one may be its end), and effects.

    `open_connections`: how many others there are; `listener`: the name of the one it came in by.
    """
    effects: list[Effect] = []
    met: list[Meeting] = []
    if not (engine.connection_rules or engine.failovers):
        return met, effects
    exchange = _exchange(connection, address, now)
    exchange.listener = listener
    _, failover = newcomers(engine)
    if failover is not None:
        # Of a refusal only those come here who were accepted as the listener was closed.
        failover.count(effects)
        turned_away = Admit("reset")
        chosen = Chosen(failover, following(failover), None)
        return [Meeting(turned_away, _fired(chosen, exchange, turned_away, now))], effects
    ended = False
    for chosen in engine.select_connection(exchange, now, effects):
        decision = (
            None
            if ended
            else chosen.live.fault.decide(
                _context(engine, chosen, exchange, server, now, open_connections)
            )
        )
        if not isinstance(decision, Admit):
            chosen.live.counter.give_back(chosen.turn)
            chosen.live.skip("ended" if ended else "not_applicable", effects)
            continue
        met.append(Meeting(decision, _fired(chosen, exchange, decision, now)))
        ended = decision.what != "accept"
    return met, effects


def shut_door(
    engine: Engine, now: float, listener: str | None = None
) -> tuple[float, list[Effect]] | None:
    """Whether nobody is to listen from now on: until when, and the effects that write it down.

    `listener`: at that one only; None: at all, which is what rules and failovers ask for that name none.
    """
    if listener is None and newcomers(engine)[0] == "refuse":
        return FOREVER, []  # until its next step
    for live in engine.connection_rules:
        until = _shut_until(engine, live, listener)
        if until is None or live.asked or now >= until or not _may_shut(engine, live, now):
            continue
        live.asked = True
        effects: list[Effect] = []
        exchange = _exchange(0, "", now)
        chosen = live.take(exchange, None, now, effects)
        delay = until - now if until < FOREVER else 0.0
        effects += [_fired(each, exchange, Admit("refuse", delay), now) for each in chosen]
        if chosen:
            return until, effects
    return None


def stays_shut(engine: Engine, now: float, listener: str | None = None) -> bool:
    """Whether a rule that has shut the door still wants it shut: its time is not over, and nobody has switched it off."""
    if listener is None and newcomers(engine)[0] == "refuse":
        return True
    return any(
        live.asked and live.counter.enabled and now < (_shut_until(engine, live, listener) or 0.0)
        for live in engine.connection_rules
    )


def doors(engine: Engine) -> set[str]:
    """The listeners that rules about new connections name: each has a door of its own."""
    tests = (live.rule.match.connection for live in engine.connection_rules)
    return {test.listener for test in tests if test is not None and test.listener is not None}


def _may_shut(engine: Engine, live: LiveRule, now: float) -> bool:
    requested = (
        live.rule.when.trigger is None or live.counter.requests or engine.recording is not None
    )
    return live.counter.awake(now) and bool(requested)


def _shut_until(engine: Engine, live: LiveRule, listener: str | None) -> float | None:
    """Until when a rule would have nobody listen there; None if it does not, or picks among connections."""
    wanted = None if listener is None else ConnectionTest(listener=listener)
    when, match = live.rule.when, live.rule.match
    lasts = live.fault.shuts_door()
    # One that is triggered for a time shuts the door for that time; else its request is for one connection.
    one = when.trigger if lasts == FOREVER else None
    picks = (when.nth, when.first, when.every, when.limit, when.chance, one)
    if (
        lasts is None
        or when.skip
        or match.connection != wanted
        or any(each is not None for each in (*picks, match.clients))
    ):
        return None
    until = _in_force(engine, live) + lasts
    return until if when.until is None else min(until, engine.since + when.until)


def _in_force(engine: Engine, live: LiveRule) -> float:
    """Since when a rule can act: armed, and its `from` past."""
    return max(live.armed_at, engine.since + (live.rule.when.from_ or 0.0))


def _exchange(connection: int, address: str, now: float) -> Exchange:
    command = Command((b"",), b"", None, CONNECT, ())
    return Exchange(command, connection, b"", address, 0, opened=now)


def _context(  # noqa: PLR0917 - one call's worth of what is at hand
    engine: Engine,
    chosen: Chosen,
    exchange: Exchange,
    server: ServerInfo,
    now: float,
    open_connections: int,
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
        # In a replay time does not enter, nor does how often it fired before.
        armed_at=_in_force(engine, live) if engine.recording is None else now,
        fired=live.fired - live.fired_before if engine.recording is None else 0,
        open_connections=open_connections,
    )


def _fired(chosen: Chosen, exchange: Exchange, decision: Admit, now: float) -> Fired:
    return fired(
        chosen.live,
        chosen.turn,
        exchange,
        now,
        told=_TOLD.get(decision.what, "reset"),
        outcome="ok" if decision.what == "accept" else "fail",
        delay=decision.delay or None,
        detail=decision.what,
    )
