"""How often each command came, and how long its replies took: plain numbers that a collector reads when it is asked.

Takes what one thread counts, at next to no cost: a reply's time is put down as it is, and many are sorted into the histogram
together. Gives any thread one view of it all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

#: Upper bounds of the upstream_seconds histogram, in seconds; the last bucket is +Inf.
BUCKETS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
#: So many times at most are put down before they are sorted.
MOST_TIMES: Final = 256


class Histogram:
    """Times in buckets by their upper bounds, not cumulative, their `sum` in seconds, and `times` that are not sorted yet."""

    __slots__ = ("bounds", "buckets", "sum", "times")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets, self.sum = [0] * (len(bounds) + 1), 0.0
        self.times: list[float] = []

    def observe(self, seconds: float, times: int = 1) -> None:
        """So many took this long."""
        self.buckets[bisect_left(self.bounds, seconds)] += times
        self.sum += seconds * times

    def sorted(self) -> "Histogram":
        """Give one with all times in their buckets; nothing is changed."""
        times, found = sorted(self.times), Histogram(self.bounds)
        buckets, below = self.buckets[:], 0
        for number, bound in enumerate(self.bounds):
            upto = bisect_right(times, bound, below)
            buckets[number] += upto - below
            below = upto
        buckets[-1] += len(times) - below
        found.buckets, found.sum = buckets, self.sum + sum(times)
        return found


class Tally:
    """One command's counts. `count`: how often it came. `took`: takes how long its replies took, and how many they were.

    `times`: takes how long one took, in seconds; who puts the `MOST_TIMES`th one there has to `sort` them.
    """

    __slots__ = ("_histogram", "count", "name", "times", "took")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._use(Histogram(BUCKETS))

    def _use(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self.times, self.took = histogram.times, histogram.observe

    def sort(self) -> None:
        """Sort the times that were put down. Others see them either there or in their buckets, never in both."""
        self._use(self._histogram.sorted())

    @property
    def histogram(self) -> Histogram:
        """How long its replies took, all in their buckets. For any thread."""
        return self._histogram.sorted()
