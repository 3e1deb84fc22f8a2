"""The replication link, which a standby believes to be its primary.

Takes the standby's connection and dials the primary for it; passes everything on, what the primary says with a lag, until
the link is cut.
"""

import asyncio
import ssl
from collections.abc import Callable
from time import monotonic
from typing import cast

from chaosproxy.core.command_table import CommandTable
from chaosproxy.net.address import Address
from chaosproxy.net.alarm import Alarm
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.net.flow import hold
from chaosproxy.net.listener import Listener
from chaosproxy.topology.backlog import FOREVER, Backlog
from chaosproxy.topology.stream import ReplicationStream, Write


class Relay:
    """One listener for one standby; the connection that came last is the link.

    `lag` seconds after its arrival a write crosses, and the last `keep` writes never do. `table` is asked for what commands
    are. As long as it is not `up` who comes is turned away.
    """

    def __init__(self, primary: Dialler, table: Callable[[], CommandTable]) -> None:
        self._dialler = primary
        self._table = table
        self._listener = Listener()
        self._lag, self._keep = 0.0, 0
        self._link: _Link | None = None
        self._db = 0
        self._waiting: list[tuple[int, asyncio.Future[bool]]] = []
        self._frozen = False
        self.up = True
        #: Whether a standby has had its snapshot since this is the primary.
        self.copied = False

    async def open(self, address: Address, tls: ssl.SSLContext | None = None) -> Address:
        """Listen; gives where. Raises OSError."""
        return await self._listener.start(address, lambda: _StandbySide(self), tls)

    def close(self) -> None:
        """End the link and listen no more."""
        self._listener.close()
        self.cut()

    def hold_back(self, lag: float, keep: int) -> None:
        """Another lag, and another number of writes that stay behind, from now on."""
        self._lag, self._keep = lag, keep
        if self._link is not None:
            self._link.backlog.lag, self._link.backlog.keep = lag, keep
            self._link.release(monotonic())

    def retarget(self, primary: Dialler) -> None:
        """The other server is the primary now; who comes from here on is its standby."""
        self.cut()
        self._dialler = primary
        self._db = 0
        self._frozen = self.copied = False
        self.up = True

    # What is known of the link.

    @property
    def synced(self) -> bool:
        """Whether the standby has its snapshot and is sent commands."""
        return self._link is not None and self._link.stream.synced

    @property
    def crossed(self) -> int | None:
        """The replication offset of what has been sent to the standby; None: that is not known."""
        link = self._link
        if link is None or not link.stream.synced:
            return None
        return link.stream.start if link.backlog.crossed is None else link.backlog.crossed

    @property
    def held(self) -> int:
        """Bytes that are held back."""
        return 0 if self._link is None else self._link.backlog.size

    async def has_come(self, offset: int, patience: float) -> bool:
        """Wait until all that the primary wrote up to `offset` has come here; False if it does not in time."""
        link = self._link
        if link is None or not link.stream.synced:
            return False
        if (link.stream.end or 0) >= offset:
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        # However much it is: what has come counts.
        link.read_on()
        try:
            async with asyncio.timeout(patience):
                return await future
        except TimeoutError:
            return False
        finally:
            self._waiting.remove((offset, future))

    def freeze(self) -> list[Write]:
        """Nothing crosses from here on; gives the writes that have come and never will.

        A standby that comes again meanwhile is turned away: it would get them all the same.
        """
        self._frozen = True
        if self._link is None:
            return []
        self._link.release(monotonic())
        self._link.backlog.freeze()
        return self._link.backlog.lost

    def thaw(self) -> None:
        """There was no switch after all: the standby may come again, and gets everything."""
        if self._frozen:
            self._frozen = False
            if self._link is not None:
                self._link.end()

    def cut(self) -> None:
        """End the link, with what is on it; who comes is turned away."""
        self.up = False
        if self._link is not None:
            self._link.end()

    # What its connections tell.

    def standby_came(self, transport: asyncio.Transport) -> "_Link | None":
        """A standby has connected: gives its link, None if it is turned away."""
        if self._frozen or not self.up:
            transport.abort()
            return None
        if self._link is not None:
            self._link.end()
        backlog = Backlog(self._lag, self._keep)
        stream = ReplicationStream(self._table(), self._db)
        self._link = _Link(self, transport, stream, backlog)
        self._link.dial(self._dialler)
        return self._link

    def heard(self, link: "_Link") -> None:
        """More has come from the primary."""
        self.copied = self.copied or link.stream.synced
        end = link.stream.end or 0
        for offset, future in self._waiting:
            if end >= offset and not future.done():
                future.set_result(True)

    def ended(self, link: "_Link") -> None:
        """A link is over."""
        if self._link is link:
            self._db = link.stream.db
            self._link = None
            for _, future in self._waiting:
                if not future.done():
                    future.set_result(False)

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for what the primary says."""
        return bool(self._waiting)


class _Link:
    """One standby's connection and the one to its primary."""

    def __init__(
        self,
        relay: Relay,
        standby: asyncio.Transport,
        stream: ReplicationStream,
        backlog: Backlog,
    ) -> None:
        self.stream = stream
        self.backlog = backlog
        self._relay = relay
        self._standby = standby
        self._primary: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._alarm = Alarm(self.release)
        self._clogged = self._held = self._over = False
        self._dialling: asyncio.Task[None] | None = None

    def dial(self, dialler: Dialler) -> None:
        """Connect to the primary."""
        self._dialling = asyncio.get_running_loop().create_task(self._dial(dialler))

    async def _dial(self, dialler: Dialler) -> None:
        try:
            primary, _ = await dialler.dial(lambda: _PrimarySide(self))
        except DialError:
            self.end()
            return
        if self._over:
            primary.abort()
            return
        self._primary = primary
        primary.write(b"".join(self._early))
        self._early.clear()
        hold(self._standby, held=False)

    def from_standby(self, data: bytes) -> None:
        """The standby asks, or acknowledges: that is not held back."""
        self.stream.ask(data)
        if self._over:
            return
        if self._primary is None:
            self._early.append(data)
            hold(self._standby, held=True)
        else:
            self._primary.write(data)

    def primary_clogged(self, clogged: bool) -> None:
        """The primary reads slower than the standby writes, or has caught up."""
        if not self._over:
            hold(self._standby, held=clogged)

    def from_primary(self, data: bytes) -> None:
        """The primary tells its standby something."""
        if self._over:
            return
        now = monotonic()
        for piece in self.stream.feed(data):
            self.backlog.add(piece, now)
        self._relay.heard(self)
        self.release(now)

    def clogged(self, clogged: bool) -> None:
        """The standby reads slower than it is written to, or has caught up."""
        self._clogged = clogged
        self.release(monotonic())

    def release(self, now: float) -> None:
        """Pass on what may cross by now."""
        if self._over:
            return
        if not self._clogged and (ready := self.backlog.take(now)):
            self._standby.write(b"".join(ready))
        due = self.backlog.due
        self._alarm.set(None if due == FOREVER or self._clogged else due, now)
        self._flow(self.backlog.full and not self._relay.waited_for)

    def read_on(self) -> None:
        """Read all that the primary says, however much is held."""
        self._flow(full=False)

    def _flow(self, full: bool) -> None:
        if self._primary is not None and full != self._held:
            self._held = hold(self._primary, full)

    def end(self) -> None:
        """End both sides."""
        if self._over:
            return
        self._over = True
        self._alarm.set(None, 0)
        self._standby.abort()
        if self._primary is not None:
            self._primary.abort()
        self._relay.ended(self)


class _StandbySide(asyncio.Protocol):
    """The standby's connection, as asyncio sees it."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._link: _Link | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link = self._relay.standby_came(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        if self._link is not None:
            self._link.from_standby(data)

    def pause_writing(self) -> None:
        if self._link is not None:
            self._link.clogged(True)

    def resume_writing(self) -> None:
        if self._link is not None:
            self._link.clogged(False)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._link is not None:
            self._link.end()


class _PrimarySide(asyncio.Protocol):
    """The connection to the primary, as asyncio sees it."""

    def __init__(self, link: _Link) -> None:
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.from_primary(data)

    def pause_writing(self) -> None:
        self._link.primary_clogged(True)

    def resume_writing(self) -> None:
        self._link.primary_clogged(False)

    def connection_lost(self, _error: Exception | None) -> None:
        self._link.end()
