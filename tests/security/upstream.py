"""A server behind the proxy that means ill: it answers what a test wants it to.

Takes a function of a command's words that gives bytes; gives its port, and what it was asked.
"""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.wire import decode, first_of

Answer = Callable[[list[bytes]], bytes]


@dataclass
class Upstream:
    """It listens at `port`; `asked` are the words of all commands, in order; `who` came to it how often."""

    answer: Answer
    asked: list[list[bytes]] = field(default_factory=list)
    came: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        upstream: Upstream = self.server.upstream
        upstream.came += 1
        data = b""
        try:
            while more := self.request.recv(1 << 16):
                data += more
                while True:
                    asked, data = first_of(data)
                    if not asked:
                        break
                    upstream.asked.append(decode(asked))
                    self.request.sendall(upstream.answer(upstream.asked[-1]))
        except OSError:
            pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    upstream: Any


@contextmanager
def hostile(answer: Answer) -> Iterator[Upstream]:
    """Give a running one."""
    upstream = Upstream(answer)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.upstream = upstream
        upstream.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield upstream
        server.shutdown()
