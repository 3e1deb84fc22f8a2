"""`stale_read`: a read is answered from the past."""

from dataclasses import dataclass
from typing import cast

from chaosproxy.core.decision import Decision, Past, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.memory import Memory
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import COUNT, DURATION


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRead(Fault):
    """A read is answered from the past, as a lagging replica would answer it.

    What a key was is taken down (DUMP) before each write that passes through the proxy; the server computes the reply from
    that. A key whose past is not known, or that has not changed since, is read as it is.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"

    lag: float | None = setting(DURATION, "How long ago.", default=None)
    behind: int | None = setting(
        COUNT, "Instead of lag: how many writes to that key ago.", default=None
    )

    @property
    def needs_scratch(self) -> bool:
        """The server computes the reply from the old value."""
        return True

    def check(self, at: Position) -> None:
        """One of the two says how far back."""
        del at
        if (self.lag is None) == (self.behind is None):
            raise Invalid("give exactly one of lag and behind")

    def watches(self) -> tuple[str, ...]:
        """Every write: before it the key is taken down."""
        return ("@write",)

    def new_state(self) -> Memory:
        """What keys were."""
        return Memory()

    def decide(self, context: Context) -> Decision | None:
        """Look the key up in the past, if this is a read."""
        spec = context.command.spec
        if spec is None or spec.is_write or context.key is None:
            return None
        memory = cast("Memory", context.state)
        if self.behind is not None:
            image = memory.behind(context.db, context.key, self.behind)
        else:
            image = memory.as_of(context.db, context.key, context.now - (self.lag or 0.0))
        return None if image is None else Past(image.dump)
