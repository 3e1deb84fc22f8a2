"""The Sentinels of one service, which are asked where its servers are, again and again.

Takes their addresses; tells whoever wants to know what they say, as soon as it has changed.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Never, cast

from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.resp import encode_command
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.net.address import Address, Upstream
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.topology.sentinel import Place, master_of, servers_of

#: How often they are asked although they have said nothing, in seconds.
POLL: Final = 1.0
#: How long one may take to answer, in seconds.
PATIENCE: Final = 2.0
#: No answer is longer, in bytes.
LONGEST: Final = 16 << 20
#: What they say when something has changed.
CHANNELS: Final = (b"+switch-master", b"+slave", b"-slave", b"+convert-to-slave", b"+sentinel")

_PUSH: Final = ord(">")
_MISTAKE: Final = "a mistake in chaosproxy"
_log = logging.getLogger("chaosproxy.sentinels")


class SentinelError(Exception):
    """A Sentinel does not answer, or knows nothing of the service; the text says which."""


class UnsureError(SentinelError):
    """A Sentinel was asked for a failover, and it is not known whether there is one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a Sentinel says: the primary, and all places of servers and Sentinels, the primary's first."""

    primary: Place
    places: tuple[Place, ...]


class Sentinels:
    """Asks one after the other until one answers, and that one from then on. `changed` is called with what is new.

    `address` is where the one is that answered last.
    """

    def __init__(
        self,
        upstream: Upstream,
        tls: ssl.SSLContext | None,
        timeout: float,
        changed: Callable[[Known], None],
    ) -> None:
        self._service = upstream.service.encode()
        self._tls = tls
        self._timeout = timeout
        self._changed = changed
        self._hello = _hello(upstream)
        self._addresses = deque(upstream.sentinels)
        self._known: Known | None = None
        self._first = asyncio.Event()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem = ""

    @property
    def address(self) -> Address:
        """Where the one is that is asked now."""
        return self._addresses[0]

    @property
    def diallers(self) -> list[Dialler]:
        """How to reach each of them, first the one that is asked now."""
        return [Dialler(address, self._tls, self._timeout) for address in self._addresses]

    async def watch(self, patience: float) -> Known | None:
        """Begin to ask; gives the first answer, None if there is none in time."""
        self._task = asyncio.get_running_loop().create_task(self._watch())
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._first.wait()
        return self._known

    def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()

    async def fail_over(self, patience: float) -> Known:
        """Have them make another server the primary; gives what is known then. Raises SentinelError."""
        before = self._known
        connection = await self._connect(self.address)
        try:
            reply = await connection.ask(b"SENTINEL", b"FAILOVER", self._service)
        except SentinelError as error:
            raise UnsureError(str(error)) from None
        finally:
            connection.close()
        if not reply.startswith(b"+OK"):
            raise SentinelError(_text(reply))
        try:
            async with asyncio.timeout(patience):
                while self._known is None or (before and self._known.primary == before.primary):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise UnsureError(f"no other primary within {patience:g} s") from None
        return self._known

    async def _watch(self) -> None:
        while True:
            for _ in range(len(self._addresses)):
                try:
                    await self._follow(self.address)
                except (DialError, SentinelError) as error:
                    if str(error) != self._problem:
                        self._problem = str(error)
                        _log.warning("%s", error)
                except Exception:  # noqa: BLE001 - whatever it has said, another one may be followed
                    if self._problem != _MISTAKE:
                        self._problem = _MISTAKE
                        _log.exception(_MISTAKE)
                self._addresses.rotate(-1)
            await asyncio.sleep(POLL)

    async def _follow(self, address: Address) -> Never:
        """Ask one as long as it answers. Raises DialError and SentinelError."""
        connection = await self._connect(address)
        try:
            await connection.ask(b"SUBSCRIBE", *CHANNELS, pushes=True)
            while True:
                connection.said.clear()
                self._tell(await self._ask(connection))
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL):
                        await connection.said.wait()
        finally:
            connection.close()

    async def _connect(self, address: Address) -> "_Connection":
        connection = _Connection(address)
        await Dialler(address, self._tls, self._timeout).dial(lambda: connection)
        try:
            reply = await connection.ask(*self._hello)
        except BaseException:
            connection.close()
            raise
        if reply[:1] == b"-":
            connection.close()
            raise SentinelError(f"the Sentinel {address} says {_text(reply)}")
        return connection

    async def _ask(self, connection: "_Connection") -> Known:
        primary = master_of(
            await connection.ask(b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", self._service)
        )
        if primary is None:
            name = self._service.decode("utf-8", "backslashreplace")
            raise SentinelError(f"the Sentinel {connection.address} knows no service {name}")
        replies = [
            await connection.ask(b"SENTINEL", what, self._service)
            for what in (b"REPLICAS", b"SENTINELS")
        ]
        others = [place for place in servers_of(replies) if place != primary]
        return Known(primary, (primary, *others))

    def _tell(self, known: Known) -> None:
        if self._problem:
            _log.warning("the Sentinel %s answers", self.address)
            self._problem = ""
        if known != self._known:
            self._known = known
            self._changed(known)
            self._news.set()
        self._first.set()


class _Connection(asyncio.Protocol):
    """One connection to a Sentinel, in RESP3: what it says of itself and what it is asked come apart."""

    def __init__(self, address: Address) -> None:
        self.address = address
        #: Set when it says something of itself.
        self.said = asyncio.Event()
        self._framer = ReplyFramer()
        self._asked: deque[asyncio.Future[bytes]] = deque()
        self._transport: asyncio.Transport | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def ask(self, *words: bytes, pushes: bool = False) -> bytes:
        """Give its answer; to what is answered by `pushes`, nothing. Raises SentinelError."""
        if self._transport is None or self._lost:
            raise SentinelError(f"the Sentinel {self.address} has closed the connection")
        self._transport.write(encode_command(*words))
        if pushes:
            return b""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked.append(future)
        try:
            async with asyncio.timeout(PATIENCE):
                return await future
        except TimeoutError:
            raise SentinelError(f"the Sentinel {self.address} does not answer") from None

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)
        try:
            while (frame := self._framer.next()) is not None:
                if frame.kind == _PUSH:
                    self.said.set()
                elif self._asked:
                    future = self._asked.popleft()
                    if not future.done():
                        future.set_result(frame.raw)
        except ProtocolError:
            self.close()
        if self._framer.partial > LONGEST:
            self.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self._lost = True
        self.said.set()
        for future in self._asked:
            if not future.done():
                text = f"the Sentinel {self.address} has closed the connection"
                future.set_exception(SentinelError(text))


def _hello(upstream: Upstream) -> Sequence[bytes]:
    words = [b"HELLO", b"3"]
    if upstream.sentinel_password is not None:
        name = upstream.sentinel_username or "default"
        words += [b"AUTH", name.encode(), upstream.sentinel_password.encode()]
    return words


def _text(reply: bytes) -> str:
    return reply[1:].strip().decode("utf-8", "backslashreplace")
