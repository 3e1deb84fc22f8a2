"""What waits in a conversation: work on one exchange, and the slot its reply comes back in.

Takes nothing; gives the two records that `intake` fills and `returns` empties. A slot leaves when it and all before it are
full: that is what keeps replies in the client's order whatever happens to them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Never
from typing import Final as Constant

from chaosproxy.core.barrier import Barrier, Ticket
from chaosproxy.core.bucket import Bucket
from chaosproxy.core.channels import SUBSCRIBE, UNSUBSCRIBE
from chaosproxy.core.command import Command
from chaosproxy.core.decision import Answer, Cut, Pace, Repeat, Run, Silence, Vanish
from chaosproxy.core.decision import Final as Ends
from chaosproxy.core.effect import Applied, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.live_rule import Chosen, LiveRule
from chaosproxy.core.lost import Written
from chaosproxy.core.match import Exchange
from chaosproxy.core.memory import Taken
from chaosproxy.core.modes import Args
from chaosproxy.core.pending import Events
from chaosproxy.core.undo import UndoLog
from chaosproxy.core.world import Name

if TYPE_CHECKING:
    from chaosproxy.core.passing import Watch


class Stage(Enum):
    """Where the request at the head of the line stands; one that cannot go on holds up all behind it."""

    SETTLE = auto()  # until what was sent before can no longer change what this means
    DELAY = auto()  # until its time
    HOLD = auto()  # until others were applied
    RUN = auto()  # until the commands that come before it were answered
    SEND = auto()  # until the bytes before it have passed
    ACT = auto()  # its final decision, or on it goes


@dataclass(slots=True)
class Told:
    """A decision that was carried out and is written down once it is known whether Redis applied the command."""

    chosen: Chosen
    delay: float | None = None
    detail: str = ""
    seen: Seen | None = None
    outcome: Outcome = "ok"


@dataclass(slots=True, eq=False)
class Work:
    """One exchange that a rule looks at, or that changes the connection, from its request to its last event.

    `sent` (with its `args` and `raw`) is the request as it goes out; `exchange` has the one that came.
    """

    exchange: Exchange
    name: Name
    args: Args
    raw: bytes
    whole: bool
    sent: Command
    stage: Stage = Stage.SETTLE
    due: float = 0.0
    waiting: int = 0
    runs: list[tuple[Chosen, Run | Vanish]] = field(default_factory=list)
    final: tuple[Chosen, Ends] | None = None
    holds: list[tuple[Chosen, float]] = field(default_factory=list)
    tickets: list[tuple[Chosen, Barrier, Ticket]] = field(default_factory=list)
    running: bool = False
    ran: int = 0
    repeats: list[tuple[Chosen, Repeat]] = field(default_factory=list)
    paces: list[tuple[Told, Pace]] = field(default_factory=list)
    pieces: deque[bytes] = field(default_factory=deque)
    watched: bool = False
    after: list[Chosen] = field(default_factory=list)
    candidates: list[tuple[LiveRule, bytes | None]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    gated: bool = False
    swallowed: tuple[Chosen, str, Outcome] | None = None
    #: Whether what is swallowed makes any difference, told by its reply; None: it does.
    acted: Callable[[bytes], bool] | None = None
    #: What the client is to get in the place of its reply, before any rule sees that.
    retold: Callable[[bytes], bytes] | None = None
    #: The server is asked something else in its place, of which only `retold` makes the answer.
    replaced: bool = False
    taken: list[Taken] = field(default_factory=list)
    #: Bytes of what was asked about its keys.
    held: int = 0
    #: Whether it was asked if a failover begins with it.
    asked: bool = False
    #: What a failover has its server refuse it with.
    refused: tuple[Chosen, Answer] | None = None
    #: What is to be written down of it for a failover: its place in each log, and (of a transaction) what it is part of.
    undo: list[tuple[UndoLog, Written]] = field(default_factory=list)
    units: list[tuple[Written, str]] = field(default_factory=list)

    @property
    def matters(self) -> bool:
        """Whether anything is still to be done or written down when the reply is here."""
        waiting = self.after or self.candidates or self.repeats or self.tickets
        return bool(waiting or self.told or self.watched or self.undo or self.retold)

    @property
    def looks_at_reply(self) -> bool:
        """Whether the reply must be whole before the client gets any of it."""
        return bool(self.after or self.candidates or self.reply_buckets or self.retold)

    def leave_logs(self, now: float) -> list[int]:
        """No failover will hear of its reply: give the connections that waited for it."""
        woken = [each for log, written in self.undo for each in log.drop(written, now)]
        self.undo.clear()
        self.units.clear()
        return woken

    @property
    def reply_buckets(self) -> list[Bucket]:
        """What its reply has to pass through."""
        return [pace.replies for _, pace in self.paces if pace.replies is not None]


@dataclass(slots=True)
class Element:
    """What the conversation keeps with a command between MULTI and EXEC, for EXEC's array.

    `inserted`: the element of a command the server never saw. `hidden`: ours, not the client's. `change`: is given the
    element, and gives what the client gets in its place. `pending`: what faults did to one that was inserted.
    """

    work: Work | None = None
    hidden: bool = False
    inserted: bytes | None = None
    change: Callable[[bytes], bytes] | None = None
    pending: Events = ()

    @property
    def changes(self) -> bool:
        """Whether EXEC's array must be put right."""
        return self.hidden or self.inserted is not None or self.change is not None


@dataclass(slots=True)
class Final:
    """What ends an exchange whose reply is here, and when it is its turn.

    `start`, `size`: where in its slot's reply the exchange's own stands (in EXEC's array); `size` None: it is the whole.
    """

    chosen: Chosen
    decision: Cut | Silence
    work: Work
    applied: Applied
    start: int = 0
    size: int | None = None


@dataclass(slots=True)
class LastRun:
    """Commands to run once this exchange was applied; `told` is what its reply tells the client."""

    chosen: Chosen
    run: Run
    work: Work
    applied: Applied
    told: Seen


@dataclass(slots=True, eq=False)
class Slot:
    """The place of one reply in the client's order.

    `frames` is None until it is the next to be answered, then how many are still owed. `before`, `parts` and `behind` are
    bytes not yet given to the client: pushes that came ahead of the reply, the reply, pushes that came in the middle of it.
    `times`: so many commands of the name, one behind the other, share it, as nothing is decided for any of them; those whose reply
    the client has are counted no more. `whole`: nothing of it is given before all of it is here. `carried`: an EXEC that was carried out. `full`: all is here. `on_reply` is set for a hidden slot, which has no place in the client's order.
    """

    name: Name
    args: Args
    since: float
    work: Work | None = None
    frames: int | None = None
    times: int = 1
    before: list[bytes] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    behind: list[bytes] = field(default_factory=list)
    whole: bool = False
    carried: bool = False
    full: bool = False
    due: float = 0.0
    waiting: int = 0
    never: bool = False
    #: Whether this command surely waits at the server, where that was asked.
    parked: bool | None = None
    element: Element | None = None
    on_reply: Callable[[bytes, float], None] | None = None
    #: Of an EXEC that passes as it comes, because it is too large: what is known of its elements.
    watch: "Watch | None" = None
    final: Final | None = None
    #: Where the reply is cut (bytes from its start), and how long the gap is there.
    cuts: dict[int, float] = field(default_factory=dict)
    paces: list[Bucket] = field(default_factory=list)
    #: What is still to leave of a reply that leaves in pieces, each with the gap ahead of it.
    pieces: deque[tuple[float, bytes]] | None = None
    reply: bytes = b""
    owed: bytes = b""
    last_runs: list[LastRun] = field(default_factory=list)
    #: What faults did to it, to be written down once it has left.
    pending: Events = ()

    @property
    def owed_commands(self) -> int:
        """How many of the commands that share it are unanswered."""
        return self.frames or 1 if self.times > 1 else 1

    @property
    def simple(self) -> bool:
        """Whether whatever comes of it changes nothing for the commands behind it."""
        return self.on_reply is None and (self.name.plain or self.name.glance is not None)

    @property
    def confirms(self) -> bool:
        """Whether its reply is confirmations."""
        return self.name.upper in SUBSCRIBE or self.name.upper in UNSUBSCRIBE


class _Nobody(deque[Slot]):
    """The queue in which nobody stands, and nobody can: it is everybody's."""

    __slots__ = ()

    def append(self, slot: Slot) -> Never:
        """Refuse."""
        raise RuntimeError(f"{slot.name.upper!r} waits where nothing happens")


#: Most connections are idle, and have two queues, of 760 bytes each however empty.
NOBODY: Constant = _Nobody()


def queue(slots: deque[Slot]) -> deque[Slot]:
    """Something happens: give a queue in which slots can stand."""
    return deque() if slots is NOBODY else slots


def rested(slots: deque[Slot]) -> deque[Slot]:
    """Nothing more happens for now: give what is left of a queue."""
    return slots or NOBODY
