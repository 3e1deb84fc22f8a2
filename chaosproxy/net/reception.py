"""A listener of the proxy's own, beside its routes, with the clients that came there.

Takes what answers a client; gives where it listens, and ends them all when it closes.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from chaosproxy.net.address import Address
from chaosproxy.net.listener import Listener

#: How many may be here at once: they ask for an address and go, or listen for news of it.
MOST: Final = 1000


class Guest(Protocol):
    """What answers one client."""

    def end(self) -> None:
        """The connection ends, after all that was said."""


G = TypeVar("G", bound=Guest)


class Reception(Generic[G]):
    """One listener, from `open` to `close`. `factory` makes what answers a client; `guests` are those that are here."""

    def __init__(self, factory: Callable[[], asyncio.Protocol]) -> None:
        self._factory = factory
        self._listener = Listener()
        self.guests: set[G] = set()
        self.address = Address()

    async def open(self, address: Address, tls: ssl.SSLContext | None) -> None:
        """Listen. Raises OSError."""
        self.address = await self._listener.start(address, self._factory, tls)

    def admit(self, guest: G, transport: asyncio.BaseTransport) -> bool:
        """One more is here; False if there are too many, and then its connection is over."""
        if len(self.guests) >= MOST:
            transport.close()
            return False
        self.guests.add(guest)
        return True

    def close(self) -> None:
        """Listen no more, and end all that came."""
        self._listener.close()
        for guest in list(self.guests):
            guest.end()


def own_host(transport: asyncio.BaseTransport) -> str:
    """This machine's address on a connection; on a unix socket loopback's."""
    name = transport.get_extra_info("sockname")
    return str(name[0]) if isinstance(name, tuple) else "127.0.0.1"
