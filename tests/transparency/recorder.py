"""A relay that keeps what passes: to be put on either side of a proxy, or where there is none.

Takes the port of what is behind it; gives a port of its own and, by the name that each client gives itself, the bytes of each
connection, both ways, in the order in which the connections came.
"""

import asyncio
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.proxying import wait_for
from tests.wire import reply_end

#: By these a client says who it is: a command of its own, or a part of HELLO.
_NAMED = re.compile(rb"\$7\r\nSETNAME\r\n\$\d+\r\n([^\r\n]+)\r\n", re.IGNORECASE)
#: What differs between two servers by nature: HELLO counts the server's connections; INFO is about the server.
_COUNTED = re.compile(rb"(\$2\r\nid\r\n):\d+")
_INFO = re.compile(rb"(\$|=)\d+\r\n(txt:)?# Server\r\n")
MASKED = b"<masked>"


@dataclass(slots=True, eq=False)
class Recorded:
    """One connection: what its client said and what it was told. `over`: how many of its two directions have ended."""

    said: bytearray = field(default_factory=bytearray)
    told: bytearray = field(default_factory=bytearray)
    over: int = 0

    @property
    def name(self) -> str:
        found = _NAMED.search(self.said)
        return found[1].decode() if found else ""

    def frames(self) -> list[bytes]:
        """What it was told, frame by frame, without what differs between two servers."""
        told, start, found = bytes(self.told), 0, []
        while start < len(told):
            end = reply_end(told, start)
            raw = told[start:end]
            found.append(MASKED if _INFO.match(raw) else _COUNTED.sub(rb"\1" + MASKED, raw))
            start = end
        return found


class _Side(asyncio.Protocol):
    """One side of one connection; the other one is `other`, once it is there."""

    def __init__(self, recorder: "Recorder", recorded: Recorded, kept: bytearray) -> None:
        self.recorder = recorder
        self.recorded = recorded
        self.kept = kept
        self.other: _Side | None = None
        self.transport: asyncio.Transport
        self.early = b""

    def connection_made(self, transport):
        self.transport = transport
        if self.other is None:
            self.recorder.accept(self)
            return
        # It is the side that was dialled.
        self.other.other = self
        transport.write(self.other.early)
        if self.recorded.over:
            transport.close()

    def data_received(self, data):
        self.kept += data
        if self.other is None:
            self.early += data
        else:
            self.other.transport.write(data)

    def connection_lost(self, error):
        self.recorded.over += 1
        if self.other is not None:
            self.other.transport.close()


class Recorder:
    """A relay to a port of this machine, in a loop and a thread of its own. `stop` it."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self.connections: list[Recorded] = []
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[object]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self) -> asyncio.Server:
        def made() -> _Side:
            recorded = Recorded()
            self.connections.append(recorded)
            return _Side(self, recorded, recorded.said)

        return await self._loop.create_server(made, "127.0.0.1", 0)

    def accept(self, side: _Side) -> None:
        task = self._loop.create_task(self._dial(side))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, side: _Side) -> None:
        other = _Side(self, side.recorded, side.recorded.told)
        other.other = side
        await self._loop.create_connection(lambda: other, "127.0.0.1", self.behind)

    def take(self, mine: Callable[[str], bool]) -> dict[str, list[Recorded]]:
        """Wait until all clients of these names have gone; give their connections, and begin anew."""
        found = [each for each in self.connections if mine(each.name)]
        wait_for(lambda: all(each.over == 2 for each in found), "all clients to go")
        by_name: dict[str, list[Recorded]] = defaultdict(list)
        for each in found:
            by_name[each.name].append(each)
            self.connections.remove(each)
        return dict(by_name)

    def stop(self) -> None:
        async def end() -> None:
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
