"""A failover over time: its steps, who is on the old primary, and what each side is answered meanwhile.

Takes the steps a fault has made of its settings, and the time; gives one step after the other to whoever carries them out
(`net/`), and the error that a command meets on the way there.

A failover is *begun*, goes through its steps, and is over. Before its `Switch` everybody is with the old primary; who was
connected when that began stays with it afterwards, until cut. What a `Switch` is, is not said here: with one server behind
the proxy the lost window is undone, with a standby that one is promoted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import How
from chaosproxy.core.undo import UndoLog

Newcomers = Literal["accept", "refuse", "reset"]
#: What all that are refused are told; each is a code of `errors.TEXTS`. "": nobody is refused.
Refusal = Literal["", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MOVED"]
FOREVER = float("inf")
#: So many seconds before a window opens it is begun to take writes down: one that is on its way then may be answered in it.
MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """So many seconds in which new connections are met like this, and commands are refused with this error.

    `held`: no command is passed on meanwhile, as while a primary waits for its replica to catch up.
    """

    seconds: float
    newcomers: Newcomers = "accept"
    refusal: Refusal = ""
    held: bool = False


@dataclass(frozen=True, slots=True)
class CutOff:
    """All connections end."""

    how: How


@dataclass(frozen=True, slots=True)
class Unblock:
    """Clients in a blocking command are told UNBLOCKED and their connections closed, or are cut at once."""

    told: bool = True


@dataclass(frozen=True, slots=True)
class Switch:
    """The new primary takes over: what it never received is gone."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """The old primary is the new one's replica from here on, and its clients are cut."""


Step = Phase | CutOff | Unblock | Switch | Rejoin


@dataclass(frozen=True, slots=True)
class Lose:
    """Which acknowledged writes the new primary never received: those of so many seconds, or the last so many."""

    seconds: float | None = None
    writes: int | None = None


@dataclass(slots=True)
class Failover:
    """Where one rule's failover stands.

    `old` is what connections to the old primary are refused with once there is a new one; None: that switch leaves nobody
    behind (the same server is back). `begun` is when it last began, `due` when its next step is, None: it is over or
    never began. `phase` is what is in force now.
    """

    steps: tuple[Step, ...]
    old: Refusal | None = "READONLY"
    lose: Lose | None = None
    #: What the emulation may have to undo; None: nothing is lost.
    log: UndoLog | None = None
    begun: float | None = None
    due: float | None = None
    phase: Phase | None = None
    #: When the last switch began: who was connected by then is with the old primary.
    switched: float | None = None
    _left: list[Step] = field(default_factory=list)
    #: The same before this one began.
    _earlier: float | None = None

    @property
    def running(self) -> bool:
        """Whether there are steps to come."""
        return self.due is not None

    def begin(self, now: float) -> None:
        """It begins: its first step is due."""
        self.begun = self.due = now
        self.phase = None
        self._earlier = self.switched
        if self.log is not None:
            # It may begin a little later than it was to: what was known of the window holds.
            opens = self.log.opens
            self.log.window = now - (self.log.seconds or 0.0) if opens is None else opens
        self._left = list(self.steps)

    def step(self, now: float) -> Step | None:
        """Give the next step if its time has come, else None.

        The time of what follows counts from when a phase was due to end; after a switch from when that was done.
        """
        if self.due is None or now < self.due:
            return None
        self.phase = None
        if not self._left:
            self.due = None
            return None
        step = self._left.pop(0)
        if isinstance(step, Phase):
            self.phase = step
            self.due += step.seconds
        elif isinstance(step, Switch):
            self.switched = now
            self.due = FOREVER
        return step

    def switch_done(self, now: float) -> None:
        """The new primary is there."""
        self.due, self._earlier = now, self.switched

    def call_off(self) -> None:
        """It cannot be carried out, or not any further: nothing follows. Where there was no switch nobody is left behind."""
        self.due = self.phase = None
        self.switched = self._earlier
        self._left.clear()

    def is_old(self, opened: float) -> bool:
        """Whether a connection that was opened then is to the old primary."""
        return self.old is not None and self.switched is not None and opened <= self.switched

    def expect(self, begins: float | None) -> None:
        """When it will begin, if that is known: what is written long before that is not taken down."""
        if self.log is not None and self.log.seconds is not None and begins is not None:
            self.log.opens = begins - self.log.seconds

    def records(self, now: float) -> bool:
        """Whether what is written now may still be lost."""
        if self.log is None:
            return False
        opens = self.log.opens
        if self.switched is not None and self.begun is not None and self.switched >= self.begun:
            # The next one's window may go back to before this one is over.
            return opens is None
        return opens is None or now >= opens - MARGIN

    def will_record(self, now: float) -> bool:
        """Whether that begins later, at a time that is known."""
        opens = None if self.log is None else self.log.opens
        return opens is not None and now < opens - MARGIN

    @property
    def newcomers(self) -> Newcomers:
        """How a new connection is met now."""
        return "accept" if self.phase is None else self.phase.newcomers

    def refusal(self, opened: float) -> Refusal:
        """What a connection that was opened then is refused with now, "": nothing."""
        if self.is_old(opened):
            return self.old or ""
        return "" if self.phase is None else self.phase.refusal


def refuses(
    code: Refusal, spec: CommandSpec | None, queued: Iterable[CommandSpec | None] = ()
) -> Refusal:
    """What this command is answered by a server in that state; "": it is carried out.

    `queued`: the commands of the transaction that it (EXEC) would carry out. A command the table does not know is asked as
    the server would: the server says that it is unknown.
    """
    specs = [each for each in (spec, *queued) if each is not None]
    match code:
        case "":
            return ""
        case "READONLY":
            return code if any(each.is_write for each in specs) else ""
        case "LOADING":
            return code if any("loading" not in each.flags for each in specs) else ""
        case "MASTERDOWN":
            if any(each.is_write for each in specs):
                return "READONLY"
            return code if any("stale" not in each.flags for each in specs) else ""
        case "CLUSTERDOWN" | "MOVED":
            if any(each.key_specs for each in specs):
                return code
            # Where it is to be sent nobody can say, and the old primary is a replica.
            return "READONLY" if code == "MOVED" and any(each.is_write for each in specs) else ""
        case _:
            assert_never(code)
