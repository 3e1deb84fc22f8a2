"""Who acts on an exchange: every rule's `match` and `when`, asked in profile order.

Takes exchanges from all conversations; gives the rules chosen for each. One engine is one generation of a profile: a
switch makes a new one, with counts from zero.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.decision import Decision, Position
from chaosproxy.core.effect import Effect, Matched, Skipped
from chaosproxy.core.fault import Context, Fault, ServerInfo
from chaosproxy.core.match import CompiledMatch, Exchange, reply_holds
from chaosproxy.core.rule import Profile, Rule
from chaosproxy.core.when import Counter, Turn


class LiveRule:
    """A rule in force: its compiled match, its counts."""

    __slots__ = ("arms", "counter", "fired", "generation", "match", "matched", "rule", "skipped")

    def __init__(self, rule: Rule, seed: int, generation: int, since: float) -> None:
        self.rule = rule
        self.generation = generation
        self.arms: list[LiveRule] = []
        self.match = CompiledMatch(rule.match, seed, rule.name)
        self.counter = Counter(rule.when, seed, rule.name, since)
        self.matched = 0
        self.fired = 0
        self.skipped: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The rule's name, unique in its profile."""
        return self.rule.name

    @property
    def fault(self) -> Fault:
        """What it does."""
        return self.rule.fault

    def fire(self) -> None:
        """It has acted: count it, and arm those that wait for it."""
        self.fired += 1
        for other in self.arms:
            other.counter.armed = True

    def skip(self, reason: str, effects: list[Effect]) -> None:
        """A match is left alone: count why."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        effects.append(Skipped(self.name, reason))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A rule that is to act on one exchange, which match that is, and the key that matched."""

    live: LiveRule
    turn: Turn
    key: bytes | None

    @property
    def at(self) -> Position:
        """Where in the exchange's life it acts."""
        return self.live.rule.at

    def decide(
        self,
        exchange: Exchange,
        server: ServerInfo,
        protocol: int,
        *,
        reply: bytes | None = None,
        queued: bool = False,
    ) -> Decision | None:
        """Ask the fault what is to happen."""
        context = Context(
            fault=self.live.name,
            command=exchange.command,
            position=self.at,
            protocol=protocol,
            db=exchange.db,
            match=self.turn.match,
            server=server,
            stream=self.turn.stream,
            reply=reply,
            queued=queued,
        )
        return self.live.fault.decide(context)


class Engine:
    """One generation of a profile in force, shared by all conversations of a proxy."""

    def __init__(
        self, profile: Profile, table: CommandTable, seed: int, generation: int, now: float
    ) -> None:
        self.profile = profile
        self.table = table
        self.seed = seed
        self.generation = generation
        self.since = now
        self.rules = tuple(LiveRule(rule, seed, generation, now) for rule in profile.rules)
        self.by_name = {live.name: live for live in self.rules}
        for live in self.rules:
            if live.rule.when.armed_by is not None:
                self.by_name[live.rule.when.armed_by].arms.append(live)
        self._interest: dict[str, tuple[LiveRule, ...]] = {}

    def interest(self, name: str) -> tuple[LiveRule, ...]:
        """The rules that can hold for a command whose first argument is `name` (upper case)."""
        found = self._interest.get(name)
        if found is None:
            specs = tuple(self._specs(name))
            found = tuple(live for live in self.rules if live.match.interested(name, specs))
            if len(self._interest) < 4096:  # a hostile client may send any number of names
                self._interest[name] = found
        return found

    def _specs(self, name: str) -> Iterable[CommandSpec]:
        for spec_name, spec in self.table.specs.items():
            if spec_name == name or spec_name.startswith(name + "|"):
                yield spec

    def select(self, exchange: Exchange, now: float, effects: list[Effect]) -> list[Chosen]:
        """The rules chosen for an exchange, in profile order; those that look at the reply come later.

        Every rule counts its match here, whatever an earlier rule will do to the exchange: that is what keeps one fault from
        shifting another's draws.
        """
        name = exchange.command.name.partition("|")[0]
        chosen: list[Chosen] = []
        for live in self.interest(name):
            if live.rule.match.reply is None:
                holds, key = live.match.holds(exchange)
                if holds:
                    chosen += self._take(live, exchange, key, now, effects)
        return chosen

    def waiting_for_reply(self, exchange: Exchange) -> list[tuple[LiveRule, bytes | None]]:
        """The rules that hold for an exchange but for its reply, with the key each holds for."""
        name = exchange.command.name.partition("|")[0]
        found = []
        for live in self.interest(name):
            if live.rule.match.reply is not None:
                holds, key = live.match.holds(exchange)
                if holds:
                    found.append((live, key))
        return found

    def select_by_reply(
        self,
        candidates: list[tuple[LiveRule, bytes | None]],
        exchange: Exchange,
        reply: bytes,
        now: float,
        effects: list[Effect],
    ) -> list[Chosen]:
        """Of `waiting_for_reply`'s rules those whose `reply` holds too, and whose turn it is."""
        chosen: list[Chosen] = []
        for live, key in candidates:
            test = live.rule.match.reply
            if test is not None and reply_holds(test, reply):
                chosen += self._take(live, exchange, key, now, effects)
        return chosen

    def _take(
        self,
        live: LiveRule,
        exchange: Exchange,
        key: bytes | None,
        now: float,
        effects: list[Effect],
    ) -> list[Chosen]:
        """Count one match; the rule, if it is its turn."""
        live.matched += 1
        effects.append(Matched(live.name))
        turn = live.counter.take(key, exchange.connection, now)
        if isinstance(turn, str):
            live.skip(turn, effects)
            return []
        return [Chosen(live, turn, key)]

    def trigger(self, name: str) -> bool:
        """Ask a `trigger: manual` rule to act on its next match; False if there is no such rule."""
        live = self.by_name.get(name)
        if live is None or live.rule.when.trigger is None:
            return False
        live.counter.requests += 1
        return True

    def status(self) -> list[dict[str, object]]:
        """Per fault, in profile order: name, type, matched, fired, skipped (reason -> count), enabled."""
        return [
            {
                "name": live.name,
                "type": live.fault.type,
                "matched": live.matched,
                "fired": live.fired,
                "skipped": dict(live.skipped),
                "enabled": live.counter.enabled,
            }
            for live in self.rules
        ]
