"""The HTTP server: its socket, its threads, and how many there may be.

Takes an address and a Backend; gives answers from threads of its own, while the data side does whatever it does.
"""

import logging
import socket
import socketserver
import threading
from typing import Any, Final

from chaosproxy.control.backend import Backend
from chaosproxy.control.events import MOST_WAITING
from chaosproxy.control.guard import Guard
from chaosproxy.control.handler import Handler
from chaosproxy.net.address import Address

#: How many connections are served at once, half of them waiting for events; more are told to come back.
MOST_REQUESTS: Final = 2 * MOST_WAITING

_log = logging.getLogger("chaosproxy.control")


class ControlServer:
    """A running HTTP server, until `stop`. Raises OSError if the address cannot be listened on.

    With a `token` every route but guard.OPEN_ROUTES wants `Authorization: Bearer TOKEN`.
    """

    def __init__(self, address: Address, backend: Backend, token: str | None) -> None:
        self._server = _Server(address, backend, token)
        self.address = Address(address.host, self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="chaosproxy-control", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Its URL, for this machine."""
        return f"http://{self.address.to_connect()}"

    def stop(self) -> None:
        """Answer nobody any more."""
        self._server.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: Address, backend: Backend, token: str | None) -> None:
        self.backend = backend
        self.guard = Guard(token, address.is_local)
        self.stopping = threading.Event()
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self.address_family, *_, where = found[0]
        super().__init__((str(where[0]), address.port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        request.sendall(
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base's
        # Whoever hangs up in the middle is no news.
        _log.debug("%s: request failed", client_address, exc_info=True)
