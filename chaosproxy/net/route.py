"""The ways through the proxy: where it listens, and which server is dialled for whoever comes there.

Takes names, addresses and diallers, at any time while it runs; gives each client the route it came by.
"""

import asyncio
import errno
import ssl
from collections.abc import Callable, Iterator
from typing import Final

from chaosproxy.core.addresses import Translate
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.listener import Listener
from chaosproxy.net.side import Side

#: How many there may be: of a cluster's nodes the specification has a thousand in mind. Servers say who there is, and one that
#: makes up others is not to have all ports of this machine.
MOST: Final = 1000


class Route:
    """One listener and the server behind it.

    `name` is what a profile calls it (`match: {connection: {listener: NAME}}`). `address` is where it is to listen and does:
    port 0 asks the kernel once, and then it is that port. `translation` gives, for the address by which a client has reached
    it, what addresses in replies are for that client; None: nothing is translated. `side` is the proxy's own connection to
    the same server. `up`: whether the last client that came could be connected; None: none has come.
    """

    __slots__ = (
        "_listener",
        "_opening",
        "_tls",
        "address",
        "dialler",
        "name",
        "side",
        "translation",
        "up",
    )

    def __init__(
        self,
        name: str,
        listen: Address,
        dialler: Dialler,
        side: Side,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.address = listen
        self.dialler = dialler
        self.side = side
        self.up: bool | None = None
        self.translation: Callable[[str], Translate] | None = None
        self._tls = tls
        self._listener = Listener()
        self._opening = asyncio.Lock()

    def retarget(self, dialler: Dialler) -> None:
        """Dial another server from now on; connections that are open stay where they are."""
        self.dialler = dialler
        self.side.retarget(dialler)

    @property
    def listening(self) -> bool:
        """Whether anybody is accepted."""
        return self._listener.listening

    def reserve(self, *, listen: bool) -> None:
        """Take the port already, before `open`. Raises OSError."""
        self.address = self._listener.reserve(self.address, listen=listen)

    async def open(self, factory: Callable[[], asyncio.Protocol]) -> None:
        """Listen, if nobody does yet. Raises OSError."""
        async with self._opening:
            if self.listening:
                return
            try:
                self.address = await self._listener.start(self.address, factory, self._tls)
            except OSError as error:
                self.close()
                error.filename = str(self.address)
                raise

    def close(self) -> None:
        """Accept no more; connections that are open stay so."""
        self._listener.close()


class Routes:
    """All routes of a proxy, in the order they were added. `factory` makes what takes a route's clients."""

    def __init__(self, factory: Callable[[Route], asyncio.Protocol]) -> None:
        self._factory = factory
        self._routes: dict[str, Route] = {}
        self._wanted = False
        # Listeners at which nobody is accepted, whatever the others do.
        self._shut: set[str] = set()
        self._opening: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Route]:
        return iter(tuple(self._routes.values()))

    def __len__(self) -> int:
        return len(self._routes)

    def __getitem__(self, name: str) -> Route:
        return self._routes[name]

    def get(self, name: str) -> Route | None:
        """Give the route of that name, if there is one."""
        return self._routes.get(name)

    @property
    def first(self) -> Route:
        """The one that `--listen` speaks of."""
        return next(iter(self._routes.values()))

    async def add(self, route: Route) -> None:
        """Have one more, which listens as soon as the others do. Raises OSError, and then it is not there."""
        self._check(route)
        self._routes[route.name] = route
        if self._wants(route):
            try:
                await self._open(route)
            except OSError:
                self._routes.pop(route.name, None)
                raise
        self._heed(route)

    @property
    def full(self) -> bool:
        """Whether there is no room for one more."""
        return len(self._routes) >= MOST

    def _check(self, route: Route) -> None:
        if route.name in self._routes:
            raise ValueError(f"there is a route {route.name} already")
        if self.full:
            raise OSError(errno.ENOSPC, f"there are {MOST} listeners already", str(route.address))

    def _wants(self, route: Route) -> bool:
        """Whether it is to listen."""
        return self._wanted and route.name not in self._shut

    def _heed(self, route: Route) -> None:
        """The door may have been shut while the route began to listen."""
        if not self._wants(route):
            route.close()

    def add_now(self, route: Route) -> None:
        """Have one more, whose port is taken when this returns: a client may be sent there. Raises OSError."""
        self._check(route)
        route.reserve(listen=self._wants(route))
        self._routes[route.name] = route
        if self._wants(route):
            opening = asyncio.get_running_loop().create_task(self._open(route))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
            opening.add_done_callback(lambda _: self._heed(route))

    def remove(self, name: str) -> None:
        """Have one less. Who came by it and is connected stays so."""
        route = self._routes.pop(name)
        route.close()
        route.side.close()

    async def open(self) -> None:
        """Listen on all that do not yet. Raises OSError for the first that cannot."""
        self._wanted = True
        for route in self:
            if route.name not in self._shut:
                await self._open(route)
        # Who has shut it meanwhile either wants it open again by now, or shuts it again.
        self._wanted = True

    async def _open(self, route: Route) -> None:
        await route.open(lambda: self._factory(route))
        if self._routes.get(route.name) is not route:
            # It was removed while that was under way.
            route.close()

    def close(self) -> None:
        """Accept nobody on any of them."""
        self._wanted = False
        for route in self:
            route.close()

    def shut(self, name: str) -> None:
        """Accept nobody on that one, whatever the others do; there may be none of that name, yet."""
        self._shut.add(name)
        if name in self._routes:
            self._routes[name].close()

    async def open_again(self, name: str) -> None:
        """That one does as the others again. Raises OSError."""
        self._shut.discard(name)
        if self._wanted and name in self._routes:
            await self._open(self._routes[name])

    def close_sides(self) -> None:
        """End the proxy's own connections to all servers."""
        for route in self:
            route.side.close()
