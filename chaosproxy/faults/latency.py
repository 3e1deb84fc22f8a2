"""`latency`: a request or a reply waits."""

from dataclasses import dataclass

from chaosproxy.core.decision import Decision, Delay, Position
from chaosproxy.core.distribution import DISTRIBUTION, Distribution
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Fault):
    """A request (before_forward) or a reply (after_apply) waits.

    What comes behind it on the same connection waits too; other connections do not. Nothing is lost: what is late is still
    delivered.
    """

    positions = (Position.BEFORE_FORWARD, Position.AFTER_APPLY)
    on_pushes = True
    outcome = "ok"

    delay: Distribution = setting(
        DISTRIBUTION, "How long: a duration, or a distribution to draw it from."
    )

    def decide(self, context: Context) -> Decision:
        """Draw this match's delay."""
        return Delay(self.delay.draw(context.draw))
