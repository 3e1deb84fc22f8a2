"""One HTTP connection: requests are read, bounded in size and time, and answered.

Takes bytes; gives what the routes answer, as it is or, for HEAD, without its body.
"""

import json
import logging
import select
from contextlib import closing, suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import Event
from time import monotonic
from typing import Final, Protocol, cast
from urllib.parse import parse_qsl, urlsplit

from chaosproxy import __version__
from chaosproxy.control.answer import Answer, Chunks, Refused, Request
from chaosproxy.control.api import ROUTES
from chaosproxy.control.backend import Backend, BusyError
from chaosproxy.control.guard import Guard
from chaosproxy.control.routing import resolve

#: How long a connection may say nothing, in seconds; and how long a body may take in all.
SILENCE: Final = 5.0
#: The largest body, in bytes: a profile of the largest size, every character escaped.
MOST_BODY: Final = 2 << 20
#: So much of a body that is not wanted is read, so that its sender can hear the answer.
_PATIENCE: Final = 8 << 20

_log = logging.getLogger("chaosproxy.control")


class Serving(Protocol):
    """What a connection needs to know of its server."""

    backend: Backend
    guard: Guard
    stopping: Event


class Handler(BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    protocol_version = "HTTP/1.1"
    server_version = f"chaosproxy/{__version__}"
    sys_version = ""
    timeout = SILENCE
    # One packet an answer: headers and body would otherwise wait for each other's acknowledgement.
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer, whatever the method: the base looks for one function for each."""
        try:
            answer = self._respond()
        except Refused as refused:
            answer = refused.answer()
        except BusyError as error:
            answer = Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error)).answer()
        except OSError:
            # It has gone, or says no more.
            self.close_connection = True
            return
        except Exception:  # noqa: BLE001 - logged; the next request may do better
            _log.exception("%s %s: a mistake in chaosproxy", self.command, self.path)
            problem = "a mistake in chaosproxy; its log has it"
            answer = Refused(HTTPStatus.INTERNAL_SERVER_ERROR, problem).answer()
        self._write(answer)

    do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - as the base calls them

    def _respond(self) -> Answer:
        serving = cast("Serving", self.server)
        split = urlsplit(self.path)
        unread = self._body_length()
        try:
            serving.guard.check(split.path, self.headers)
            route, params = resolve(ROUTES, self.command, split.path)
            if unread > MOST_BODY:
                limit = f"the body may have {MOST_BODY} bytes, not {unread}"
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
            body, unread = self._read(unread), 0
        finally:
            if unread:
                self._pass_over(unread)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        request = Request(self.command, split.path, self.headers, query, body, params)
        return route.respond(serving.backend, request)

    def _body_length(self) -> int:
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        lengths = self.headers.get_all("Content-Length", ["0"])
        if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            self.close_connection = True
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        return int(lengths[0])

    def _read(self, length: int) -> bytes:
        """Read a body that does not take longer than SILENCE. Raises Refused."""
        parts, due = [], monotonic() + SILENCE
        while length:
            part = self.rfile.read1(min(length, 65536))
            if not part or monotonic() > due:
                self.close_connection = True
                raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not come")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _pass_over(self, length: int) -> None:
        """Read what is not wanted: who is closed on while still sending does not hear the answer."""
        self.close_connection = True
        with suppress(OSError, Refused):
            self._read(min(length, _PATIENCE))

    def _write(self, answer: Answer) -> None:
        if answer.chunks is None:
            self._write_head(answer)
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            return
        self.close_connection = True
        with closing(answer.chunks), suppress(OSError):
            self._write_head(answer)
            self._stream(answer.chunks)

    def _write_head(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {
            "Content-Type": answer.content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **answer.headers,
        }
        if answer.status is HTTPStatus.NO_CONTENT:
            del headers["Content-Type"]
        elif answer.chunks is None:
            headers["Content-Length"] = str(len(answer.body))
        if self.close_connection:
            headers["Connection"] = "close"
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()

    def _stream(self, chunks: Chunks) -> None:
        """Write as long as there is something, the client listens, and the server runs."""
        stopping = cast("Serving", self.server).stopping
        for chunk in chunks:
            if stopping.is_set() or (not chunk and self._has_left()):
                return
            self.wfile.write(chunk)
            self.wfile.flush()

    def _has_left(self) -> bool:
        """Whether the client has hung up; what else it may say is passed over."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(4096)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base refuses by itself (no HTTP, a method nobody has) is said in JSON too."""
        del explain
        # The base may not even have got as far as to read headers.
        if not hasattr(self, "headers"):
            self.headers = Message()
        # What is no HTTP at all is HTTP/0.9 to the base, which has no status.
        self.request_version = self.protocol_version
        self.close_connection = True
        text = message or HTTPStatus(code).phrase
        body = json.dumps({"error": text}).encode() + b"\n"
        self._write(Answer(HTTPStatus(code), body))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
        """Requests are told at level debug only, and without their headers."""
        _log.debug(format, *args)
