"""`bandwidth`: bytes pass no faster than a rate."""

from dataclasses import dataclass
from typing import Literal, cast

from chaosproxy.core.bucket import Bucket
from chaosproxy.core.decision import Decision, Direction, Pace, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import RATE, choice

#: With so many connections' buckets, those through which nothing passes are let go.
MANY = 1000
#: For requests and for replies, by connection; None: those that all share.
Buckets = dict[int | None, tuple[Bucket, Bucket]]


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Fault):
    """Request and reply pass no faster than a rate.

    Each way has the rate for itself. Bytes leave in pieces of about 20 ms each, as over a slow line; what is saved while
    nothing passes is not made up for.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"

    rate: float = setting(RATE, "How many bytes a second: 64KiB/s.")
    direction: Direction = setting(
        choice("direction", "both", "to_client", "to_upstream"),
        "Which way is slow: replies (to_client), requests (to_upstream), or both.",
        default="both",
    )
    shared: Literal["connection", "proxy"] = setting(
        choice("shared", "connection", "proxy"),
        "Who shares the rate: each connection has its own, or all of them one.",
        default="connection",
    )

    def new_state(self) -> Buckets:
        """No buckets yet."""
        return {}

    def decide(self, context: Context) -> Decision:
        """Pass through this connection's buckets, or the proxy's."""
        buckets = cast("Buckets", context.state)
        whose = context.connection if self.shared == "connection" else None
        if whose not in buckets:
            if len(buckets) >= MANY:
                _forget_idle(buckets, context.now)
            buckets[whose] = Bucket(self.rate), Bucket(self.rate)
        requests, replies = buckets[whose]
        return Pace(
            requests if self.direction != "to_client" else None,
            replies if self.direction != "to_upstream" else None,
        )


def _forget_idle(buckets: Buckets, now: float) -> None:
    """Forget the buckets of connections that have nothing on its way, or are gone."""
    idle = [whose for whose, both in buckets.items() if all(each.is_idle(now) for each in both)]
    for whose in idle:
        del buckets[whose]
