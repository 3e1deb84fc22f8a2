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
#: How often the kernel is asked for a port that is free at all addresses of a name.
ATTEMPTS: Final = 20

_TO_LISTEN: Final[dict[str, Any]] = {"type": socket.SOCK_STREAM, "flags": socket.AI_PASSIVE}
# A name may stand for an address of a kind that this machine has none of, as ::1 where there is no IPv6.
_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


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
        _check(address)
        address = self._take(address, socket.getaddrinfo(address.host, address.port, **_TO_LISTEN))
        if listen:
            for taken in self._reserved:
                share(taken)
                taken.listen(BACKLOG)
        return address

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
        if address.path:
            _remove_stale(address.path)
            server = await loop.create_unix_server(factory, address.path, **how)
            self._servers.append(server)
            self._path = address.path
        else:
            if not self._reserved:
                found = await loop.getaddrinfo(address.host, address.port, **_TO_LISTEN)
                address = self._take(address, found)
            reserved, self._reserved = self._reserved, []
            try:
                for taken in reserved:
                    share(taken)
                    self._servers.append(await loop.create_server(factory, sock=taken, **how))
            except OSError:
                self._reserved = reserved
                self.close()
                raise
        self._set_up(loop)
        return address

    def _take(self, address: Address, found: list[Any]) -> Address:
        """Take the same port at each of these addresses, which its name stands for. Raises OSError."""
        attempts = ATTEMPTS
        while True:
            attempts -= 1
            try:
                return Address(address.host, self._take_each(address.port, found))
            except OSError as error:
                self.close()
                # What the kernel gave at one of them may be somebody's at the next.
                if error.errno != errno.EADDRINUSE or address.port or not attempts:
                    raise

    def _take_each(self, port: int, found: list[Any]) -> int:
        absent: OSError | None = None
        for family, where in dict.fromkeys((family, where) for family, *_, where in found):
            try:
                taken = _bound(family, (where[0], port, *where[2:]))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
            else:
                self._reserved.append(taken)
                port = port or taken.getsockname()[1]
        if absent is not None and not self._reserved:
            raise absent
        return port

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


def share(taken: socket.socket, *, shared: bool = True) -> None:
    """Whether others may have its port too, as long as neither listens: so it may while a last one's connections end."""
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(shared))


def _bound(family: int, where: tuple[Any, ...]) -> socket.socket:
    """A socket with a port, which is not listened on yet; what the kernel chooses for port 0 is its own. Raises OSError."""
    # asyncio sends at once on what is said to be TCP only.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # The kernel gives one that is shared to another one, too.
        share(taken, shared=where[1] > 0)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(where)
    except OSError:
        taken.close()
        raise
    return taken


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
