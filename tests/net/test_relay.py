"""The replication link between two sockets: what passes when, who is turned away, and how much is held."""

import asyncio
import socket
import threading

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.relay import Relay
from chaosproxy.topology import backlog
from tests.net.harness import receive_all
from tests.proxying import wait_for
from tests.servers import free_port
from tests.wire import TIMEOUT, encode

PSYNC = encode("PSYNC", "?", 100)
BEGIN = b"+CONTINUE " + b"a" * 40 + b"\r\n"
SET = encode("SET", "k", "v")


class Ends:
    """A relay, and the sockets on both of its sides."""

    def __init__(self, loop):
        self.loop = loop
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(TIMEOUT)
        self.relay = loop.call(lambda: Relay(self.dialler(), CommandTable.bundled))
        self.address = loop.run(self.relay.open(Address("127.0.0.1", 0)), TIMEOUT)
        self._ends = []

    def dialler(self):
        return Dialler(Address("127.0.0.1", self.server.getsockname()[1]), None, 5.0)

    def standby(self):
        """Connect as a standby."""
        standby = socket.create_connection(("127.0.0.1", self.address.port), TIMEOUT)
        self._ends.append(standby)
        return standby

    def link(self):
        """A link that is up: the standby's end and the primary's."""
        standby = self.standby()
        standby.sendall(PSYNC)
        primary, _ = self.server.accept()
        primary.settimeout(TIMEOUT)
        self._ends.append(primary)
        assert receive_all(primary, len(PSYNC)) == PSYNC
        primary.sendall(BEGIN)
        assert receive_all(standby, len(BEGIN)) == BEGIN
        return standby, primary

    def close(self):
        self.loop.call(self.relay.close)
        for end in self._ends:
            end.close()
        self.server.close()


@pytest.fixture
def ends(loop):
    ends = Ends(loop)
    yield ends
    ends.close()


def ended(end):
    """Whether the other side has ended the connection, however it did."""
    try:
        return end.recv(1 << 16) == b""
    except ConnectionResetError:
        return True


def test_both_ways(ends):
    """What the standby says passes at once; what the primary writes passes, and is counted."""
    standby, primary = ends.link()
    primary.sendall(SET)
    assert receive_all(standby, len(SET)) == SET
    wait_for(lambda: ends.relay.crossed == 99 + len(SET), "the offset")
    standby.sendall(b"ack")
    assert receive_all(primary, 3) == b"ack"
    assert ends.relay.synced


def test_before_the_primary_is_there(ends, loop):
    """Without a primary the standby is let go, to come again; nothing is known of a link then."""
    loop.call(lambda: ends.relay.retarget(Dialler(Address("127.0.0.1", free_port()), None, 5.0)))
    assert ended(ends.standby())
    assert not ends.relay.synced
    assert ends.relay.crossed is None
    assert ends.relay.held == 0
    assert loop.call(ends.relay.freeze) == []
    assert loop.run(ends.relay.has_come(1, 0.1), TIMEOUT) is False


def test_what_a_standby_says_is_not_held(ends):
    """Whoever comes there, and whatever it says: a primary that does not read stops it."""
    standby, _ = ends.link()
    standby.settimeout(1)
    with pytest.raises(TimeoutError):
        standby.sendall(b"x" * (100 << 20))


def test_one_end_ends_the_other(ends):
    """A link is over as soon as one of its two ends is."""
    standby, primary = ends.link()
    primary.close()
    assert ended(standby)
    standby, primary = ends.link()
    standby.close()
    assert ended(primary)
    wait_for(lambda: not ends.relay.synced, "the end")


def test_a_newer_link_takes_its_place(ends):
    """A standby that has begun anew is the one that counts."""
    old, _ = ends.link()
    new, primary = ends.link()
    assert ended(old)
    primary.sendall(SET)
    assert receive_all(new, len(SET)) == SET


def test_cut(ends, loop):
    """Once it is cut who comes is turned away, until there is another primary."""
    standby, primary = ends.link()
    loop.call(ends.relay.cut)
    assert ended(standby)
    assert ended(primary)
    assert ended(ends.standby())
    loop.call(lambda: ends.relay.retarget(ends.dialler()))
    ends.link()


def test_has_come(ends, loop):
    """It is waited for until all is here, as long as there is a link, and so long at most."""
    _, primary = ends.link()
    wanted = 99 + len(SET)
    assert loop.run(ends.relay.has_come(99, 0.1), TIMEOUT) is True
    assert loop.run(ends.relay.has_come(wanted, 0.05), TIMEOUT) is False
    primary.sendall(SET[:5])
    waiting = loop_future(loop, ends.relay.has_come(wanted, TIMEOUT))
    primary.sendall(SET[5:])
    assert waiting.result(TIMEOUT) is True
    waiting = loop_future(loop, ends.relay.has_come(wanted + 1, TIMEOUT))
    primary.close()
    assert waiting.result(TIMEOUT) is False


def loop_future(loop, coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop.loop)


def test_it_holds_so_much(ends, loop, monkeypatch):
    """What is held has a bound: then the primary is not read, until some has crossed, or all is asked for."""
    monkeypatch.setattr(backlog, "MOST", 1 << 16)
    loop.call(lambda: ends.relay.hold_back(600, 0))
    standby, primary = ends.link()
    piece = encode("SET", "k", "v" * 65000)
    count = 400
    sent = loop_sender(primary, piece * count)
    wait_for(lambda: ends.relay.held > 1 << 16, "enough")
    assert ends.relay.held < len(piece) * count / 4
    assert sent.is_alive(), "the primary is not read"
    assert loop.run(ends.relay.has_come(99 + len(piece) * count, TIMEOUT), TIMEOUT) is True
    sent.join(TIMEOUT)
    assert ends.relay.held == len(piece) * count
    loop.call(lambda: ends.relay.hold_back(0, 0))
    assert receive_all(standby, len(piece) * count) == piece * count


def loop_sender(sock, data):
    """Send in a thread of its own: it may take until somebody reads."""
    thread = threading.Thread(target=sock.sendall, args=(data,), daemon=True)
    thread.start()
    return thread


def test_thaw(ends, loop):
    """A standby that comes to a frozen link is turned away; once that is over the link begins anew."""
    loop.call(ends.relay.thaw)
    standby, _ = ends.link()
    loop.call(ends.relay.freeze)
    assert ended(ends.standby())
    loop.call(ends.relay.thaw)
    assert ended(standby)
    ends.link()


def test_freeze(ends, loop):
    """Nothing crosses any more, and what has come is lost."""
    loop.call(lambda: ends.relay.hold_back(600, 0))
    standby, primary = ends.link()
    primary.sendall(SET)
    assert loop.run(ends.relay.has_come(99 + len(SET), TIMEOUT), TIMEOUT)
    (lost,) = loop.call(ends.relay.freeze)
    assert (lost.command, lost.keys) == ("SET", (b"k",))
    assert ends.relay.crossed == 99
    loop.call(lambda: ends.relay.hold_back(0, 0))
    standby.settimeout(0.1)
    with pytest.raises(TimeoutError):
        standby.recv(1)
