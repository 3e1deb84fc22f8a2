"""`stale_read`: a read is answered from the past."""

from dataclasses import dataclass
from typing import cast

from chaosproxy.core.decision import Decision, Past, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.memory import MOST_WRITES, Memory
from chaosproxy.core.reach import SCRIPTS
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import POSITIVE_DURATION, whole


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRead(Fault):
    """A read is answered from the past, as a lagging replica would answer it.

    Before each write that passes through the proxy, from any client, its keys are taken down (DUMP and their end); the server
    computes the reply to a read on keys as they were, so the user needs RESTORE as well. All keys of the read that match
    `keys` are from the past; one whose past is not known, or that has not changed since, is read as it is. Known are the
    last 256 writes to a key that were not refused; a transaction is seen whole or not at all, as on a replica. What scripts do to
    keys they do not declare, and what does not pass through the proxy, is not known. Blocking reads are left
    alone. Members of a set or hash may come in another order than they did, as on any replica.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"
    reads_only = True

    lag: float | None = setting(POSITIVE_DURATION, "How long ago.", default=None)
    behind: int | None = setting(
        whole("count", f"a whole number from 1 to {MOST_WRITES}", 1, MOST_WRITES),
        "Instead of lag: how many writes to that key ago. A key that was made by fewer is not there yet.",
        default=None,
    )

    def check(self, at: Position) -> None:
        """One of the two says how far back."""
        del at
        if (self.lag is None) == (self.behind is None):
            raise Invalid("give exactly one of lag and behind")

    def watches(self) -> tuple[str, ...]:
        """Every write: before it the key is taken down. Of scripts the server's table does not say that they are one."""
        return ("@write", *sorted(SCRIPTS))

    def new_state(self) -> Memory:
        """What keys were."""
        return Memory(self.lag, self.behind)

    def decide(self, context: Context) -> Decision | None:
        """Look the keys up in the past, if this is a read."""
        spec = context.command.spec
        if spec is None or "readonly" not in spec.flags:
            return None
        memory = cast("Memory", context.state)
        images = {}
        for key in context.command.keys:
            if self.behind is not None:
                image = memory.behind(context.db, key, self.behind)
            else:
                image = memory.as_of(context.db, key, context.now - (self.lag or 0.0))
            if image is not None:
                images[key] = image
        return Past(images) if images else None
