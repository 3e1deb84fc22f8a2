"""What no table of scripts can hold: replication streams, a full server, resets, and a server that dies.

Takes real servers and both kinds of proxy; gives proof that a client sees the same through the proxy as without.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import RunningProxy, refused, start_proxy
from tests.wire import Wire, encode

ARMED = Path(__file__).with_name("armed.yaml")
PATIENCE = 60.0


@pytest.fixture(params=["direct", "calm", "armed"])
def way(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def running() -> Iterator[dict[tuple[int, str], RunningProxy]]:
    """The proxies before each server, by its pid and the way through; they run as long as the module is tested."""
    proxies: dict[tuple[int, str], RunningProxy] = {}
    yield proxies
    for proxy in proxies.values():
        proxy.stop()


@pytest.fixture
def through(way: str, running) -> Callable[[servers.Server], int]:
    """Give a function that gives the port at which a server is to be met: its own, or a proxy's."""

    def give(server: servers.Server) -> int:
        if way == "direct":
            return server.port
        key = (server.pid, way)
        if key not in running:
            running[key] = start_proxy(server.url, "calm" if way == "calm" else str(ARMED))
        return running[key].port

    return give


def read_until(wire: Wire, wanted: bytes) -> bytes:
    """Read until this has come; keep-alive line breaks before the first byte are left out."""
    data, wire.buffer = wire.buffer, b""
    while wanted not in data:
        more = wire.socket.recv(1 << 20)
        assert more, f"ended after {data[:200]!r}"
        data += more
    return data.lstrip(b"\n")


REPLICATION = (("repl-diskless-sync-delay", "0"), ("repl-ping-replica-period", "1"))


@pytest.mark.parametrize(
    "handshake", [(), ("PING", "REPLCONF listening-port 1", "REPLCONF capa eof capa psync2")]
)
@pytest.mark.parametrize("sync", ["SYNC", "PSYNC ? -1"])
def test_a_replica_is_fed_through_it(server, through, sync: str, handshake: tuple[str, ...]):
    """A replica's connection: the snapshot, then every write as the primary sends it, and acknowledgements back."""
    for name, value in REPLICATION:
        server.ask("CONFIG", "SET", name, value)
    server.ask("SET", "before", "x" * 100_000)
    with Wire(through(server)) as replica:
        for command in handshake:
            assert replica.raw(*command.split(" ")) in (b"+PONG\r\n", b"+OK\r\n")
        replica.send(*sync.split(" "))
        data = read_until(replica, b"before")
        if sync != "SYNC":
            resync, _, data = data.partition(b"\r\n")
            assert re.fullmatch(rb"\+FULLRESYNC [0-9a-f]{40} \d+", resync)
            data = data.lstrip(b"\n")
        length, _, snapshot = data.partition(b"\r\n")
        if length.startswith(b"$EOF:"):
            # What follows is known by its end, and nothing follows that before this replica is ready.
            while not snapshot.endswith(length[5:]):
                snapshot += replica.socket.recv(1 << 20)
            heard = b""
        else:
            while len(snapshot) < int(length[1:]):
                snapshot += replica.socket.recv(1 << 20)
            snapshot, heard = snapshot[: int(length[1:])], snapshot[int(length[1:]) :]
        assert b"before" in snapshot
        write = encode("SET", "after", "y" * 70_000)
        server.ask("SET", "after", "y" * 70_000)
        deadline = time.monotonic() + PATIENCE
        while write not in heard:
            assert time.monotonic() < deadline, f"heard {heard[:200]!r} of {len(heard)} bytes"
            # As replicas do again and again; one that took a stream without a length gets no more before it.
            replica.send("REPLCONF", "ACK", 0)
            replica.silent(0.1)
            heard += replica.buffer
            replica.buffer = b""
        assert encode("SELECT", 0) in heard
        # What a replica says is not answered; that it is heard shows in WAIT and INFO.
        replica.send("REPLCONF", "ACK", 1 << 40)
        deadline = time.monotonic() + PATIENCE
        while b"offset=%d" % (1 << 40) not in server.ask("INFO", "replication"):
            assert time.monotonic() < deadline, server.ask("INFO", "replication")
            time.sleep(0.01)


def test_a_full_server_says_so_and_hangs_up(server, through):
    """Text that nobody asked for, before any request, and FIN."""
    port = through(server)
    server.ask("CONFIG", "SET", "maxclients", 1)
    wires = [Wire(port) for _ in range(3)]
    try:
        assert wires[-1].read_to_end() == (b"-ERR max number of clients reached\r\n", "FIN")
    finally:
        server.ask("CONFIG", "SET", "maxclients", 10_000)
        for wire in wires:
            wire.close()


@pytest.mark.servers("redis70", "valkey9")
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("doing", ["nothing", "BLPOP q 0", "SUBSCRIBE ch", "MULTI", "MONITOR"])
def test_a_client_that_goes_is_gone_for_the_server(server, through, how: str, doing: str):
    """Whatever it was doing, its connection to the server ends with it, at once."""
    wire = Wire(through(server))
    wire.raw("CLIENT", "SETNAME", "leaver")
    if doing != "nothing":
        wire.send(*doing.split(" "))
    if not doing.startswith("BLPOP"):
        server.ask("PING")

    def connected() -> bool:
        return b"name=leaver" in server.ask("CLIENT", "LIST")

    assert connected()
    wire.reset() if how == "reset" else wire.close()
    deadline = time.monotonic() + PATIENCE
    while connected():
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.002)


@pytest.mark.servers("redis70", "valkey9")
def test_input_left_unread_at_the_end(server, through, way: str):
    """A server that ends a connection with input unread resets it; what it said before must still arrive."""
    port = through(server)
    for _ in range(20):
        with Wire(port) as wire:
            # It may be ended while there is more to send.
            with suppress(BrokenPipeError, ConnectionResetError):
                wire.socket.sendall(encode("PING") + b"*x\r\n" + b"x" * 500_000)
            said, end = wire.read_to_end()
        assert said == b"+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n"
        # The one end that differs: where the server's reset can destroy its last words, the proxy ends in peace.
        assert end == "FIN" or way == "direct"


def test_more_input_than_a_client_may_have(server, through):
    """Above client-query-buffer-limit the server hangs up without a word."""
    server.ask("CONFIG", "SET", "client-query-buffer-limit", 1 << 20)
    with Wire(through(server)) as wire:
        assert wire.raw("PING") == b"+PONG\r\n"
        with suppress(BrokenPipeError, ConnectionResetError):
            wire.socket.sendall(encode("ECHO", b"x" * 8_000_000))
        assert wire.read_to_end()[0] == b""


@pytest.mark.parametrize("doing", ["nothing", "BLPOP q 0", "SUBSCRIBE ch"])
def test_a_server_that_is_killed(through, way: str, doing: str):
    """Its clients' connections end; a new one is refused, which through the proxy is an end without a byte."""
    reason = servers.available("valkey9")
    if reason is not None:
        pytest.skip(reason)
    server = servers.start("valkey9")
    port = through(server)
    try:
        wire = Wire(port)
        wire.raw("PING")
        if doing != "nothing":
            wire.send(*doing.split(" "))
        # With its request unread the server would end by RST.
        while doing.startswith("BLPOP") and b"blocked_clients:1" not in server.ask("INFO"):
            time.sleep(0.002)
        if doing.startswith("SUBSCRIBE"):
            wire.read()
        os.kill(server.pid, signal.SIGKILL)
        assert wire.read_to_end() == (b"", "FIN")
        wire.close()
        # Its connections end a moment before it stops listening.
        server.process.wait(PATIENCE)
        if way == "direct":
            assert refused(port)
        else:
            with Wire(port) as late:
                assert late.read_to_end() == (b"", "FIN")
    finally:
        server.stop()


@pytest.mark.servers("valkey9")
def test_a_client_that_does_not_read_holds_up_only_itself(server, through):
    """What it asked for waits in the server and on the way; the others are answered, and then it gets all of it."""
    value = b"x" * (4 << 20)
    server.ask("SET", "big", value)
    wanted = b"$%d\r\n%s\r\n" % (len(value), value) * 12
    port = through(server)
    with Wire(port) as slow, Wire(port) as other:
        for _ in range(12):
            slow.send("GET", "big")
        for _ in range(50):
            assert other.ask("PING") == "PONG"
        got = bytearray()
        while len(got) < len(wanted):
            got += slow.socket.recv(1 << 20)
        assert got == wanted
