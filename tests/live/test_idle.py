"""Hundreds of clients that are there and say nothing: what each takes in the proxy's memory.

Takes a proxy in a process of its own; gives how much more it has resident, client by client.
"""

import socket
import time
from contextlib import ExitStack

import pytest

from tests.bench import usage
from tests.bench.probe import ask, connect, request
from tests.proxying import start_proxy

CLIENTS = 400


def opened(stack: ExitStack, port: int, says: list[tuple[bytes, bytes]]) -> list[socket.socket]:
    found = []
    for _ in range(CLIENTS):
        sock = stack.enter_context(connect(port))
        for command, reply in says:
            ask(sock, command, reply)
        found.append(sock)
    return found


def resident(pid: int) -> int:
    """Bytes it has in memory, once that changes no more."""
    last, now = -1, usage.memory([pid], "VmRSS")
    while now != last:
        time.sleep(0.2)
        last, now = now, usage.memory([pid], "VmRSS")
    return now


@pytest.mark.parametrize(
    ("says", "most"),
    [
        ([(request(b"PING"), b"+PONG\r\n")], 6000),
        (
            [
                (request(b"SELECT", b"1"), b"+OK\r\n"),
                (request(b"CLIENT", b"SETNAME", b"app"), b"+OK\r\n"),
                (request(b"GET", b"nothing"), b"$-1\r\n"),
            ],
            8000,
        ),
    ],
    ids=["ping", "as clients begin"],
)
def test_what_an_idle_client_takes(redis70, says, most):
    """Not 6 kB for one that pings, its two sockets included, nor 8 for one that has introduced itself."""
    with start_proxy(redis70.url) as proxy, ExitStack() as stack:
        # What the first ones bring with them is not theirs.
        opened(stack, proxy.port, says)
        before = resident(proxy.process.pid)
        opened(stack, proxy.port, says)
        each = (resident(proxy.process.pid) - before) / CLIENTS
    assert each < most, each
