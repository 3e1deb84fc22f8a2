"""The two sockets as asyncio sees them: a client turned away, and what a dead server left in the kernel."""

import socket

from tests.net.harness import Harness
from tests.proxying import wait_for


def test_turned_away(either_loop, monkeypatch):
    """A client too many gets Redis's own words and FIN, and has no upstream; one that leaves makes room."""
    harness = Harness(monkeypatch, max_connections=1)
    try:
        first, _ = harness.pair()
        second = harness.client()
        second.send_bytes(b"PING\r\n")
        assert second.read_to_end() == (b"-ERR max number of clients reached\r\n", "FIN")
        counted = {"connected": 1, "max_clients": 1}
        wait_for(lambda: harness.proxy.counts.connections == counted, f"{counted}")
        first.reset()
        wait_for(lambda: not harness.links, "the end")
        client, upstream = harness.pair()
        client.send_bytes(b"PING")
        assert upstream.recv(4) == b"PING"
    finally:
        harness.close()


def test_everything_left_in_the_kernel(harness):
    """However much a server said before it reset: all of it reaches the client, in order."""
    client, upstream = harness.pair()
    harness.talk.upstream_paused = True
    client.send_bytes(b"x")
    assert upstream.recv(1) == b"x"
    wait_for(lambda: harness.links[0]._upstream_held, "no reading")
    said = b"".join(b"%08d" % n for n in range(10_000))
    # As much as the kernel takes for one that does not read.
    said = said[:50_000]
    upstream.sendall(said)
    upstream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    wait_for(lambda: unread(harness) == len(said), "the bytes to be there")
    upstream.close()
    client.send_bytes(b"y")
    assert client.read_to_end() == (said, "FIN")


def unread(harness):
    """How many bytes the kernel holds for the proxy's upstream side."""
    import fcntl
    import struct
    import termios

    sock = harness.links[0]._upstream.get_extra_info("socket")
    return struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)))[0]
