"""Who acts on an exchange: every rule's `match` and `when`, asked in profile order.

Takes exchanges from all conversations; gives the rules chosen for each. One engine is one generation of a profile: a
switch makes a new one, with counts from zero.
"""

from collections.abc import Iterable

from chaosproxy.core.barrier import Barrier
from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.decision import Position
from chaosproxy.core.effect import Effect
from chaosproxy.core.failover import Failover
from chaosproxy.core.live_rule import Chosen, LiveRule
from chaosproxy.core.match import CompiledMatch, Exchange, NameTest, reply_holds
from chaosproxy.core.memory import Memory
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import Profile, Rule
from chaosproxy.core.when import Counter

#: Of how many keys the last command is remembered, for `match: after`; the longest untouched is forgotten first.
MOST_KEYS = 65536
#: How many names are looked up once and kept, and of how many bytes at most: a hostile client may send anything.
MOST_NAMES = 4096
LONGEST_NAME = 128


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
        counter = Counter(rule.when, self.seed, rule.name, self.since, self.recording, first)
        counter.late = rule.at is not Position.BEFORE_FORWARD
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
                    chosen += live.take(exchange, key, now, effects)
        return chosen

    def select_push(self, frame: Exchange, now: float, effects: list[Effect]) -> list[Chosen]:
        """The rules chosen for a frame nobody asked for, in profile order."""
        chosen: list[Chosen] = []
        for live in self.push_rules:
            holds, key = live.match.holds(frame)
            if holds:
                chosen += live.take(frame, key, now, effects)
        return chosen

    def select_connection(
        self, exchange: Exchange, now: float, effects: list[Effect]
    ) -> list[Chosen]:
        """The rules chosen for a new connection, in profile order."""
        chosen: list[Chosen] = []
        for live in self.connection_rules:
            if live.match.client_holds(exchange):
                chosen += live.take(exchange, None, now, effects)
        return chosen

    def _look_back(self, exchange: Exchange) -> None:
        """Tell the exchange what came before it on its keys, and remember it for the next one."""
        spec = exchange.command.spec
        if not self.looks_back or spec is None:
            return
        history = self._history
        before = {}
        for key in dict.fromkeys(exchange.command.keys):
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
                chosen += live.take(exchange, key, now, effects)
        return chosen

    def status(self) -> list[dict[str, object]]:
        """Per fault, in profile order: what it is, what it has done, and what was asked of it. Safe from any thread."""
        return [
            {
                "name": live.name,
                "type": live.fault.type,
                "position": str(live.rule.at),
                "matched": matched,
                "fired": fired,
                "skipped": skipped,
                "enabled": live.counter.enabled,
                "armed": live.counter.armed,
                "trigger": live.rule.when.trigger,
                "requested": live.counter.requests if live.counter.spends else 0,
            }
            for live in self.rules
            for matched, fired, skipped in [live.numbers]
        ]
