"""What stands behind a proxy: one server, a primary with its standby, a service that Sentinels know, or a cluster.

Takes the plan; gives the first route its server, whatever that is at the time, a cluster's nodes their routes, and failovers what
they need of servers.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from chaosproxy.core.addresses import Translate
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.lost import Lost
from chaosproxy.core.match import LISTENER
from chaosproxy.core.slot_map import Seat
from chaosproxy.net.address import Address, Upstream
from chaosproxy.net.dial import Dialler
from chaosproxy.net.ending import cut_off
from chaosproxy.net.pair_error import PairError
from chaosproxy.net.pretended import Pretended, seat
from chaosproxy.net.reception import Reception, own_host
from chaosproxy.net.route import Route
from chaosproxy.net.side import Side

if TYPE_CHECKING:
    from chaosproxy.net.cluster import Cluster
    from chaosproxy.net.guided import Guided
    from chaosproxy.net.own_sentinel import OwnSentinel
    from chaosproxy.net.proxy import Proxy
    from chaosproxy.net.standby import Standby

_log = logging.getLogger("chaosproxy.behind")


class Behind:
    """The servers of a proxy, from `start` to `stop`. Nobody is connected while one takes over from another."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self._plan = proxy.plan
        self._standby: Standby | None = None
        self._guided: Guided | None = None
        # How many are to be made, one after the other: until all are, nobody is let in.
        self._switches = 0
        self._switching = asyncio.Lock()
        self._settled = asyncio.Event()
        self._settled.set()
        self._own: OwnSentinel | None = None
        self._primaries: list[Route] = []
        self._replica: Route | None = None
        # Connections that stayed with a server that is the primary no more.
        self._left_behind: set[int] = set()
        proxy.world.standby = proxy.plan.standby is not None
        self._cluster: Cluster | None = None
        self._pretended: Pretended | None = None
        self._home = LISTENER

    async def start(self) -> None:
        """Make the first route, and find out what is behind it. Raises OSError if a listener cannot be opened."""
        proxy, plan = self._proxy, self._plan
        if plan.cluster_nodes:
            self._pretended = Pretended(proxy, plan)
            await self._pretended.start()
        elif plan.upstream.cluster:
            proxy.world.translates = True
            from chaosproxy.net.cluster import Cluster  # noqa: PLC0415 - as below

            self._cluster = Cluster(proxy, plan, self._answers)
            await self._cluster.start()
        if not len(proxy.routes):
            target = Address() if plan.upstream.sentinels else plan.upstream.address
            await proxy.routes.add(proxy.route(LISTENER, plan.listen, target))
        self._primaries = [proxy.routes.first]
        if plan.upstream.sentinels:
            await self._start_guided()
            return
        if plan.standby is not None:
            await self._start_standby(plan.standby)
        if plan.sentinel_service:
            await self._start_own_sentinel()

    # Most proxies have one server behind them, and are listening sooner for not reading in what all others need.

    async def _start_own_sentinel(self) -> None:
        from chaosproxy.net.own_sentinel import OwnSentinel  # noqa: PLC0415

        proxy, plan = self._proxy, self._plan
        free = Address(plan.listen.host or "127.0.0.1", 0)
        other = proxy.route("primary-2", free, plan.upstream.address)
        self._primaries.append(other)
        if self._standby is not None:
            self._replica = proxy.route("replica", free, Address())
            self._standby.lead_to_standby(self._replica)
        for route in filter(None, (other, self._replica)):
            await proxy.routes.add(route)
            if not route.address.port:
                # Nobody is let in yet; its port must be known all the same.
                await route.open(asyncio.Protocol)
                route.close()
        replicas = [] if self._replica is None else [self._replica]
        self._own = OwnSentinel(plan.sentinel_service, (proxy.routes.first, other), replicas)
        await _open(self._own.reception, plan.listen_sentinel or free, plan.listen_tls)

    async def _start_standby(self, standby: Upstream) -> None:
        from chaosproxy.net.pair import Node  # noqa: PLC0415
        from chaosproxy.net.standby import Standby  # noqa: PLC0415

        plan, first = self._plan, self._proxy.routes.first.side

        def node(name: str, server: Upstream, tls: ssl.SSLContext | None) -> Node:
            dialler = Dialler(server.address, tls, plan.connect_timeout)
            side = first.another(dialler, server.username, server.password)
            return Node(name, server, dialler, side)

        self._standby = Standby(
            node("upstream", plan.upstream, plan.upstream_tls),
            node("standby", standby, plan.standby_tls),
            self._proxy.world,
            lambda: self._primaries,
            disposable=plan.disposable,
        )
        self.mind()
        try:
            await self._standby.attached()
        except PairError as error:
            _log.warning("the standby is not ready: %s", error)

    def _answers(self, route: Route) -> None:
        self._home = route.name

    async def _start_guided(self) -> None:
        from chaosproxy.net.guided import Guided  # noqa: PLC0415

        proxy, plan = self._proxy, self._plan
        proxy.world.translates = True
        self._guided = Guided(
            plan.upstream,
            plan.upstream_tls,
            plan.connect_timeout,
            proxy.routes,
            proxy.route,
            plan.listen.host or "127.0.0.1",
            proxy.moved,
        )
        listen = plan.listen_sentinel or Address(plan.listen.host or "127.0.0.1", 0)
        await self._guided.start()
        await _open(self._guided.door.reception, listen, plan.listen_tls)

    def mind(self) -> None:
        """Another profile is in force; it knows nothing of connections that stayed with an old primary: they end."""
        for number in self._left_behind:
            if (link := self._proxy.links.get(number)) is not None and not link.ended:
                cut_off(link, "close")
        self._left_behind.clear()
        if self._standby is not None:
            self._standby.mind()

    async def stop(self) -> None:
        """The proxy ends: whatever was changed behind it is put back."""
        if self._guided is not None:
            self._guided.close()
        if self._own is not None:
            self._own.reception.close()
        if self._cluster is not None:
            self._cluster.stop()
        if self._standby is not None:
            await self._standby.stop()

    # What is asked of it.

    @property
    def side(self) -> Side | None:
        """The proxy's own connection to the standby, None: there is none."""
        return None if self._standby is None else self._standby.side

    @property
    def asked(self) -> Route:
        """The route whose server is asked what all are."""
        return self._proxy.routes.get(self._home) or self._proxy.routes.first

    @property
    def cluster(self) -> "Cluster | None":
        """The cluster that is followed, None: there is none."""
        return self._cluster

    @property
    def has_nodes(self) -> bool:
        """Whether clients find the nodes of a cluster here, be it a real one or not."""
        return self._cluster is not None or self._pretended is not None

    @property
    def sentinel(self) -> Address | None:
        """Where clients find a Sentinel, None: nowhere."""
        if self._guided is not None:
            return self._guided.door.reception.address
        return None if self._own is None else self._own.reception.address

    def seat(self, client: asyncio.Transport, route: Route) -> Seat | None:
        """Where a client that came by a route stands among a cluster's nodes, None: there is none."""
        if not self.has_nodes:
            return None
        host = own_host(client)
        if self._pretended is not None:
            return self._pretended.seat(route, host)
        return seat(self._proxy, self._plan, route, host)

    def translate(self, client: asyncio.Transport, route: Route) -> Translate | None:
        """What a client that came by a route is to see in place of servers' addresses, None: these."""
        host = own_host(client)
        if route.translation is not None:
            return route.translation(host)
        return None if self._guided is None else self._guided.translate(host)

    # What failovers ask of it.

    async def settled(self) -> None:
        """Wait until it is known which server is the primary."""
        while not self._settled.is_set():  # when it was, the next switch may have begun
            await self._settled.wait()

    def makes_real(self, live: LiveRule) -> bool:
        """Whether a rule's failover is a real one: with a standby, or by Sentinels where they would make one."""
        if live.fault.standby is None:
            return False
        return self._standby is not None or (self._guided is not None and self._guided.makes(live))

    async def instead(self, live: LiveRule) -> str | None:
        """A cluster makes its own failovers: have it make one in place of a rule's steps; gives what it did.

        None: there is no cluster. Raises PairError.
        """
        if self._cluster is None:
            return None
        from chaosproxy.faults.failover import PrimaryFailsOver  # noqa: PLC0415

        if not isinstance(live.fault, PrimaryFailsOver) or live.fault.style != "cluster":
            raise PairError(
                "a cluster's nodes fail over by themselves: only style: cluster can be had"
            )
        test = live.rule.match.connection
        return await self._cluster.fail_over(None if test is None else test.listener)

    async def begin(self, live: LiveRule) -> None:
        """A rule's failover begins. Raises PairError if it cannot be made real although it should be."""
        if self._standby is not None and self.makes_real(live):
            await self._standby.begin(live)

    async def switch(self, quiet: Callable[[], Awaitable[object]]) -> Lost | None:
        """Have another server take over; gives what was lost by that, None: that is not known. Raises PairError.

        `quiet` waits until all that was sent to the old one is answered. One that another one keeps waiting is not made under
        another profile.
        """
        engine = self._proxy.world.engine
        began, lost = monotonic(), None
        self._switches += 1
        self._settled.clear()
        try:
            async with self._switching:
                if self._proxy.world.engine is not engine:
                    raise PairError("another profile is in force")
                if self._standby is not None:
                    lost = await self._standby.switch(quiet)
                elif self._guided is not None:
                    await self._guided.switch(quiet)
                links = self._proxy.links.items()
                left = (n for n, link in links if link.conversation.opened <= began)
                self._left_behind.update(left)
        finally:
            self._switches -= 1
            if not self._switches:
                self._settled.set()
        self._proxy.moved()
        if self._proxy.world.engine is not engine:
            # It knows of no old primary, as if it had come just now.
            self.mind()
        return lost

    def switched(self, live: LiveRule) -> None:
        """A failover has switched, for real or not: those who ask the proxy's own Sentinel are told."""
        if self._replica is not None and self._standby is not None:
            self._standby.lead_to_standby(self._replica)
        if self._own is not None and live.fault.standby is not None:
            self._own.moved()

    async def rejoin(self, live: LiveRule) -> None:
        """The old primary becomes a replica of the new one. Raises PairError."""
        if self._standby is not None and self.makes_real(live):
            await self._standby.rejoin()


async def _open(door: Reception[Any], address: Address, tls: ssl.SSLContext | None) -> None:
    """Listen for those who look for a Sentinel. Raises OSError, which says where."""
    try:
        await door.open(address, tls)
    except OSError as error:
        error.filename = str(address)
        raise
