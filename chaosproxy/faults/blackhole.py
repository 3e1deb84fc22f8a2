"""`blackhole`: silence on an open connection."""

from dataclasses import dataclass
from typing import Literal

from chaosproxy.core import spots
from chaosproxy.core.decision import Decision, Direction, Position, Silence
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.spots import Spot
from chaosproxy.core.units import DURATION, choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Blackhole(Fault):
    """Silence; the socket stays open, as with a peer that is half gone.

    What comes behind on the same connection waits too: TCP delivers nothing out of order. But the client's end: once that ends its side
    the server's ends as well, and what is held is dropped. So nothing waits there for a client that is gone; if that is what a network
    without a word would do, let the client stay.
    """

    positions = tuple(Position)
    outcome = "fail / unknown"

    what: Literal["request", "reply", "connection"] = setting(
        choice("what", "request", "reply", "connection"),
        "request: it never reaches Redis (before_forward). reply: it never reaches the client (after_apply). connection: from "
        "here on nothing passes.",
    )
    direction: Direction = setting(
        choice("direction", "both", "to_client", "to_upstream"),
        "Of what: connection: which way is silent.",
        default="both",
    )
    for_: float | None = setting(
        DURATION,
        "Of what: connection: how long. Then what was held goes on, late, as when a partition heals. Left out: for good.",
        default=None,
        name="for",
    )
    bytes: int | None = spots.share_in_bytes()
    frames: int | None = spots.share_in_frames()
    spot: Spot | None = spots.share_to_spot()

    def check(self, at: Position) -> None:
        """What falls silent has to be there at that position."""
        if self.what == "request" and at is not Position.BEFORE_FORWARD:
            raise Invalid(
                "request goes with at: before_forward; later there is no request to lose",
                ("what",),
            )
        if self.what == "reply" and at is not Position.AFTER_APPLY:
            raise Invalid("reply goes with at: after_apply", ("what",))
        if self.what != "connection":
            if self.for_ is not None:
                raise Invalid(
                    "goes with what: connection; to be late is the fault latency", ("for",)
                )
            if self.direction != "both":
                raise Invalid("goes with what: connection", ("direction",))
        middle = at is Position.MID_REPLY
        spots.check_share(middle=middle, count=self.bytes, frames=self.frames, spot=self.spot)

    def decide(self, context: Context) -> Decision | None:
        """Fall silent, where there is such a place."""
        there, count = spots.share(context.reply or b"", self.bytes, self.frames, self.spot)
        return Silence(self.what, self.direction, self.for_, count) if there else None
