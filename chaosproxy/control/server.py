"""The HTTP server: /healthz, /readyz and /metrics, answered while the data side does whatever it does.

Takes an address and a Backend; gives answers from threads of its own, bounded in number and in time.
"""

import hmac
import json
import logging
import socket
import socketserver
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from chaosproxy import __version__
from chaosproxy.net.address import Address

#: How many connections are served at once; more are told to come back.
MOST_REQUESTS: Final = 32
#: How long a connection may say nothing, in seconds.
SILENCE: Final = 5.0
#: What anybody may ask, token or not.
OPEN_ROUTES: Final = frozenset({"/healthz", "/readyz", "/metrics"})

_log = logging.getLogger("chaosproxy.control")


class Backend(Protocol):
    """What is asked of the proxy; each answers within a second, from any thread."""

    def unready(self) -> str | None:
        """Give why it cannot serve clients now, or None if it can."""

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """Give the metrics' content type and text."""


class ControlServer:
    """A running HTTP server, until `stop`. Raises OSError if the address cannot be listened on.

    With a `token` every route but OPEN_ROUTES wants `Authorization: Bearer TOKEN`.
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
        self.token = token
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self.address_family, *_, where = found[0]
        super().__init__((str(where[0]), address.port), _Handler)

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"chaosproxy/{__version__}"
    sys_version = ""
    timeout = SILENCE
    # One packet an answer: headers and body would otherwise wait for each other's acknowledgement.
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path not in OPEN_ROUTES and not self._may():
            self._answer_json(HTTPStatus.UNAUTHORIZED, {"error": "a token is needed"})
            return
        match path:
            case "/healthz":
                self._answer_json(HTTPStatus.OK, {"status": "ok", "version": __version__})
            case "/readyz":
                problem = self.server.backend.unready()
                if problem is None:
                    self._answer_json(HTTPStatus.OK, {"status": "ready"})
                else:
                    status = {"status": "not ready", "problem": problem}
                    self._answer_json(HTTPStatus.SERVICE_UNAVAILABLE, status)
            case "/metrics":
                accept = self.headers.get("Accept", "")
                self._answer(HTTPStatus.OK, *self.server.backend.metrics(accept))
            case _:
                self._answer_json(HTTPStatus.NOT_FOUND, {"error": f"there is no {path}"})

    do_HEAD = do_GET  # noqa: N815 - its name in the base

    def _may(self) -> bool:
        token = self.server.token
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        return token is None or hmac.compare_digest(given, b"Bearer " + token.encode())

    def _answer_json(self, status: HTTPStatus, value: object) -> None:
        self._answer(status, "application/json", json.dumps(value).encode() + b"\n")

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        _log.debug(format, *args)
