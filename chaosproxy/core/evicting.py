"""How a key leaves as if the server had evicted it, seen by keyspace notifications as just that.

Takes a key; gives requests for the side connection: Redis has no command that evicts one key, so it is unlinked with its own
notification off, and the one that an eviction gives is published in its place; all in one transaction that puts back the setting.
"""

from collections.abc import Callable, Sequence

from chaosproxy.core.line import Line
from chaosproxy.core.resp import encode_command
from chaosproxy.core.value import ErrorReply, decode, errors_in

SETTING = b"notify-keyspace-events"


def evict(line: Line, key: bytes, db: int, done: Callable[[str | None], None]) -> None:
    """Evict the key; `done` gets a detail for the event, None if the side connection failed."""

    def asked(replies: Sequence[bytes] | None, now: float) -> None:
        del now
        flags = None if replies is None else _setting(replies[0])
        if flags is None:
            line.ask_side([encode_command(b"UNLINK", key)], db, unlinked)
        else:
            line.ask_side([encode_command(*r) for r in requests(key, db, flags)], db, evicted)

    def unlinked(replies: Sequence[bytes] | None, now: float) -> None:
        del now
        unlinked = "unlinked: CONFIG is not allowed, so notifications say del"
        done(None if replies is None else unlinked)

    def evicted(replies: Sequence[bytes] | None, now: float) -> None:
        del now
        done(None if replies is None else errors_in(replies[-1:]))

    line.ask_side([encode_command(b"CONFIG", b"GET", SETTING)], db, asked)


def requests(key: bytes, db: int, flags: bytes) -> list[tuple[bytes, ...]]:
    """One transaction that evicts the key, where notifications are set to `flags`."""
    if not flags:
        return [(b"UNLINK", key)]
    published: list[tuple[bytes, ...]] = []
    if b"e" in flags or b"A" in flags:
        if b"K" in flags:
            published.append((b"PUBLISH", b"__keyspace@%d__:%s" % (db, key), b"evicted"))
        if b"E" in flags:
            published.append((b"PUBLISH", b"__keyevent@%d__:evicted" % db, key))
    return [
        (b"MULTI",),
        (b"CONFIG", b"SET", SETTING, b""),
        (b"UNLINK", key),
        (b"CONFIG", b"SET", SETTING, flags),
        *published,
        (b"EXEC",),
    ]


def _setting(raw: bytes) -> bytes | None:
    """The value in CONFIG GET's reply, of RESP2 or RESP3; None for an error."""
    value = decode(raw)
    if isinstance(value, ErrorReply):
        return None
    flat = value
    if isinstance(value, list) and len(value) == 1:
        flat = value[0]
    if isinstance(flat, list | tuple) and len(flat) == 2 and isinstance(flat[1], bytes):
        return flat[1]
    return None
