"""Who vanishes without a word: the kernel looks for clients and for the server, as Redis has it look for its clients."""

import asyncio
import socket

import pytest

from chaosproxy.net import keepalive
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.ending import unacknowledged
from chaosproxy.net.keepalive import keep_alive
from chaosproxy.net.loop import new_loop
from tests.proxying import wait_for

TCP = socket.IPPROTO_TCP


def patience(sock):
    """Whether its peer is looked for, and how."""
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    on = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return bool(on), *(sock.getsockopt(TCP, option) for option in options)


def test_both_sides(serve_here, redis70):
    """A client's connection and the one to the server, with Redis's own numbers."""
    proxy = serve_here(redis70.url)
    assert redis70.ask("CONFIG", "GET", "tcp-keepalive") == [b"tcp-keepalive", b"300"]
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"
        (link,) = proxy.service._proxy.links.values()
        for transport in (link.client, link._upstream):
            sock = transport.get_extra_info("socket")
            # Who has dialled goes on with it a moment after the first bytes may have passed.
            wait_for(lambda sock=sock: patience(sock) == (True, 300, 100, 3), "its patience")


def test_a_unix_socket():
    """It has no peer that could vanish."""
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        keep_alive(one)
        assert not one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_loop])
def test_a_connection_that_is_over_at_once(loop):
    """One that ends as soon as it is there was dialled all the same: that its socket is closed is no mistake of ours."""

    class Hasty(asyncio.Protocol):
        def connection_made(self, transport):
            transport.abort()

    async def dial(dialler):
        for _ in range(20):
            transport, _ = await dialler.dial(Hasty)
            assert transport.is_closing()
        await asyncio.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=loop) as run:
        run.run(dial(Dialler(Address(*server.getsockname()), None, 5.0)))
    keep_alive(None)
    assert unacknowledged(None) == 0


@pytest.mark.soak
def test_one_that_vanishes(serve_here, redis70, monkeypatch):
    """A client that is gone without FIN or RST is found out, and its upstream side goes with it. Needs root."""
    for name in ("IDLE", "BETWEEN"):
        monkeypatch.setattr(keepalive, name, 1)
    proxy = serve_here(redis70.url)
    client = proxy.connect()
    assert client.ask("PING") == "PONG"
    repair = 19  # TCP_REPAIR: such a socket is closed without a word
    client.socket.setsockopt(TCP, repair, 1)
    client.close()
    wait_for(lambda: proxy.metric("connections") == 0, "it to be found out")
