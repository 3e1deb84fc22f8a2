"""The servers of one service, each behind a listener of its own, so that a client who is told of it comes to the proxy.

Takes the places of servers as they become known; gives for each where a client finds it.
"""

import asyncio
from collections.abc import Callable, Iterable

from chaosproxy.net.address import Address
from chaosproxy.net.route import Route, Routes
from chaosproxy.topology.sentinel import Place

#: Makes a route of that name to a server.
MakeRoute = Callable[[str, Address, Address], Route]


class Fleet:
    """A route for each server that was ever spoken of; they stay, as a server that is down may come back.

    `host` is where they listen, each on a port that the kernel chooses.
    """

    def __init__(self, routes: Routes, make: MakeRoute, host: str) -> None:
        self._routes = routes
        self._make = make
        self._host = host
        self._by_place: dict[tuple[bytes, int], Route] = {}
        self._adding = asyncio.Lock()

    def knows(self, place: Place) -> bool:
        """Whether it has a listener, or needs none."""
        return place.kind != "server" or (place.host, place.port) in self._by_place

    async def learn(self, places: Iterable[Place]) -> None:
        """Listen for each of these servers, if that is not done yet. Raises OSError."""
        async with self._adding:
            for place in places:
                if self.knows(place):
                    continue
                name = f"node-{len(self._by_place) + 1}"
                target = Address(place.host.decode("utf-8", "backslashreplace"), place.port)
                route = self._make(name, Address(self._host, 0), target)
                await self._routes.add(route)
                if not route.address.port:
                    # Nobody is let in just now; its port must be known all the same, and nobody else's.
                    route.reserve(listen=False)
                self._by_place[place.host, place.port] = route

    def find(self, place: Place, host: bytes) -> tuple[bytes, int] | None:
        """Where a client finds a server, if it reaches this machine as `host`; None: nowhere yet."""
        route = self._by_place.get((place.host, place.port))
        return None if route is None else (host, route.address.port)
