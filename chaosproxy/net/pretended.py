"""One server as the nodes of a cluster: so many listeners, all of them with that server behind them.

Takes a proxy and how many nodes there are to be; gives it a route `node-1`, `node-2` … for each, and clients their seats.
"""

from typing import TYPE_CHECKING

from chaosproxy.core.slot_map import Seat, SlotMap
from chaosproxy.net.address import Address
from chaosproxy.net.plan import Plan
from chaosproxy.net.route import Route

if TYPE_CHECKING:
    from chaosproxy.net.proxy import Proxy


class Pretended:
    """The nodes: where they listen, and who is told of them."""

    def __init__(self, proxy: "Proxy", plan: Plan) -> None:
        self._proxy = proxy
        self._plan = plan
        self._slots = SlotMap(plan.cluster_nodes)
        proxy.world.pretends = True

    async def start(self) -> None:
        """Have the routes. Raises OSError."""
        listen = self._plan.listen
        for number in range(self._plan.cluster_nodes):
            where = Address(listen.host, listen.port + number if listen.port else 0)
            route = self._proxy.route(f"node-{number + 1}", where, self._plan.upstream.address)
            await self._proxy.routes.add(route)

    def seat(self, route: Route, host: str) -> Seat | None:
        """Give the seat of a client that came by a route and has reached the proxy at `host`."""
        return seat(self._proxy, self._plan, route, host, self._slots)


def seat(
    proxy: "Proxy", plan: Plan, route: Route, host: str, slots: SlotMap | None = None
) -> Seat | None:
    """Give the place of a client among the nodes; None if its own is gone."""
    routes = [each for each in proxy.routes if each.name.startswith("node-")]
    if route not in routes:
        return None
    announced, first = plan.announce, plan.listen.port
    shift = announced.port - first if announced and announced.port and first else 0
    said = announced.host if announced else host
    ports = tuple(each.address.port + shift for each in routes)
    return Seat(said.encode(), ports, routes.index(route), slots)
