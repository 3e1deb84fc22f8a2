"""`expire_key`: keys vanish early, or never."""

from dataclasses import dataclass

from chaosproxy.core import ttl
from chaosproxy.core.decision import Decision, Evict, Position, Rewrite, Run, Swallow
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.units import DURATION, choice, record

_WORDS = choice("mode", "now", "evict", "strip_ttl", "no_renewal")
#: Redis expires a key that is asked for once its time is over: so long after PEXPIRE 1 it surely is.
SETTLE = 0.005


@dataclass(frozen=True, slots=True)
class Ttl:
    """One change of a time to live: times `scale`, to `to` seconds, or by `skew` seconds."""

    scale: float | None = None
    to: float | None = None
    skew: float | None = None

    def __call__(self, seconds: float, absolute: bool, now: float) -> float:
        """The new time in seconds: from now, or since 1970 where it is absolute."""
        if self.skew is not None:
            return seconds + self.skew if absolute else seconds
        left = seconds - now if absolute else seconds
        left = self.to if self.to is not None else left * (self.scale or 1.0)
        return left + now if absolute else left

    def __str__(self) -> str:
        if self.skew is not None:
            return f"clock skewed by {self.skew:+g} s"
        return f"set to {self.to:g} s" if self.to is not None else f"times {self.scale:g}"


def _scale(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000_000:
        raise Invalid(f"expected a factor above 0 such as 0.01, got {value!r}")
    return float(value)


def _skew(value: object) -> float:
    sign = -1.0 if isinstance(value, str) and value.startswith("-") else 1.0
    text = value.lstrip("+-") if isinstance(value, str) else value
    seconds: float = DURATION.parse(text)
    return sign * seconds


_CHANGES = record(
    "{ttl_scale: factor}, {ttl_set: duration} or {clock_skew: duration}",
    "{ttl_scale: 0.01}, {ttl_set: 3s} or {clock_skew: -30s}",
    {
        "ttl_scale": Kind(
            "factor", _scale, {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000}
        ),
        "ttl_set": DURATION,
        "clock_skew": Kind(
            "signed duration",
            _skew,
            {
                "anyOf": [
                    DURATION.schema,
                    {"type": "string", "pattern": "^[-+][0-9.]+(us|ms|s|m|h)$"},
                ]
            },
            "seconds",
        ),
    },
    lambda ttl_scale=None, ttl_set=None, clock_skew=None: (ttl_scale, ttl_set, clock_skew),
)


def _mode(value: object) -> str | Ttl:
    if not isinstance(value, dict):
        word: str = _WORDS.parse(value)
        return word
    scale, to, skew = _CHANGES.parse(value)
    if sum(each is not None for each in (scale, to, skew)) != 1:
        raise Invalid("give one of ttl_scale, ttl_set and clock_skew")
    return Ttl(scale, to, skew)


MODE = Kind(
    "word, {ttl_scale: factor}, {ttl_set: duration} or {clock_skew: duration}",
    _mode,
    {"anyOf": [_WORDS.schema, {**_CHANGES.schema, "maxProperties": 1}]},
)


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireKey(Fault):
    """Keys vanish early, or never: by Redis itself, so that TTL, notifications and the reply for a key that is gone are its own.

    `now` and `evict` take the key away just before the command; the others change the times that commands carry, by their
    place in each command's syntax (SET, GETEX, SETEX, EXPIRE, HEXPIRE, RESTORE … and their kin).
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"

    mode: str | Ttl = setting(
        MODE,
        "now: the key expires. evict: it is evicted. strip_ttl: no time to live is ever set. no_renewal: EXPIRE and its family "
        "have no effect on a key that has a time to live. {ttl_scale: 0.01}, {ttl_set: 3s}: every time to live is other. "
        "{clock_skew: -30s}: absolute times are off, as from a client whose clock is.",
    )

    @property
    def needs_scratch(self) -> bool:
        """Renewals are swallowed."""
        return self.mode in ("strip_ttl", "no_renewal")

    def decide(self, context: Context) -> Decision | None:
        """What happens to this command's key, or to its time."""
        if context.key is None:
            return None
        match self.mode:
            case "now":
                return Run(((b"PEXPIRE", context.key, b"1"),), settle=SETTLE, touch="expired")
            case "evict":
                return Evict()
            case "no_renewal":
                return Swallow(renewal=True) if ttl.renews(self._args(context)[0]) else None
            case "strip_ttl":
                return self._strip(context)
            case Ttl() as change:
                new = ttl.changed(
                    self._args(context), lambda s, absolute: change(s, absolute, context.clock)
                )
                return None if new is None else Rewrite(new, f"time to live {change}")
            case _:
                raise AssertionError(self.mode)

    def _args(self, context: Context) -> tuple[bytes, ...]:
        return tuple(arg or b"" for arg in context.command.args)

    def _strip(self, context: Context) -> Decision | None:
        args = self._args(context)
        if ttl.renews(args[0]):
            return Swallow()
        new = ttl.stripped(args)
        return None if new is None else Rewrite(new, "no time to live")
