"""What all conversations of one proxy share: the engine in force, the command table, the tallies.

Takes nothing from the network; gives each conversation the same view. `net/` replaces its parts as the proxy learns more.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from chaosproxy.core import modes
from chaosproxy.core.addresses import COMMANDS
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES, Engine
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.glance import Glance, glance
from chaosproxy.core.opening import Opening
from chaosproxy.core.swallow import SCRATCH_DB
from chaosproxy.core.tally import Tally

OTHER: Final = "other"


@dataclass(slots=True)
class Name:
    """All there is to know of a command's first argument as sent: looked up once, then kept.

    `plain`: one request, one reply, no rule looks at it, nothing follows from it: the fast path. `blocking`: its reply may
    be waited for on purpose, so the time it takes says nothing about the upstream. `glance`: a rule looks at it, and that is all
    that keeps it from being plain.
    """

    upper: bytes
    tally: Tally
    interest: bool
    turning: bool
    handshake: bool
    blocking: bool
    plain: bool
    glance: Glance | None = None


@dataclass(slots=True)
class World:
    """What all conversations of one proxy share.

    `max_buffer`: bytes that one side of a connection may hold back. `scratch_db`: the database in which swallowed writes are
    computed, used only while it is proven empty. `epoch`: what added to `now` gives seconds since 1970. `vanishing`: the
    keys, with their database, that are on their way out, and the connections whose command waits until they are gone.
    `address` is where clients reach the proxy, as MOVED names it.
    `standby`: there is a second server. `user`: who the side connection is.
    """

    engine: Engine
    table: CommandTable
    server: ServerInfo = field(default_factory=ServerInfo)
    max_buffer: int = 16 << 20
    scratch_db: int = SCRATCH_DB
    epoch: float = 0.0
    standby: bool = False
    user: bytes = b"default"
    translates: bool = False
    #: It is one server that pretends to be a cluster: every command is looked at.
    pretends: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    vanishing: dict[tuple[int, bytes], list[int]] = field(default_factory=dict)
    address: str = ":0"
    #: By how many steps of failovers all requests are held just now: none is forwarded.
    held: int = 0
    #: By the bytes that were sent.
    openings: dict[bytes, Opening] = field(default_factory=dict)
    _names: dict[bytes, Name] = field(default_factory=dict)

    def switch(self, engine: Engine) -> None:
        """Put another engine in force; each conversation is told by its own `switch`."""
        self.engine = engine
        self._forget()

    def hold(self) -> None:
        """From here on no request of any connection is forwarded, until as many `go_on`."""
        self.held += 1
        self._forget()

    def go_on(self) -> None:
        """What was held may go on: each conversation is told by its own `wake`."""
        self.held -= 1
        self._forget()

    def learn(self, table: CommandTable) -> None:
        """Use another command table, as a live server gave it."""
        self.table = table
        self.engine.learn(table)
        self._forget()

    def same_rights(self, user: bytes) -> bool:
        """Whether a client that is this user may be told what only the side connection was told: both are the same one."""
        return self.user == user

    def unanswered(self, where: Literal["upstream", "standby"]) -> str:
        """Why a side connection to that server has given no answer, as a reason to skip."""
        return "no_standby" if where == "standby" and not self.standby else "side_connection"

    def _forget(self) -> None:
        """What was looked up is not so any more."""
        self._names.clear()
        for opening in self.openings.values():
            opening.over()
        self.openings.clear()

    def name(self, sent: bytes) -> Name:
        """Look up a first argument."""
        found = self._names.get(sent)
        if found is None:
            found = self._look_up(sent)
            if len(self._names) < MOST_NAMES and len(sent) <= LONGEST_NAME:
                self._names[sent] = found
        return found

    def _look_up(self, sent: bytes) -> Name:
        upper = sent.upper()
        spec = self.table.find((upper,))
        label = spec.name if spec is not None else OTHER
        tally = self.tallies.get(label)
        if tally is None:
            tally = self.tallies[label] = Tally(label)
        engine = self.engine
        text = upper.decode("utf-8", "backslashreplace")
        interest = (
            self.pretends
            or engine.looks_back
            or bool(engine.interest(text) or engine.failovers)
            or engine.watches(text)
        )
        turning = upper in modes.TURNING
        raw = upper in modes.RAW
        handshake = upper in modes.HANDSHAKE
        special = turning or raw or self.pretends or self.held > 0
        special = special or (self.translates and upper in COMMANDS)
        return Name(
            upper=upper,
            tally=tally,
            interest=interest,
            turning=turning,
            handshake=handshake,
            blocking=spec is not None
            and ("blocking" in spec.flags or "blocking" in spec.categories),
            plain=not (interest or special),
            glance=glance(engine, self.table, text)
            if interest and not (special or handshake)
            else None,
        )

    @property
    def swallows(self) -> bool:
        """Whether a rule in force may swallow a write, so that a transaction's means are settled before its MULTI."""
        return any(live.fault.needs_scratch for live in self.engine.rules)
