"""One connection of the control address: what came of it, what it is still to be told, and until when it is waited for.

Takes a socket; gives the head of a request once all of it is here, and writes streams, which alone have a thread each.
"""

import re
import socket
from contextlib import closing, suppress
from http import HTTPStatus
from threading import Event
from typing import Final

from chaosproxy.control.handler import MOST_HEAD, Handler

#: How long a connection may say nothing, a request may take to come, or an answer may not be read, in seconds.
PATIENCE: Final = 5.0
NEVER: Final = float("inf")
_END: Final = re.compile(rb"\n\r?\n")


class Visitor:
    """One connection. `due`: when it is given up, NEVER while it is worked for; `since`: since when it owes what it owes.

    `came` is what was received and not taken yet, `out` what is still to be written, `handler` the request whose head is here.
    `lingers`: it is over. `latest`: when its answer has to be read by.
    """

    __slots__ = (
        "_searched", "came", "due", "handler", "latest", "lingers", "out", "since", "sock", "who",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, who: str, now: float) -> None:
        self.sock = sock
        self.who = who
        self.came = bytearray()
        # So much of it ends no head.
        self._searched = 0
        self.out = b""
        self.handler: Handler | None = None
        self.lingers = False
        self.since = self.latest = now
        self.due = now + PATIENCE

    @property
    def held(self) -> int:
        """Bytes held."""
        return len(self.came) + len(self.out)

    def take_head(self) -> bytes | None:
        """Give a request's head, up to the empty line, if all of it is here and it is none too large; it has come no more."""
        came = self.came
        while came.startswith((b"\r\n", b"\n")):
            del came[: came.index(b"\n") + 1]
        end = _END.search(came, self._searched, MOST_HEAD)
        self._searched = max(0, len(came) - 2) if end is None else 0
        if end is None:
            return None
        head = bytes(came[: end.end()])
        del came[: end.end()]
        return head


def accept(listening: socket.socket) -> tuple[socket.socket, str]:
    """Accept one connection: its socket, and the host of whoever is there. Raises OSError."""
    sock, who = listening.accept()
    sock.setblocking(False)
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock, str(who[0])


def send_off(sock: socket.socket, handler: Handler, why: str) -> None:
    """Nobody has time for it: it is told so, if it can be, and closed."""
    handler.refuse(HTTPStatus.SERVICE_UNAVAILABLE, why)
    with closing(sock), suppress(OSError):
        sock.send(handler.out)


def stream(sock: socket.socket, handler: Handler, stopping: Event) -> None:
    """Write as long as there is something, whoever asked listens, and the server runs. Raises OSError."""
    sock.settimeout(PATIENCE)
    chunks = iter(handler.chunks or ())
    sock.sendall(handler.out + next(chunks, b""))
    for chunk in chunks:
        if stopping.is_set() or (not chunk and _has_left(sock)):
            return
        sock.sendall(chunk)


def _has_left(sock: socket.socket) -> bool:
    """Whether whoever listened has hung up; what else they may say is passed over."""
    sock.setblocking(False)
    try:
        return not sock.recv(4096)
    except BlockingIOError:
        return False
    finally:
        sock.settimeout(PATIENCE)
