"""What a fault is, and the registry that finds the files in `faults/`.

Takes one dataclass a file; gives `FAULTS`, YAML name -> class. A fault says what, the engine says when: `decide` is called
only for an exchange that `match` and `when` have already chosen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import ClassVar, Literal, TypeVar

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Decision, Position


@dataclass(frozen=True)
class ServerInfo:
    """What the upstream says it is: decides the exact text of its errors (`Redis`/`Valkey`) and what it can do."""

    product: str = "Redis"
    version: tuple[int, ...] = (7, 0, 0)


@dataclass(frozen=True)
class Context:
    """What a fault may look at: one chosen exchange, at one position.

    `reply` is the whole raw reply from `after_apply` on, None before. `protocol` is 2 or 3. `match` is the match
    number, counted from 1 over the rule's `per`. `random` is the stream keyed by (seed, fault name, `per` value, match number): its
    first draw is the `chance` roll, which was taken already. `key` is the key that matched. `queued`: it is between MULTI
    and EXEC. `now` is the proxy's clock, `clock` seconds since 1970. `state` is what the fault's `new_state` made. `armed_at` is when the
    rule came into force or was armed, `fired` how often it has acted; `open_connections` is set for a new connection. `opened` is
    when the connection was, `carried` what an EXEC would carry out, `address` where clients reach the proxy.
    """

    fault: str
    command: Command
    position: Position
    protocol: int
    db: int
    match: int
    server: ServerInfo
    stream: str
    reply: bytes | None = None
    queued: bool = False
    key: bytes | None = None
    connection: int = 0
    now: float = 0.0
    clock: float = 0.0
    state: object = None
    armed_at: float = 0.0
    fired: int = 0
    open_connections: int = 0
    opened: float = 0.0
    carried: tuple[CommandSpec | None, ...] = ()
    address: str = ""

    @cached_property
    def random(self) -> Random:
        """The fault's own stream for this match, apart from the one that rolled `chance`."""
        return Random(self.stream + "/draw")  # noqa: S311 - reproducible on purpose

    def draw(self) -> float:
        """The next number of `random`, in [0, 1)."""
        return self.random.random()


class Fault:
    """Base of every fault: a frozen dataclass of settings and one method.

    The class docstring's first line is the fault's summary in the catalogue; the rest is its help.
    """

    type: ClassVar[str]
    #: positions it may stand at; one only: `at` is left out in YAML; several: it must be given.
    positions: ClassVar[tuple[Position, ...]]
    #: outcome classes, as the catalogue shows them: "ok", "fail / unknown", …
    outcome: ClassVar[str]
    #: what it is about: an exchange, an unsolicited frame, or a new connection.
    subject: ClassVar[Literal["exchange", "push", "connection"]] = "exchange"
    #: it acts on writes only: a match that names none can never hold.
    writes_only: ClassVar[bool] = False
    #: it acts on reads only, or on keys only: the same.
    reads_only: ClassVar[bool] = False
    keys_only: ClassVar[bool] = False
    #: it can act on a frame nobody asked for as well, with `match: push`.
    on_pushes: ClassVar[bool] = False

    @property
    def needs_scratch(self) -> bool:
        """Whether it may have the server compute replies: then the means are settled before a transaction begins."""
        return False

    @property
    def standby(self) -> Literal["uses", "needs"] | None:
        """What it does with a second server, the standby: uses it where there is one, or can do nothing without."""
        return None

    @property
    def spans(self) -> bool:
        """Whether it goes on by itself for a time: with `trigger: manual` a request then begins that time, else one act."""
        return False

    def check(self, at: Position) -> None:
        """Raise `Invalid` for settings that contradict each other or the position. Called once, at load."""

    def names(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The commands that its settings name, each with the place in them where it stands."""
        return ()

    def idle_on(self, specs: Sequence[CommandSpec]) -> str:
        """Why its settings leave it nothing to do to any of these commands; '' for most, and where there may be something."""
        del specs
        return ""

    def watches(self) -> tuple[str, ...] | None:
        """Commands (as in `match: commands`) whose application the fault wants to hear of; None for most."""
        return None

    def same_key_as(self) -> tuple[str, ...] | None:
        """Of its settings the one whose commands (see `names`) are to be on the key that matched; None for most."""
        return None

    def shuts_door(self) -> float | None:
        """For how long, from when the rule is in force, nobody is to listen at all; None for most: somebody is."""
        return None

    def new_state(self) -> object:
        """What the fault keeps between exchanges, one for each rule in force; None for most."""
        return None

    def decide(self, context: Context) -> Decision | None:
        """What is to happen to this exchange; None: nothing after all (counted as skipped, reason `not_applicable`)."""
        raise NotImplementedError


FAULTS: dict[str, type[Fault]] = {}
F = TypeVar("F", bound=type[Fault])


def fault(cls: F) -> F:
    """Register a fault under its file's name. The outermost decorator (slotted dataclasses are made twice)."""
    cls.type = cls.__module__.rpartition(".")[2]
    FAULTS[cls.type] = cls
    return cls
