"""How long a delay lasts: fixed, or drawn anew for each match from a stated distribution.

Takes YAML (`800ms`, `{lognormal: {p50: 10ms, p99: 300ms}, max: 2s}`) through the kind `DISTRIBUTION`;
gives a `Distribution`, whose `draw` takes a stream and gives seconds, never below 0 nor above `max`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, assert_never

from chaosproxy.core.scalar import DURATION, POSITIVE_DURATION, closest, expected, is_number, shown
from chaosproxy.core.setting import Invalid, Kind, parse_each
from chaosproxy.core.units import record

_STANDARD: Final = NormalDist()
_Z99: Final = _STANDARD.inv_cdf(0.99)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every value from `low` to `high` alike."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Normal:
    """Around `mean`; what falls below 0 is 0."""

    mean: float
    stddev: float


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Half of the values lie below `p50`, 99 of 100 below `p99`: the usual shape of latencies."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Pareto:
    """Never below `min`; the smaller `alpha`, the heavier the tail (no mean from 1 down)."""

    min: float
    alpha: float


Shape = Fixed | Uniform | Normal | Lognormal | Pareto


@dataclass(frozen=True, slots=True)
class Distribution:
    """A shape, and the most that a draw may be: what lies above is `most` (None: no limit)."""

    shape: Shape
    most: float | None = None

    def draw(self, share: Callable[[], float]) -> float:
        """One value in seconds.

        `share` gives a stream's next `random()`, which is asked for once, and not at all where nothing depends on it. No
        other method of a stream gives the same numbers in every version of Python.
        """
        shape = self.shape
        drawn = shape.seconds if isinstance(shape, Fixed) else _quantile(shape, share())
        seconds = max(0.0, drawn)
        return seconds if self.most is None else min(seconds, self.most)


def _quantile(shape: Uniform | Normal | Lognormal | Pareto, share: float) -> float:
    """The value below which `share` (0 <= share < 1) of all draws lie."""
    match shape:
        case Uniform(low, high):
            return low + (high - low) * share
        case Normal(mean, stddev):
            return mean + stddev * _standard_quantile(share)
        case Lognormal(p50, p99):
            # ln x is normal: its mean is ln p50, and p99 lies _Z99 standard deviations above.
            return p50 * float((p99 / p50) ** (_standard_quantile(share) / _Z99))
        case Pareto(least, alpha):
            return least * float((1.0 - share) ** (-1.0 / alpha))
        case _:
            assert_never(shape)


def _standard_quantile(share: float) -> float:
    # 0 itself, once in 2**53 draws, has no finite quantile.
    return _STANDARD.inv_cdf(max(share, 2.0**-54))


def _uniform(value: object) -> Uniform:
    if not isinstance(value, list) or len(value) != 2:
        raise expected("two durations such as [10ms, 50ms]", value)
    low, high = parse_each(lambda _, end: DURATION.parse(end), enumerate(value))
    if low > high:
        raise Invalid(f"the range is empty: {value[0]} is more than {value[1]}")
    return Uniform(low, high)


def _lognormal(p50: float, p99: float) -> Lognormal:
    if p99 < p50:
        raise Invalid("p99 is less than p50", ("p99",))
    return Lognormal(p50, p99)


def _alpha(value: object) -> float:
    # Below 0.1 a draw leaves what a float can hold; above 100 it is a fixed delay.
    if isinstance(value, int | float) and is_number(value) and 0.1 <= value <= 100:
        return float(value)
    raise expected("a number from 0.1 to 100", value)


_SHAPES: Final = {
    "uniform": Kind(
        "uniform",
        _uniform,
        {
            "type": "array",
            "prefixItems": [DURATION.schema, DURATION.schema],
            "items": False,
            "minItems": 2,
        },
    ),
    "normal": record(
        "normal",
        "{mean: 20ms, stddev: 5ms}",
        {"mean": DURATION, "stddev": DURATION},
        Normal,
        required=("mean", "stddev"),
    ),
    "lognormal": record(
        "lognormal",
        "{p50: 10ms, p99: 300ms}",
        {"p50": POSITIVE_DURATION, "p99": POSITIVE_DURATION},
        _lognormal,
        required=("p50", "p99"),
    ),
    "pareto": record(
        "pareto",
        "{min: 5ms, alpha: 1.5}",
        {
            "min": POSITIVE_DURATION,
            "alpha": Kind("number", _alpha, {"type": "number", "minimum": 0.1, "maximum": 100}),
        },
        Pareto,
        required=("min", "alpha"),
    ),
}
_WHAT: Final = (
    "a duration such as 800ms or a distribution such as {lognormal: {p50: 10ms, p99: 300ms}}"
)


def _distribution(value: object) -> Distribution:
    if not isinstance(value, dict):
        try:
            return Distribution(Fixed(DURATION.parse(value)))
        except Invalid as wrong:
            raise Invalid(
                f"expected {_WHAT}, got {shown(value)}", suggestion=wrong.suggestion
            ) from None
    parsed = dict(zip(value, parse_each(_part, value.items()), strict=True))
    most = parsed.pop("max", None)
    if len(parsed) != 1:
        raise Invalid(
            f"expected one of {', '.join(_SHAPES)}, got {' and '.join(parsed) or 'none of them'}"
        )
    (shape,) = parsed.values()
    return Distribution(shape, most)


def _part(key: str, part: object) -> Any:
    kind = _SHAPES.get(key) or (POSITIVE_DURATION if key == "max" else None)
    if kind is None:
        near = closest(key, (*_SHAPES, "max"))
        listed = "" if near else f", expected one of {', '.join((*_SHAPES, 'max'))}"
        raise Invalid(f"unknown distribution '{key}'{listed}", suggestion=near, at_key=True)
    return kind.parse(part)


DISTRIBUTION: Final = Kind(
    "duration or distribution",
    _distribution,
    {
        "anyOf": [
            DURATION.schema,
            *(
                {
                    "type": "object",
                    "properties": {name: kind.schema, "max": POSITIVE_DURATION.schema},
                    "required": [name],
                    "additionalProperties": False,
                }
                for name, kind in _SHAPES.items()
            ),
        ]
    },
    unit=DURATION.unit,
)
