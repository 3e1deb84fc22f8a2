"""A proxy that Sentinels guide: its first route goes to whichever server is the primary, and clients' Sentinel is here.

Takes what the Sentinels say; gives the first route its server, every server a route of its own, and clients the listener
that speaks of these.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from chaosproxy.core.addresses import Translate
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.faults.failover import PrimaryFailsOver
from chaosproxy.net.address import Address, Upstream
from chaosproxy.net.dial import DialError, Dialler
from chaosproxy.net.fleet import Fleet, MakeRoute
from chaosproxy.net.pair_error import PairError, UnsurePairError
from chaosproxy.net.route import Routes
from chaosproxy.net.sentinel import SentinelDoor
from chaosproxy.net.sentinels import Known, SentinelError, Sentinels, UnsureError
from chaosproxy.topology.sentinel import Place

#: How long the start waits for a Sentinel, in seconds.
PATIENCE: Final = 3.0
#: How long Sentinels may take over a failover, in seconds.
FAILOVER_PATIENCE: Final = 60.0

_log = logging.getLogger("chaosproxy.guided")


class Guided:
    """The routes of a proxy whose upstream is a service of Sentinel's. `moved` is called when the primary has changed."""

    def __init__(  # noqa: PLR0917 - what it acts on
        self,
        upstream: Upstream,
        tls: ssl.SSLContext | None,
        timeout: float,
        routes: Routes,
        make: MakeRoute,
        host: str,
        moved: Callable[[], None],
    ) -> None:
        self._tls = tls
        self._timeout = timeout
        self._routes = routes
        self._moved = moved
        self._fleet = Fleet(routes, make, host)
        self._sentinels = Sentinels(upstream, tls, timeout, self._changed)
        self._learning: set[asyncio.Task[None]] = set()
        self.door = SentinelDoor(self._fleet, lambda: self._sentinels.diallers)

    async def start(self) -> None:
        """Find the primary, as far as a Sentinel answers. Raises OSError if a server can have no listener."""
        if await self._sentinels.watch(PATIENCE) is None:
            _log.warning(
                "no Sentinel has said which server is the primary: clients are turned away until one does"
            )
        await asyncio.gather(*self._learning)

    def close(self) -> None:
        """Ask and answer no more."""
        self._sentinels.close()
        self.door.reception.close()
        for task in self._learning:
            task.cancel()

    def _changed(self, known: Known) -> None:
        route, primary = self._routes.first, known.primary
        address = Address(primary.host.decode("utf-8", "backslashreplace"), primary.port)
        if route.dialler.address != address:
            _log.info("the primary is %s", address)
            route.retarget(Dialler(address, self._tls, self._timeout))
            self._moved()
        task = asyncio.get_running_loop().create_task(self._fleet.learn(known.places))
        self._learning.add(task)
        task.add_done_callback(self._learned)

    def _learned(self, task: asyncio.Task[None]) -> None:
        self._learning.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a server gets no listener: %s", error)

    def translate(self, host: str) -> Translate:
        """Give what a client that reaches this machine as `host` finds in the place of servers' addresses."""

        def found(there: bytes, port: int, *_: int) -> tuple[bytes, int]:
            return self._fleet.find(Place(there, port), host.encode()) or (there, port)

        return found

    @staticmethod
    def makes(live: LiveRule) -> bool:
        """Whether Sentinels would make a failover of this rule's style."""
        return isinstance(live.fault, PrimaryFailsOver) and live.fault.style == "sentinel"

    async def switch(self, quiet: Callable[[], Awaitable[object]]) -> None:
        """Have the Sentinels make another server the primary. Raises PairError.

        What that has cost only they could know.
        """
        await quiet()
        try:
            await self._sentinels.fail_over(FAILOVER_PATIENCE)
        except UnsureError as error:
            raise UnsurePairError(str(error)) from None
        except (SentinelError, DialError) as error:
            raise PairError(str(error)) from None
