"""A write that is swallowed and acknowledged: how the server is made to compute the reply without the write.

Takes a command; gives the requests to send around it. Nothing here sends anything.

The command runs, byte for byte as the client sent it, on copies of its keys: in a scratch database if one is proven to be
empty, else on temporary keys beside the real ones; both inside one transaction, so nobody sees the copies. Its element of
EXEC's array is the reply the server would have given. What each way cannot do:

scratch database   The same trick destroys the real key where SELECT fails only at EXEC (a cluster): so it is used only after
                   SELECT, DBSIZE and SELECT back have been answered +OK, :0, +OK, on the connection that will carry it.
temporary keys     Scripts may name keys they do not declare: not for them. Replies that carry the key are put right.
client is WATCHing  An EXEC of ours would end its WATCH: the side connection carries the transaction.
neither            Commands without keys, or that reach beyond their keys (FLUSHALL, MOVE …): a reply of the right type.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Final

from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.modes import Args
from chaosproxy.core.resp import encode_bulk

#: They reach beyond the keys they name: never to be tried on a copy.
_BEYOND: Final = frozenset(
    {"FLUSHALL", "FLUSHDB", "SWAPDB", "MOVE", "MIGRATE", "RESTORE-ASKING", "DELSLOT", "SFLUSH"}
)
NO_IMAGES: Final[Mapping[bytes, bytes | None]] = MappingProxyType({})
_SCRIPTS: Final = frozenset({"EVAL", "EVALSHA", "FCALL"})
#: Words of a script that could leave the scratch database.
_LEAVING: Final = (b"select", b"flushall", b"flushdb", b"swapdb", b"move", b"copy", b"migrate")


@dataclass(frozen=True, slots=True)
class Plan:
    """Requests before the write, the write (`raw`: as the client sent it, else re-encoded `args`), requests after it."""

    before: tuple[Args, ...]
    args: Args
    raw: bytes | None
    after: tuple[Args, ...]
    renamed: tuple[tuple[bytes, bytes], ...]
    how: str

    def alone(self) -> tuple[list[Args], list[bytes | None], int]:
        """All requests of a transaction of our own, their raw bytes where they are the client's, and the write's index."""
        requests: list[Args] = [(b"MULTI",), *self.before, self.args, *self.after, (b"EXEC",)]
        index = 1 + len(self.before)
        raws: list[bytes | None] = [*([None] * index), self.raw]
        return requests, raws, index

    def restore(self, raw: bytes) -> bytes:
        """Put the real keys back into a reply."""
        for old, new in self.renamed:
            raw = raw.replace(old, new)
        return raw


def gate(db: int, scratch: int) -> list[Args]:
    """Requests that prove the scratch database: it can be selected, it is empty, and there is a way back."""
    return [(b"SELECT", b"%d" % scratch), (b"DBSIZE",), (b"SELECT", b"%d" % db)]


def proven(replies: Sequence[bytes] | None) -> bool:
    """Whether the gate's replies prove it."""
    return replies is not None and list(replies) == [b"+OK\r\n", b":0\r\n", b"+OK\r\n"]


def waits(command: Command, *, queued: bool) -> bool:
    """Whether the command would block: then what the server would have answered, and when, cannot be known."""
    spec = command.spec
    if spec is None or queued or not ({"blocking"} & (spec.flags | spec.categories)):
        return False
    words = {(arg or b"").upper() for arg in command.args[1:]}
    return command.name not in ("XREAD", "XREADGROUP") or b"BLOCK" in words


def computable(command: Command, *, scratch: bool) -> bool:
    """Whether the server can be made to compute the reply on copies of the keys."""
    spec = command.spec
    words = [(arg or b"").upper() for arg in command.args]
    if spec is None or not command.keys or command.name in _BEYOND or "no_multi" in spec.flags:
        return False
    match command.name:
        case "COPY":
            return b"DB" not in words[3:]
        case "SORT":
            return not {b"BY", b"GET"} & set(words[2:])
        case name if name in _SCRIPTS:
            script = (command.args[1] or b"").lower() if name == "EVAL" else b""
            return scratch and not any(word in script for word in _LEAVING)
        case _:
            return True


#: Keys and what they are to be: a DUMP, or None for a key that is not there. Other keys are copied as they are.
Images = Mapping[bytes, bytes | None]


def in_scratch(command: Command, db: int, scratch: int, images: Images = NO_IMAGES) -> Plan:
    """On copies in the scratch database."""
    keys = _unique(command)
    there = b"%d" % scratch
    copies: list[Args] = [
        (b"COPY", key, key, b"DB", there, b"REPLACE") for key in keys if key not in images
    ]
    restored = [_restore(key, image) for key, image in images.items() if image is not None]
    return Plan(
        before=(*copies, (b"SELECT", there), *restored),
        args=command.args,
        raw=command.raw,
        after=((b"DEL", *keys), (b"SELECT", b"%d" % db)),
        renamed=(),
        how=f"reply computed in scratch database {scratch}",
    )


def _restore(key: bytes, image: bytes) -> Args:
    return (b"RESTORE", key, b"0", image, b"REPLACE")


def on_temporary_keys(command: Command, token: str, images: Images = NO_IMAGES) -> Plan:
    """On copies beside the real keys, in the same hash slots; `token` makes their names unique."""
    names = {key: _temporary(key, token) for key in _unique(command)}
    args: list[bytes | None] = list(command.args)
    for position in command.key_positions:
        key = args[position]
        if key is not None:
            args[position] = names[key]
    copies: list[Args] = []
    for key, temporary in names.items():
        copies.append((b"DEL", temporary))
        image = images.get(key)
        if key not in images:
            copies.append((b"COPY", key, temporary, b"REPLACE"))
        elif image is not None:
            copies.append(_restore(temporary, image))
    return Plan(
        before=tuple(copies),
        args=tuple(args),
        raw=None,
        after=((b"DEL", *names.values()),),
        renamed=tuple((encode_bulk(new), encode_bulk(old)) for old, new in names.items()),
        how="reply computed on temporary keys",
    )


def _unique(command: Command) -> list[bytes]:
    return list(dict.fromkeys(command.keys))


def _temporary(key: bytes, token: str) -> bytes:
    suffix = f":chaosproxy:{token}".encode()
    slot = key_slot(key)
    for name in (key + suffix, b"{" + key + b"}" + suffix):
        if key_slot(name) == slot:
            return name
    tag = next(n for n in count() if key_slot(b"%d" % n) == slot)
    return b"{%d}" % tag + key + suffix
