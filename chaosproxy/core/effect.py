"""What a conversation asks of the outside: a closed set that `net/` carries out.

Takes nothing; gives frozen data. Bytes are not effects: a conversation puts them in its two outboxes, which `net/`
writes before it looks at the effects, so that a close comes after the bytes that were promised.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from chaosproxy.core.decision import How, Who

#: unknown: it was forwarded, and the connection ended (or gives no replies) before Redis could say.
Applied = Literal["yes", "no", "undone", "unknown"]
Told = Literal["ok", "error", "nothing", "reset", "closed", "late", "partial"]
Outcome = Literal["ok", "fail", "unknown", "false_ok"]


@dataclass(frozen=True, slots=True)
class CloseClient:
    """End the client's connection after the bytes already in the outbox: `reset` (RST) or `close` (FIN).

    Bytes written before are promised: a reset waits until the peer's stack has acknowledged them. The upstream side
    goes at once.
    """

    how: How


@dataclass(frozen=True, slots=True)
class AwaitFlush:
    """Call `flushed(now)` once every byte written to the client has been acknowledged by its stack."""


@dataclass(frozen=True, slots=True)
class HalfClose:
    """No more bytes will come for this side: FIN after what is in the outbox; the other direction stays open."""

    side: Literal["client", "upstream"]


@dataclass(frozen=True, slots=True)
class AskSide:
    """Send these requests (raw) on the side connection in database `db` and protocol `protocol`, in order.

    Answer with `side_answer(token, replies, now)`: one raw reply a request, or None if it could not be done.
    """

    token: int
    requests: tuple[bytes, ...]
    db: int
    protocol: int
    where: Literal["upstream", "standby"] = "upstream"


@dataclass(frozen=True, slots=True)
class CutOthers:
    """End the other clients' connections too: all of them, or those whose state `rule` matches.

    Call `cut(how, now)` on each; for `matching` first ask `matches_client(rule)`.
    """

    how: How
    who: Who
    rule: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `wake(now)` on these connections: what one of their commands is held for has happened here."""

    connections: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StartFailover:
    """The failover of this rule has begun: carry out its steps. No request is forwarded until the first ones are done."""

    rule: str


@dataclass(frozen=True, slots=True)
class Matched:
    """A fault's match held for one exchange. `generation`: as of `Skipped`."""

    fault: str
    generation: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A matching exchange that the fault did not act on, and why (a short, fixed word: `nth`, `chance`, `limit` …).

    `generation`: whose fault it is, where that is not the one in force; 0: it is.
    """

    fault: str
    reason: str
    generation: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Fired:
    """One fault acted on one exchange: everything an event says, except what only the outside knows (n, time)."""

    fault: str
    type: str
    position: str
    command: str
    keys: tuple[bytes, ...]
    db: int
    client: str
    connection: int
    match: int
    applied: Applied
    told: Told
    outcome: Outcome
    digest: str
    generation: int
    delay: float | None = None
    draw: float | None = None
    detail: str = ""
    #: what the rule counts over (a key; a connection, by its number since the profile came into force), and the match's place there; a
    #: replay finds it by these.
    per: str = ""
    ordinal: int = 0
    #: The acknowledged writes that a failover has lost: name, keys, how many of these.
    writes: tuple[tuple[str, tuple[bytes, ...], int], ...] = ()


@dataclass(frozen=True, slots=True)
class KeysTouched:
    """A fault changed this many keys behind the app's back (`how`: expired, evicted, undone, run …)."""

    fault: str
    how: str
    count: int


@dataclass(frozen=True, slots=True)
class ProtocolFault:
    """This side sent what the framer does not understand, or a reply nobody asked for; the connection went raw."""

    side: Literal["client", "upstream"]
    text: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit was reached, by its name in `counts.LIMITS`."""

    limit: str


Effect = (
    CloseClient
    | AwaitFlush
    | HalfClose
    | AskSide
    | CutOthers
    | Wake
    | StartFailover
    | Matched
    | Skipped
    | Fired
    | KeysTouched
    | ProtocolFault
    | LimitReached
)

Describe = dict[str, Any]
