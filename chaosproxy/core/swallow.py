"""A write that is swallowed and acknowledged: how the server is made to compute the reply without the write.

Takes a command; gives the requests to send around it. Nothing here sends anything.

The command runs, byte for byte as the client sent it, on copies of its keys: in a scratch database if one is proven to be
empty, else on temporary keys beside the real ones; both inside one transaction, so nobody sees the copies. Its element of
EXEC's array is the reply the server would have given. But what a server says of keys by itself it says of copies, too: keyspace
notifications (in the scratch database, or of temporary keys), and to who caches the key or tracks its prefix, invalidations, which
know no databases. What each way cannot do:

scratch database   The same trick destroys the real key where SELECT fails only at EXEC (a cluster): so it is used only after
                   SELECT, DBSIZE and SELECT back have been answered +OK, :0, +OK, on the connection that will carry it.
                   SORT finds weights beside its key: not for it. What a script left there undeclared is found and removed.
temporary keys     Scripts may name keys they do not declare: not for them. Replies that carry the key are put right.
client is WATCHing  An EXEC of ours would end its WATCH: the side connection carries the transaction.
neither            Commands without keys, or that reach beyond their keys (FLUSHALL, MOVE …): a reply of the right type, where that is known
                   (not of FT.CREATE and what else an index is made of).

An ACL may forbid what this is made of. Without MULTI all of it would be carried out, one by one, and copies would stay; in the
client's own transaction a request that is refused would spoil all the others. So what is allowed is found out first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Final

from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.memory import Image
from chaosproxy.core.modes import Args
from chaosproxy.core.reach import SCRIPTS, stays
from chaosproxy.core.reply import elements
from chaosproxy.core.resp import encode_bulk
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

NO_IMAGES: Final[Mapping[bytes, Image]] = MappingProxyType({})
#: Words of a script that could leave the scratch database.
_LEAVING: Final = re.compile(
    rb"\b(select|flushall|flushdb|swapdb|move|copy|migrate)\b", re.IGNORECASE
)
#: So many keys a script may leave behind, and one SCAN finds them all.
_ALL: Final = b"1000000"
#: Never there: it is named only to see whether a command is allowed.
_PROBE: Final = b"chaosproxy:probe"
#: The database in which writes are computed, while it is proven empty.
SCRATCH_DB: Final = 15
#: In the name of every temporary key.
TEMPORARY: Final = b":chaosproxy:"
_NULLS: Final = (b"$-1\r\n", b"*-1\r\n", b"_\r\n")
#: Numbers by the hash slot they make as a hash tag, as far as they were looked for.
_tags: dict[int, bytes] = {}
_numbers = count()


@dataclass(frozen=True, slots=True)
class Plan:
    """Requests before the write, the write (`raw`: as the client sent it, else re-encoded `args`), requests after it.

    `names`: temporary keys, and the real ones whose place they take. `scans`: whether the first request after it, but one,
    lists what a script has left behind.
    """

    before: tuple[Args, ...]
    args: Args
    raw: bytes | None
    after: tuple[Args, ...]
    names: tuple[tuple[bytes, bytes], ...]
    how: str
    scans: bool = False

    def alone(self) -> tuple[list[Args], list[bytes | None], int]:
        """All requests of a transaction of our own, their raw bytes where they are the client's, and the write's index."""
        requests: list[Args] = [(b"MULTI",), *self.before, self.args, *self.after, (b"EXEC",)]
        index = 1 + len(self.before)
        raws: list[bytes | None] = [*([None] * index), self.raw]
        return requests, raws, index

    def restore(self, raw: bytes) -> bytes:
        """Put the real keys back into a reply."""
        for temporary, real in self.names:
            if raw[:1] == b"-":
                raw = raw.replace(_in_error(temporary), _in_error(real))
            else:
                raw = raw.replace(encode_bulk(temporary), encode_bulk(real))
        return raw


def _in_error(key: bytes) -> bytes:
    """A key as servers put it into an error: up to a NUL, and without line ends."""
    return key.partition(b"\0")[0].replace(b"\r", b" ").replace(b"\n", b" ")


# -- what is allowed and what is proven


def gate(db: int, scratch: int) -> list[Args]:
    """Requests that prove the scratch database: it can be selected, it is empty, and there is a way back."""
    return [(b"SELECT", b"%d" % scratch), (b"DBSIZE",), (b"SELECT", b"%d" % db)]


def proven(replies: Sequence[bytes] | None) -> bool:
    """Whether the gate's replies prove it."""
    return replies is not None and list(replies) == [b"+OK\r\n", b":0\r\n", b"+OK\r\n"]


def gate_before_multi(db: int, scratch: int) -> list[Args]:
    """The gate, and requests that show whether copies can be made inside the transaction that follows."""
    return [*gate(db, scratch), (b"COPY", _PROBE, _PROBE), (b"DEL", _PROBE)]


@dataclass(frozen=True, slots=True)
class Means:
    """What a transaction of the client's may have of ours in it.

    `scratch`: the database is proven. `selects`: at least it is there. `copies`: COPY and DEL will be queued. `forbidden`: which
    of the two an ACL forbids, or the server does not know; if neither, they are queued or refused just as other writes.
    `restricted`: only some keys may be named, so temporary ones may be refused.
    """

    scratch: bool = False
    selects: bool = False
    copies: bool = True
    forbidden: frozenset[str] = frozenset()
    restricted: bool = False

    def allow(self, *, scratch: bool) -> bool:
        """Whether copies will be queued, in the scratch database or on temporary keys."""
        return self.copies and (scratch or not self.restricted)


#: Where nothing was found out.
UNKNOWN: Final = Means()


def means(replies: Sequence[bytes]) -> Means:
    """Read the replies to `gate_before_multi`. An error names the command if it is forbidden, or not known."""
    copied, deleted = replies[-2:]
    named = {
        name
        for name, raw in (("COPY", copied), ("DEL", deleted))
        if raw[:1] == b"-" and re.search(rb"['`]%b['`]" % name.encode(), raw, re.IGNORECASE)
    }
    full = copied.startswith(b"-OOM")
    return Means(
        scratch=proven(replies[:-2]),
        selects=replies[0] == b"+OK\r\n",
        copies=not (named or full),
        forbidden=frozenset(named),
        restricted=not named and deleted.startswith(b"-NOPERM"),
    )


def stand_in(command: Command, token: str, given: Means) -> Args | None:
    """A request that has no effect, and that the server refuses to queue where it would refuse this write; None: there is none.

    It names a key in the command's hash slot; a command without keys has none on a cluster, where nothing is to be selected.
    """
    if given.forbidden or given.restricted or not (command.keys or given.selects):
        return None
    key = _temporary(command.keys[0], token) if command.keys else _PROBE
    full = command.spec is not None and "denyoom" in command.spec.flags
    return (b"COPY", key, key) if full else (b"DEL", key)


def gate_alone(db: int, scratch: int) -> list[Args]:
    """The gate inside a transaction, which shows that transactions are allowed."""
    return [(b"MULTI",), *gate(db, scratch), (b"EXEC",)]


def transactions_allowed(replies: Sequence[bytes]) -> bool:
    """Whether they are."""
    return replies[0] == b"+OK\r\n" and (carried_out(replies) is not None or _aborted(replies[-1]))


def carried_out(replies: Sequence[bytes]) -> list[bytes] | None:
    """The elements of EXEC's array, which is the last of the replies; None if it is none."""
    if replies[-1][:1] != b"*":
        return None
    try:
        return elements(replies[-1])[1]
    except ProtocolError:  # nested in ways that no server's are
        return None


def _aborted(raw: bytes) -> bool:
    return raw.startswith(b"-EXECABORT")


def leftovers(raw: bytes) -> list[bytes]:
    """The keys in SCAN's reply."""
    try:
        match decode(raw):
            case [_, list(keys)]:
                return [key for key in keys if isinstance(key, bytes)]
    except ProtocolError:  # no server's
        pass
    return []


# -- what can be computed, and how


def waits(command: Command, *, queued: bool) -> bool:
    """Whether the command may block: then what the server would have answered, and when, is known only if it does not."""
    spec = command.spec
    if spec is None or queued or not ({"blocking"} & (spec.flags | spec.categories)):
        return False
    words = {(arg or b"").upper() for arg in command.args[1:]}
    return command.name not in ("XREAD", "XREADGROUP") or b"BLOCK" in words


def is_null(raw: bytes) -> bool:
    """Whether this is what a blocking command answers in a transaction when it would have to wait."""
    return raw in _NULLS


def computable(command: Command, *, scratch: bool) -> bool:
    """Whether the server can compute the reply on copies in the scratch database, or else on temporary keys."""
    spec = command.spec
    words = [(arg or b"").upper() for arg in command.args]
    if spec is None or not command.keys or not stays(command.name) or "no_multi" in spec.flags:
        return False
    match command.name:
        case "COPY":
            return b"DB" not in words[3:]
        case "SORT" | "SORT_RO":
            return not (scratch and {b"BY", b"GET"} & set(words[2:]))
        case name if name in SCRIPTS:
            script = (command.args[1] or b"") if name == "EVAL" else b""
            return scratch and not _LEAVING.search(script)
        case _:
            return True


#: Keys as they are to be. One whose life is over by now is not there: that is what RESTORE makes of it.
Images = Mapping[bytes, Image]


def in_scratch(command: Command, db: int, scratch: int, images: Images = NO_IMAGES) -> Plan:
    """On copies in the scratch database; the keys in `images` are as those say."""
    keys = _unique(command)
    there = b"%d" % scratch
    copies: list[Args] = [
        (b"COPY", key, key, b"DB", there, b"REPLACE") for key in keys if key not in images
    ]
    restored = [
        _restore(key, image.dump, image.ends)
        for key, image in images.items()
        if image.dump is not None
    ]
    scans = command.name in SCRIPTS
    scan: tuple[Args, ...] = ((b"SCAN", b"0", b"COUNT", _ALL),) if scans else ()
    return Plan(
        before=(*copies, (b"SELECT", there), *restored),
        args=command.args,
        raw=command.raw,
        after=((b"DEL", *keys), *scan, (b"SELECT", b"%d" % db)),
        names=(),
        how=f"reply computed in scratch database {scratch}",
        scans=scans,
    )


def _restore(key: bytes, dump: bytes, ends: int | None) -> Args:
    return (b"RESTORE", key, b"%d" % (ends or 0), dump, b"REPLACE", b"ABSTTL")


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
        if image is None:
            copies.append((b"COPY", key, temporary, b"REPLACE"))
        elif image.dump is not None:
            copies.append(_restore(temporary, image.dump, image.ends))
    return Plan(
        before=tuple(copies),
        args=tuple(args),
        raw=None,
        after=((b"DEL", *names.values()),),
        names=tuple((new, old) for old, new in names.items()),
        how="reply computed on temporary keys",
    )


def copying(command: Command, token: str) -> list[Args]:
    """Requests that show whether copies can be made of what is at the command's keys, which not every module lets one do."""
    plan = on_temporary_keys(command, token)
    return [(b"MULTI",), *plan.before, *plan.after, (b"EXEC",)]


def _unique(command: Command) -> list[bytes]:
    return list(dict.fromkeys(command.keys))


def _temporary(key: bytes, token: str) -> bytes:
    """A name in the key's hash slot. It begins as the key does: that is how ACLs tell keys."""
    suffix = TEMPORARY + token.encode()
    slot = key_slot(key)
    for name in (key + suffix, key + b"{%b}" % _tag(slot) + suffix):
        if key_slot(name) == slot:
            return name
    # A brace in the key that closes nothing: whatever follows it counts for the slot.
    names = (b"%b%b:%d" % (key, suffix, number) for number in count())
    return next(name for name in names if key_slot(name) == slot)


def _tag(slot: int) -> bytes:
    """The smallest number that is a hash tag of this slot."""
    while slot not in _tags:
        number = b"%d" % next(_numbers)
        _tags.setdefault(key_slot(number), number)
    return _tags[slot]
