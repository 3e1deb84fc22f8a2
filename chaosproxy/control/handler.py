"""One HTTP request: its head is read and judged, then its body is awaited, then it is answered.

Takes a request's bytes, which are all there; gives what is to be written, or a stream of it. Nothing here waits for whoever
asked: sockets does, for all at once.
"""

import logging
import re
from email.errors import (
    FirstHeaderLineIsContinuationDefect,
    MalformedHeaderDefect,
    MissingHeaderBodySeparatorDefect,
)
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from chaosproxy import __version__
from chaosproxy.control.answer import MOST_BODY, Answer, Chunks, Refused, Request, as_json
from chaosproxy.control.api import ROUTES
from chaosproxy.control.backend import Backend
from chaosproxy.control.guard import Guard
from chaosproxy.control.routing import Route, resolve
from chaosproxy.net.loop import BusyError

#: The largest head (request line and header lines), in bytes.
MOST_HEAD: Final = 64 << 10
#: What may be a method, known or not (RFC 9110, 5.6.2).
_METHOD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}")
#: In a head: what some readers take for the end of a line or of the head and others do not, and a line that goes on.
_ODD: Final = re.compile(rb"\r(?!\n)|[\0\v\f]|\n[ \t]")
#: What the base notes about header lines that are none; what it makes of a body's parts, which it has not seen, says nothing.
_OF_LINES: Final = (
    FirstHeaderLineIsContinuationDefect,
    MalformedHeaderDefect,
    MissingHeaderBodySeparatorDefect,
)
#: More digits than any length has.
_MOST_DIGITS: Final = 18

_log = logging.getLogger("chaosproxy.control")


class Serving(Protocol):
    """What a request needs to know of its server."""

    backend: Backend
    guard: Guard


class Handler(BaseHTTPRequestHandler):
    """Answers one request: `begin`, then, if that says so, `respond`.

    `length` is how many bytes of body it has, `expects` whether its sender waits to be told to send them. `out` is what is to
    be written, and then what `chunks` gives, if there are any. `close_connection`: no other request follows.
    """

    protocol_version = "HTTP/1.1"
    server_version = f"chaosproxy/{__version__}"
    sys_version = ""

    def __init__(self, serving: Serving, head: bytes, who: str = "") -> None:
        # The base would read a socket and write to it, as slowly as whoever is at its other end.
        self._serving = serving
        self.rfile = BytesIO(head)
        self._odd = _ODD.search(head) is not None
        self.wfile = self._written = BytesIO()
        self.client_address = (who, 0)
        self.headers = Message()
        self.command, self.path, self.requestline = "", "", ""
        self.request_version = self.protocol_version
        self.close_connection = True
        self.length = 0
        self.expects = False
        self.chunks: Chunks | None = None
        self._path, self._query = "", ""
        self._route: tuple[Route, dict[str, str]] | None = None

    @property
    def out(self) -> bytes:
        """What is to be written."""
        return self._written.getvalue()

    def begin(self) -> bool:
        """Read the head; whether the body is wanted. If not, it is answered: there is nothing more to do."""
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request():
            return False
        try:
            self._judge()
        except Refused as refused:
            self._write(refused.answer())
            return False
        return True

    def respond(self, body: bytes) -> None:
        """Do what was asked, and answer it."""
        if self._route is None:
            raise AssertionError("it did not begin")
        route, params = self._route
        query = dict(parse_qsl(self._query, keep_blank_values=True))
        request = Request(self.command, self._path, self.headers, query, body, params)
        try:
            answer = route.respond(self._serving.backend, request)
        except Refused as refused:
            answer = refused.answer()
        except BusyError as error:
            answer = Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error)).answer()
        except Exception:  # noqa: BLE001 - logged; the next request may do better
            _log.exception("%s %r: a mistake in chaosproxy", self.command, self.path)
            problem = "a mistake in chaosproxy; its log has it"
            answer = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, problem).answer()
        self._write(answer)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """It is not answered otherwise: it did not come, or there is too much of it."""
        self.send_error(status, why)

    def _judge(self) -> None:
        """Whether it may be asked at all. Raises Refused."""
        if self.request_version == "HTTP/0.9":
            self.request_version = self.protocol_version
            raise Refused(HTTPStatus.BAD_REQUEST, "HTTP/0.9 has no headers: send HTTP/1.1")
        if not _METHOD.fullmatch(self.command):
            self.close_connection = True
            raise Refused(HTTPStatus.BAD_REQUEST, f"{self.command!r:.60} is no method")
        length = self._body_length()
        # Unless the body is wanted nobody knows where the next request would begin.
        closes = self.close_connection
        self.close_connection = closes or length > 0
        try:
            split = urlsplit(self.path)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"not an address: {error}") from None
        self._path, self._query = split.path, split.query
        self._serving.guard.check(split.path, self.headers)
        self._route = resolve(ROUTES, self.command, split.path)
        if length > MOST_BODY:
            self._serving.backend.limits.reached("control_body")
            limit = f"the body may have {MOST_BODY} bytes, not {length}"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        self.close_connection = closes
        self.length = length

    def _body_length(self) -> int:
        """How long the body is, where all who may stand in between agree on that. Raises Refused."""
        if self._odd or any(isinstance(each, _OF_LINES) for each in self.headers.defects):
            self.close_connection = True
            raise Refused(HTTPStatus.BAD_REQUEST, "these are no header lines")
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        lengths = self.headers.get_all("Content-Length", ["0"])
        if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            self.close_connection = True
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        return int(lengths[0].lstrip("0")[: _MOST_DIGITS + 1] or "0")

    def handle_expect_100(self) -> bool:
        """Its sender waits to be told to send the body; whether it is told so is seen later."""
        self.expects = True
        return True

    def _write(self, answer: Answer) -> None:
        if answer.chunks is not None:
            self.close_connection = True
            self.chunks = answer.chunks
        self.send_response(answer.status)
        headers = {
            "Content-Type": answer.content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            # No page of another site may even load it, as a picture, a script or a style.
            "Cross-Origin-Resource-Policy": "same-origin",
            **answer.headers,
        }
        if answer.status is HTTPStatus.NO_CONTENT:
            del headers["Content-Type"]
        elif answer.chunks is None:
            headers["Content-Length"] = str(len(answer.body))
        if self.close_connection:
            headers["Connection"] = "close"
        elif self.request_version == "HTTP/1.0":
            # Who asked for it in that version does not take it for granted.
            headers["Connection"] = "keep-alive"
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base refuses by itself (no HTTP, too many headers) is said in JSON too."""
        del explain
        if code in {HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE}:
            self._serving.backend.limits.reached("control_head")
        # What is no HTTP at all is HTTP/0.9 to the base, which has no status.
        self.request_version = self.protocol_version
        self.close_connection = True
        text = message or HTTPStatus(code).phrase
        self._write(as_json({"error": text}, HTTPStatus(code)))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """Requests are told at level debug only, and without their headers."""
        _log.debug("%s: %r", self.client_address[0], format % args)
