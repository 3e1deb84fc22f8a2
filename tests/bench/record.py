"""What was measured: samples, and the medians and ratios that are quoted.

Takes samples of many rounds, gives one figure for each question.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.bench.peers import Missing, Peer

DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of one peer.

    Attributes:
        round: Which round, from 1; what is compared is of one round.
        peer: Its name, or `direct`.
        scenario: Its name.
        part: `SET` or `GET` under load, else empty.
        values: Figures by their names, as the measuring function lists them.

    """

    round: int
    peer: str
    scenario: str
    part: str
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Failure:
    """A peer that did not get through a scenario, and why."""

    peer: str
    scenario: str
    reason: str


@dataclass(slots=True)
class Record:
    """Everything a run has found so far."""

    peers: Sequence[Peer] = ()
    missing: Sequence[Missing] = ()
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def values(self, peer: str, scenario: str, key: str, part: str = "") -> dict[int, float]:
        """One figure by round; the mean where a round has several (direct has)."""
        found: dict[int, list[float]] = {}
        for sample in self.samples:
            if (sample.peer, sample.scenario, sample.part) == (peer, scenario, part):
                value = sample.values.get(key)
                if value is not None:
                    found.setdefault(sample.round, []).append(value)
        return {number: statistics.mean(values) for number, values in found.items()}

    def median(self, peer: str, scenario: str, key: str, part: str = "") -> float | None:
        """The median over the rounds, or None where nothing was measured."""
        return median(self.values(peer, scenario, key, part).values())

    def ratio(self, peer: str, other: str, scenario: str, key: str, part: str = "") -> float | None:
        """The median over the rounds of one peer's figure over another's of the same round.

        Taken round by round, for a machine that is slow for a minute is slow for both.
        """
        above = self.values(peer, scenario, key, part)
        below = self.values(other, scenario, key, part)
        return median(value / below[number] for number, value in above.items() if below.get(number))

    def measured(self, peer: str, scenario: str) -> bool:
        """Whether there is any sample of this peer in this scenario."""
        return any((each.peer, each.scenario) == (peer, scenario) for each in self.samples)

    def why_not(self, peer: str, scenario: str) -> str:
        """Why there is no figure of this peer in this scenario."""
        for missing in self.missing:
            if missing.name == peer:
                return f"{peer} is missing ({missing.reason})"
        for failure in self.failures:
            if (failure.peer, failure.scenario) == (peer, scenario):
                return f"{peer} failed ({failure.reason})"
        return f"{peer} was not measured in {scenario}"


def median(values: Iterable[float]) -> float | None:
    """The middle value, or None of none."""
    ordered = list(values)
    return statistics.median(ordered) if ordered else None
