"""How a key goes as if nobody had touched it: expired by the server, or evicted, just before a command.

Takes a key; gives requests for the side connection, and the word on what became of it.

expired   PEXPIRE of a few milliseconds, and the server itself does the rest. A natural expiry gives the notification `expired` and no
          other; the `expire` that PEXPIRE gives is kept back by turning notifications off around it, in one transaction.
evicted   Redis has no command that evicts one key. It is unlinked with notifications off, and what an eviction gives is published
          in its place, by a script, so only if there was a key to unlink; in one transaction that puts back the setting. (In a
          cluster a published notification reaches subscribers of all nodes, a server's own those of its node.)

Where CONFIG is not allowed the same happens without a transaction, and notifications tell more than they would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chaosproxy.core.line import Line, OnAnswer, OnGone
from chaosproxy.core.resp import encode_command
from chaosproxy.core.swallow import carried_out
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode, errors_in

SETTING: Final = b"notify-keyspace-events"
#: What a key that is to expire has still to live, in milliseconds: servers that look at their clock twice take one or two for
#: none, and delete the key instead, which is another notification.
LIFE: Final = 10
#: In so many seconds that is surely over.
OVER: Final = 0.015
How = Literal["expired", "evicted"]
#: Says why nothing happened (a short, fixed word; '' if it did) and a detail for the event, at a time.
Done = Callable[[str, str, float], None]
Request = tuple[bytes, ...]
Replies = Sequence[bytes] | None

_EVICT: Final = b"""\
local gone = redis.call('UNLINK', KEYS[1])
for i = 1, gone * #ARGV, 2 do redis.pcall('PUBLISH', ARGV[i], ARGV[i + 1]) end
return gone"""


def vanish(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line, key: bytes, db: int, how: How, done: Done, on_gone: OnGone
) -> None:
    """Have the key go; `done` is called once that is over, `on_gone` if the line ends before it is."""
    _Vanishing(line, key, db, how, done, on_gone).ask()


def waits_for_others(line: Line, key: tuple[int, bytes]) -> bool:
    """Whether another command has this key going already: a second end would put off the first."""
    waiting = line.world.vanishing.get(key)
    if waiting is None:
        return False
    if line.connection not in waiting:
        waiting.append(line.connection)
    return True


@dataclass(frozen=True, slots=True)
class _Vanishing:
    """One key on its way out."""

    line: Line
    key: bytes
    db: int
    how: How
    done: Done
    on_gone: OnGone

    def ask(self) -> None:
        """Ask which notifications are on, and go on from there."""

        def answered(replies: Replies, now: float) -> None:
            flags = None if replies is None else _setting(replies[0])
            if replies is None:
                self.done("side_connection", "", now)
            elif flags is None:
                self._plainly(errors_in(replies) or "the server has no such setting")
            else:
                self._quietly(requests(self.how, self.key, self.db, flags))

        self._send([(b"CONFIG", b"GET", SETTING)], answered)

    def _quietly(self, wanted: list[Request]) -> None:
        def answered(replies: Replies, now: float) -> None:
            if replies is None or len(replies) == 1:
                self._finish(replies, now)
            elif (array := carried_out(replies)) is not None:
                self._finish(array[1:2], now)
            elif replies[-1][:10] == b"-EXECABORT":
                self._plainly(errors_in(replies[:-1]))
            else:  # MULTI was refused, so each request was carried out by itself
                self._finish(replies[2:3], now)

        self._send(wanted, answered)

    def _plainly(self, why: str) -> None:
        says = "expire too" if self.how == "expired" else "del, not evicted"
        detail = f"CONFIG is not allowed, so notifications that are on say {says}: {why}"
        self._send(
            [_plain(self.how, self.key)], lambda replies, now: self._finish(replies, now, detail)
        )

    def _finish(self, replies: Replies, now: float, detail: str = "") -> None:
        if replies is None:
            self.done("side_connection", "", now)
        elif replies == [b":1\r\n"]:
            self.done("", detail, now)
        else:
            self.done("no_key" if replies == [b":0\r\n"] else "refused", "", now)

    def _send(self, wanted: Sequence[Request], answered: OnAnswer) -> None:
        raws = [encode_command(*request) for request in wanted]
        self.line.ask_side(raws, self.db, answered, on_gone=self.on_gone)


def requests(how: How, key: bytes, db: int, flags: bytes) -> list[Request]:
    """What makes the key go, where notifications are set to `flags`: one request, or a transaction whose second one does it."""
    body = _plain(how, key)
    if how == "evicted":
        published: list[bytes] = []
        if b"K" in flags:
            published += (b"__keyspace@%d__:%s" % (db, key), b"evicted")
        if b"E" in flags:
            published += (b"__keyevent@%d__:evicted" % db, key)
        if published and _any(b"eA", flags):
            body = (b"EVAL", _EVICT, b"1", key, *published)
    if not (_any(b"KE", flags) and _any(b"gA", flags)):
        return [body]
    off, on = ((b"CONFIG", b"SET", SETTING, value) for value in (b"", flags))
    return [(b"MULTI",), off, body, on, (b"EXEC",)]


def _plain(how: How, key: bytes) -> Request:
    return (b"PEXPIRE", key, b"%d" % LIFE) if how == "expired" else (b"UNLINK", key)


def _any(classes: bytes, flags: bytes) -> bool:
    return any(each in flags for each in classes)


def _setting(raw: bytes) -> bytes | None:
    """The value in CONFIG GET's reply, of RESP2 or RESP3; None for an error, or where there is no such setting."""
    try:
        value = decode(raw)
    except ProtocolError:  # no server's
        return None
    flat = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(flat, list | tuple) and len(flat) == 2 and isinstance(flat[1], bytes):
        return flat[1]
    return None
