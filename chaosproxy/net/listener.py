"""Accepts clients: on TCP or a unix socket, with TLS or without.

Takes an address and what to make for each client; gives the address that is really listened on.
"""

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from chaosproxy.net.address import Address
from chaosproxy.net.keepalive import keep_alive

#: Connections the kernel keeps for us while the loop is busy; bounded by net.core.somaxconn.
BACKLOG: Final = 4096
#: How long a TLS client may take to say who it is and to hear who we are, in seconds: until then nobody counts it.
TLS_HELLO: Final = 10.0
#: How long a TLS client's half of the goodbye is waited for, in seconds.
TLS_GOODBYE: Final = 1.0


class Listener:
    """One address that is listened on, from `start` to `close`."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._reserved: list[socket.socket] = []
        self._path = ""

    @property
    def listening(self) -> bool:
        """Whether it is between `start` and `close`."""
        return bool(self._servers)

    def reserve(self, address: Address, *, listen: bool) -> Address:
        """Take a port now, for the next `start`; whoever connects until then waits, or is refused if not to `listen`.

        Gives the address. Raises OSError.
        """
        port = address.port
        _check(address)
        try:
            for family, *_, where in socket.getaddrinfo(
                address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                taken = socket.socket(family)
                self._reserved.append(taken)
                # The kernel may give a port to two that reuse it, as long as neither listens.
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(address.port > 0))
                if family == socket.AF_INET6:
                    taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                taken.bind((where[0], port, *where[2:]))
                port = port or taken.getsockname()[1]
                if listen:
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    taken.listen(BACKLOG)
        except OSError:
            self.close()
            raise
        return Address(address.host, port)

    async def start(
        self,
        address: Address,
        factory: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None = None,
    ) -> Address:
        """Listen; port 0 asks the kernel for one. Raises OSError, whose strerror says why."""
        _check(address)
        loop = asyncio.get_running_loop()
        # To asyncio's own loop it is how many it accepts in a row, too: and where there are no descriptors left, how often it fails
        # in a row, each time in so many words.
        accepts = 1 if isinstance(loop, asyncio.SelectorEventLoop) else BACKLOG
        how: dict[str, Any] = {"ssl": tls, "backlog": accepts}
        if tls is not None:
            how |= {"ssl_handshake_timeout": TLS_HELLO, "ssl_shutdown_timeout": TLS_GOODBYE}
        if self._reserved:
            reserved, self._reserved = self._reserved, []
            for taken in reserved:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._servers.append(await loop.create_server(factory, sock=taken, **how))
            self._set_up(loop)
            return address
        if address.path:
            _remove_stale(address.path)
            server = await loop.create_unix_server(factory, address.path, **how)
            self._servers.append(server)
            self._path = address.path
            self._set_up(loop)
            return address
        found = await loop.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        hosts = list(dict.fromkeys(str(where[0]) for *_, where in found))
        port = address.port
        # A name may stand for several addresses. The kernel would give each a port of its own.
        for host in hosts if port else hosts[:1]:
            server = await loop.create_server(factory, host, port, **how)
            self._servers.append(server)
            port = port or server.sockets[0].getsockname()[1]
        self._set_up(loop)
        return Address(address.host, port)

    def _set_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the kernel keep as many for us on every loop, and notice which of them vanish."""
        for listening in (each for server in self._servers for each in server.sockets):
            keep_alive(listening)
            if isinstance(loop, asyncio.SelectorEventLoop):
                with listening.dup() as same:
                    same.listen(BACKLOG)

    def close(self) -> None:
        """Accept no more; connections that are open stay so."""
        for taken in self._reserved:
            taken.close()
        self._reserved.clear()
        servers, self._servers = self._servers, []
        for server in servers:
            loop = asyncio.get_running_loop()
            if isinstance(loop, asyncio.SelectorEventLoop):
                _stop_listening(loop, server)
                loop.call_soon(server.close)
            else:
                server.close()
        if self._path:
            with suppress(FileNotFoundError):
                os.unlink(self._path)  # noqa: PTH108 - nothing here that a Path would make clearer
            self._path = ""


def _check(address: Address) -> None:
    """Raise OSError for a port that there is not: some loops would take it for another one."""
    if not address.possible:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL), str(address))


def _stop_listening(loop: asyncio.AbstractEventLoop, server: asyncio.Server) -> None:
    """Have the kernel refuse whoever comes now.

    Nobody may be lost: asyncio forgets clients that it has accepted and not told of yet, if their server is closed
    meanwhile (CPython's issue 109564). So the server is closed a moment later.
    """
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def _remove_stale(path: str) -> None:
    """Remove a socket that nobody listens on any more; one that somebody does is theirs."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)  # noqa: PTH108
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
