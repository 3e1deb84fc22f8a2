"""Follows a cluster: one listener for each node, and what its addresses are to clients.

Takes a proxy whose upstream is a cluster's node; gives it a route `node-1`, `node-2` … for each node, for as long as the node
belongs to the cluster, and translations of the nodes' addresses to those of the listeners.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from chaosproxy.core.addresses import Translate
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.pair_error import PairError, UnsurePairError
from chaosproxy.net.plan import Plan
from chaosproxy.net.route import MOST, Route
from chaosproxy.net.side import Side
from chaosproxy.topology.nodes import Directory, Node, Place, members, read_nodes

if TYPE_CHECKING:
    from chaosproxy.net.proxy import Proxy

#: How often it is looked who belongs to the cluster, in seconds.
POLL: Final = 1.0
#: How long one node may take to say so, in seconds.
_PATIENCE: Final = 2.0
#: How long a replica may take to become a primary once it was asked to, in seconds, and how often it is looked.
TAKING_OVER: Final = 12.0
_SOON: Final = 0.01
#: A node gives a failover that it was asked for up after five seconds, and not sooner: then it may be asked again.
_AGAIN: Final = 5.5
#: How many looks in a row a node has to be missing from before nobody is accepted for it any more.
_MISSED: Final = 3

_log = logging.getLogger("chaosproxy.cluster")


class Cluster:
    """The nodes of one cluster and their routes.

    The first node listens where the plan says, node n at the port n-1 behind it; port 0 asks the kernel for each. Clients
    are told the address by which they have reached the proxy, or the one that the plan says is to be announced. `found` is
    told a route whose server answers.
    """

    def __init__(self, proxy: "Proxy", plan: Plan, found: Callable[[Route], None]) -> None:
        self._proxy = proxy
        self._found = found
        self._plan = plan
        self._directory = Directory()
        self._missed: dict[str, int] = {}
        self._lost: set[Place] = set()
        self._full = False
        # Where nodes that are gone have listened: when they return they do so there.
        self._ports: dict[int, int] = {}
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look who belongs to the cluster, as far as anybody answers, and have a route for each."""
        upstream = self._plan.upstream
        seeds = [upstream.address, *upstream.others]
        sides = [self._route(0, seed).side for seed in seeds]
        views = await asyncio.gather(*map(_view, sides))
        for side in sides:
            side.close()
        targets: dict[int, Address] = {}
        for seed, view in zip(seeds, views, strict=True):
            myself = next((node for node in view if node.myself), None)
            known = None if myself is None else self._directory.find_node(myself)
            number = known or self._directory.number((seed.host, seed.port))
            targets.setdefault(number, seed)
            if myself is not None:
                self._directory.join(number, myself)
        for number, node in self._directory.learn(members(views)).items():
            if number not in targets and node.places:
                targets[number] = Address(*node.places[0])
        for number, target in sorted(targets.items())[:MOST]:
            await self._proxy.routes.add(self._route(number, target))
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    def stop(self) -> None:
        """Follow no more."""
        if self._polling is not None:
            self._polling.cancel()

    # Routes.

    def _route(self, number: int, target: Address) -> Route:
        listen = self._plan.listen
        port = listen.port + number - 1 if listen.port else self._ports.get(number, 0)
        route = self._proxy.route(f"node-{number}", Address(listen.host, port), target)
        route.translation = lambda host: self._translation(route, number, host)
        return route

    def _find(self, place: Place) -> Route | None:
        """Give the route to what is at a place, a new one if there is none; None if its port cannot be had."""
        route = self._proxy.routes.get(f"node-{self._directory.find(place)}")
        if route is not None:
            return route
        if self._proxy.routes.full:
            if not self._full:
                _log.error("%s:%d and others get no listener: there are %d", *place, MOST)
            self._full = True
            return None
        number = self._directory.number(place)
        route = self._route(number, Address(*place))
        try:
            self._proxy.routes.add_now(route)
        except (OSError, OverflowError) as error:
            self._ports.pop(number, None)
            if place not in self._lost:
                self._lost.add(place)
                why = getattr(error, "strerror", None) or error
                _log.error("%s: cannot listen on %s: %s", route.name, route.address, why)
            return None
        _log.info("%s: %s, by way of %s", route.name, route.dialler.address, route.address)
        return route

    # Addresses.

    def _translation(self, own: Route, number: int, host: str) -> Translate:
        """Give what translates addresses for a client that has reached a route at `host`."""
        announced, first = self._plan.announce, self._plan.listen.port
        shift = announced.port - first if announced and announced.port and first else 0
        said = (announced.host if announced else host).encode()

        def translate(there: bytes, port: int, *others: int) -> tuple[bytes, int]:
            hosts = [there.decode("utf-8", "replace")] if there else self._directory.hosts(number)
            # Of a plain port and one for TLS this is the one that is dialled.
            ports = (*others, port) if self._plan.upstream.tls else (port, *others)
            places = [(each, port) for each in hosts for port in ports]
            known = (place for place in places if self._directory.find(place) is not None)
            place = next(known, places[0] if places else (own.dialler.address.host, port))
            # Where no listener can be had the client asks here again, and never leaves the proxy.
            route = self._find(place) or own
            return said, route.address.port + shift

        return translate

    # Who belongs to it.

    async def _poll(self) -> None:
        mistaken = False
        while True:
            await asyncio.sleep(POLL)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - whatever a node has said, the others are followed all the same
                if not mistaken:
                    _log.exception("a mistake in chaosproxy")
                mistaken = True

    async def look(self) -> None:
        """See who belongs to the cluster now, have routes for those, and none for those that are gone for a while."""
        routes = [route for route in self._proxy.routes if route.name.startswith("node-")]
        views = await asyncio.gather(*(_view(route.side) for route in routes))
        answered = [(route, view) for route, view in zip(routes, views, strict=True) if view]
        if not answered:
            return
        self._found(answered[0][0])
        said: dict[str, str] = {}
        for route, view in answered:
            for node in view:
                if node.myself:
                    said[route.name] = node.id
                    if self._directory.find_node(node) is None:
                        self._directory.join(_number(route), node)
        there = set()
        for number, node in self._directory.learn(members(views)).items():
            there.add(number)
            self._follow(number, node, said.get(f"node-{number}"))
        for route in routes:
            missed = 0 if _number(route) in there else self._missed.get(route.name, 0) + 1
            self._missed[route.name] = missed
            if missed >= _MISSED and len(self._proxy.routes) > 1:
                del self._missed[route.name]
                self._ports[_number(route)] = route.address.port
                self._proxy.routes.remove(route.name)
                _log.info("%s: no longer in the cluster", route.name)

    def _follow(self, number: int, node: Node, said: str | None) -> None:
        """Have a route for a node, and to where it is; `said`: who answers there now."""
        route = self._proxy.routes.get(f"node-{number}")
        if not node.places:
            return
        if route is None:
            self._find(node.places[0])
            return
        old = route.dialler
        if said != node.id and (old.address.host, old.address.port) not in node.places:
            route.retarget(Dialler(Address(*node.places[0]), old.tls, old.timeout))
            _log.info("%s: has moved to %s", route.name, route.dialler.address)

    # What failovers ask of it.

    async def fail_over(self, name: str | None) -> str:
        """Have a replica take over from the primary behind that listener, or from any; gives which did. Raises PairError."""
        nodes = members([await _view(route.side) for route in self._proxy.routes])
        replicas = {node.of: node for node in nodes if node.of}
        for node in nodes:
            number = self._directory.find_node(node)
            if node.primary and node.id in replicas and name in {None, f"node-{number}"}:
                replica = f"node-{self._directory.find_node(replicas[node.id])}"
                await self._take_over(replica)
                return f"{replica} has taken over from node-{number}"
        raise PairError(f"{name or 'no node'} is no primary that has a replica")

    async def _take_over(self, name: str) -> None:
        """Have a replica become a primary, in agreement with the one it copies."""
        route = self._proxy.routes.get(name)
        if route is None:
            raise PairError(f"{name} has no listener")
        end = monotonic() + TAKING_OVER
        again = 0.0
        while True:
            if monotonic() >= again:
                said = await route.side.request(b"CLUSTER", b"FAILOVER")
                # Asked again it may have become a primary just now, and says that it is no replica.
                if said != b"+OK\r\n" and not (again and said):
                    raise _refused(name, said)
                again = monotonic() + _AGAIN
            role = await route.side.request(b"ROLE")
            if role is None:
                raise UnsurePairError(f"{name} does not answer")
            if b"master" in role[:20]:
                return
            if monotonic() > end:
                raise UnsurePairError(f"{name} has not taken over within {TAKING_OVER:g} s")
            await asyncio.sleep(_SOON)


def _refused(name: str, said: bytes | None) -> PairError:
    why = (said or b"-no answer")[1:].decode().strip()
    kind = PairError if said else UnsurePairError
    return kind(f"{name} does not take over: {why}")


def _number(route: Route) -> int:
    return int(route.name.partition("-")[2])


async def _view(side: Side) -> Sequence[Node]:
    """Ask a node who belongs to the cluster; nobody, if it does not say."""
    try:
        async with asyncio.timeout(_PATIENCE):
            raw = await side.request(b"CLUSTER", b"NODES")
        text = decode(raw) if raw else None
    except (TimeoutError, ProtocolError):
        return ()
    return read_nodes(text) if isinstance(text, bytes) else ()
