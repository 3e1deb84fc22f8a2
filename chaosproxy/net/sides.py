"""The two sockets of a client's connection, as asyncio sees them.

Takes asyncio's calls; gives them to the Link that joins the two.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from chaosproxy.net.connection import Link

if TYPE_CHECKING:
    from chaosproxy.net.proxy import Proxy
    from chaosproxy.net.route import Route


class ClientSide(asyncio.Protocol):
    """The socket of a client that came by `route`."""

    __slots__ = ("_keeps_half", "_link", "_proxy", "_route", "data_received")

    #: Called with the bytes that arrived: the link's own method, as it is called so often.
    data_received: Callable[[bytes], None]  # type: ignore[assignment]

    def __init__(self, proxy: "Proxy", route: "Route") -> None:
        self._proxy = proxy
        self._route = route
        self._link: Link | None = None
        self.data_received = _ignore

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client is there."""
        client = cast("asyncio.Transport", transport)
        self._keeps_half = client.can_write_eof()
        self._link = self._proxy.accept(client, self._route)
        if self._link is not None:
            self.data_received = self._link.from_client
            # uvloop asks a protocol for that method once.
            client.set_protocol(self)

    def eof_received(self) -> bool:
        """The client has ended its side; the other stays open, except under TLS, which has no halves."""
        if self._link is not None:
            self._link.client_eof()
        return self._link is not None and self._keeps_half

    def pause_writing(self) -> None:
        """The write buffer is over its mark."""
        if self._link is not None:
            self._link.client_full(True)

    def resume_writing(self) -> None:
        """The write buffer has drained."""
        if self._link is not None:
            self._link.client_full(False)

    def connection_lost(self, _error: Exception | None) -> None:
        """The socket is closed, by whomever."""
        if self._link is not None:
            self._link.client_lost()


class UpstreamSide(asyncio.Protocol):
    """The socket to the server."""

    __slots__ = ("_link", "_transport", "data_received")

    data_received: Callable[[bytes], None]  # type: ignore[assignment]

    def __init__(self, link: Link) -> None:
        self._link = link
        self.data_received = link.from_upstream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server has accepted. Some speak at once, and then hang up: nothing they say may come before this."""
        self._transport = cast("asyncio.Transport", transport)
        self._link.upstream_made(self._transport)

    def eof_received(self) -> None:
        """The transport closes itself: a Redis server that ends its side has left."""
        self._link.upstream_eof()

    def pause_writing(self) -> None:
        """The write buffer is over its mark."""
        self._link.upstream_full(True)

    def resume_writing(self) -> None:
        """The write buffer has drained."""
        self._link.upstream_full(False)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is about to be closed, by whomever."""
        if error is not None and self._transport.get_extra_info("sslcontext") is None:
            # A write failed. What the server said before it left has not been read yet.
            for data in _left_in(self._transport.get_extra_info("socket")):
                self._link.from_upstream(data)
        self._link.upstream_lost(error)


def _ignore(_data: bytes) -> None:
    """What somebody says who was turned away."""


def _left_in(sock: socket.socket | None) -> Iterator[bytes]:
    if sock is None:
        return
    with suppress(OSError):
        while data := os.read(sock.fileno(), 1 << 18):
            yield data
