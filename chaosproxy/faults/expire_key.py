"""`expire_key`: keys vanish early, or never."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, assert_never

from chaosproxy.core import ttl
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Decision, NoRenewal, Position, Rewrite, Swallow, Vanish
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.scalar import expected
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.units import DURATION, POSITIVE_DURATION, choice, record

_WORDS = choice("mode", "now", "evict", "strip_ttl", "no_renewal")


@dataclass(frozen=True, slots=True)
class Ttl:
    """One change of a time to live: times `scale`, to `to` seconds, or by `skew` seconds."""

    scale: float | None = None
    to: float | None = None
    skew: float | None = None

    def at(self, now: float) -> ttl.Change:
        """The change at a time in seconds since 1970."""

        def change(seconds: float, absolute: bool) -> float:
            if self.skew is not None:
                return seconds + self.skew if absolute else seconds
            start = now if absolute else 0.0
            left = self.to if self.scale is None else (seconds - start) * self.scale
            return start + (left or 0.0)

        return change

    def __str__(self) -> str:
        if self.skew is not None:
            return f"clock skewed by {self.skew:+g} s"
        how = f"times {self.scale:g}" if self.to is None else f"set to {self.to:g} s"
        return f"time to live {how}"


_MOST = 1_000_000


def _scale(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        raise expected("a factor above 0, such as 0.01", value)
    return float(value)


def _skew(value: object) -> float:
    sign = value[:1] if isinstance(value, str) else ""
    try:
        seconds: float = DURATION.parse(value[1:] if sign in ("+", "-") else value)  # type: ignore[index]
    except Invalid:
        raise expected("a duration with its sign, such as -30s or +2m", value) from None
    return -seconds if sign == "-" else seconds


_TEXT = DURATION.schema["anyOf"][0]["pattern"]  # type: ignore[index]
_CHANGES = record(
    "{ttl_scale: factor}, {ttl_set: duration} or {clock_skew: duration}",
    "{ttl_scale: 0.01}, {ttl_set: 3s} or {clock_skew: -30s}",
    {
        "ttl_scale": Kind(
            "factor", _scale, {"type": "number", "exclusiveMinimum": 0, "maximum": _MOST}
        ),
        "ttl_set": POSITIVE_DURATION,
        "clock_skew": Kind(
            "signed duration",
            _skew,
            {"anyOf": [DURATION.schema, {"type": "string", "pattern": "^[-+]" + _TEXT[1:]}]},
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

    `now` and `evict` take away the key that matched (the first one that does), just before the command. Subscribers see
    `expired` or `evicted` and nothing else, for which the upstream URL's user needs CONFIG; without it they see `expire`
    or `del` too, and the event says so. Where the key does not exist, nothing happens. A client that WATCHes the key gets null
    from EXEC, as after an expiry of its own. The other modes change the times that commands carry, by their place in each
    command's syntax: SET, GETEX, SETEX, PSETEX, MSETEX, EXPIRE, HEXPIRE, HGETEX, HSETEX and RESTORE with all their kin.
    They see no times inside scripts. A time of 0 or less, or one that is over, is a deletion and stays one.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok / false ok"
    keys_only = True

    mode: Literal["now", "evict", "strip_ttl", "no_renewal"] | Ttl = setting(
        MODE,
        "now: the key expires. evict: it is evicted. strip_ttl: no time to live is ever set; what a command sets beside it is set, "
        "EXPIRE and HEXPIRE are acknowledged, KEEPTTL is left out. no_renewal: nothing that has a time to live gets a longer one: "
        "EXPIRE, HEXPIRE, GETEX and HGETEX are answered as if they had done it, SET, SETEX and PSETEX write their value with the "
        "time that is left; a first time to live, and a shorter one, is set, and HSETEX, MSETEX and RESTORE write anew. (In a "
        "transaction SET and GETEX, and before Redis 7.0 EXPIRE too, go by the time that the key has when they are queued.) "
        "{ttl_scale: 0.01} and {ttl_set: 3s} replace every time to live, absolute ones by the proxy's clock, to the millisecond "
        "(EXPIRE goes out as PEXPIRE then, SETEX as PSETEX) and by no less than one; what is shorter than ttl_set becomes "
        "longer. {clock_skew: -30s} moves absolute times (EXAT, PXAT, EXPIREAT and their kin), as from a client whose clock is "
        "wrong; EXPIRETIME and TIME answer as ever.",
    )

    @property
    def needs_scratch(self) -> bool:
        """Renewals are swallowed."""
        return self.mode in ("strip_ttl", "no_renewal")

    def idle_on(self, specs: Sequence[CommandSpec]) -> str:
        """None of them carries a time that could be changed; of a script nobody sees what it sets."""
        if self.mode in {"now", "evict"}:
            return ""
        if self.mode == "no_renewal":
            what, could = "withholds longer times to live", ttl.may_renew
        elif isinstance(self.mode, Ttl) and self.mode.skew is not None:
            what, could = "changes absolute times", partial(ttl.may_carry, absolute=True)
        else:
            what, could = "changes times to live", ttl.may_carry
        if any(could(spec.name.encode()) for spec in specs):
            return ""
        return f"{what} in this mode and none of these carries one"

    def decide(self, context: Context) -> Decision | None:
        """What happens to this command's key, or to its time."""
        if context.key is None:
            return None
        if self.mode == "now":
            return Vanish("expired")
        if self.mode == "evict":
            return Vanish("evicted")
        args = tuple(arg or b"" for arg in context.command.args)
        spec = context.command.spec
        if spec is None or not spec.takes(len(args)):  # its error would name another command
            return None
        match self.mode:
            case "no_renewal":
                return self._withhold(args, context)
            case "strip_ttl":
                return self._strip(args, context)
            case Ttl() as change:
                return self._change(change, args, context)
            case _:
                assert_never(self.mode)

    def _withhold(self, args: tuple[bytes, ...], context: Context) -> Decision | None:
        if ttl.left(args, context.clock) is None:
            return None
        renews = ttl.renews_key(args) or ttl.never_longer(args) is not None
        return NoRenewal() if renews else None

    def _strip(self, args: tuple[bytes, ...], context: Context) -> Decision | None:
        sets_none = ttl.find(args) is not None and ttl.left(args, context.clock) is None
        if sets_none:
            return None
        if ttl.is_expire(args):
            return Swallow() if ttl.find(args) is not None else None
        new = ttl.stripped(args)
        return None if new is None else Rewrite(new, "no time to live")

    def _change(self, change: Ttl, args: tuple[bytes, ...], context: Context) -> Decision | None:
        if change.skew is None and ttl.left(args, context.clock) is None:
            return None
        new = ttl.changed(args, change.at(context.clock))
        return None if new is None or new == args else Rewrite(new, str(change))
