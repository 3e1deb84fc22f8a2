"""What a single client sees: a blocking socket that speaks RESP, with a clock beside it.

Takes ports, gives round-trip times in microseconds, memory in bytes, and checked round trips.
"""

import math
import os
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tests.bench.process import HOST, Program

KEY = b"bench:probe"
CONNECTIONS = (1, 1000, 5000)
BLOCK = 250
MEBI = 1 << 20


class ProbeError(Exception):
    """A reply that is not what the server would have sent."""


def request(*words: bytes) -> bytes:
    """A command as RESP sends it."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def connect(port: int, seconds: float = 60.0) -> socket.socket:
    """A connected socket that sends at once and whose every wait is bounded."""
    sock = socket.create_connection((HOST, port), timeout=seconds)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def ask(sock: socket.socket, raw: bytes, expected: bytes) -> None:
    """Send a request and read its reply; ProbeError when it is not the expected one."""
    sock.sendall(raw)
    got = bytearray()
    while len(got) < len(expected):
        part = sock.recv(MEBI)
        if not part:
            raise ProbeError(f"closed after {len(got)} of {len(expected)} bytes of a reply")
        got += part
    if got != expected:
        raise ProbeError(f"{bytes(got[:60])!r} came where {expected[:60]!r} was due")


def verify(port: int) -> None:
    """Values, small and large, go there and come back whole; ProbeError when not."""
    with connect(port) as sock:
        for size in (3, 100, 1_000_000):
            value = os.urandom(size)
            ask(sock, request(b"SET", KEY, value), b"+OK\r\n")
            ask(sock, request(b"GET", KEY), b"$%d\r\n%s\r\n" % (size, value))
        ask(sock, request(b"DEL", KEY), b":1\r\n")


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share (0 to 1) of the ordered values does not pass."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def latency(direct: int, port: int, number: int) -> dict[str, float]:
    """One client's GET round trips, in blocks that go direct and through the peer in turn.

    Args:
        direct: The server's port.
        port: The peer's.
        number: Round trips each way.

    Returns:
        `p50`, `p99`, `p999` in microseconds, and `added50`, `added99`, `added999`: how much more
        that is than direct in the same seconds.

    """
    raw = request(b"GET", KEY)
    reply = b"$100\r\n%s\r\n" % (b"x" * 100)
    times: dict[int, list[float]] = {0: [], 1: []}
    with connect(direct) as first, connect(port) as second:
        ask(first, request(b"SET", KEY, b"x" * 100), b"+OK\r\n")
        for _ in range(BLOCK):  # the first ones find cold caches
            ask(first, raw, reply)
            ask(second, raw, reply)
        while len(times[1]) < number:
            for way, sock in enumerate((first, second)):
                send, receive, clock = sock.send, sock.recv, time.perf_counter
                for _ in range(BLOCK):
                    begin = clock()
                    send(raw)
                    got = receive(4096)
                    times[way].append((clock() - begin) * 1e6)
                    if got != reply:
                        raise ProbeError(f"{got[:60]!r} came where {reply[:60]!r} was due")
    straight, through = sorted(times[0]), sorted(times[1])
    sample = {}
    for name, share in (("50", 0.5), ("99", 0.99), ("999", 0.999)):
        sample[f"p{name}"] = percentile(through, share)
        sample[f"added{name}"] = percentile(through, share) - percentile(straight, share)
    return sample


def idle(port: int, proxy: Program, most: int) -> dict[str, float]:
    """Resident bytes of a fresh proxy with idle connections that each did one PING.

    Args:
        port: The proxy's.
        proxy: Whose memory is read.
        most: How many connections are opened at the end, to see that they are accepted.

    Returns:
        `idle1`, `idle1000`, `idle5000` bytes; `accepted` connections, and their `share` of `most`.

    """
    sample = {}
    ping = request(b"PING")
    with ExitStack() as stack:
        opened = 0
        try:
            for number in (*CONNECTIONS, most):
                while opened < number:
                    sock = stack.enter_context(connect(port))
                    # Reset at the end: thousands in TIME_WAIT would disturb what follows.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    ask(sock, ping, b"+PONG\r\n")
                    opened += 1
                if number in CONNECTIONS:
                    proxy.settle()
                    sample[f"idle{number}"] = float(proxy.resident())
        except (OSError, ProbeError) as error:
            if opened < CONNECTIONS[-1]:
                raise ProbeError(f"connection {opened + 1}: {error}") from error
        sample |= {"accepted": float(opened), "share": opened / most}
    return sample


def huge(port: int, proxy: Program, size: int) -> dict[str, float]:
    """How far a proxy's memory grows while one huge value passes.

    The reader of the reply waits until the proxy has nothing more to do: what it holds then is
    what it is willing to hold for a slow client.

    Args:
        port: The proxy's.
        proxy: Whose memory is read.
        size: Bytes of the value.

    Returns:
        `huge_set`, `huge_get`: bytes at most above what it had before.

    """
    sample = {}
    block = memoryview(bytes(MEBI))
    room = memoryview(bytearray(MEBI))
    with connect(port, 120.0) as sock:
        ask(sock, request(b"PING"), b"+PONG\r\n")
        before = proxy.resident()
        proxy.forget_peak()
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(KEY), KEY, size))
        left = size
        while left:
            left -= sock.send(block[: min(left, MEBI)])
        ask(sock, b"\r\n", b"+OK\r\n")
        sample["huge_set"] = float(proxy.peak() - before)
        proxy.forget_peak()
        sock.sendall(request(b"GET", KEY))
        proxy.settle()
        left = size + len(b"$%d\r\n\r\n" % size)
        while left:
            got = sock.recv_into(room, min(left, MEBI))
            if not got:
                raise ProbeError(f"closed {left} bytes before the end of a value of {size}")
            left -= got
        sample["huge_get"] = float(proxy.peak() - before)
        ask(sock, request(b"DEL", KEY), b":1\r\n")
    return sample
