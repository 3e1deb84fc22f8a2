"""A thousand that say a little and then hardly more, on every side: each costs a bounded buffer, and nobody else waits.

Takes proxies in processes of their own; gives how much they grow, and how those fare who say whole things.
"""

import socket
import threading
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path

import pytest

from chaosproxy.net.descriptors import allow_connections
from tests.proxying import start_proxy, wait_for
from tests.wire import encode

MANY = 1000
#: What one may cost at most, in bytes: two sockets' objects, what it has said, and a page here and there.
MOST_EACH = 32 << 10

LOOKED_AT = """
faults:
- {fault: latency, match: {commands: [GET, SET, PING]}, at: before_forward, delay: 1ms, when: {chance: 1%}}
- {fault: latency, match: {commands: '@read', reply: {larger_than: 10}}, at: after_apply, delay: 1ms, when: {chance: 1%}}
"""

#: Beginnings of commands, and what comes of them one byte at a time.
BEGUN = (
    (b"*", b"2\r\n$3\r\n"),
    (b"*2\r\n$3\r\nGE", b"T\r\n$1\r"),
    (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + b"v" * 4000, b"vvvvvvvv"),
    (b"*1000000000\r\n$3\r\nGET\r\n", b"$0\r\n\r\n$0"),
    (b"*2\r\n$3\r\nGET\r\n$536870912\r\n" + b"k" * 1000, b"kkkkkkkk"),
    (b"PING" + b" " * 4000, b" " * 8),
)


def memory(proxy) -> int:
    """What a proxy's process holds, in bytes."""
    return int(Path(f"/proc/{proxy.process.pid}/statm").read_text().split()[1]) * 4096


def whole_ones_are_answered(proxy, times=50):
    with proxy.connect() as wire:
        for number in range(times):
            assert wire.ask("ECHO", f"{number}") == b"%d" % number


@pytest.fixture(autouse=True)
def enough_files():
    if allow_connections(3 * MANY) < 3 * MANY:
        pytest.skip(f"needs {6 * MANY} open files")


@pytest.mark.parametrize("profile", ["calm", LOOKED_AT], ids=["calm", "looked at"])
def test_clients(redis70, profile):
    """Half a header, half a value, a count of a billion: whoever says a byte now and then costs what they have said."""
    with start_proxy(redis70.url, profile) as proxy, ExitStack() as stack:
        whole_ones_are_answered(proxy)
        before = memory(proxy)
        slow = []
        for _, (begin, more) in zip(range(MANY), cycle(BEGUN), strict=False):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 20))
            made.sendall(begin)
            slow.append((made, iter(more)))
        wait_for(lambda: proxy.metric("connections") == MANY, "all of them", 60)
        for _ in range(4):
            for made, more in slow:
                made.sendall(bytes([next(more)]))
            whole_ones_are_answered(proxy)
        assert memory(proxy) - before < MANY * MOST_EACH
        status = proxy.metric("buffered_bytes")
        assert status < MANY * 5000
    assert "mistake" not in proxy.stderr


class HalfAnswers:
    """A server that says half an answer to whoever comes, and one byte more whenever it is told to."""

    SAID = (
        b"$100000\r\n" + b"v" * 3000,
        b"*1000000000\r\n:1\r\n",
        b"+" + b"O" * 3000,
        b"%5\r\n$5\r\nab",
        b"*1\r\n" * 700,
    )

    def __init__(self) -> None:
        self.here: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for said in cycle(self.SAID):
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.here.append(client)
            with suppress(ConnectionError):
                client.sendall(said)

    def drip(self) -> None:
        for client in self.here:
            # The proxy's own is given up after a while.
            with suppress(ConnectionError):
                client.sendall(b"v")

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for client in self.here:
            client.close()


@pytest.mark.parametrize("profile", ["calm", LOOKED_AT], ids=["calm", "looked at"])
def test_servers(profile):
    """Half an answer, and then hardly more: it costs what was said, whether it is passed on or looked at as a whole."""
    with (
        closing(HalfAnswers()) as server,
        start_proxy(server.url, profile) as proxy,
        ExitStack() as stack,
    ):
        before = memory(proxy)
        for _ in range(MANY):
            made = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 20))
            made.sendall(encode("GET", "k"))
        wait_for(lambda: len(server.here) >= MANY, "all of them", 60)
        for _ in range(4):
            server.drip()
        wait_for(lambda: proxy.metric("connections") == MANY, "all of them", 60)
        assert memory(proxy) - before < MANY * MOST_EACH
    assert "mistake" not in proxy.stderr


def test_control(redis70):
    """On the control address the oldest go; whoever asks whole questions is answered, and clients' commands too."""
    with start_proxy(redis70.url) as proxy, ExitStack() as stack:
        where = proxy.control.partition("//")[2]
        host, _, port = where.partition(":")
        before = memory(proxy)
        asked = 0
        for number in range(MANY):
            made = stack.enter_context(socket.create_connection((host, int(port)), 20))
            made.sendall(
                b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
                + b"x" * (number % 3000)
            )
            if number % 100 == 0:
                with closing(HTTPConnection(where, timeout=20)) as link:
                    link.request("GET", "/healthz")
                    asked += link.getresponse().status == 200
        assert asked == MANY // 100
        whole_ones_are_answered(proxy)
        assert memory(proxy) - before < 32 << 20
        # Those that have come when the machine stood still may have gone by themselves.
        assert proxy.metric("limits_reached_total", limit="control_connections") >= MANY // 4
    assert "mistake" not in proxy.stderr
