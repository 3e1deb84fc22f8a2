"""Ends of connections: what is acknowledged is known, FIN and RST come after it, TLS too."""

import asyncio
import socket
import ssl
import time

import pytest

from chaosproxy.net import ending
from chaosproxy.net.ending import Farewell, Finish, Flush, reset, unacknowledged, was_reset
from tests.net.harness import TIMEOUT, receive_all
from tests.proxying import wait_for

MEGA = 1 << 20


class Side(asyncio.Protocol):
    """The server's side of one connection, as asyncio sees it."""

    def __init__(self):
        self.transport = None
        self.lost = False

    def connection_made(self, transport):
        self.transport = transport

    def eof_received(self):
        return True

    def connection_lost(self, error):
        self.lost = True


class Pair:
    """An asyncio transport in the loop's thread, and the socket at its other end."""

    def __init__(self, loop, tls=None, trust=None):
        self.loop = loop
        self.side = Side()

        async def listen():
            return await loop.loop.create_server(lambda: self.side, "127.0.0.1", 0, ssl=tls)

        self.server = loop.run(listen())
        self.client = socket.create_connection(self.server.sockets[0].getsockname(), TIMEOUT)
        if trust is not None:
            self.client = trust.wrap_socket(self.client, server_hostname="localhost")
        wait_for(lambda: self.side.transport is not None, "the connection")

    @property
    def transport(self):
        return self.side.transport

    def write(self, data):
        self.loop.call(lambda: self.transport.write(data))

    def end(self):
        """How it ends, read at the other side: all bytes, and FIN or RST."""
        data = bytearray()
        try:
            while more := self.client.recv(MEGA):
                data += more
        except ConnectionResetError:
            return bytes(data), "RST"
        # Python's TLS tells of a RST as of an end; only a RST leaves the state CLOSE behind here.
        state = self.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        is_reset = isinstance(self.client, ssl.SSLSocket) and state == 7
        return bytes(data), "RST" if is_reset else "FIN"

    def close(self):
        self.client.close()
        self.loop.call(self.transport.abort)
        self.loop.call(self.server.close)


@pytest.fixture
def pair(loop):
    pair = Pair(loop)
    yield pair
    pair.close()


@pytest.fixture
def tls_pair(loop, certificates):
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificates.cert, certificates.key)
    pair = Pair(loop, server, ssl.create_default_context(cafile=certificates.ca))
    yield pair
    pair.close()


def flush(pair, patience=None):
    """Start a Flush in the loop; gives the list that its answer comes into."""
    answers = []
    pair.loop.call(lambda: Flush(pair.transport, answers.append, patience))
    return answers


def test_flush_of_nothing(pair):
    """Where nothing was written all is flushed, but it is never said from inside the call."""
    inside = []

    def start():
        Flush(pair.transport, inside.append)
        return list(inside)

    assert pair.loop.call(start) == []
    wait_for(lambda: inside == [True], "flushed")


def test_flush_waits_for_the_reader(pair):
    """Not what was written counts, nor what left for the kernel: only what the other side's stack has taken."""
    check_flush(pair)


def test_tls_flush_waits_for_the_reader(tls_pair):
    """Under TLS there is one buffer more, and it counts too."""
    check_flush(tls_pair)


def check_flush(pair):
    # Left alone it grows as it is read, until it takes all that is left.
    pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MEGA)
    pair.write(b"x" * (16 * MEGA))
    answers = flush(pair)
    time.sleep(0.2)
    assert answers == []
    receive_all(pair.client, 8 * MEGA)
    time.sleep(0.1)
    assert answers == []
    receive_all(pair.client, 8 * MEGA)
    wait_for(lambda: answers == [True], "flushed")
    assert unacknowledged(pair.transport.get_extra_info("socket")) == 0


def test_flush_looks_when_it_is_told_to(pair):
    """It need not wait for its next look where there is a reason to look now; where there is none it goes on waiting."""
    pair.write(b"x" * (16 * MEGA))
    answers = []
    waiting = pair.loop.call(lambda: Flush(pair.transport, answers.append))
    time.sleep(0.2)  # until it looks every 50 ms

    def look():
        waiting.look()
        return list(answers)

    assert pair.loop.call(look) == []
    receive_all(pair.client, 16 * MEGA)
    wait_for(lambda: not unacknowledged(pair.transport.get_extra_info("socket")), "the reader")
    assert pair.loop.call(lambda: answers or look()) == [True]


def test_flush_has_patience_or_not(pair):
    """Beyond its patience it says that it is not flushed; cancelled it says nothing."""
    pair.write(b"x" * (16 * MEGA))
    answers = flush(pair, 0.1)
    quiet = []

    def cancelled():
        Flush(pair.transport, quiet.append, 0.05).cancel()

    pair.loop.call(cancelled)
    wait_for(lambda: answers == [False], "patience to end")
    assert quiet == []


def test_flush_to_one_that_is_gone(pair):
    """Who has ended its side and then met our bytes with a RST will acknowledge nothing: that is not waited for."""
    pair.loop.call(pair.transport.pause_reading)
    pair.client.close()
    pair.write(b"x")
    answers = flush(pair, 3600)
    wait_for(lambda: answers, "the flush to be given up")


def test_reset(pair):
    """A RST, not a FIN; what was acknowledged before is still read."""
    pair.write(b"last")
    answers = flush(pair)
    wait_for(lambda: answers, "flushed")
    pair.loop.call(lambda: reset(pair.transport))
    assert pair.end() == (b"last", "RST")


def test_reset_of_a_closed_one(pair):
    """Whoever is gone already cannot be reset, and that is no error."""
    pair.loop.call(pair.transport.abort)
    wait_for(lambda: pair.side.lost, "the end")
    pair.loop.call(lambda: reset(pair.transport))
    assert pair.end() == (b"", "FIN")


def test_tls_reset(tls_pair):
    """Under TLS too all that was written is read, and then it is a RST."""
    tls_pair.write(b"x" * (4 * MEGA))
    answers = flush(tls_pair)
    assert receive_all(tls_pair.client, 4 * MEGA) == b"x" * (4 * MEGA)
    wait_for(lambda: answers == [True], "flushed")
    tls_pair.loop.call(lambda: reset(tls_pair.transport))
    assert tls_pair.end() == (b"", "RST")


def test_was_reset(pair):
    """A peer's RST is noticed without reading; its FIN is no RST."""
    pair.loop.call(pair.transport.pause_reading)
    asked = lambda: pair.loop.call(lambda: was_reset(pair.transport))  # noqa: E731
    assert not asked()
    pair.client.shutdown(socket.SHUT_WR)
    assert not asked()
    pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    pair.client.close()
    wait_for(asked, "the reset")


def test_farewell_waits_for_the_other_side(pair):
    """FIN at once, behind what was written; the connection stays until the other side ends it too."""
    pair.write(b"bye")
    farewell = pair.loop.call(lambda: Farewell(pair.transport, eof=False, linger=600))
    assert pair.end() == (b"bye", "FIN")
    pair.client.sendall(b"more")
    assert not pair.side.lost
    pair.loop.call(farewell.heard_eof)
    wait_for(lambda: pair.side.lost, "the end")
    pair.loop.call(farewell.cancel)


def test_farewell_to_one_that_is_gone(pair):
    """Where the other side has ended already there is nothing to wait for."""
    pair.client.shutdown(socket.SHUT_WR)
    pair.loop.call(lambda: Farewell(pair.transport, eof=True, linger=600))
    wait_for(lambda: pair.side.lost, "the end")
    assert pair.end() == (b"", "FIN")


def test_farewell_does_not_cut_a_slow_reader(pair):
    """The time to linger begins once the FIN has left: a slow reader still gets everything."""
    pair.write(b"x" * (16 * MEGA))
    pair.loop.call(lambda: Farewell(pair.transport, eof=False, linger=0.05))
    time.sleep(0.3)
    assert not pair.side.lost
    assert pair.end() == (b"x" * (16 * MEGA), "FIN")


def test_farewell_to_one_that_still_sends(pair, monkeypatch):
    """Who sends on is waited for a little longer than who is silent, but not for ever."""
    monkeypatch.setattr(ending, "LINGER", 1.0)
    began = time.monotonic()
    farewell = pair.loop.call(lambda: Farewell(pair.transport, eof=False, linger=0.05))

    def sends_on():
        # In the loop, so that a busy machine keeps this waiting as it does who listens.
        if not pair.side.lost:
            farewell.heard()
            pair.loop.loop.call_later(0.01, sends_on)

    pair.loop.call(sends_on)
    wait_for(lambda: pair.side.lost, "the end")
    assert time.monotonic() - began > 0.9
    pair.loop.call(farewell.cancel)


def test_farewell_to_one_that_is_silent(pair, monkeypatch):
    """Who sends nothing more is not waited for as long."""
    monkeypatch.setattr(ending, "LINGER", 60.0)
    farewell = pair.loop.call(lambda: Farewell(pair.transport, eof=False, linger=0.05))
    wait_for(lambda: pair.side.lost, "the end")
    pair.loop.call(farewell.cancel)


def test_farewell_under_tls(tls_pair):
    """TLS says goodbye in its own words, behind what was written."""
    tls_pair.write(b"bye")
    tls_pair.loop.call(lambda: Farewell(tls_pair.transport, eof=False))
    assert tls_pair.end() == (b"bye", "FIN")


def test_finish(pair):
    """Ending our side leaves the other open."""
    pair.loop.call(lambda: Finish(pair.transport))
    assert pair.end() == (b"", "FIN")
    pair.client.sendall(b"still here")
    assert not pair.side.lost


def test_finish_under_tls(tls_pair, monkeypatch):
    """TLS has no half: the connection is closed once the other side has been silent for a moment."""
    monkeypatch.setattr("chaosproxy.net.ending.TLS_SILENCE", 0.3)
    finish = tls_pair.loop.call(lambda: Finish(tls_pair.transport))
    said = []

    def says(*, more):
        # In the loop, so that a busy machine keeps this waiting as it does who listens.
        finish.heard()
        said.append(tls_pair.side.lost)
        if more:
            tls_pair.loop.loop.call_later(0.1, lambda: says(more=more - 1))
        else:
            tls_pair.transport.write(b"late")

    tls_pair.loop.call(lambda: says(more=4))
    assert receive_all(tls_pair.client, 4) == b"late"
    assert said == [False] * 5
    assert tls_pair.end() == (b"", "FIN")


@pytest.mark.parametrize("end", [Finish, lambda transport: Farewell(transport, eof=False)])
def test_the_end_of_one_that_was_reset(pair, end):
    """Whoever was reset, unread, cannot be told of an end any more: the connection is over, and that is no error."""
    pair.loop.call(pair.transport.pause_reading)
    pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    pair.client.close()
    wait_for(lambda: pair.loop.call(lambda: was_reset(pair.transport)), "the reset")
    pair.loop.call(lambda: end(pair.transport))
    wait_for(lambda: pair.side.lost, "the end")


def test_finish_cancelled(tls_pair, monkeypatch):
    """Whoever ends it otherwise is not disturbed."""
    monkeypatch.setattr("chaosproxy.net.ending.TLS_SILENCE", 0.05)
    finish = tls_pair.loop.call(lambda: Finish(tls_pair.transport))
    tls_pair.loop.call(finish.cancel)
    time.sleep(0.15)
    tls_pair.write(b"late")
    assert receive_all(tls_pair.client, 4) == b"late"


class Slow:
    """A TLS transport whose buffer below is still being written: each poll finds more bytes acknowledged."""

    def __init__(self, sock, acknowledged):
        self.sock = sock
        self.acknowledged = acknowledged
        self.polls = 0

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, name):
        return self if name == "socket" else "a context"

    family = socket.AF_INET

    def fileno(self):
        return self.sock.fileno()

    def getsockopt(self, *_):
        acked = self.acknowledged[min(self.polls, len(self.acknowledged) - 1)]
        self.polls += 1
        return bytes(120) + acked.to_bytes(8, "little")


def test_tls_flush_sees_the_buffer_below(pair):
    """Empty buffers are not enough under TLS: as long as more is being acknowledged there was more to write."""
    slow = Slow(pair.client, [10, 20, 30, 30])
    answers = []
    pair.loop.call(lambda: Flush(slow, answers.append))
    wait_for(lambda: answers, "flushed")
    assert slow.polls == 4
