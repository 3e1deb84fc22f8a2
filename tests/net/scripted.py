"""A Sentinel that says what a test wants it to.

Takes the answers to give; gives its port, and what it was asked.
"""

import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.wire import Arg, decode, encode, first_of

UNKNOWN = b"*-1\r\n"


class ScriptedSentinel:
    """One listener; every client is answered by `answers`: the command's words, in upper case, as far as they go."""

    def __init__(self, primary: tuple[str, int], replicas: tuple[int, ...] = ()) -> None:
        self.asked: list[bytes] = []
        self.answers: dict[str, bytes | Callable[[], bytes]] = {
            "HELLO": b"%1\r\n+proto\r\n:3\r\n",
            "SUBSCRIBE": b">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n",
            "SENTINEL SENTINELS": b"*0\r\n",
            "SENTINEL FAILOVER": b"+OK\r\n",
            "PING": b"+PONG\r\n",
        }
        self.primary = primary
        self.replicas = replicas
        self._clients: list[Any] = []
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def push(self, *words: Arg) -> None:
        """Say something to everybody who is there."""
        for client in list(self._clients):
            with suppress(OSError):  # it may be gone, and not yet taken off the list
                client.sendall(b">" + encode(*words)[1:])

    def hang_up(self) -> None:
        """End all connections."""
        for client in list(self._clients):
            with suppress(OSError):
                client.shutdown(2)

    def close(self) -> None:
        self._server.shutdown()
        self.hang_up()
        self._server.server_close()

    def answer(self, words: list[bytes]) -> bytes:
        self.asked.append(b" ".join(words))
        two = b" ".join(words[:2]).decode().upper()
        match two:
            case "SENTINEL GET-MASTER-ADDR-BY-NAME" if two not in self.answers:
                return encode(*self.primary)
            case "SENTINEL REPLICAS" if two not in self.answers:
                items = [
                    encode("ip", "127.0.0.1", "port", each, "flags", "slave")
                    for each in self.replicas
                ]
                return b"*%d\r\n" % len(items) + b"".join(items)
        found = self.answers.get(two, self.answers.get(two.split()[0], b"-ERR unknown\r\n"))
        return found if isinstance(found, bytes) else found()

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        sentinel = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                sentinel._clients.append(self.request)
                data = b""
                try:
                    while more := self.request.recv(1 << 16):
                        data += more
                        while data.startswith(b"*"):
                            asked, data = first_of(data)
                            if not asked:
                                break
                            self.request.sendall(sentinel.answer(decode(asked)))
                except OSError:
                    pass
                finally:
                    sentinel._clients.remove(self.request)

        return Handler
