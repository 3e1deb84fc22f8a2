"""Which exchanges a rule is about: `match`, compiled once for a command table.

Takes a rule's `Match`; gives a test of one exchange, and the key that `per: key` counts over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

from chaosproxy.core.circumstances import PUSHES, PushTest
from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.glob import glob_match
from chaosproxy.core.rule import Match
from chaosproxy.core.units import ArgumentTest, ClientTest, ReplyTest

_REPLY_TYPES = {
    "simple": b"+",
    "error": b"-!",
    "integer": b":",
    "bulk": b"$",
    "array": b"*",
    "map": b"%",
    "set": b"~",
    "double": b",",
    "boolean": b"#",
    "big_number": b"(",
    "verbatim": b"=",
}


#: What the listener of a proxy that has only one is called.
LISTENER = "redis"
CONFIRMED = frozenset(kind for kind in PUSHES if kind.endswith("subscribe"))


@dataclass(slots=True)
class Exchange:
    """One command and what its connection was when it came: all that `match` may look at but the reply.

    `client` is the name set by the client, `address` its host without the port. `opened` is when the connection was,
    `states` what it is in (`circumstances.STATES`). `place` counts from 1 in its batch; `last`: nothing follows in it.
    `listener` is the name of the one it came in by. `before` and `before_on_key` are the names of the commands that came before on the connection, on each key. `push`: it
    is a frame nobody asked for, its kind as the command's name, its channel as the key.
    """

    command: Command
    connection: int
    client: bytes
    address: str
    db: int
    handshake: bool = False
    opened: float = 0.0
    states: tuple[str, ...] = ()
    place: int = 1
    last: bool = True
    before: CommandSpec | None = None
    before_on_key: Mapping[bytes, CommandSpec] = field(default_factory=dict)
    push: bool = False
    listener: str = LISTENER


class NameTest:
    """Commands by their names and `@categories`; None: every command but a handshake's."""

    __slots__ = ("_all", "_groups", "_names")

    def __init__(self, words: tuple[str, ...] | None) -> None:
        self._all = words is None
        words = words or ()
        self._names = frozenset(word.upper() for word in words if not word.startswith("@"))
        self._groups = frozenset(word[1:].lower() for word in words if word.startswith("@"))

    def interested(self, name: str, specs: tuple[CommandSpec, ...]) -> bool:
        """Whether a command whose first argument is `name` can hold. `specs`: it and its subcommands."""
        if self._all or "handshake" in self._groups:
            return True
        if any(word == name or word.startswith(name + "|") for word in self._names):
            return True
        return any(self._groups & (spec.categories | spec.flags) for spec in specs)

    def holds(self, name: str, spec: CommandSpec | None, *, handshake: bool = False) -> bool:
        """Whether a command, by its full name and spec, is meant."""
        if self._all:
            return not handshake
        if name in self._names or name.partition("|")[0] in self._names:
            return True
        if handshake and "handshake" in self._groups:
            return True
        return spec is not None and bool(self._groups & (spec.categories | spec.flags))


#: What a match looks at besides the command's name: nothing, its only key, the command and its connection, or what came before
#: and will come behind it.
LooksAt = Literal["name", "key", "command", "around"]


class CompiledMatch:
    """One rule's `match`. `seed` and `name` key the share of keys; `fired_at` tells when a fault first fired."""

    __slots__ = ("_after", "_fired_at", "_first", "_match", "_names", "_salt")

    def __init__(
        self,
        match: Match,
        seed: int,
        name: str,
        fired_at: Callable[[str], float | None],
        first: int,
    ) -> None:
        self._match = match
        self._salt = f"{seed}/{name}/".encode()
        self._names = NameTest(match.commands)
        self._after = NameTest(match.after.command if match.after is not None else ())
        self._fired_at = fired_at
        self._first = first

    def interested(self, name: str, specs: tuple[CommandSpec, ...]) -> bool:
        """Whether a command whose first argument is `name` can hold at all. `specs`: it and its subcommands."""
        return self._names.interested(name, specs)

    def _around(self, exchange: Exchange, key: bytes | None) -> bool:
        """Whether what stands around the exchange holds: its batch, the command before it."""
        match = self._match
        if match.batch is not None:
            index = match.batch.index
            if not (exchange.last if index < 0 else exchange.place == index):
                return False
        if match.after is None:
            return True
        before = exchange.before
        if match.after.same == "key":
            before = exchange.before_on_key.get(key or b"")
        return before is not None and self._after.holds(before.name, before)

    def connection_holds(self, exchange: Exchange) -> bool:
        """Whether a connection is one that `connection` speaks of."""
        test = self._match.connection
        if test is None:
            return True
        connection, opened, states = exchange.connection, exchange.opened, exchange.states
        if test.listener is not None and test.listener != exchange.listener:
            return False
        if test.nth is not None and connection - self._first + 1 != test.nth:
            return False
        if test.state is not None and test.state not in states:
            return False
        if test.opened_before is not None:
            fired = self._fired_at(test.opened_before)
            if fired is None or opened >= fired:
                return False
        if test.opened_after is not None:
            fired = self._fired_at(test.opened_after)
            if fired is None or opened < fired:
                return False
        return True

    @property
    def looks_at(self) -> LooksAt:
        """What it looks at besides the name."""
        match = self._match
        state = match.connection.state if match.connection is not None else None
        if (match.batch, match.after, match.push, state) != (None,) * 4:
            return "around"
        if (match.arguments, match.clients, match.db, match.connection) != (None,) * 4:
            return "command"
        by_key = (match.keys, match.slots, match.key_share) != (None, None, None)
        return "key" if by_key else "name"

    def names_hold(self, name: str, spec: CommandSpec | None) -> bool:
        """Whether a command of this name, which is no handshake, is meant."""
        return self._names.holds(name, spec)

    def key_holds(self, key: bytes) -> bool:
        """Whether a key is one it speaks of."""
        match = self._match
        if match.keys is not None and not any(glob_match(glob, key) for glob in match.keys):
            return False
        if match.slots is not None:
            slot = key_slot(key)
            if not any(low <= slot <= high for low, high in match.slots):
                return False
        return match.key_share is None or share_of(self._salt, key) < match.key_share

    def holds(self, exchange: Exchange) -> tuple[bool, bytes | None]:
        """Whether everything but `reply` holds, and the key it holds for (the first, None without keys)."""
        match = self._match
        command = exchange.command
        keys: Sequence[bytes | None] = command.keys
        if exchange.push:
            channels = self._channels(exchange)
            if channels is None:
                return False, None
            keys = channels
        elif not self._names.holds(command.name, command.spec, handshake=exchange.handshake):
            return False, None
        if not self.client_holds(exchange):
            return False, None
        if match.arguments is not None and not argument_holds(match.arguments, command):
            return False, None
        by_key = (match.keys, match.slots, match.key_share) != (None, None, None) or (
            match.after is not None and match.after.same == "key"
        )
        for key in keys if by_key else keys[:1] or (None,):
            if (key is None or self.key_holds(key)) and self._around(exchange, key):
                return True, key
        return False, None

    def _channels(self, push: Exchange) -> Sequence[bytes] | None:
        """The channel, or the keys, for which a frame nobody asked for is one this rule speaks of; None: it is not."""
        test, kind, keys = self._match.push or PushTest(), push.command.name, push.command.keys
        # A confirmation was asked for: only who names its kind means it.
        if kind not in test.kind and (test.kind or kind in CONFIRMED):
            return None
        if test.channel is None:
            return keys
        meant = [key for key in keys if any(glob_match(glob, key) for glob in test.channel)]
        return meant or None

    def remembers(self, key: bytes, db: int) -> bool:
        """Whether a rule that answers from the past could answer for this key."""
        return self._match.db in (None, db) and self.key_holds(key)

    def client_holds(self, exchange: Exchange) -> bool:
        """Whether a connection is one this rule speaks of: its `clients`, `db` and `connection`."""
        match = self._match
        if match.db is not None and match.db != exchange.db:
            return False
        if match.clients is not None and not client_holds(
            match.clients, exchange.client, exchange.address
        ):
            return False
        return self.connection_holds(exchange)


def share_of(salt: bytes, key: bytes) -> float:
    """Where a key stands in [0, 1): stable for one seed and fault name, whatever the traffic."""
    return int.from_bytes(blake2b(salt + key, digest_size=8).digest()) / 2**64


def client_holds(test: ClientTest, name: bytes, address: str) -> bool:
    """Whether a client's name or address is one the test speaks of."""
    if test.name is not None and not glob_match(test.name, name):
        return False
    return test.address is None or glob_match(test.address, address.encode())


def argument_holds(test: ArgumentTest, command: Command) -> bool:
    """Whether any argument that is neither the name nor a key passes the test."""
    keys = set(command.key_positions)
    first = 2 if "|" in command.name else 1
    for index in range(first, len(command.args)):
        value = command.args[index]
        if value is None or index in keys:
            continue
        if test.has is not None and value.upper() != test.has.upper():
            continue
        if test.contains is not None and test.contains not in value:
            continue
        return True
    return False


def reply_holds(test: ReplyTest, raw: bytes) -> bool:
    """Whether a whole reply passes the test."""
    if test.error is not None and not _error_text(raw).startswith(test.error):
        return False
    if test.larger_than is not None and len(raw) <= test.larger_than:
        return False
    if test.type is None:
        return True
    null = raw[:1] == b"_" or raw[:3] in (b"$-1", b"*-1")
    return null if test.type == "null" else not null and raw[:1] in _REPLY_TYPES[test.type]


def _error_text(raw: bytes) -> bytes:
    """An error's text, without what stands before it; nothing for any other reply."""
    match raw[:1]:
        case b"-":
            return raw[1:]
        case b"!":
            return raw.partition(b"\r\n")[2]
        case _:
            return b""
