"""Times are sorted into the right buckets, at once or many together, and whoever looks sees each of them once."""

import sys
from threading import Event, Thread

import pytest

from chaosproxy.core.tally import BUCKETS, MOST_TIMES, Tally
from tests.conversation import Talk


@pytest.mark.parametrize("way", ["at once", "put down", "sorted"])
def test_buckets(way):
    """A time falls into the first bucket whose bound it does not exceed, the longest into the last; however it is told."""
    tally = Tally("GET")
    times = (0.0, 0.0001, 0.00011, 10.0, 10.1)
    for seconds in times:
        if way == "at once":
            tally.took(seconds)
        else:
            tally.times.append(seconds)
    if way == "sorted":
        tally.sort()
        assert tally.times == []
    buckets, total = tally.histogram.buckets, tally.histogram.sum
    assert buckets[:2] == [2, 1]
    assert buckets[-2:] == [1, 1]
    assert sum(buckets) == len(times)
    assert len(buckets) == len(BUCKETS) + 1
    assert total == pytest.approx(sum(times))


def test_many_together():
    """Times that were put down, those that were sorted before and those of several replies add up; looking changes nothing."""
    tally = Tally("GET")
    tally.times.append(0.0002)
    tally.sort()
    tally.took(0.002, 3)
    tally.times.append(0.0003)
    for _ in range(2):
        buckets, total = tally.histogram.buckets, tally.histogram.sum
        assert buckets[:6] == [0, 1, 1, 0, 3, 0]
        assert total == pytest.approx(0.0065)
    assert tally.times == [0.0003]


def test_no_more_are_kept():
    """However many commands go by one by one, only so many times are not sorted yet."""
    with Talk("") as talk:
        most = 0
        for _ in range(3 * MOST_TIMES):
            talk.client("GET k")
            talk.wait(0.001)
            talk.upstream("+x")
            talk.heard("client")
            talk.heard("upstream")
            most = max(most, len(talk.world.tallies["GET"].times))
        tally = talk.world.tallies["GET"]
        assert most == MOST_TIMES - 1
        assert sum(tally.histogram.buckets) == 3 * MOST_TIMES
        assert tally.histogram.sum == pytest.approx(0.001 * 3 * MOST_TIMES)


def test_seen_from_another_thread():
    """Whoever looks while times are put down and sorted never sees fewer than before, nor one twice."""
    tally, done, seen = Tally("GET"), Event(), [0]
    total = 0

    def look():
        while not done.is_set():
            found = sum(tally.histogram.buckets)
            if found != seen[-1]:
                seen.append(found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    looking = Thread(target=look)
    looking.start()
    try:
        while len(seen) < 100:
            tally.times.append(0.0001)
            total += 1
            if len(tally.times) >= MOST_TIMES:
                tally.sort()
    finally:
        done.set()
        looking.join()
        sys.setswitchinterval(interval)
    assert seen == sorted(seen)
    assert max(seen) <= total == sum(tally.histogram.buckets)
