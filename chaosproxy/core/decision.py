"""What a fault may ask for: a closed set, so that the conversation is the only place that knows how.

Takes nothing; gives frozen data. A fault returns one of these for an exchange already chosen; the engine adds them up in
profile order (delays sum, the first final one ends the chain) and the conversation carries them out.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


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


Decision = Delay | Answer | Swallow | Cut | Silence | Run
