"""Which exchanges a rule is about: `match`, compiled once for a command table.

Takes a rule's `Match`; gives a test of one exchange, and the key that `per: key` counts over.
"""

from dataclasses import dataclass
from hashlib import blake2b

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


@dataclass(slots=True)
class Exchange:
    """One command and what its connection was when it came: all that `match` may look at but the reply.

    `client` is the name set by the client, `address` its host without the port.
    """

    command: Command
    connection: int
    client: bytes
    address: str
    db: int
    handshake: bool


class CompiledMatch:
    """One rule's `match`, for the commands of one table. `seed` and `name` key the share of keys."""

    __slots__ = ("_categories", "_match", "_names", "_salt")

    def __init__(self, match: Match, seed: int, name: str) -> None:
        self._match = match
        self._salt = f"{seed}/{name}/".encode()
        words = match.commands or ()
        self._names = frozenset(word.upper() for word in words if not word.startswith("@"))
        self._categories = frozenset(word[1:].lower() for word in words if word.startswith("@"))

    def interested(self, name: str, specs: tuple[CommandSpec, ...]) -> bool:
        """Whether a command whose first argument is `name` can hold at all. `specs`: it and its subcommands."""
        if self._match.commands is None:
            return True
        if "handshake" in self._categories:
            return True
        if any(word == name or word.startswith(name + "|") for word in self._names):
            return True
        return any(self._categories & (spec.categories | spec.flags) for spec in specs)

    def _command(self, exchange: Exchange) -> bool:
        if self._match.commands is None:
            return not exchange.handshake
        command = exchange.command
        if command.name in self._names or command.name.partition("|")[0] in self._names:
            return True
        if not self._categories:
            return False
        if exchange.handshake and "handshake" in self._categories:
            return True
        spec = command.spec
        return spec is not None and bool(self._categories & (spec.categories | spec.flags))

    def _key_holds(self, key: bytes) -> bool:
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
        if not self._command(exchange):
            return False, None
        if match.db is not None and match.db != exchange.db:
            return False, None
        if match.clients is not None and not client_holds(
            match.clients, exchange.client, exchange.address
        ):
            return False, None
        if match.arguments is not None and not argument_holds(match.arguments, exchange.command):
            return False, None
        keys = exchange.command.keys
        if match.keys is None and match.slots is None and match.key_share is None:
            return True, keys[0] if keys else None
        for key in keys:
            if self._key_holds(key):
                return True, key
        return False, None

    def client_holds(self, client: bytes, address: str, db: int) -> bool:
        """Whether a connection is one this rule speaks of: its `clients` and `db`."""
        match = self._match
        if match.db is not None and match.db != db:
            return False
        return match.clients is None or client_holds(match.clients, client, address)


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
    if test.error is not None and not raw.startswith(b"-" + test.error):
        return False
    if test.larger_than is not None and len(raw) <= test.larger_than:
        return False
    if test.type is None:
        return True
    if test.type == "null":
        return raw[:1] == b"_" or raw[:3] in (b"$-1", b"*-1")
    return raw[:1] in _REPLY_TYPES[test.type] and raw[1:3] != b"-1"
