"""`duplicate`: a write is applied again."""

from dataclasses import dataclass

from chaosproxy.core.decision import Decision, Position, Repeat
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import DURATION, whole


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate(Fault):
    """The write is applied again; the client sees its first reply only.

    As when a client's own retry, or a queue between, delivers it twice. Without a gap the copies follow right behind; with one
    they come later, on a connection of the proxy's own, counted from when the first was applied. In a transaction, and where the
    client wants no replies, they always follow right behind. Blocking commands that would wait are left alone.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"
    writes_only = True

    times: int = setting(
        whole("times", "how often in all (2 to 1000)", 2, 1000),
        "How often it is applied in all.",
        default=2,
    )
    gap: float = setting(DURATION, "How long from one to the next.", default="0s")

    def decide(self, context: Context) -> Decision | None:
        """Repeat it, if it is a write."""
        spec = context.command.spec
        if spec is None or not spec.is_write:
            return None
        return Repeat(self.times, self.gap)
