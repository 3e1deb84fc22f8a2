"""A rule in force: its compiled match, its turns, and what has become of its matches.

Takes matches of one rule, told one by one or counted without a word; gives the turn of each, and the counts.
"""

from dataclasses import dataclass

from chaosproxy.core.decision import Position
from chaosproxy.core.effect import Effect, Matched, Skipped
from chaosproxy.core.fault import Fault
from chaosproxy.core.match import CompiledMatch, Exchange
from chaosproxy.core.rule import Rule
from chaosproxy.core.when import Counter, Turn


class LiveRule:
    """A rule in force: its compiled match, its counts."""

    __slots__ = (
        "_skipped", "_told", "_untold", "armed_at", "arms", "asked", "counter", "fired", "fired_before", "first_fired", "generation", "match", "rule",
        "state",
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
        self.fired = 0
        #: How often it had fired when it was last triggered.
        self.fired_before = 0
        #: Whether it was asked if anybody is to listen: once, when it comes into force.
        self.asked = False
        # Matches of which an effect tells, and those of them that were left alone; matches that are acted on, untold. Of all
        # others the counter knows.
        self._told = self._untold = 0
        self._skipped: dict[str, int] = {}

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

    @property
    def matched(self) -> int:
        """How many exchanges its match has held for. Safe from any thread, as `skipped` is."""
        return self._told + self.unsaid()[0]

    @property
    def skipped(self) -> dict[str, int]:
        """How many of them it has left alone, by reason."""
        skipped = self._skipped.copy()
        for reason, times in self.counter.left_alone().items():
            skipped[reason] = skipped.get(reason, 0) + times
        return skipped

    @property
    def numbers(self) -> tuple[int, int, dict[str, int]]:
        """Matched, fired and skipped, of one moment as far as they have to fit: whatever became of a match, the match is counted."""
        fired, skipped = self.fired, self.skipped
        return self.matched, fired, skipped

    def take(
        self, exchange: Exchange, key: bytes | None, now: float, effects: list[Effect]
    ) -> "list[Chosen]":
        """Its match holds: count that; gives the rule, if it is its turn."""
        self.count(effects)
        turn = self.counter.take(exchange, key, now)
        if isinstance(turn, str):
            self.skip(turn, effects)
            return []
        return [Chosen(self, turn, key)]

    def glance(self, exchange: Exchange, key: bytes | None, now: float) -> "list[Chosen]":
        """As `take`, but nothing is told of the match."""
        turn = self.counter.take(exchange, key, now)
        if isinstance(turn, str):
            self.counter.leave_alone(turn)
            return []
        self._untold += 1
        return [Chosen(self, turn, key)]

    def unsaid(self) -> tuple[int, dict[str, int]]:
        """Of how many matches no effect tells, and how many of these were left alone, by reason. Safe from any thread."""
        left = self.counter.left_alone()
        return self._untold + sum(left.values()), left

    def count(self, effects: list[Effect]) -> None:
        """Its match holds, and no turn is asked for."""
        self._told += 1
        effects.append(Matched(self.name, self.generation))

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
        self._skipped[reason] = self._skipped.get(reason, 0) + 1
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
