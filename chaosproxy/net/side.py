"""The proxy's own connections to the server: what is done there behind the application's back goes through them.

Takes raw requests with the database and protocol they are meant for; gives one raw reply a request, or None.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from chaosproxy.core.passing import TOO_LARGE
from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import encode_command
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.counts import Limits
from chaosproxy.net.dial import DialError, Dialler

#: Who the proxy is in the server's CLIENT LIST.
NAME: Final = b"chaosproxy"
#: How long the server may take over one question, in seconds, the dialling included.
PATIENCE: Final = 10.0
#: How much the server may always say to one question, in bytes: its list of commands is large.
MOST: Final = 16 << 20

_PUSH: Final = ord(">")
_log = logging.getLogger("chaosproxy.side")

Done = Callable[[list[bytes] | None], None]


class Side:
    """Side connections to one server, one for each database and protocol that was asked for, made when needed.

    `username` and `password` are the upstream URL's. Questions to one database are answered in the order
    they were asked. Of what a server says to one no more than `most` bytes are held; `limits` counts where it says more.
    """

    def __init__(
        self,
        dialler: Dialler,
        username: str | None,
        password: str | None,
        patience: float = PATIENCE,
        *,
        most: int,
        limits: Limits,
    ) -> None:
        self._dialler = dialler
        self._username = (username or "").encode()
        self._password = (password or "").encode()
        self._patience = patience
        self._most = most
        self._limits = limits
        self._open: dict[tuple[int, int], _Connection] = {}
        self._told = ""

    def ask(self, requests: Sequence[bytes], db: int, protocol: int, done: Done) -> None:
        """Send the requests, in order; `done` gets their raw replies, TOO_LARGE in place of a last one that is not held.

        None if they could not all be answered: then it is not known which of them took effect. `done`
        is never called from in here.
        """
        connection = self._open.get((db, protocol))
        if connection is None or connection.lost:
            setup = self._setup(db, protocol)
            connection = _Connection(
                self._dialler, setup, self._patience, self._most, self._tell, limits=self._limits
            )
            self._open[db, protocol] = connection
        connection.ask(requests, done)

    def _tell(self, why: str) -> None:
        """Why it fails now, which is said once; nothing: it does not."""
        if why and why != self._told:
            _log.warning("the proxy's own connection to the server: %s", why)
        self._told = why

    async def request(self, *args: bytes, db: int = 0, protocol: int = 2) -> bytes | None:
        """Run one command and give its raw reply, or None."""
        future = asyncio.get_running_loop().create_future()

        def done(replies: list[bytes] | None) -> None:
            if not future.done():
                future.set_result(replies and replies[0])

        self.ask([encode_command(*args)], db, protocol, done)
        answer: bytes | None = await future
        return answer

    def another(self, dialler: Dialler, username: str | None, password: str | None) -> "Side":
        """Make one to another server, with what goes for this one."""
        return Side(
            dialler, username, password, self._patience, most=self._most, limits=self._limits
        )

    def retarget(self, dialler: Dialler) -> None:
        """Speak to another server from now on; what the old one has not answered is answered with None."""
        self._dialler = dialler
        self.close()

    def close(self) -> None:
        """Close all connections; what is still unanswered is answered with None."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def _setup(self, db: int, protocol: int) -> list[tuple[bytes, bool]]:
        """Give what a new connection says first, each with whether it must succeed."""
        setup = []
        who: tuple[bytes, ...]
        named = self._username or self._password
        if protocol == 3:
            # HELLO wants a name where AUTH does not need one.
            who = (b"AUTH", self._username or b"default", self._password) if named else ()
            setup.append((encode_command(b"HELLO", b"3", *who), True))
        elif named:
            who = (self._username, self._password) if self._username else (self._password,)
            setup.append((encode_command(b"AUTH", *who), True))
        # An ACL may forbid it, and nothing depends on it.
        setup.append((encode_command(b"CLIENT", b"SETNAME", NAME), False))
        if db:
            setup.append((encode_command(b"SELECT", b"%d" % db), True))
        return setup


class _Ask:
    """One question: how many replies are owed, those that came, and who wants them."""

    __slots__ = ("done", "owed", "replies", "size", "timer")

    def __init__(self, owed: int, done: Done, timer: asyncio.TimerHandle) -> None:
        self.owed = owed
        self.done = done
        self.timer = timer
        self.replies: list[bytes] = []
        self.size = 0


class _Connection(asyncio.Protocol):
    """One side connection, from its dialling to its loss. Once `lost` it is of no use."""

    def __init__(
        self,
        dialler: Dialler,
        setup: list[tuple[bytes, bool]],
        patience: float,
        most: int,
        tell: Callable[[str], None],
        *,
        limits: Limits,
    ) -> None:
        self._tell = tell
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._most = most
        self._framer = ReplyFramer()
        self._asks: deque[_Ask] = deque()
        # Until the connection is set up, what is asked waits here.
        self._waiting: list[bytes] = []
        self._setup = setup
        self._transport: asyncio.Transport | None = None
        self._ready = False
        self.lost = False
        self._dialling = self._loop.create_task(self._dial(dialler))

    async def _dial(self, dialler: Dialler) -> None:
        try:
            self._transport, _ = await dialler.dial(lambda: self)
        except DialError as error:
            self._fail(str(error))
            return
        self._transport.write(b"".join(raw for raw, _ in self._setup))

    def ask(self, requests: Sequence[bytes], done: Done) -> None:
        """As Side.ask; not for a lost one."""
        timer = self._loop.call_later(self._patience, self._fail, "no answer in time")
        self._asks.append(_Ask(len(requests), done, timer))
        data = b"".join(requests)
        if self._ready and self._transport is not None:
            self._transport.write(data)
        else:
            self._waiting.append(data)

    def data_received(self, data: bytes) -> None:
        """Sort replies: first those to the set-up, then one after the other those to what was asked."""
        self._framer.feed(data)
        try:
            while not self.lost and (frame := self._framer.next()) is not None:
                if frame.kind != _PUSH:
                    self._take(frame.raw)
        except ProtocolError as error:
            self._fail(f"not a reply: {error.text}")
            return
        told = self._asks[0].size if self._asks else 0
        if not self.lost and told + self._framer.partial > self._most:
            self._too_large()

    def connection_lost(self, error: Exception | None) -> None:
        """The server has closed it, or we have."""
        self._fail(str(error or "closed by the server"))

    def close(self) -> None:
        """End it; what is unanswered stays so."""
        self._fail("")

    def _take(self, raw: bytes) -> None:
        if not self._ready:
            _, needed = self._setup.pop(0)
            if needed and raw[:1] == b"-":
                # The error's text names no password, only that one was wrong.
                self._fail(raw[1:].strip().decode("utf-8", "backslashreplace"))
            elif not self._setup:
                self._ready = True
                self._tell("")
                if self._transport is not None and self._waiting:
                    self._transport.write(b"".join(self._waiting))
                self._waiting.clear()
        elif self._asks:
            ask = self._asks[0]
            ask.size += len(raw)
            if ask.size > self._most:
                self._too_large()
                return
            ask.replies.append(raw)
            if len(ask.replies) == ask.owed:
                self._asks.popleft()
                ask.timer.cancel()
                ask.done(ask.replies)

    def _too_large(self) -> None:
        """The answer that comes now is not held. Where it is the last one to a question, all were carried out, and that is told."""
        self._limits.reached("reply")
        why = f"an answer of more than {self._most} bytes"
        if self._ready and self._asks and len(self._asks[0].replies) + 1 == self._asks[0].owed:
            self._tell(why)
            ask = self._asks.popleft()
            ask.timer.cancel()
            self._loop.call_soon(ask.done, [*ask.replies, TOO_LARGE])
        self._fail(why)

    def _fail(self, why: str) -> None:
        """Nothing more will be answered here. Whatever is asked next gets a new connection."""
        if self.lost:
            return
        self.lost = True
        if why and self._asks:
            self._tell(why)
        self._dialling.cancel()
        if self._transport is not None:
            self._transport.abort()
        asks, self._asks = self._asks, deque()
        for ask in asks:
            ask.timer.cancel()
            self._loop.call_soon(ask.done, None)
