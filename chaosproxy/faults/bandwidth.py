"""`bandwidth`: bytes pass no faster than a rate."""

from dataclasses import dataclass
from typing import Literal, cast

from chaosproxy.core.bucket import Bucket
from chaosproxy.core.decision import Decision, Direction, Pace, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import RATE, choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Fault):
    """Request and reply pass no faster than a rate.

    They leave in pieces of about 20 ms each, as over a slow line. What is saved while nothing passes is not made up for.
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

    def new_state(self) -> dict[int | None, Bucket]:
        """The buckets, by connection; None: the one they all share."""
        return {}

    def decide(self, context: Context) -> Decision:
        """Pass through this connection's bucket, or the proxy's."""
        buckets = cast("dict[int | None, Bucket]", context.state)
        whose = context.connection if self.shared == "connection" else None
        if whose not in buckets:
            buckets[whose] = Bucket(self.rate)
        return Pace(buckets[whose], self.direction)
