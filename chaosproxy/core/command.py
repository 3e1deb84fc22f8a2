"""One command of a client: its name, its keys and the bytes it came in.

Takes a request's arguments and the command table, gives a Command.
"""

import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from chaosproxy.core.command_table import CommandSpec, CommandTable

SLOTS = 16384


#: What carries passwords, as an argument or as a setting's value.
SECRETIVE: Final = frozenset(
    (
        "AUTH",
        "HELLO",
        "ACL|SETUSER",
        "CONFIG|SET",
        "MIGRATE",
        "MODULE|LOADEX",
        "SENTINEL",
        "SENTINEL|SET",
        "SENTINEL|CONFIG",
    )
)


@dataclass(frozen=True, slots=True)
class Command:
    """A request as the client sent it, and what the command table says about it.

    `args` are its arguments, name first (None: too large to have been kept), `raw` the bytes as
    received. `spec` is None for a command the table does not know. `name` is `SET` or `CONFIG|SET`;
    an unknown one is the client's own word in upper case. `key_positions` index into `args`.
    """

    args: tuple[bytes | None, ...]
    raw: bytes
    spec: CommandSpec | None
    name: str
    key_positions: tuple[int, ...]

    @classmethod
    def parse(cls, table: CommandTable, args: Sequence[bytes | None], raw: bytes) -> Self:
        """Look the arguments up in the table. Never raises."""
        args = tuple(args)
        spec = table.find(args)
        if spec is not None:
            return cls(args, raw, spec, spec.name, table.key_positions(spec, args))
        name = (args and args[0]) or b""
        return cls(args, raw, None, name.upper().decode("utf-8", "backslashreplace"), ())

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys, in the command's order; one too large to have been kept is left out."""
        keys = (self.args[position] for position in self.key_positions)
        return tuple(key for key in keys if key is not None)

    def digest(self) -> str:
        """Give 16 hex digits that stand for the request: of SHA-256 over `raw`.

        Of commands that carry passwords only the name counts: a digest of a short secret gives it away
        to whoever tries all of them.
        """
        raw = self.name.encode() if self.name in SECRETIVE else self.raw
        return hashlib.sha256(raw).hexdigest()[:16]


def key_slot(key: bytes) -> int:
    """Give a key's cluster hash slot, 0 to 16383: CRC16 (XMODEM) of its {tag} or of all of it."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return binascii.crc_hqx(key, 0) % SLOTS
