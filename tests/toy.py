"""A server in one page: it knows what breaks "one request, one reply", and of data nothing at all.

Takes requests as bytes; gives reply frames. A key is `name:number`, and the number is what its commands are answered with, so that
it can be seen whose reply a reply is. What it says was held against Redis 7.0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaosproxy.core.resp import RequestFramer
from tests.conversation import Talk, reply

Args = Sequence[bytes]

AT_ONCE = {b"MULTI", b"EXEC", b"DISCARD", b"WATCH", b"RESET", b"QUIT"}
WHILE_SUBSCRIBED = {b"PING", b"RESET", b"QUIT"}
SUBSCRIBE = {b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"}
UNSUBSCRIBE = {b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE"}
#: Commands that only we send, and what they are answered with.
OURS = {
    b"COPY": ":1", b"DEL": ":1", b"UNLINK": ":1", b"DUMP": '"dump"', b"RESTORE": "+OK", b"PTTL": ":-1", b"DBSIZE": ":0",
    b"SCAN": '*["0" *[]]', b"CONFIG": "-NOPERM no", b"PEXPIRE": ":1",
}  # fmt: skip


@dataclass
class Toy:
    """One connection to it. `out` holds what it has said and nobody has taken yet, frame by frame."""

    protocol: int = 2
    db: int = 0
    name: bytes = b""
    queue: list[Args] | None = None
    aborted: bool = False
    watching: bool = False
    replies: bool = True
    skip: bool = False
    channels: dict[bytes, dict[bytes, None]] = field(default_factory=dict)
    out: list[bytes] = field(default_factory=list)
    _switched_on: bool = False
    _framer: RequestFramer = field(default_factory=RequestFramer)

    @property
    def subscribed(self) -> bool:
        return any(self.channels.values())

    def receive(self, raw: bytes) -> None:
        """Take requests, in any pieces, and answer those that are whole."""
        self._framer.feed(raw)
        while (frame := self._framer.next()) is not None:
            args = [arg or b"" for arg in frame.args]
            name = args[0].upper()
            skipped, self.skip = self.skip, False
            self._switched_on = False
            frames = self._answer(name, args)
            if self._switched_on or (self.replies and not (skipped or self.skip)):
                self.out += frames

    def _answer(self, name: bytes, args: Args) -> list[bytes]:
        allowed = WHILE_SUBSCRIBED | SUBSCRIBE | UNSUBSCRIBE
        if self.protocol == 2 and self.subscribed and name not in allowed:
            return [reply("-ERR Can't execute it: only (P|S)SUBSCRIBE is allowed in this context")]
        if self.queue is None or name in AT_ONCE:
            return self._carry_out(name, args)
        if name == b"CHAOSPROXY.REFUSED":
            self.aborted = True
            return [reply("-ERR unknown command")]
        self.queue.append(args)
        return [reply("+QUEUED")]

    def _carry_out(self, name: bytes, args: Args) -> list[bytes]:
        if name in SUBSCRIBE | UNSUBSCRIBE:
            return self._subscribe(name, args)
        return [self._reply(name, args)]

    def _reply(self, name: bytes, args: Args) -> bytes:  # noqa: C901 - one case a command
        match name:
            case b"MULTI" | b"WATCH" if self.queue is not None:
                return reply("-ERR not inside MULTI")
            case b"MULTI":
                self.queue, self.aborted = [], False
            case b"WATCH" | b"UNWATCH":
                self.watching = name == b"WATCH"
            case b"EXEC" | b"DISCARD":
                return self._end(name)
            case b"SELECT":
                self.db = int(args[1])
            case b"HELLO":
                self.protocol = int(args[1])
                return reply('%["proto" :3]' if self.protocol == 3 else '*["proto" :2]')
            case b"RESET":
                fresh = Toy()
                for kept in (
                    "protocol",
                    "db",
                    "name",
                    "queue",
                    "watching",
                    "replies",
                    "skip",
                    "channels",
                ):
                    setattr(self, kept, getattr(fresh, kept))
                return reply("+RESET")
            case b"CLIENT":
                self._client(args)
            case b"PING":
                return reply('*["pong" ""]' if self.protocol == 2 and self.subscribed else "+PONG")
            case _:
                if name in OURS:
                    return reply(OURS[name])
                number = next((arg for arg in args if arg[:2] == b"k:"), b":?").split(b":")[1]
                return b"+%s\r\n" % number
        return reply("+OK")

    def _client(self, args: Args) -> None:
        match args[1].upper(), args[2].upper():
            case b"SETNAME", _:
                self.name = args[2]
            case _, b"ON":
                self.replies = self._switched_on = True
            case _, b"OFF":
                self.replies = False
            case _, b"SKIP":
                self.skip = self.replies

    def _end(self, name: bytes) -> bytes:
        if self.queue is None:
            return reply("-ERR without MULTI")
        queue, self.queue, self.watching = self.queue, None, False
        if name == b"DISCARD":
            return reply("+OK")
        if self.aborted:
            return reply("-EXECABORT Transaction discarded because of previous errors.")
        frames = [frame for args in queue for frame in self._carry_out(args[0].upper(), args)]
        return b"*%d\r\n" % len(queue) + b"".join(frames)

    def _subscribe(self, name: bytes, args: Args) -> list[bytes]:
        kind = name.replace(b"UNSUB", b"SUB")
        held = self.channels.setdefault(kind, {})
        asked: list[bytes | None] = list(args[1:])
        if name in UNSUBSCRIBE and not asked:
            asked = list(held) or [None]
        frames = []
        for channel in asked:
            if name in UNSUBSCRIBE:
                held.pop(channel, None)
            else:
                held[channel] = None
            frames.append(self.push(name.lower(), channel, sum(map(len, self.channels.values()))))
        return frames

    def push(self, *parts: bytes | int | None) -> bytes:
        """A frame of pub/sub, in the client's protocol."""
        null = b"$-1\r\n" if self.protocol == 2 else b"_\r\n"
        body = b"".join(
            null if part is None
            else b":%d\r\n" % part if isinstance(part, int)
            else b"$%d\r\n%s\r\n" % (len(part), part)
            for part in parts
        )  # fmt: skip
        return b"%s%d\r\n%s" % (b"*" if self.protocol == 2 else b">", len(parts), body)


def serve(talk: Talk, toy: Toy) -> None:
    """Let the toy answer all that reaches the upstream, until nothing does."""
    while said := talk.heard("upstream"):
        toy.receive(said)
        frames, toy.out = toy.out, []
        talk.upstream(*frames)
