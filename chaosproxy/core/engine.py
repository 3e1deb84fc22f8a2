"""Who acts on an exchange: every rule's `match` and `when`, asked in profile order.

Takes exchanges from all conversations; gives the rules chosen for each. One engine is one generation of a profile: a
switch makes a new one, with counts from zero.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chaosproxy.core.barrier import Barrier
from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.effect import Effect, Matched, Skipped
from chaosproxy.core.failover import Failover
from chaosproxy.core.fault import Fault
from chaosproxy.core.match import CompiledMatch, Exchange, NameTest, reply_holds
from chaosproxy.core.memory import Memory
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import Profile, Rule
from chaosproxy.core.when import Counter, Turn

#: Of how many keys the last command is remembered, for `match: after`; the longest untouched is forgotten first.
MOST_KEYS = 65536
#: How many names are looked up once and kept, and of how many bytes at most: a hostile client may send anything.
MOST_NAMES = 4096
LONGEST_NAME = 128


class LiveRule:
    """A rule in force: its compiled match, its counts."""

    __slots__ = (
        "armed_at", "arms", "asked", "counter", "fired", "fired_before", "first_fired", "generation", "left", "match", "matched", "rule",
        "skipped", "state",
    )  # fmt: skip

    def __init__(
        self, rule: Rule, match: CompiledMatch, counter: Counter, generation: int, armed_at: float
    ) -> None:
        self.rule = rule
        self.generation = generation
        self.arms: list[LiveRule] = []
        self.match = match
        self.counter = counter
        self.first_fired: float | None = None
        self.armed_at = armed_at
        #: What the fault keeps between exchanges (`Fault.new_state`).
        self.state = rule.fault.new_state()
        self.matched = 0
        self.fired = 0
        #: How often it had fired when it was last triggered.
        self.fired_before = 0
        #: Whether it was asked if anybody is to listen: once, when it comes into force.
        self.asked = False
        self.skipped: dict[str, int] = {}
        #: Of these, what was left alone without a word (by `glance`): no effect tells of the match, nor of the skip.
        self.left: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The rule's name, unique in its profile."""
        return self.rule.name

    @property
    def fault(self) -> Fault:
        """What it does."""
        return self.rule.fault

    @property
    def subject(self) -> str:
        """What it is asked about: exchanges, pushes or new connections."""
        return "push" if self.rule.match.push is not None else self.fault.subject

    def fire(self, now: float) -> None:
        """It has acted: count it, and arm those that wait for it."""
        self.fired += 1
        if self.first_fired is None:
            self.first_fired = now
        for other in self.arms:
            if not other.counter.armed:
                other.counter.armed = True
                other.armed_at = now

    def skip(self, reason: str, effects: list[Effect]) -> None:
        """A match is left alone: count why."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        effects.append(Skipped(self.name, reason, self.generation))


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


class Engine:
    """One generation of a profile in force, shared by all conversations of a proxy."""

    def __init__(
        self,
        profile: Profile,
        table: CommandTable,
        seed: int,
        generation: int,
        now: float,
        *,
        first_connection: int = 1,
        recording: Recording | None = None,
    ) -> None:
        self.profile = profile
        self.table = table
        self.seed = seed
        self.generation = generation
        self.since = now
        self.recording = recording
        self.by_name: dict[str, LiveRule] = {}
        self.rules = tuple(self._live(rule, first_connection) for rule in profile.rules)
        self.by_name.update((live.name, live) for live in self.rules)
        self.places = {live: place for place, live in enumerate(self.rules)}
        for live in self.rules:
            if live.rule.when.armed_by is not None:
                self.by_name[live.rule.when.armed_by].arms.append(live)
        subjects = {live: live.subject for live in self.rules}
        #: They look at every exchange, and some begin without one: see `failing`.
        self.failovers = tuple(live for live in self.rules if isinstance(live.state, Failover))
        self.exchange_rules = tuple(
            live
            for live in self.rules
            if subjects[live] == "exchange" and live not in self.failovers
        )
        self.push_rules = tuple(live for live in self.rules if subjects[live] == "push")
        self.connection_rules = tuple(live for live in self.rules if subjects[live] == "connection")
        self.rememberers = tuple(live for live in self.rules if isinstance(live.state, Memory))
        self.counts_places = any(live.rule.match.batch is not None for live in self.rules)
        #: A rule that looks back has to see every command.
        self.looks_back = any(live.rule.match.after is not None for live in self.rules)
        self._watchers = tuple(
            (live, NameTest(words))
            for live in self.rules
            if (words := live.fault.watches()) is not None
        )
        self._watched: dict[str, bool] = {}
        self._history: dict[tuple[int, bytes], CommandSpec] = {}
        self._interest: dict[str, tuple[LiveRule, ...]] = {}

    def _live(self, rule: Rule, first: int) -> LiveRule:
        match = CompiledMatch(rule.match, self.seed, rule.name, self._fired_at, first)
        counter = Counter(rule.when, self.seed, rule.name, self.since, self.recording)
        return LiveRule(rule, match, counter, self.generation, self.since)

    def _fired_at(self, name: str) -> float | None:
        live = self.by_name.get(name)
        return None if live is None else live.first_fired

    def learn(self, table: CommandTable) -> None:
        """Use another command table, as a live server gave it."""
        self.table = table
        self._interest.clear()
        self._watched.clear()

    def interest(self, name: str) -> tuple[LiveRule, ...]:
        """The rules that can hold for a command whose first argument is `name` (upper case)."""
        found = self._interest.get(name)
        if found is None:
            specs = tuple(self._specs(name))
            found = tuple(
                live for live in self.exchange_rules if live.match.interested(name, specs)
            )
            if len(self._interest) < MOST_NAMES and len(name) <= LONGEST_NAME:
                self._interest[name] = found
        return found

    def watches(self, name: str) -> bool:
        """Whether a rule wants to hear when a command with this first argument (upper case) was applied."""
        if not self._watchers:
            return False
        found = self._watched.get(name)
        if found is None:
            specs = tuple(self._specs(name))
            found = any(test.interested(name, specs) for _, test in self._watchers)
            if len(self._watched) < MOST_NAMES and len(name) <= LONGEST_NAME:
                self._watched[name] = found
        return found

    def applied(self, exchange: Exchange) -> list[int]:
        """A command was applied: give the connections whose held commands may go on because of that."""
        woken: list[int] = []
        for live, _ in self._watchers:
            if isinstance(live.state, Barrier):
                woken += live.state.hear(exchange)
        return woken

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
        self._look_back(exchange)
        chosen: list[Chosen] = []
        for live in self.interest(name):
            if live.rule.match.reply is None:
                holds, key = live.match.holds(exchange)
                if holds:
                    chosen += self._take(live, exchange, key, now, effects)
        return chosen

    def select_push(self, frame: Exchange, now: float, effects: list[Effect]) -> list[Chosen]:
        """The rules chosen for a frame nobody asked for, in profile order."""
        chosen: list[Chosen] = []
        for live in self.push_rules:
            holds, key = live.match.holds(frame)
            if holds:
                chosen += self._take(live, frame, key, now, effects)
        return chosen

    def select_connection(
        self, exchange: Exchange, now: float, effects: list[Effect]
    ) -> list[Chosen]:
        """The rules chosen for a new connection, in profile order."""
        chosen: list[Chosen] = []
        for live in self.connection_rules:
            if live.match.client_holds(exchange):
                chosen += self.take_rule(live, exchange, now, effects)
        return chosen

    def take_rule(
        self,
        live: LiveRule,
        exchange: Exchange,
        now: float,
        effects: list[Effect],
        key: bytes | None = None,
    ) -> list[Chosen]:
        """Count one match of a rule whose match holds; the rule, if it is its turn."""
        return self._take(live, exchange, key, now, effects)

    def _look_back(self, exchange: Exchange) -> None:
        """Tell the exchange what came before it on its keys, and remember it for the next one."""
        spec = exchange.command.spec
        if not self.looks_back or spec is None:
            return
        history = self._history
        before = {}
        for key in exchange.command.keys:
            place = (exchange.db, key)
            if place in history:
                before[key] = history.pop(place)
            history[place] = spec
        exchange.before_on_key = before
        while len(history) > MOST_KEYS:
            del history[next(iter(history))]

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
        effects.append(Matched(live.name, live.generation))
        turn = live.counter.take(exchange, key, now)
        if isinstance(turn, str):
            live.skip(turn, effects)
            return []
        return [Chosen(live, turn, key)]

    def status(self) -> list[dict[str, object]]:
        """Per fault, in profile order: what it is, what it has done, and what was asked of it. Safe from any thread."""
        return [
            {
                "name": live.name,
                "type": live.fault.type,
                "position": str(live.rule.at),
                "matched": live.matched,
                "fired": live.fired,
                "skipped": dict(live.skipped),
                "enabled": live.counter.enabled,
                "armed": live.counter.armed,
                "trigger": live.rule.when.trigger,
                "requested": live.counter.requests if live.counter.spends else 0,
            }
            for live in self.rules
        ]
