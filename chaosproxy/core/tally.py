"""How often each command came, and how long its replies took: plain numbers that a collector reads when it is asked.

Takes what one thread counts, at next to no cost: a reply's time is put down as it is, and many are sorted into the histogram
together. Gives any thread one view of it all.
"""

from bisect import bisect_left, bisect_right
from typing import Final

#: Upper bounds of the upstream_seconds histogram, in seconds; the last bucket is +Inf.
BUCKETS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
#: So many times at most are put down before they are sorted.
MOST_TIMES: Final = 256


class _Histogram:
    """Times sorted into buckets, not cumulative, their sum in seconds, and those that are not sorted yet, in seconds."""

    __slots__ = ("buckets", "seconds", "times")

    def __init__(self, buckets: list[int], seconds: float) -> None:
        self.buckets, self.seconds = buckets, seconds
        self.times: list[float] = []

    def sorted(self) -> tuple[list[int], float]:
        """Give the buckets and the sum with all times in them; nothing is changed."""
        times, buckets = sorted(self.times), self.buckets[:]
        below = 0
        for number, bound in enumerate(BUCKETS):
            upto = bisect_right(times, bound, below)
            buckets[number] += upto - below
            below = upto
        buckets[-1] += len(times) - below
        return buckets, self.seconds + sum(times)


class Tally:
    """One command's counts. `count`: how often it came.

    `times`: takes how long a reply took, in seconds; who puts the `MOST_TIMES`th one there has to `sort` them.
    """

    __slots__ = ("_histogram", "count", "name", "times")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._histogram = _Histogram([0] * (len(BUCKETS) + 1), 0.0)
        self.times = self._histogram.times

    def took(self, seconds: float, times: int = 1) -> None:
        """So many replies came this long after their commands were forwarded."""
        self._histogram.buckets[bisect_left(BUCKETS, seconds)] += times
        self._histogram.seconds += seconds * times

    def sort(self) -> None:
        """Sort the times that were put down. Others see them either there or in their buckets, never in both."""
        self._histogram = _Histogram(*self._histogram.sorted())
        self.times = self._histogram.times

    @property
    def histogram(self) -> tuple[list[int], float]:
        """How many replies took how long, by bucket, not cumulative, and all of them in seconds. For any thread."""
        return self._histogram.sorted()
