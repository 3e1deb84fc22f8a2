"""The control address's connections: requests that come in and answers that go out, as slowly as whoever is there.

Takes a listening socket; gives whole requests to threads that answer them. While one is incomplete, or its answer is not yet
read, it costs a buffer that is bounded in size and time, and nobody waits for it.
"""

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Final

from chaosproxy.control.events import MOST_WAITING
from chaosproxy.control.handler import MOST_HEAD, Handler, Serving
from chaosproxy.control.visitor import NEVER, PATIENCE, Visitor, accept, send_off, stream

#: How many connections there may be; for one more the one that has been owing a request for longest is closed.
MOST_CONNECTIONS: Final = 256
#: How many requests are worked on at once, half of them waiting for events.
MOST_REQUESTS: Final = 2 * MOST_WAITING
#: How many bytes of requests and answers may be held, of all connections together.
MOST_HELD: Final = 64 << 20
#: How long nothing of an answer may be read, in seconds: a browser on a busy machine takes its time, and it costs a buffer.
UNREAD: Final = 20.0
#: How long an answer may take to be read, in seconds, however steadily.
LONGEST_ANSWER: Final = 60.0
#: How long a connection that is over is listened to, in seconds: one that is closed with bytes unread is reset, and its answer lost.
LINGER: Final = 2.0
#: How long those that are being answered are waited for in the end, in seconds.
_GRACE: Final = 1.0
#: How often it is looked who is late, in seconds.
_TICK: Final = 0.1
_PIECE: Final = 1 << 16

_log = logging.getLogger("chaosproxy.control")


class Sockets:
    """All connections of one listening socket, looked after in one thread, from `run` to `stop`."""

    def __init__(self, listening: socket.socket, serving: Serving) -> None:
        self._serving = serving
        self._listening = listening
        listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        # Threads have answered: what is to be done here about it.
        self._answered: deque[tuple[Visitor, bytes]] = deque()
        self._rung, self._bell = socket.socketpair()
        self._rung.setblocking(False)
        self._selector.register(self._rung, selectors.EVENT_READ)
        self._connections: dict[Visitor, None] = {}
        self._ready: deque[tuple[Visitor, bytes]] = deque()
        # Those that have said more than one request. Until it is their turn nothing more is read of them.
        self._again: dict[Visitor, None] = {}
        self._working = 0
        self._end = NEVER
        self.stopping = threading.Event()

    def run(self) -> None:
        """Look after them until `stop`, and a moment longer after those that are being answered."""
        look_at = 0.0
        while self._connections or not self.stopping.is_set():
            for key, events in self._selector.select(0 if self._again else _TICK):
                self._happened(key.fileobj, key.data, events)
            again, self._again = self._again, {}
            for each in again:
                self._try(self._go_on, each)
            now = monotonic()
            if self.stopping.is_set():
                self._wind_up(now)
            if now >= look_at:
                look_at = now + _TICK
                for each in [each for each in self._connections if each.due <= now]:
                    self._try(self._late, each)
        self._selector.close()
        for sock in (self._listening, self._rung, self._bell):
            sock.close()

    def _wind_up(self, now: float) -> None:
        """Drop all but those that are being answered, and those too once their time is over."""
        if self._end == NEVER:
            self._end = now + _GRACE
            self._selector.unregister(self._listening)
        for each in list(self._connections):
            if now >= self._end or not (each.due == NEVER or each.out):
                self._drop(each)

    def stop(self) -> None:
        """Answer nobody any more."""
        self.stopping.set()
        self._ring()

    def _ring(self) -> None:
        with suppress(OSError):
            self._bell.send(b"!")

    def _happened(self, where: object, connection: Visitor | None, events: int) -> None:
        if where is self._listening:
            self._accept()
        elif connection is None:
            with suppress(BlockingIOError):
                self._rung.recv(_PIECE)
            while self._answered:
                connection, out = self._answered.popleft()
                self._working -= 1
                self._work()
                self._try(partial(self._over, out), connection)
        elif connection not in self._again:
            self._try(self._write if events & selectors.EVENT_WRITE else self._read, connection)

    def _try(self, what: Callable[[Visitor], None], connection: Visitor) -> None:
        if connection in self._connections:
            try:
                what(connection)
            except OSError:
                # It has gone.
                self._drop(connection)
            except Exception:  # noqa: BLE001 - one connection of many
                # The thread is everybody's.
                _log.exception("control: a mistake in chaosproxy")
                self._drop(connection)

    # Coming and going.

    def _accept(self) -> None:
        for _ in range(MOST_REQUESTS):
            try:
                sock, who = accept(self._listening)
            except BlockingIOError:
                return
            except OSError:
                # No file is left to open: whoever knocks is heard once there is.
                self.stopping.wait(_TICK / 2)
                return
            if len(self._connections) >= MOST_CONNECTIONS and not self._make_room():
                send_off(sock, Handler(self._serving, b""), "too many requests at once")
                continue
            connection = Visitor(sock, who, monotonic())
            self._connections[connection] = None
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _make_room(self) -> bool:
        """One too many: who has owed us something for longest goes; False if all are being worked for."""
        self._serving.backend.limits.reached("control_connections")
        idle = [each for each in self._connections if each.due < NEVER]
        if idle:
            self._drop(min(idle, key=lambda each: each.since))
        return bool(idle)

    def _drop(self, connection: Visitor) -> None:
        if connection in self._connections:
            del self._connections[connection]
            with suppress(KeyError):
                self._selector.unregister(connection.sock)
            connection.sock.close()

    def _late(self, connection: Visitor) -> None:
        """It owes something, and its time is over."""
        if connection.lingers or not (connection.out or connection.came or connection.handler):
            self._drop(connection)
            return
        self._serving.backend.limits.reached("control_time")
        if connection.out:
            self._drop(connection)
        else:
            self._refuse(connection, HTTPStatus.REQUEST_TIMEOUT, "the request did not come in time")

    # A request comes.

    def _read(self, connection: Visitor) -> None:
        data = connection.sock.recv(_PIECE)
        if connection.lingers:
            if not data:
                self._drop(connection)
            return
        if not data:
            if connection.came or connection.handler:
                self._refuse(
                    connection, HTTPStatus.REQUEST_TIMEOUT, "the request ends before its end"
                )
            else:
                self._drop(connection)
            return
        if not (connection.came or connection.handler):
            connection.since = monotonic()
            connection.due = connection.since + PATIENCE
        connection.came += data
        if self._holds_too_much():
            self._refuse(
                connection, HTTPStatus.SERVICE_UNAVAILABLE, "too much is being sent at once"
            )
        else:
            self._go_on(connection)

    def _holds_too_much(self) -> bool:
        much = sum(each.held for each in self._connections) > MOST_HELD
        if much:
            self._serving.backend.limits.reached("control_bytes")
        return much

    def _go_on(self, connection: Visitor) -> None:
        """See whether what came is a head, or a whole request."""
        came, handler = connection.came, connection.handler
        if handler is None:
            head = connection.take_head()
            if head is None and len(came) > MOST_HEAD:
                line = came.find(b"\n", 0, MOST_HEAD)
                status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                status = HTTPStatus.REQUEST_URI_TOO_LONG if line < 0 else status
                limit = f"what comes before a body may have {MOST_HEAD} bytes"
                self._refuse(connection, status, limit)
                return
            if head is None:
                return
            handler = Handler(self._serving, head, connection.who)
            if not handler.begin():
                self._answer(connection, handler)
                return
            connection.handler = handler
            if handler.expects and len(came) < handler.length:
                with suppress(BlockingIOError):
                    connection.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(came) >= handler.length:
            body = bytes(came[: handler.length])
            del came[: handler.length]
            self._selector.unregister(connection.sock)
            connection.due = NEVER
            self._ready.append((connection, body))
            self._work()

    def _refuse(self, connection: Visitor, status: HTTPStatus, why: str) -> None:
        handler = connection.handler or Handler(self._serving, b"", connection.who)
        handler.refuse(status, why)
        self._answer(connection, handler)

    # It is answered.

    def _work(self) -> None:
        """Have whole requests answered, as many at once as may be."""
        while self._ready and self._working < MOST_REQUESTS:
            connection, body = self._ready.popleft()
            if (handler := connection.handler) is not None:
                self._working += 1
                work = (connection, handler, body)
                thread = threading.Thread(
                    target=self._finish, args=work, name="chaosproxy-control-request", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:
                    # A container may have so many threads and no more.
                    handler.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "no thread is left to answer it")
                    self._answered.append((connection, handler.out))
                    self._ring()

    def _finish(self, connection: Visitor, handler: Handler, body: bytes) -> None:
        """In a thread of its own: answer it, and have it written."""
        try:
            handler.respond(body)
            if handler.chunks is not None:
                with closing(handler.chunks), suppress(OSError):
                    stream(connection.sock, handler, self.stopping)
        finally:
            self._answered.append((connection, b"" if handler.chunks else handler.out))
            self._ring()

    def _over(self, out: bytes, connection: Visitor) -> None:
        """A thread is done with it."""
        connection.sock.setblocking(False)
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)
        if out and connection.handler is not None:
            self._answer(connection, connection.handler)
        else:
            self._written(connection)

    def _answer(self, connection: Visitor, handler: Handler) -> None:
        """Write what answers a request."""
        now = connection.since = monotonic()
        connection.handler = handler
        connection.out = handler.out
        connection.due, connection.latest = now + UNREAD, now + LONGEST_ANSWER
        self._write(connection)
        if connection.out and self._holds_too_much():
            slower = [each for each in self._connections if each.out and each is not connection]
            if slower:
                self._drop(min(slower, key=lambda each: each.since))

    def _write(self, connection: Visitor) -> None:
        with suppress(BlockingIOError):
            sent = connection.sock.send(connection.out[: 1 << 20])
            connection.out = connection.out[sent:]
            connection.due = min(monotonic() + UNREAD, connection.latest)
        events = selectors.EVENT_WRITE if connection.out else selectors.EVENT_READ
        self._selector.modify(connection.sock, events, connection)
        if not connection.out:
            self._written(connection)

    def _written(self, connection: Visitor) -> None:
        """Its answer is written: the next request may come, or it is over."""
        handler, connection.handler = connection.handler, None
        connection.since = monotonic()
        if handler is None or handler.close_connection:
            connection.sock.shutdown(socket.SHUT_WR)
            connection.came.clear()
            connection.lingers = True
            connection.due = connection.since + LINGER
            return
        connection.due = connection.since + PATIENCE
        if connection.came:
            self._again[connection] = None
