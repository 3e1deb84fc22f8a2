"""What a fault may ask for: a closed set, so that the conversation is the only place that knows how.

Takes nothing; gives frozen data. A fault returns one of these for an exchange already chosen; the engine adds them up in
profile order (delays sum, the first final one ends the chain) and the conversation carries them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from chaosproxy.core.bucket import Bucket
from chaosproxy.core.memory import Image


class Position(StrEnum):
    """Where in an exchange's life a fault acts. Each promises what Redis and the client have seen by then."""

    BEFORE_FORWARD = "before_forward"
    AFTER_APPLY = "after_apply"
    MID_REPLY = "mid_reply"
    AFTER_REPLY = "after_reply"


Who = Literal["this", "all", "matching"]
How = Literal["reset", "close"]
Direction = Literal["both", "to_client", "to_upstream"]


@dataclass(frozen=True, slots=True)
class Delay:
    """The request (before_forward) or the reply (after_apply) waits this many seconds. Not final."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The client gets `raw` instead of the reply. Final.

    At before_forward Redis never sees the command; `refusal` says that `raw` is an error, so that a transaction it was
    queued in must be discarded as the server discards it.
    """

    raw: bytes
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Swallow:
    """The write has no effect; the client gets the reply the server would have given. Final."""


@dataclass(frozen=True, slots=True)
class NoRenewal:
    """The time that the command sets takes effect only as far as it makes nothing live longer. Final.

    The client gets the reply the server would have given. Where nothing would have lived longer, the rule is skipped.
    """


@dataclass(frozen=True, slots=True)
class Cut:
    """Connections end: this one, all, or all that match the rule's `clients` and `db`. Final.

    `count` (mid_reply) is how many bytes of the reply the client still gets; negative counts from the reply's end,
    None is half of it.
    """

    how: How
    who: Who = "this"
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing passes any more, and the sockets stay open. Final.

    `what`: the request is lost on its way, the reply is, or the whole connection falls silent in `direction`. After
    `seconds` (None: never) what was held goes on, late, as TCP does when a partition heals.
    """

    what: Literal["request", "reply", "connection"]
    direction: Direction = "both"
    seconds: float | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """These commands run on the server right there; their replies are hidden. Not final."""

    commands: tuple[tuple[bytes, ...], ...]
    where: Literal["upstream", "standby"] = "upstream"

    def requests(self, key: bytes | None) -> list[tuple[bytes, ...]]:
        """The commands, with the matched key in its place."""
        return [tuple(arg.replace(b"{key}", key or b"") for arg in args) for args in self.commands]


@dataclass(frozen=True, slots=True)
class Vanish:
    """The matched key goes just before the command, as if the server had expired or evicted it. Not final."""

    how: Literal["expired", "evicted"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The request goes out with these arguments instead of its own; `detail` says what changed. Not final."""

    args: tuple[bytes, ...]
    detail: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The command is applied so many times in all, `gap` seconds apart; only the first reply is shown. Not final."""

    times: int
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """The command waits at a barrier, which is the rule's state, at most `limit` seconds. Not final."""

    limit: float


@dataclass(frozen=True, slots=True)
class Pieces:
    """The reply leaves cut at these offsets, `gap` seconds between two pieces. Not final."""

    cuts: tuple[int, ...]
    gap: float


@dataclass(frozen=True, slots=True)
class Pace:
    """The request passes no faster than one bucket lets it, its reply than the other; None: as it comes. Not final."""

    requests: Bucket | None
    replies: Bucket | None


@dataclass(frozen=True, slots=True)
class Beside:
    """The client gets these frames just ahead of this one and just behind it. Not final."""

    ahead: bytes = b""
    behind: bytes = b""


@dataclass(frozen=True, slots=True)
class Past:
    """A read is answered as if these keys were as they were. Final."""

    images: Mapping[bytes, Image]


@dataclass(frozen=True, slots=True)
class Admit:
    """What a new connection meets after `delay` seconds: accept, refuse, reset, accept_silent, or error (`raw`). Final."""

    what: str
    delay: float = 0.0
    raw: bytes = b""


Final = Answer | Swallow | NoRenewal | Cut | Silence | Past
Decision = Delay | Final | Run | Vanish | Rewrite | Repeat | Hold | Pieces | Pace | Beside | Admit
