"""The listener for Sentinel before one that is scripted: what is translated, what is not, and who is turned away."""

import threading
import time

import pytest

from chaosproxy.net import sentinel as sentinel_module
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.fleet import Fleet
from chaosproxy.net.route import Routes
from chaosproxy.net.sentinel import SentinelDoor
from tests.net.scripted import ScriptedSentinel
from tests.net.test_fleet import TIMEOUT, Echo, make
from tests.proxying import wait_for
from tests.servers import free_port
from tests.wire import Wire, decode, encode


class Door:
    """A door whose servers are found by nobody but those who ask."""

    def __init__(self, loop):
        self.sentinel = ScriptedSentinel(("10.0.0.1", 7001), (7002,))
        self.loop = loop
        self.ports = [self.sentinel.port]
        self.routes = loop.call(lambda: Routes(lambda route: Echo(route.name)))
        loop.run(self.routes.open(), TIMEOUT)
        self.door = loop.call(self._make)
        loop.run(self.door.reception.open(Address("127.0.0.1", 0), None), TIMEOUT)

    def _make(self):
        return SentinelDoor(Fleet(self.routes, make, "127.0.0.1"), self._diallers)

    def _diallers(self):
        return [Dialler(Address("127.0.0.1", port), None, TIMEOUT) for port in self.ports]

    def client(self):
        return Wire(self.door.reception.address.port)

    def close(self):
        self.loop.call(self.door.reception.close)
        self.loop.call(self.routes.close)
        self.sentinel.close()


@pytest.fixture
def door(loop):
    door = Door(loop)
    yield door
    door.close()


def test_a_server_gets_a_listener_before_it_is_told(door):
    """What the Sentinel says first may be of servers that nobody knew; the answer waits until they have listeners."""
    with door.client() as client:
        client.send_bytes(encode("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine") + encode("PING"))
        address, pong = client.read(2)
        assert pong == b"+PONG\r\n"
        host, port = decode(address)
        assert host == b"127.0.0.1"
        with Wire(int(port)) as server:
            assert server.read() == [b"+node-1\r\n"]
        (replica,) = client.ask("SENTINEL", "REPLICAS", "mine")
        assert int(replica[3]) == door.routes["node-2"].address.port


def test_messages(door):
    """What it says of itself is translated too, in its place."""
    with door.client() as client:
        client.ask("SUBSCRIBE", "+switch-master")
        door.sentinel.push("message", "+switch-master", "mine 10.0.0.1 7001 10.0.0.2 7002")
        *_, text = decode(client.read()[0])
        words = text.split()
        assert words[1::2] == [b"127.0.0.1"] * 2
        assert {int(word) for word in words[2::2]} == {
            door.routes[name].address.port for name in ("node-1", "node-2")
        }


def test_other_sentinels_are_here(door):
    """Whichever Sentinel a client asks next is this one."""
    other = encode("name", "x", "ip", "10.0.0.9", "port", 26379, "flags", "sentinel")
    door.sentinel.answers["SENTINEL SENTINELS"] = b"*1\r\n" + other
    with door.client() as client:
        (said,) = client.ask("SENTINEL", "SENTINELS", "mine")
    assert said[2:6] == [b"ip", b"127.0.0.1", b"port", b"%d" % door.door.reception.address.port]
    assert not [route for route in door.routes if route.dialler.address.host == "10.0.0.9"]


def test_another_one_is_asked(door):
    """One that is gone is passed over; where all are, the client is let go."""
    door.ports.insert(0, free_port())
    with door.client() as client:
        assert client.ask("PING") == "PONG"
    door.ports = [free_port()]
    with door.client() as client:
        client.send("PING")
        assert client.read_to_end()[0] == b""


def test_one_end_ends_the_other(door):
    """A Sentinel that goes takes its clients along, with all that it has said; and the other way."""
    with door.client() as client:
        assert client.ask("PING") == "PONG"
        door.sentinel.hang_up()
        assert client.read_to_end()[0] == b""
    with door.client() as client:
        assert client.ask("PING") == "PONG"
        door.loop.call(door.door.reception.close)
        assert client.read_to_end()[0] == b""


def test_what_is_no_reply(door):
    """It passes as it comes."""
    door.sentinel.answers["PING"] = b"?what\r\n"
    with door.client() as client:
        client.send("PING")
        assert client.socket.recv(100) == b"?what\r\n"
        client.send("PING")
        assert client.socket.recv(100) == b"?what\r\n"


def test_a_great_deal(door):
    """A client that reads slowly gets everything, in its order."""
    line = b"+" + b"x" * 1000 + b"\r\n"
    door.sentinel.answers["PING"] = line * 5000
    with door.client() as client:
        client.send("PING")
        assert client.read(5000) == [line] * 5000


def test_a_client_that_does_not_read(door):
    """What waits for it is bounded: the Sentinel is read no more, until the client reads; then nothing is missing."""
    line = b"+" + b"x" * 100_000 + b"\r\n"
    door.sentinel.answers["PING"] = line
    with door.client() as client:
        client.send_bytes(encode("PING") * 300)
        wait_for(lambda: door.door.reception.guests, "the client")
        (guest,) = door.door.reception.guests
        wait_for(lambda: guest._client_full, "its buffer to be full")
        # Ten times as much is still to come, and would within this time.
        for _ in range(30):
            assert door.loop.call(guest._client.get_write_buffer_size) < 3 << 20
            time.sleep(0.01)
        assert client.read(300) == [line] * 300


def test_a_sentinel_that_does_not_read(door):
    """What a client says is held back by TCP, not here."""
    waits = threading.Event()
    door.sentinel.answers["PING"] = lambda: waits.wait(20) and b"+PONG\r\n"
    with door.client() as client:
        client.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            client.socket.sendall(encode("PING", "x" * (100 << 20)))
        waits.set()


def test_a_reply_without_an_end(door, monkeypatch):
    """It is not held: the client is let go."""
    monkeypatch.setattr(sentinel_module, "LONGEST", 10_000)
    door.sentinel.answers["PING"] = b"$100000\r\n" + b"x" * 50_000
    with door.client() as client:
        client.send("PING")
        assert client.read_to_end()[0] == b""


def test_no_listener_can_be_had(door):
    """A server whose own address would have to be told is not told of at all."""
    door.door.fleet = door.loop.call(lambda: Fleet(door.routes, make, "192.0.2.1"))
    with door.client() as client:
        client.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine")
        assert client.read_to_end()[0] == b""
