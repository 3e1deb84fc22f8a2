"""`reorder`: a command is held until others were applied."""

from collections.abc import Iterable
from dataclasses import dataclass

from chaosproxy.core.barrier import Barrier, Order
from chaosproxy.core.decision import Decision, Hold, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.match import NameTest
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import COMMANDS, COUNT, POSITIVE_DURATION, choice, record, whole


@dataclass(frozen=True, slots=True)
class Until:
    """`applied` commands of these names, on the same key or on any, were applied."""

    command: tuple[str, ...]
    same: str = "key"
    applied: int = 1


UNTIL = record(
    "{command: name, same: key or any, applied: n}",
    "{command: SET, same: key, applied: 1}",
    {"command": COMMANDS, "same": choice("same", "key", "any"), "applied": COUNT},
    Until,
    required=("command",),
)


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(Fault):
    """A barrier: a command waits until others, of other connections, were applied.

    Applied, not merely sent: Redis has answered them. What comes behind a held command on its own connection waits too, so
    replies stay in order. A held command whose client goes is dropped, and the event says so.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "ok"

    until: Until | None = setting(
        UNTIL,
        "Hold it until `applied` commands of that name were applied to the same key (or same: any).",
        default=None,
    )
    waiting: int | None = setting(
        whole("count", "how many are to wait (a whole number from 2)", 2),
        "Instead of until: hold it until so many are waiting here, then let them go one after the other.",
        default=None,
    )
    max: float = setting(
        POSITIVE_DURATION, "How long at most: then it goes on, and the event says so.", default="2s"
    )
    order: Order = setting(
        choice("order", "as_given", "reversed", "shuffled"),
        "With waiting: in which order they go on.",
        default="as_given",
    )

    def check(self, at: Position) -> None:
        """One of the two says what opens it."""
        del at
        if (self.until is None) == (self.waiting is None):
            raise Invalid("give exactly one of until and waiting")
        if self.until is not None and self.order != "as_given":
            raise Invalid("order goes with waiting", ("order",))

    def names(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Those whose application opens the barrier."""
        if self.until is not None:
            for number, word in enumerate(self.until.command):
                yield ("until", "command", number), word

    def same_key_as(self) -> tuple[str, ...] | None:
        """Those whose application opens the barrier, if it has to be on the same key."""
        by_key = self.until is not None and self.until.same == "key"
        return ("until", "command") if by_key else None

    def watches(self) -> tuple[str, ...] | None:
        """Whose application opens the barrier."""
        return self.until.command if self.until is not None else None

    def new_state(self) -> Barrier:
        """Its barrier, empty."""
        if self.until is None:
            return Barrier(crowd=self.waiting or 0, order=self.order)
        return Barrier(
            NameTest(self.until.command), self.until.applied, same_key=self.until.same == "key"
        )

    def decide(self, context: Context) -> Decision:
        """Hold it."""
        del context
        return Hold(self.max)
