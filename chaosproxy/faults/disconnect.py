"""`disconnect`: connections are cut."""

from dataclasses import dataclass

from chaosproxy.core import spots
from chaosproxy.core.decision import Cut, Decision, How, Position, Who
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.spots import Spot
from chaosproxy.core.units import choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnect(Fault):
    """The connection is cut; at after_apply this is the lost acknowledgement.

    Replies to earlier commands are delivered first; a reset waits until the client's stack has them.
    """

    positions = tuple(Position)
    on_pushes = True
    outcome = "fail / unknown"

    how: How = setting(
        choice("how", "reset", "close"),
        "reset: RST, as from a crashed host. close: FIN, as from a server that ends.",
        default="reset",
    )
    who: Who = setting(
        choice("who", "this", "all", "matching"),
        "this connection, all of them, or all whose client and db match the rule.",
        default="this",
    )
    bytes: int | None = spots.share_in_bytes()
    frames: int | None = spots.share_in_frames()
    spot: Spot | None = spots.share_to_spot()

    def check(self, at: Position) -> None:
        """A share of a reply means something in the middle of one only."""
        middle = at is Position.MID_REPLY
        spots.check_share(middle=middle, count=self.bytes, frames=self.frames, spot=self.spot)

    def decide(self, context: Context) -> Decision | None:
        """Cut, where there is such a place."""
        there, count = spots.share(context.reply or b"", self.bytes, self.frames, self.spot)
        return Cut(self.how, self.who, count) if there else None
