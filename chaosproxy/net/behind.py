"""What stands behind a proxy: one server, a primary with its standby, a service that Sentinels know, or a cluster.

Takes the plan; gives the first route its server, whatever that is at the time, a cluster's nodes their routes, and failovers what
they need of servers.
"""

import asyncio
from typing import TYPE_CHECKING

from chaosproxy.core.addresses import Translate
from chaosproxy.core.match import LISTENER
from chaosproxy.core.slot_map import Seat
from chaosproxy.net.address import Address
from chaosproxy.net.cluster import Cluster
from chaosproxy.net.dial import Dialler
from chaosproxy.net.guided import Guided
from chaosproxy.net.pretended import Pretended, seat
from chaosproxy.net.route import Route
from chaosproxy.net.side import Side

if TYPE_CHECKING:
    from chaosproxy.net.proxy import Proxy


class Behind:
    """The servers of a proxy, from `start` to `stop`."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self._plan = proxy.plan
        self._standby: Side | None = None
        self._guided: Guided | None = None
        self._cluster: Cluster | None = None
        self._pretended: Pretended | None = None
        self._home = LISTENER
        if (standby := proxy.plan.standby) is not None:
            dialler = Dialler(standby.address, self._plan.standby_tls, self._plan.connect_timeout)
            self._standby = Side(dialler, standby.username, standby.password)
        proxy.world.standby = standby is not None

    async def start(self) -> None:
        """Make the first route, and find out what is behind it. Raises OSError if a listener cannot be opened."""
        proxy, plan = self._proxy, self._plan
        if plan.cluster_nodes:
            self._pretended = Pretended(proxy, plan)
            await self._pretended.start()
        elif plan.upstream.cluster:
            proxy.world.translates = True
            self._cluster = Cluster(proxy, plan, self._answers)
            await self._cluster.start()
        if not len(proxy.routes):
            target = Address() if plan.upstream.sentinels else plan.upstream.address
            await proxy.routes.add(proxy.route(LISTENER, plan.listen, target))
        if plan.upstream.sentinels:
            await self._start_guided()

    def _answers(self, route: Route) -> None:
        self._home = route.name

    async def _start_guided(self) -> None:
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
        await self._guided.start(listen, plan.listen_tls)

    async def stop(self) -> None:
        """The proxy ends: whatever was changed behind it is put back."""
        if self._guided is not None:
            self._guided.close()
        if self._cluster is not None:
            self._cluster.stop()
        if self._standby is not None:
            self._standby.close()

    # What is asked of it.

    @property
    def side(self) -> Side | None:
        """The proxy's own connection to the standby, None: there is none."""
        return self._standby

    @property
    def asked(self) -> Route:
        """The route whose server is asked what all are."""
        return self._proxy.routes.get(self._home) or self._proxy.routes.first

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that is followed, None: there is none."""
        return self._cluster

    @property
    def has_nodes(self) -> bool:
        """Whether clients find the nodes of a cluster here, be it a real one or not."""
        return self._cluster is not None or self._pretended is not None

    @property
    def sentinel(self) -> Address | None:
        """Where clients find a Sentinel, None: nowhere."""
        return None if self._guided is None else self._guided.door.address

    def seat(self, client: asyncio.Transport, route: Route) -> Seat | None:
        """Where a client that came by a route stands among a cluster's nodes, None: there is none."""
        if not self.has_nodes:
            return None
        host = str(client.get_extra_info("sockname")[0])
        if self._pretended is not None:
            return self._pretended.seat(route, host)
        return seat(self._proxy, self._plan, route, host)

    def translate(self, client: asyncio.Transport, route: Route) -> Translate | None:
        """What a client that came by a route is to see in place of servers' addresses, None: these."""
        name = client.get_extra_info("sockname")
        host = str(name[0]) if isinstance(name, tuple) else "127.0.0.1"
        if route.translation is not None:
            return route.translation(host)
        return None if self._guided is None else self._guided.translate(host)
