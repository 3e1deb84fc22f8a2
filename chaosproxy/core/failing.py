"""A command meets the failovers in force: it may begin one, has to wait while a step is carried out, or is refused.

Takes the work at the head of a line; gives a final decision for it where the server it is connected to would refuse it now.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from chaosproxy.core import modes
from chaosproxy.core.after import works_of
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Answer, Cut, NoRenewal
from chaosproxy.core.effect import Effect, KeysTouched, StartFailover
from chaosproxy.core.engine import Engine
from chaosproxy.core.failover import Failover, Newcomers
from chaosproxy.core.firing import fired
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen, LiveRule
from chaosproxy.core.lost import Lost, but
from chaosproxy.core.match import Exchange
from chaosproxy.core.rule import Match
from chaosproxy.core.slot import Work
from chaosproxy.core.swallow import carried_out
from chaosproxy.core.when import Turn

#: What events call a failover's own steps.
FAILOVER: Final = "(failover)"
#: So many kinds of lost writes (a command and its keys) stand in one event.
_KINDS: Final = 500
#: So many kinds of writes that were kept (a command and why).
_SHOWN: Final = 20


def state_of(live: LiveRule) -> Failover:
    """Where the failover of a rule stands."""
    return cast("Failover", live.state)


def meets(line: Line, work: Work, now: float) -> bool:
    """Ask the failovers in force; False if the command has to wait for a step of one."""
    for live in line.engine.failovers:
        if not work.asked and picks(live):
            _may_begin(line, live, work, now)
    work.asked = True
    if line.world.held:
        return False
    work.refused = _refusal(line, work)
    return True


def refuse_late(line: Line, work: Work) -> None:
    """Refuse what was let through and has been held up since: its server may refuse it by now. It is about to leave.

    What an old primary has a part of cannot be refused, nor may it get the rest: its connection ends.
    """
    final = work.final
    changes = final is None or (isinstance(final[1], NoRenewal) and not work.waiting)
    refused = _refusal(line, work) if line.engine.failovers and changes else None
    if refused is None:
        return
    chosen, refusal = refused
    if work.whole and len(work.raw) == len(work.sent.raw):
        work.final = chosen, refusal
    elif state_of(chosen.live).is_old(line.opened):
        work.final = chosen, Cut("reset")
    else:
        line.skip(chosen, "too_large")
        return
    if final is not None:
        line.skip(final[0], "refused")


def picks(live: LiveRule) -> bool:
    """Whether it begins with an exchange that its rule picks; else it begins by itself."""
    when = live.rule.when
    chosen = (when.nth, when.first, when.every, when.limit, when.chance)
    return live.rule.match != Match() or when.skip > 0 or any(each is not None for each in chosen)


def _may_begin(line: Line, live: LiveRule, work: Work, now: float) -> None:
    holds, key = live.match.holds(work.exchange)
    if not holds:
        return
    for chosen in live.take(work.exchange, key, now, line.effects):
        if state_of(live).running:
            line.skip(chosen, "running")
        else:
            begin(chosen, work.exchange, now, line.effects)
            line.world.hold()
            line.effects.append(StartFailover(live.name))


def begin_by_itself(engine: Engine, now: float, effects: list[Effect]) -> list[LiveRule]:
    """Begin the failovers whose time it is and that need no exchange for it; give their rules."""
    begun: list[LiveRule] = []
    for live in engine.failovers:
        state, counter = state_of(live), live.counter
        asked = live.rule.when.trigger is not None
        ready = counter.requests > 0 if asked else not live.asked
        if picks(live) or state.running or not counter.awake(now):
            continue
        if not ready and not (asked and engine.recording is not None and not live.asked):
            continue
        live.asked = True
        exchange = Exchange(Command((b"",), b"", None, FAILOVER, ()), 0, b"", "", 0, opened=now)
        for chosen in live.take(exchange, None, now, effects):
            begin(chosen, exchange, now, effects)
            begun.append(live)
    return begun


def begins_at(engine: Engine, live: LiveRule) -> float | None:
    """When a failover will begin by itself, as far as that is known: it has not yet, and only time is missing."""
    counter, when = live.counter, live.rule.when
    if picks(live) or live.asked or when.trigger is not None or not counter.armed:
        return None
    return max(live.armed_at, engine.since + (when.from_ or 0.0))


def begin(chosen: Chosen, exchange: Exchange, now: float, effects: list[Effect]) -> None:
    """A failover begins."""
    live = chosen.live
    state_of(live).begin(now)
    detail = f"{live.fault.type} begins"
    effects.append(fired(live, chosen.turn, exchange, now, detail=detail))


def tell(live: LiveRule, now: float, detail: str, **what: Any) -> list[Effect]:
    """A step was carried out: the effects that write it down. `what`: fields of the event, as `fired` takes them."""
    effects: list[Effect] = []
    live.count(effects)
    exchange = Exchange(Command((b"",), b"", None, FAILOVER, ()), 0, b"", "", 0)
    effects.append(fired(live, following(live), exchange, now, detail=detail, **what))
    return effects


def lose(engine: Engine, live: LiveRule) -> Lost:
    """A switch is emulated: take what is lost by it. What is left of all that was written is there for good."""
    log = state_of(live).log
    if log is None:
        return Lost((), (), ())
    lost = log.lose()
    forget(engine)
    return lost


def forget(engine: Engine) -> None:
    """What was written by now has been lost, or never will be, by whichever failover."""
    for live in engine.failovers:
        if (log := state_of(live).log) is not None:
            log.clear()


def lost_events(live: LiveRule, lost: Lost, now: float, how: str = "undone") -> list[Effect]:
    """A switch is done: the effects that say what was lost by it, so many kinds of writes in an event.

    `how`: undone where that was emulated, else lost.
    """
    effects: list[Effect] = []
    kinds = list(Counter(lost.writes).items())
    stays = _said(lost.kept)
    if not kinds:
        effects += tell(live, now, f"switched, nothing lost{stays}")
    for start in range(0, len(kinds), _KINDS):
        part = kinds[start : start + _KINDS]
        keys = tuple(dict.fromkeys(key for (_, keys), _ in part for key in keys))
        count = sum(times for _, times in part)
        names: Counter[str] = Counter()
        for (name, _), times in part:
            names[name] += times
        shown = ", ".join(f"{name} x{times}" for name, times in names.items())
        effects += tell(
            live,
            now,
            f"switched, {count} writes {how}: {shown}{'' if start else stays}",
            keys=keys,
            applied="undone",
            told="ok",
            outcome="false_ok",
            writes=tuple((name, keys, times) for (name, keys), times in part),
        )
        effects.append(KeysTouched(live.name, how, len(keys)))
    for _, why in lost.kept:
        live.count(effects)
        live.skip(why, effects)
    return effects


def _said(kept: Sequence[tuple[str, str]]) -> str:
    """What an event says of the writes that stay: which commands, and why."""
    kinds = Counter(kept).items()
    shown = [f"{name} x{times} ({why})" for (name, why), times in kinds][:_SHOWN]
    more = [f"{len(kinds) - _SHOWN} kinds more"] if len(kinds) > _SHOWN else []
    return f"; kept: {', '.join(shown + more)}" if kept else ""


def following(live: LiveRule) -> Turn:
    """The turn of what follows from a failover's beginning: no match of its own, and nothing a replay looks for."""
    return Turn(live.matched, f"{live.name}/{live.matched}", None, "", 0)


def newcomers(engine: Engine) -> tuple[Newcomers, LiveRule | None]:
    """How new connections are met by the failovers that are under way, and by whose."""
    for live in engine.failovers:
        how = state_of(live).newcomers
        if how != "accept":
            return how, live
    return "accept", None


def _refusal(line: Line, work: Work) -> tuple[Chosen, Answer] | None:
    """What the server that this line is to refuses the command with now, and whose failover that is; None: it does not."""
    transaction = line.modes.transaction
    carried: tuple[CommandSpec | None, ...] = ()
    if transaction is not None and work.name.upper == b"EXEC":
        carried = tuple(each.sent.spec for each in works_of(transaction))
    queued = transaction is not None and work.name.upper not in modes.NEVER_QUEUED
    for live in line.engine.failovers:
        if not state_of(live).refusal(line.opened):
            continue
        chosen = Chosen(live, following(live), None)
        decision = line.decide(chosen, work.exchange, queued=queued, carried=carried)
        if isinstance(decision, Answer):
            live.count(line.effects)
            return chosen, decision
    return None


def refused(lost: Lost, replies: Sequence[bytes] | None) -> Lost:
    """What was really lost, as the replies to MULTI, the requests and EXEC say: nothing if they were not carried out."""
    array = None if replies is None else carried_out(replies)
    if replies is not None and replies[0][:1] == b"-":  # MULTI: so each was carried out by itself
        array = list(replies[1:-1])
    if array is None:
        why = "side_connection" if replies is None else "refused"
        kept = tuple((name, why) for name, _ in lost.writes)
        return replace(lost, writes=(), kept=lost.kept + kept)
    pairs = zip(lost.puts, array, strict=False)
    return but(lost, {key for key, raw in pairs if key is not None and raw[:1] == b"-"}, "refused")
