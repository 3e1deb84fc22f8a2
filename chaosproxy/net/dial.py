"""Opens connections to the server behind the proxy; its name is resolved anew each time.

Takes where the server is; gives an asyncio transport and protocol, or DialError with a reason short enough to count by.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from chaosproxy.net.address import Address
from chaosproxy.net.keepalive import keep_alive
from chaosproxy.net.tls import why

Reason = Literal["refused", "unreachable", "timeout", "name", "tls", "other"]
P = TypeVar("P", bound=asyncio.Protocol)

_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}


class DialError(Exception):
    """No connection came about; `reason` is one of a fixed few."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason: Reason = reason


@dataclass(frozen=True, slots=True)
class Dialler:
    """Where to dial and how. `timeout` seconds bound a whole attempt, TLS handshake included."""

    address: Address
    tls: ssl.SSLContext | None
    timeout: float

    async def dial(self, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        """Connect. Raises DialError."""
        if self.address == Address():
            raise DialError("name", "it is not known yet where the server is")
        if not self.address.possible:
            # Servers say such things, of others: some loops would dial another port.
            raise DialError("name", f"{self.address}: there is no such host or port")
        try:
            async with asyncio.timeout(self.timeout):
                transport, protocol = await self._connect(factory)
                # Who has accepted may be gone already, which is no failure to connect.
                with suppress(OSError):
                    keep_alive(transport.get_extra_info("socket"))
                return transport, protocol
        except TimeoutError:
            text = f"{self.address}: no connection within {self.timeout:g} s"
            raise DialError("timeout", text) from None
        except socket.gaierror as error:
            raise DialError("name", f"{self.address}: {error.strerror}") from None
        except ssl.SSLError as error:
            raise DialError("tls", f"{self.address}: {why(error)}") from None
        except OSError as error:
            # asyncio has a text of its own for what the system says.
            text = f"{self.address}: {os.strerror(error.errno) if error.errno else error}"
            raise DialError(self._reason(error), text) from None

    async def _connect(self, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
        loop = asyncio.get_running_loop()
        due = loop.time() + self.timeout
        name = self.address.host if self.tls else None
        if self.address.path:
            return await loop.create_unix_connection(factory, self.address.path)
        if self.address.is_numeric:
            return await loop.create_connection(
                factory, self.address.host, self.address.port, ssl=self.tls, server_hostname=name
            )
        found = await loop.getaddrinfo(
            self.address.host, self.address.port, type=socket.SOCK_STREAM
        )
        # One by one, so that the error is the last address's own and not a list of all. One that does not answer leaves the others
        # their share of the time.
        problem: OSError = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        for left, (*_, where) in zip(range(len(found), 0, -1), found, strict=True):
            try:
                async with asyncio.timeout((due - loop.time()) / left):
                    return await loop.create_connection(
                        factory,
                        str(where[0]),
                        self.address.port,
                        ssl=self.tls,
                        server_hostname=name,
                    )
            except OSError as error:
                problem = error
        raise problem

    def _reason(self, error: OSError) -> Reason:
        if isinstance(error, ConnectionRefusedError | FileNotFoundError):
            return "refused"
        if error.errno in _UNREACHABLE:
            return "unreachable"
        # A server that does not speak TLS ends the handshake, or lets it time out.
        return "tls" if self.tls and isinstance(error, ConnectionError) else "other"
