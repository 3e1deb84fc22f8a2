"""`disconnect`: connections are cut."""

from dataclasses import dataclass

from chaosproxy.core.decision import Cut, Decision, How, Position, Who
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import SIGNED_INT, choice


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
    bytes: int | None = setting(
        SIGNED_INT,
        "At mid_reply: how many bytes of the reply the client still gets; negative: all but so many. Left out: half.",
        default=None,
    )

    def check(self, at: Position) -> None:
        """Bytes of a reply mean something in the middle of one only."""
        if self.bytes is not None and at is not Position.MID_REPLY:
            raise Invalid("goes with at: mid_reply", ("bytes",))

    def decide(self, context: Context) -> Decision:
        """Cut."""
        del context
        return Cut(self.how, self.who, self.bytes)
