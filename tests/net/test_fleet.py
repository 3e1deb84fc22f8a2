"""A listener for each server that is spoken of: made once, and its port known before anybody is told of it."""

import socket

import pytest

from chaosproxy.counts import Limits
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.fleet import Fleet
from chaosproxy.net.route import Route, Routes
from chaosproxy.net.side import MOST, Side
from chaosproxy.topology.sentinel import Place
from tests.wire import Wire

TIMEOUT = 30.0
ONE, TWO = Place(b"10.0.0.1", 7001), Place(b"10.0.0.1", 7002)


class Echo:
    """Who is given to clients of a route: it says the route's name and hangs up."""

    def __init__(self, name):
        self._name = name

    def connection_made(self, transport):
        transport.write(f"+{self._name}\r\n".encode())
        transport.close()

    def __getattr__(self, _name):
        return lambda *_: None


def make(name, listen, target):
    dialler = Dialler(target, None, 1.0)
    return Route(name, listen, dialler, Side(dialler, None, None, most=MOST, limits=Limits()))


@pytest.fixture
def routes(loop):
    routes = loop.call(lambda: Routes(lambda route: Echo(route.name)))
    yield routes
    loop.call(routes.close)


@pytest.fixture
def fleet(loop, routes):
    return loop.call(lambda: Fleet(routes, make, "127.0.0.1"))


def test_each_has_a_listener(loop, routes, fleet):
    """Two servers, two ports, each leading to its own; asked for again they are the same."""
    loop.run(routes.open(), TIMEOUT)
    loop.run(fleet.learn([ONE, TWO, ONE]), TIMEOUT)
    found = [fleet.find(place, b"127.0.0.1") for place in (ONE, TWO)]
    assert found[0] != found[1]
    for (host, port), name in zip(found, ("node-1", "node-2"), strict=True):
        assert host == b"127.0.0.1"
        with Wire(port) as client:
            assert client.read() == [f"+{name}\r\n".encode()]
    loop.run(fleet.learn([TWO]), TIMEOUT)
    assert len(routes) == 2
    assert [route.dialler.address for route in routes] == [
        Address("10.0.0.1", 7001),
        Address("10.0.0.1", 7002),
    ]
    assert fleet.find(ONE, b"proxy") == (b"proxy", found[0][1])


def test_while_nobody_is_let_in(loop, routes, fleet):
    """The port is known all the same and nobody else's, and is that port later."""
    loop.run(fleet.learn([ONE]), TIMEOUT)
    _, port = fleet.find(ONE, b"127.0.0.1")
    assert port
    with pytest.raises(ConnectionRefusedError):
        Wire(port)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    loop.run(routes.open(), TIMEOUT)
    with Wire(port) as client:
        assert client.read() == [b"+node-1\r\n"]


def test_who_needs_none(loop, routes, fleet):
    """Sentinels are no servers; a server that was never spoken of is nowhere."""
    sentinel = Place(b"10.0.0.9", 26379, "sentinel")
    assert fleet.knows(sentinel)
    loop.run(fleet.learn([sentinel]), TIMEOUT)
    assert not len(routes)
    assert not fleet.knows(ONE)
    assert fleet.find(ONE, b"127.0.0.1") is None
