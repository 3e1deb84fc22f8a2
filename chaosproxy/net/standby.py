"""The second server of a proxy: when it is attached to the first, and what failovers make of the two.

Takes where both are, and the rules in force; gives what each step of a failover needs: the link frozen as it begins, the
switch itself, the old primary as a replica.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from chaosproxy.core.failing import state_of
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.lost import Lost
from chaosproxy.core.world import World
from chaosproxy.faults.failover import PrimaryFailsOver
from chaosproxy.net.pair import Node, Pair
from chaosproxy.net.pair_error import PairError
from chaosproxy.net.route import Route
from chaosproxy.net.side import Side

#: How long the start of a proxy, or of a failover, waits until the standby copies the primary, in seconds.
PATIENCE: Final = 20.0
#: How long it waits for a link that was there to come back, in seconds: a standby tries again every second.
LINK_PATIENCE: Final = 3.0

_log = logging.getLogger("chaosproxy.standby")


class Standby:
    """Two servers behind one route. `disposable`: they end with the proxy, so nothing has to be put back.

    As long as no rule in force is about failovers the two are left as they are. `routes` is asked for those whose clients go to
    the primary.
    """

    def __init__(
        self,
        primary: Node,
        standby: Node,
        world: World,
        routes: Callable[[], Iterable[Route]],
        *,
        disposable: bool,
    ) -> None:
        self._world = world
        self._routes = routes
        self._pair = Pair(primary, standby, lambda: world.table, disposable=disposable)
        self._attaching: asyncio.Task[None] | None = None
        self._switching = asyncio.Lock()
        # What makes the standby copy the primary.
        self._how: Callable[[], Awaitable[None]] = self._pair.attach
        self._problem = ""

    @property
    def side(self) -> Side:
        """The proxy's own connection to the server that is the standby now."""
        return self._pair.standby.side

    def mind(self) -> None:
        """Another profile is in force: hold back as much as that says, and attach the standby if that has not been done."""
        rules = [live for live in self._world.engine.failovers if uses(live)]
        lags, keep = [0.0], [0]
        for live in rules:
            # What is lost for real need not be undone.
            state_of(live).log = None
            lag, writes = holds_back(live.fault)
            lags.append(lag)
            keep.append(writes)
        self._pair.relay.hold_back(max(lags), max(keep))
        if not self._switching.locked():  # a switch that has begun is made to its end
            self._pair.relay.thaw()
        if not rules:
            return
        if self._pair.detached or self._attaching is None or self._problem:
            self._settle_by(self._how)

    def _settle_by(self, how: Callable[[], Awaitable[None]]) -> None:
        if self._attaching is None or self._attaching.done():
            self._attaching = asyncio.get_running_loop().create_task(self._settle(how))

    async def _rejoin(self) -> None:
        await self._pair.rejoin()
        await self._pair.caught_up()

    async def _settle(self, how: Callable[[], Awaitable[None]]) -> None:
        self._problem = ""
        try:
            await how()
        except PairError as error:
            self._problem = str(error)
            _log.error("no failover is possible: %s", error)

    async def attached(self, patience: float = PATIENCE) -> None:
        """Wait until the standby copies the primary, if it is to. Raises PairError."""
        if self._attaching is None:
            return
        done, _ = await asyncio.wait({self._attaching}, timeout=patience)
        if not done:
            raise PairError("the standby does not have all data yet")
        if self._problem:
            raise PairError(self._problem)

    async def begin(self, live: LiveRule) -> None:
        """A failover begins: if its standby lags, the link is dead from here on. Raises PairError if there is no standby."""
        if self._problem:
            self._settle_by(self._how)
        await self.attached()
        if not await self._linked():
            raise PairError("the standby does not copy the primary")
        # Another profile may have come meanwhile, and this failover goes no further.
        if holds_back(live.fault)[0] and live in self._world.engine.failovers:
            self._pair.relay.freeze()

    async def _linked(self) -> bool:
        """Whether the standby gets what the primary writes. One that was started anew knows of none, and is told again."""
        linked = await self._pair.linked(LINK_PATIENCE)
        if not linked and not self._pair.detached:
            self._settle_by(self._how)
            await self.attached()
            linked = await self._pair.linked(LINK_PATIENCE)
        return linked

    async def switch(self, quiet: Callable[[], Awaitable[object]]) -> Lost | None:
        """The standby becomes the primary; gives what was lost by that, None: that is not known. Raises PairError."""
        async with self._switching:
            return await self._switch(self._pair, quiet)

    async def _switch(self, pair: Pair, quiet: Callable[[], Awaitable[object]]) -> Lost | None:
        await self.attached()
        # Another failover may have switched since this one began: the standby is the old primary then, and no copy, or none yet.
        if pair.detached or not pair.relay.copied:
            raise PairError("the standby does not copy the primary")
        try:
            lost = await pair.switch(quiet)
        except PairError:
            pair.relay.thaw()
            raise
        self._how = self._rejoin
        for route in self._routes():
            self._lead(route, pair.primary)
        if lost.writes is None:
            _log.warning("what the switch has cost is not known: %s", lost.why)
            return None
        return Lost(tuple((write.command, write.keys) for write in lost.writes), (), ())

    @staticmethod
    def _lead(route: Route, node: Node) -> None:
        """From here on a route leads to this server."""
        route.dialler = node.dialler
        route.side.close()
        who = node.upstream
        route.side = route.side.another(node.dialler, who.username, who.password)

    def lead_to_standby(self, route: Route) -> None:
        """Have a route lead to the server that is the standby now."""
        self._lead(route, self._pair.standby)

    async def rejoin(self) -> None:
        """The old primary is a replica of the new one from here on; it has its copy later. Raises PairError."""
        await self._pair.rejoin()
        self._settle_by(self._pair.caught_up)

    async def stop(self) -> None:
        """The proxy ends: put both servers back as they were."""
        if self._attaching is not None:
            self._attaching.cancel()
            await asyncio.wait({self._attaching})
        await self._pair.put_back()


def uses(live: LiveRule) -> bool:
    """Whether a rule's failover is to the standby."""
    return live.fault.standby is not None


def holds_back(fault: object) -> tuple[float, int]:
    """For how long a failover's link is held back, in seconds, and how many writes never cross."""
    assert isinstance(fault, PrimaryFailsOver)  # noqa: S101 - no other fault has failovers
    lose = fault.lose
    lag, writes = fault.lag or 0.0, 0
    if lose is not None:
        lag, writes = max(lag, lose.seconds or 0.0), lose.writes or 0
    return lag, writes
