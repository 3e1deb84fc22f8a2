"""A Sentinel as clients see it: a real one's answers, with the proxy's addresses in the place of the servers'.

Takes clients that come to the listener for Sentinel; gives them what a real Sentinel says, translated reply by reply.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.net.fleet import Fleet
from chaosproxy.net.flow import hold
from chaosproxy.net.reception import Reception, own_host
from chaosproxy.topology.sentinel import Place, places, translated

#: Replies that wait to be translated, in bytes; then the Sentinel is not read.
MOST: Final = 1 << 20
#: No reply of a Sentinel is longer, in bytes: it has to be here whole before it can be translated.
LONGEST: Final = 16 << 20


class SentinelDoor:
    """The listener for Sentinel. `diallers` gives how to reach the real ones, the one to be tried first ahead."""

    def __init__(self, fleet: Fleet, diallers: Callable[[], list[Dialler]]) -> None:
        self.fleet = fleet
        self.diallers = diallers
        self.reception: Reception[_Client] = Reception(lambda: _Client(self))

    def find(self, place: Place, host: bytes) -> tuple[bytes, int] | None:
        """Where a client that reaches this machine as `host` finds a server, or Sentinel: all of them are here."""
        if place.kind == "sentinel":
            return host, self.reception.address.port
        return self.fleet.find(place, host)


class _Client(asyncio.Protocol):
    """One client and the Sentinel that answers it."""

    def __init__(self, door: SentinelDoor) -> None:
        self._door = door
        self._client: asyncio.Transport | None = None
        self._sentinel: asyncio.Transport | None = None
        self._host = b"127.0.0.1"
        self._early = bytearray()
        self._framer = ReplyFramer()
        self._replies: deque[bytes] = deque()
        self._waiting = 0
        self._raw = self._over = False
        # `full`: so much waits to be read by that side that the other one is not read.
        self._client_full = self._sentinel_full = False
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # The client's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client = cast("asyncio.Transport", transport)
        self._host = own_host(transport).encode()
        if self._door.reception.admit(self, transport):
            self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        if self._sentinel is None:
            self._early += data
            if len(self._early) > MOST:
                self.end()
        else:
            self._sentinel.write(data)

    def pause_writing(self) -> None:
        self._client_full = True
        self._flow()

    def resume_writing(self) -> None:
        self._client_full = False
        self._flow()

    def connection_lost(self, _error: Exception | None) -> None:
        self._client = None
        self.end()

    # The Sentinel's side.

    async def _serve(self) -> None:
        """Find a Sentinel, and pass on what it says, in its order."""
        try:
            if not await self._dial():
                return
            while not self._over:
                while self._replies:
                    await self._pass_on(self._replies.popleft())
                self._more.clear()
                await self._more.wait()
        except OSError:
            # Nothing can be listened on for a server that it speaks of, whose own address is not to be told.
            pass
        finally:
            self.end()

    async def _dial(self) -> bool:
        for dialler in self._door.diallers():
            try:
                sentinel, _ = await dialler.dial(lambda: _Sentinel(self))
            except DialError:
                continue
            self._sentinel = sentinel
            sentinel.write(bytes(self._early))
            self._early.clear()
            return True
        return False

    async def _pass_on(self, raw: bytes) -> None:
        unknown = [place for place in places(raw) if not self._door.fleet.knows(place)]
        if unknown:
            await self._door.fleet.learn(unknown)
        self._waiting -= len(raw)
        self._flow()
        if self._client is not None:
            self._client.write(translated(raw, lambda place: self._door.find(place, self._host)))

    def from_sentinel(self, data: bytes) -> None:
        """The Sentinel says something."""
        self._waiting += len(data)
        if self._raw:
            self._replies.append(data)
        else:
            self._framer.feed(data)
            try:
                while (frame := self._framer.next()) is not None:
                    self._replies.append(frame.raw)
            except ProtocolError:
                self._raw = True
                self._replies.append(self._framer.rest())
        if self._framer.partial > LONGEST:
            self.end()
            return
        self._flow()
        self._more.set()

    def sentinel_full(self, full: bool) -> None:
        """The Sentinel reads slower than the client writes, or has caught up."""
        self._sentinel_full = full
        self._flow()

    def _flow(self) -> None:
        """Read from each side just if the other one keeps up, and of replies no more than are translated."""
        if self._sentinel is not None:
            much = self._waiting > MOST and bool(self._replies)
            hold(self._sentinel, held=self._client_full or much)
        if self._client is not None:
            hold(self._client, held=self._sentinel_full)

    def end(self) -> None:
        """Both sides end; what was said is still delivered."""
        if self._over:
            return
        self._over = True
        self._more.set()
        self._door.reception.guests.discard(self)
        if self._sentinel is not None:
            self._sentinel.abort()
        if self._client is not None:
            self._client.close()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()


class _Sentinel(asyncio.Protocol):
    """The connection to a real Sentinel."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.from_sentinel(data)

    def pause_writing(self) -> None:
        self._client.sentinel_full(True)

    def resume_writing(self) -> None:
        self._client.sentinel_full(False)

    def connection_lost(self, _error: Exception | None) -> None:
        self._client.end()
