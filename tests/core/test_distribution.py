"""Delays: drawn as stated, whatever Python's version; the p99 asked for is the p99 got."""

from random import Random

import pytest
from scipy import stats

from chaosproxy.core.distribution import (
    DISTRIBUTION,
    Distribution,
    Fixed,
    Lognormal,
    Normal,
    Pareto,
    Uniform,
)
from chaosproxy.core.setting import Invalid

DRAWS = 10_000


def draws(yaml, count=DRAWS):
    """One draw from each of `count` streams, as matches do it: the streams must not be alike."""
    delay = DISTRIBUTION.parse(yaml)
    return [delay.draw(Random(f"7/slow/{match}/draw").random) for match in range(count)]


@pytest.mark.parametrize(
    ("yaml", "stated"),
    [
        ({"uniform": ["10ms", "50ms"]}, stats.uniform(0.01, 0.04)),
        # Far enough from 0 that none is cut off.
        ({"normal": {"mean": "100ms", "stddev": "10ms"}}, stats.norm(0.1, 0.01)),
        (
            {"lognormal": {"p50": "10ms", "p99": "300ms"}},
            # Its 99th percentile lies 2.3263 standard deviations above the median, as for any normal.
            stats.lognorm(s=3.4011973816621555 / 2.3263478740408408, scale=0.01),
        ),
        ({"pareto": {"min": "5ms", "alpha": 1.5}}, stats.pareto(1.5, scale=0.005)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_drawn_as_stated(yaml, stated):
    """Ten thousand draws are what the stated distribution gives (Kolmogorov-Smirnov)."""
    assert stats.kstest(draws(yaml), stated.cdf).pvalue > 0.01


def test_the_percentiles_asked_for():
    """Half of lognormal's draws lie below p50, 99 of 100 below p99."""
    found = sorted(draws({"lognormal": {"p50": "10ms", "p99": "300ms"}}))
    below_p50 = sum(draw < 0.01 for draw in found)
    below_p99 = sum(draw < 0.3 for draw in found)
    # Four standard deviations of a binomial count.
    assert abs(below_p50 - 5000) < 4 * 50
    assert abs(below_p99 - 9900) < 4 * 10


def test_limits():
    """Nothing is negative, nothing is above max, and both ends are reached."""
    found = draws({"normal": {"mean": "10ms", "stddev": "20ms"}, "max": "30ms"}, 1000)
    assert (min(found), max(found)) == (0.0, 0.03)
    assert draws("800ms", 3) == [0.8] * 3
    assert set(draws({"uniform": ["20ms", "20ms"]}, 100)) == {0.02}
    assert set(draws({"lognormal": {"p50": "1s", "p99": "1s"}}, 100)) == {1.0}
    assert set(draws({"normal": {"mean": 1, "stddev": 0}}, 100)) == {1.0}


class OneDraw(Random):
    """A stream that gives one number, and has nothing else."""

    def __init__(self, number):
        super().__init__()
        self.numbers = [number]

    def random(self):
        return self.numbers.pop()


@pytest.mark.parametrize("share", [0.0, 2.0**-53, 0.5, 1.0 - 2.0**-53])
@pytest.mark.parametrize(
    "shape",
    [Fixed(1), Uniform(0, 1), Normal(1, 1), Lognormal(1, 9), Pareto(1, 0.1), Pareto(1e-9, 100)],
    ids=str,
)
def test_one_number_from_the_stream(shape, share):
    """A draw takes one random() at most, also at the ends of its range, and is a finite number."""
    drawn = Distribution(shape).draw(OneDraw(share).random)
    assert 0 <= drawn < float("inf")


def test_the_same_with_every_python():
    """A seed gives these numbers: random() alone is promised to stay the same."""
    stream = Random("7/slow-redis//1/draw")
    lognormal = DISTRIBUTION.parse({"lognormal": {"p50": "50ms", "p99": "1s"}})
    assert [round(lognormal.draw(stream.random), 9) for _ in range(3)] == [
        0.033738308,
        0.052451335,
        0.00709781,
    ]


FORMS = "a duration such as 800ms or a distribution such as {lognormal: {p50: 10ms, p99: 300ms}}"
DURATION = "expected a duration such as 800ms or 1.5s"


@pytest.mark.parametrize(
    ("yaml", "message", "path", "suggestion"),
    [
        ("fast", f"expected {FORMS}, got 'fast'", (), ""),
        ("5 sec", f"expected {FORMS}, got '5 sec'", (), "5s"),
        ([1, 2], f"expected {FORMS}, got a list", (), ""),
        ({"unifrom": [1, 2]}, "unknown distribution 'unifrom'", ("unifrom",), "uniform"),
        (
            {"max": "1s"},
            "expected one of uniform, normal, lognormal, pareto, got none of them",
            (),
            "",
        ),
        (
            {"uniform": [1, 2], "pareto": {"min": 1, "alpha": 1}},
            "expected one of uniform, normal, lognormal, pareto, got uniform and pareto",
            (),
            "",
        ),
        (
            {"uniform": [1]},
            "expected two durations such as [10ms, 50ms], got a list",
            ("uniform",),
            "",
        ),
        ({"uniform": [1, "x"]}, f"{DURATION}, got 'x'", ("uniform", 1), ""),
        (
            {"uniform": ["2s", "1s"]},
            "the range is empty: 2s is more than 1s",
            ("uniform",),
            "",
        ),
        (
            {"normal": {"mean": 1}},
            "'stddev' is missing, expected {mean: 20ms, stddev: 5ms}",
            ("normal",),
            "",
        ),
        (
            {"lognormal": {"p50": "0s", "p99": "1s"}},
            f"{DURATION}, longer than 0, got '0s'",
            ("lognormal", "p50"),
            "",
        ),
        ({"lognormal": {"p50": 2, "p99": 1}}, "p99 is less than p50", ("lognormal", "p99"), ""),
        (
            {"pareto": {"min": 1, "alpha": 0}},
            "expected a number from 0.1 to 100, got 0",
            ("pareto", "alpha"),
            "",
        ),
        (
            {"lognormal": {"p50": 1, "p99": 2, "max": 3}},
            "unknown field 'max', expected {p50: 10ms, p99: 300ms}",
            ("lognormal", "max"),
            "",
        ),
        ({"uniform": [1, 2], "max": 0}, f"{DURATION}, longer than 0, got 0", ("max",), ""),
    ],
)
def test_refusal(yaml, message, path, suggestion):
    """A bad one is refused in just these words, and the path leads to what is wrong."""
    with pytest.raises(Invalid) as refused:
        DISTRIBUTION.parse(yaml)
    wrong = refused.value
    assert (wrong.message, wrong.path, wrong.suggestion) == (message, path, suggestion)
