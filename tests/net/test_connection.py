"""One client's connection: what arrives where, how it ends, and who is made to wait."""

import asyncio
import logging
import socket
import threading
import time

import pytest

from chaosproxy.core.effect import AskSide, AwaitFlush, CloseClient, CutOthers, HalfClose
from chaosproxy.net.entrance import EARLY
from tests.busy import measured
from tests.net.harness import receive_all, relay, send_until_full
from tests.proxying import wait_for

MEGA = 1 << 20


def test_bytes_pass_both_ways(harness):
    """What the conversation gives for a side is what that side gets; all bytes are counted."""
    client, upstream = harness.pair()
    client.send_bytes(b"PING\r\n")
    assert upstream.recv(100) == b"PING\r\n"
    upstream.sendall(b"+PONG\r\n")
    assert client.read() == [b"+PONG\r\n"]
    counts = harness.proxy.counts
    assert (counts.from_client, counts.to_upstream) == (6, 6)
    assert (counts.from_upstream, counts.to_client) == (7, 7)


def test_one_write_a_side(harness):
    """However many pieces the conversation makes of what arrived, each side is written to once."""

    def script(talk, what, data):
        if what == "client":
            talk.out_upstream += [b"a", b"b", b"c"]
            talk.out_client += [b"+1\r\n", b"+2\r\n"]

    harness.script = script
    client, upstream = harness.pair()
    writes = []
    (link,) = harness.links
    for name in ("client", "_upstream"):
        setattr(link, name, Recorder(getattr(link, name), writes))
    client.send_bytes(b"x")
    assert receive_all(upstream, 3) == b"abc"
    assert client.read(2) == [b"+1\r\n", b"+2\r\n"]
    assert writes == [b"abc", b"+1\r\n+2\r\n"]


class Recorder:
    """A transport that remembers what was written."""

    def __init__(self, transport, writes):
        self._transport = transport
        self._writes = writes

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def write(self, data):
        self._writes.append(data)
        self._transport.write(data)


def test_nodelay(harness):
    """Neither side's kernel waits to fill a packet."""
    harness.pair()
    (link,) = harness.links
    for transport in (link.client, link._upstream):
        sock = transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# Before the upstream side is there.


@pytest.fixture
def gate(harness, monkeypatch):
    """Dialling takes until `gate()`."""
    opened = harness.in_loop(asyncio.Event)
    dial = harness.proxy.dial

    async def slow(link):
        await opened.wait()
        return await dial(link)

    monkeypatch.setattr(harness.proxy, "dial", slow)
    return lambda: harness.in_loop(opened.set)


def test_early_bytes_wait_and_are_bounded(harness, gate):
    """A client faster than the dialling loses nothing, and cannot make us hold more than a little."""
    client = harness.client()
    sent = send_until_full(client.socket, 64 * MEGA)
    assert sent < 32 * MEGA
    wait_for(lambda: harness.links and harness.links[0].entrance.is_full, "the first words")
    (link,) = harness.links
    assert EARLY < len(link.entrance._early) < EARLY + MEGA
    gate()
    upstream = harness.accept()
    assert receive_all(upstream, sent) == bytes(sent)
    client.send_bytes(b"more")
    assert upstream.recv(100) == b"more"


def test_early_eof(harness, gate):
    """`printf PING | nc` works though the client has ended its side before there was another."""
    client = harness.client()
    client.send_bytes(b"PING\r\n")
    client.finish()
    wait_for(lambda: harness.links and harness.links[0]._eof, "the FIN")
    gate()
    upstream = harness.accept()
    assert receive_all(upstream, 6) == b"PING\r\n"
    assert upstream.recv(1) == b""
    upstream.sendall(b"+PONG\r\n")
    upstream.close()
    assert client.read_to_end() == (b"+PONG\r\n", "FIN")


def test_the_end_of_the_proxy_while_it_dials(harness, gate):
    """Who has said something and is being dialled for as the proxy ends is answered all the same."""
    client = harness.client()
    client.send_bytes(b"PING\r\n")
    wait_for(lambda: harness.links and harness.links[0].entrance.waits, "the first words")
    harness.talk.waits = True
    stopping = threading.Thread(target=lambda: harness.loop.run(harness.proxy.stop(50)))
    stopping.start()
    try:
        wait_for(lambda: harness.links[0]._draining, "its end to begin")
        gate()
        upstream = harness.accept()
        assert receive_all(upstream, 6) == b"PING\r\n"
        upstream.sendall(b"+PONG\r\n")
        assert client.read() == [b"+PONG\r\n"]
        harness.talk.waits = False
        assert client.read_to_end() == (b"", "FIN")
    finally:
        harness.talk.waits = False
        gate()
        stopping.join()


def test_client_that_leaves_early(harness, gate):
    """Nobody is dialled for a client that is gone."""
    harness.client().reset()
    wait_for(lambda: harness.talks and not harness.links, "the end")
    gate()
    harness.server.settimeout(0.2)
    with pytest.raises(TimeoutError):
        harness.server.accept()


# Ends.


def test_client_reset_takes_the_upstream_with_it(harness):
    """A client that vanishes leaves nothing behind: no ghost pops its jobs."""
    client, upstream = harness.pair()
    client.reset()
    assert upstream.recv(1) == b""
    wait_for(lambda: not harness.links, "the end")
    assert harness.talk.heard == ["client_gone"]


def test_client_fin(harness):
    """A client's FIN is the upstream's at once; replies still come, and then the upstream's FIN."""
    client, upstream = harness.pair()
    client.finish()
    assert upstream.recv(1) == b""
    upstream.sendall(b"+late\r\n")
    assert client.read() == [b"+late\r\n"]
    upstream.close()
    assert client.read_to_end() == (b"", "FIN")
    wait_for(lambda: not harness.links, "the end")


def test_upstream_fin(harness):
    """An upstream's FIN reaches the client behind everything that came before it."""
    client, upstream = harness.pair()
    upstream.sendall(b"x" * MEGA)
    upstream.close()
    assert client.read_to_end() == (b"x" * MEGA, "FIN")
    client.close()
    wait_for(lambda: not harness.links, "the end")


def test_last_words_of_a_server_that_reset(harness):
    """What a server said before it left reaches the client though writing to it failed first."""
    client, upstream = harness.pair()
    harness.talk.upstream_paused = True
    client.send_bytes(b"one")
    assert upstream.recv(3) == b"one"
    wait_for(lambda: harness.links[0]._upstream_held, "no reading")
    upstream.sendall(b"-ERR Protocol error\r\n")
    upstream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    upstream.close()
    client.send_bytes(b"two")
    assert client.read_to_end() == (b"-ERR Protocol error\r\n", "FIN")
    assert sum(harness.proxy.counts.upstream_errors.values()) == 1


def test_reset_waits_for_the_bytes_before_it(harness):
    """A reset destroys nothing that was promised, however slow the client reads; then it is a RST."""

    def script(talk, what, data):
        if what == "client":
            talk.out_client.append(b"x" * (16 * MEGA))
            talk.effects.append(CloseClient("reset"))

    harness.script = script
    client, upstream = harness.pair()
    client.send_bytes(b"go")
    assert upstream.recv(1) == b""  # that side goes at once
    time.sleep(0.2)
    assert client.read_to_end() == (b"x" * (16 * MEGA), "RST")
    wait_for(lambda: not harness.links, "the end")


def test_reset_of_one_that_reads_nothing(harness, monkeypatch):
    """The bytes come first: who does not read them in time is not reset."""
    monkeypatch.setattr("chaosproxy.net.connection.RESET_PATIENCE", 0.1)

    def script(talk, what, data):
        if what == "client":
            talk.out_client.append(b"x" * (16 * MEGA))
            talk.effects.append(CloseClient("reset"))

    harness.script = script
    client, _ = harness.pair()
    client.send_bytes(b"go")
    wait_for(lambda: harness.links[0]._farewell is not None, "patience to end")
    assert client.read_to_end() == (b"x" * (16 * MEGA), "FIN")


def test_close_drains_what_still_comes(harness, monkeypatch):
    """A client that goes on sending after it was closed still reads its last reply, and then FIN."""
    monkeypatch.setattr("chaosproxy.net.connection.LINGER", 60.0)

    def script(talk, what, data):
        if what == "client":
            talk.out_client.append(b"-ERR last words\r\n")
            talk.effects.append(CloseClient("close"))

    harness.script = script
    client, upstream = harness.pair()
    client.send_bytes(b"x" * MEGA)
    assert upstream.recv(1) == b""
    client.send_bytes(b"y" * MEGA)
    assert client.read_to_end() == (b"-ERR last words\r\n", "FIN")
    client.close()
    wait_for(lambda: not harness.links, "the end")
    assert harness.talk.heard.count("client") == 1


def test_close_does_not_wait_for_ever(harness, monkeypatch):
    """A closed connection ends after a moment though the client keeps its side open."""
    monkeypatch.setattr("chaosproxy.net.connection.LINGER", 0.1)
    client, _ = harness.pair()
    harness.in_loop(lambda: harness.links[0].end("close"))
    wait_for(lambda: not harness.links, "the end")
    assert client.read_to_end() == (b"", "FIN")


def awaiting_flush(harness):
    """A client that is sent much, of which the conversation wants to know when it has it."""

    def script(talk, what, data):
        if what == "client":
            talk.out_client.append(b"x" * (16 * MEGA))
            talk.effects.append(AwaitFlush())

    harness.script = script
    client, _ = harness.pair()
    client.send_bytes(b"go")
    wait_for(lambda: "client" in harness.talk.heard, "the request")
    return client


def test_await_flush(harness):
    """`flushed` comes once the client's stack has everything, and not before."""
    client = awaiting_flush(harness)
    time.sleep(0.2)
    assert "flushed" not in harness.talk.heard
    assert receive_all(client.socket, 16 * MEGA) == b"x" * (16 * MEGA)
    wait_for(lambda: "flushed" in harness.talk.heard, "flushed")


def test_no_flush_after_the_end(harness):
    """A client that leaves is not said to have received."""
    client = awaiting_flush(harness)
    client.reset()
    wait_for(lambda: not harness.links, "the end")
    assert harness.talk.heard[-1] == "client_gone"
    assert "flushed" not in harness.talk.heard


def test_upstream_refused(harness):
    """A server that is down: the client is closed, the reason counted, and the next client dials again."""
    address = harness.server.getsockname()
    harness.server.close()
    client = harness.client()
    assert client.read_to_end() == (b"", "FIN")
    assert harness.proxy.counts.upstream_errors == {"refused": 1}
    assert harness.proxy.counts.connections == {"no_upstream": 1}
    harness.server = socket.create_server(address)
    harness.server.settimeout(10)
    client, upstream = harness.pair()
    client.send_bytes(b"PING")
    assert upstream.recv(4) == b"PING"
    # Who has dialled goes on with it a moment after the first bytes may have passed.
    wait_for(lambda: harness.proxy.counts.connections["connected"] == 1, "it to be counted")


# Who waits for whom.


@pytest.mark.parametrize("side", ["client", "upstream"])
def test_backpressure(harness, side):
    """Whoever sends more than the other side reads is made to wait; nothing piles up here, and nothing is lost."""
    client, upstream = harness.pair()
    sender, reader = client.socket, upstream
    if side == "upstream":
        sender, reader = upstream, client.socket
    sent = send_until_full(sender, 256 * MEGA)
    assert sent < 64 * MEGA
    (link,) = harness.links
    other = link._upstream if side == "client" else link.client
    assert other.get_write_buffer_size() < 2 * MEGA
    assert receive_all(reader, sent) == bytes(sent)
    sender.sendall(b"and on")
    assert receive_all(reader, 6) == b"and on"


@pytest.mark.parametrize("side", ["client", "upstream"])
def test_a_conversation_that_holds_enough(harness, side):
    """While the conversation says a side is paused, that side is not read."""
    client, upstream = harness.pair()
    sender = client.socket if side == "client" else upstream

    def script(talk, what, data):
        if what == side:
            talk.buffered += len(data)
            setattr(talk, f"{side}_paused", talk.buffered > MEGA)
        elif what == "wake":
            setattr(talk, f"{side}_paused", False)

    harness.script = script
    sent = send_until_full(sender, 64 * MEGA)
    assert sent < 32 * MEGA
    assert harness.talk.buffered < 2 * MEGA

    def resume():
        # Here, since a loop that a busy machine has kept waiting may still have had some to read.
        harness.script = relay
        harness.talk.client_paused = harness.talk.upstream_paused = False
        harness.talk.due = time.monotonic()
        harness.links[0].tell(lambda now: None)
        return harness.talk.buffered

    before = harness.in_loop(resume)
    reader = upstream if side == "client" else client.socket
    assert receive_all(reader, sent - before) == bytes(sent - before)


def test_a_held_client_that_resets(harness):
    """A client that is not being read takes its upstream side with it all the same."""
    client, upstream = harness.pair()
    send_until_full(client.socket, 256 * MEGA)
    client.reset()
    while upstream.recv(MEGA):
        pass
    wait_for(lambda: not harness.links, "the end")
    client, upstream = harness.pair()
    harness.talk.client_paused = True
    client.send_bytes(b"x")
    wait_for(lambda: harness.links[0]._client_held, "no reading")
    client.reset()
    assert receive_all(upstream, 1) == b"x"
    assert upstream.recv(1) == b""


# Time, and others.


def test_due(harness):
    """The conversation is woken at the time it names, never before, and once; the last one that it names counts."""
    woken = []

    def script(talk, what, data):
        if what == "client":
            talk.due = time.monotonic() + float(data)
        elif what == "wake":
            woken.append(data)

    harness.script = script
    client, _ = harness.pair()
    client.send_bytes(b"60.0")
    wait_for(lambda: harness.talk.due, "the first")
    with measured() as busy:
        client.send_bytes(b"0.05")
        wait_for(lambda: woken, "the alarm")
        ((due, now),) = woken
        assert due <= now < due + 5 + busy.lost


def test_cut_others(harness):
    """Other clients' conversations are told to cut: all of them, or those that match."""
    one, two = harness.pair()[0], harness.pair()[0]
    first, second = harness.talks

    def script(talk, what, data):
        if what == "client":
            talk.effects.append(CutOthers("close", data.decode(), "127.0.0.1"))
        elif what == "cut":
            talk.effects.append(CloseClient(data))

    harness.script = script
    second.address = "other"
    one.send_bytes(b"matching")
    wait_for(lambda: "client" in first.heard, "the request")
    assert "cut" not in second.heard
    one.send_bytes(b"all")
    assert two.read_to_end() == (b"", "FIN")
    assert "cut" not in first.heard
    assert len(harness.links) >= 1


def test_ask_a_standby_that_is_not_there(harness):
    """What cannot be done is answered with None."""
    answers = []

    def script(talk, what, data):
        if what == "client":
            talk.effects.append(AskSide(7, (b"PING\r\n",), 0, 2, "standby"))
        elif what == "side_answer":
            answers.append(data)

    harness.script = script
    client, _ = harness.pair()
    client.send_bytes(b"go")
    wait_for(lambda: answers, "the answer")
    assert answers == [(7, None)]


def test_a_mistake_of_ours_ends_one_connection(harness, caplog):
    """An exception ends the connection it happened in, is counted and logged once; the others go on."""

    def script(talk, what, data):
        if data == b"crash":
            raise RuntimeError("a mistake")
        relay(talk, what, data)

    harness.script = script
    healthy, upstream = harness.pair()
    with caplog.at_level(logging.ERROR, logger="chaosproxy"):
        for _ in range(2):
            client, _ = harness.pair()
            client.send_bytes(b"crash")
            client.read_to_end()
            wait_for(lambda: len(harness.links) == 1, "the end")
    assert harness.proxy.counts.connections["crashed"] == 2
    assert [record.exc_info[1].args for record in caplog.records] == [("a mistake",)]
    healthy.send_bytes(b"PING")
    assert upstream.recv(4) == b"PING"


def test_a_mistake_of_ours_on_the_way_in(harness, caplog, monkeypatch):
    """So it is where it happens before the server is there: nobody waits for ever."""

    async def dial(link):
        raise RuntimeError("a mistake")

    monkeypatch.setattr(harness.proxy, "dial", dial)
    with caplog.at_level(logging.ERROR, logger="chaosproxy"), harness.client() as client:
        client.read_to_end()
    wait_for(lambda: not harness.links, "the end")
    assert harness.proxy.counts.connections["crashed"] == 1
    assert [record.exc_info[1].args for record in caplog.records] == [("a mistake",)]


def test_half_close_of_the_upstream_says_no_more(harness):
    """HalfClose of the upstream side is a FIN behind the bytes before it."""

    def script(talk, what, data):
        relay(talk, what, data)
        if what == "client":
            talk.effects.append(HalfClose("upstream"))

    harness.script = script
    client, upstream = harness.pair()
    client.send_bytes(b"last")
    assert receive_all(upstream, 4) == b"last"
    assert upstream.recv(1) == b""
    upstream.sendall(b"+ok\r\n")
    assert client.read() == [b"+ok\r\n"]


def test_a_server_that_speaks_first(harness):
    """What a server says as it accepts, before any request, is heard however soon it comes, and then its end."""
    text = b"-ERR max number of clients reached\r\n"
    for _ in range(20):
        client = harness.client()
        upstream = harness.accept()
        upstream.sendall(text)
        upstream.close()
        assert client.read_to_end() == (text, "FIN")


def test_a_server_that_hangs_up_at_once(harness):
    """However soon a server's end comes after it has accepted, nothing is left of the connection."""
    for _ in range(20):
        client = harness.client()
        client.send_bytes(b"POST / HTTP/1.1\r\n")
        harness.accept().close()
        client.read_to_end()
        client.close()
    wait_for(lambda: not harness.links, "no connection is left")
