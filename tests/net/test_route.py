"""Routes: several listeners in one proxy, each with a server of its own, that come and go while it runs."""

import asyncio
import re
import socket

import pytest

from chaosproxy.core.match import LISTENER
from chaosproxy.net import route as route_module
from chaosproxy.net.address import Address
from tests import servers
from tests.proxying import at_its_own_port, wait_for
from tests.wire import Wire

ANY = Address("127.0.0.1", 0)
ONLY_SECOND = """
faults:
- {fault: reply, match: {commands: GET, connection: {listener: second}}, at: before_forward, value: x}
- {fault: admit, match: {connection: {listener: second}}, when: {nth: 2}, new_connections: {error: no}}
"""
REFUSE = "faults:\n- {fault: admit, new_connections: refuse, for: 60s}\n"


@pytest.fixture
def other():
    """One more server."""
    server = servers.start("redis70")
    yield server
    server.stop()


@pytest.fixture
def proxy(either_loop, redis70):
    with at_its_own_port(redis70) as proxy:
        yield proxy


def add(proxy, server, name="second"):
    """Give the proxy one more route; gives its port."""
    inner = proxy.service._proxy

    async def do():
        # Nobody else is given it while the proxy does not listen there.
        here = Address("127.0.0.1", servers.free_port())
        route = inner.route(name, here, Address("127.0.0.1", server.port))
        await inner.routes.add(route)
        return route

    return proxy.service._loop.run(do())


def call(proxy, function):
    return proxy.service._loop.call(function)


def test_each_listener_has_its_server(proxy, redis70, other):
    """A client reaches the server of the listener it comes by, under the profile and the counts that all share."""
    route = add(proxy, other)
    assert route.address.port not in {0, proxy.port}
    assert proxy.service.listen.port == proxy.port
    redis70.ask("SET", "k", "first")
    other.ask("SET", "k", "second")
    with proxy.connect() as one, Wire(route.address.port) as two:
        assert (one.ask("GET", "k"), two.ask("GET", "k")) == (b"first", b"second")
        links = call(proxy, lambda: list(proxy.service._proxy.links.values()))
        assert [link.route.name for link in links] == ["redis", "second"]
        assert proxy.metric("connections") == 2


def test_matching_by_listener(proxy, other):
    """Rules that name a listener hold for what came in by it alone, commands and connections."""
    route = add(proxy, other)
    proxy.use(ONLY_SECOND)
    with proxy.connect() as one, Wire(route.address.port) as two:
        assert (one.ask("GET", "k"), two.ask("GET", "k")) == (None, b"x")
        with Wire(route.address.port) as three, proxy.connect() as four:
            assert three.read() == [b"-ERR no\r\n"]
            assert four.ask("PING") == "PONG"


def test_side_connection(proxy, redis70, other):
    """What a fault does behind the application's back is done on the server the client is on."""
    route = add(proxy, other)
    proxy.use("faults:\n- {fault: expire_key, match: {commands: GET}, mode: now}\n")
    for server in (redis70, other):
        server.ask("SET", "k", "v")
    with Wire(route.address.port) as two:
        assert two.ask("GET", "k") is None
    assert (redis70.ask("EXISTS", "k"), other.ask("EXISTS", "k")) == (1, 0)


def test_another_server(proxy, redis70, other):
    """Retargeted: new clients and the side connection reach the other server, old ones stay with theirs."""
    redis70.ask("SET", "k", "first")
    other.ask("SET", "k", "second")
    route = proxy.service._proxy.routes.first
    dialler = add(proxy, other).dialler
    with proxy.connect() as old:
        assert old.ask("GET", "k") == b"first"
        call(proxy, lambda: route.retarget(dialler))
        with proxy.connect() as new:
            assert new.ask("GET", "k") == b"second"
        assert old.ask("GET", "k") == b"first"
    reply = proxy.service._loop.run(route.side.request(b"GET", b"k"))
    assert reply == b"$6\r\nsecond\r\n"


def test_a_route_that_goes(proxy, other):
    """Nobody comes by it any more; who did stays. Its name is free again."""
    route = add(proxy, other)
    routes = proxy.service._proxy.routes
    with pytest.raises(ValueError, match="there is a route second already"):
        add(proxy, other)
    with Wire(route.address.port) as client:
        assert client.ask("PING") == "PONG"
        call(proxy, lambda: routes.remove("second"))
        with pytest.raises(ConnectionRefusedError):
            Wire(route.address.port)
        assert client.ask("PING") == "PONG"
    assert routes.get("second") is None
    assert add(proxy, other) is routes["second"]


def test_a_port_that_is_taken(proxy, other):
    """A route that cannot listen is not there."""
    inner = proxy.service._proxy
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())

        async def do():
            target = Address("127.0.0.1", other.port)
            await inner.routes.add(inner.route("second", address, target))

        with pytest.raises(OSError, match="Address already in use"):
            proxy.service._loop.run(do())
    assert [route.name for route in inner.routes] == ["redis"]


def test_only_so_many(proxy, other, monkeypatch):
    """What is one too many is not there, whichever way it was to come."""
    monkeypatch.setattr(route_module, "MOST", 2)
    inner = proxy.service._proxy
    add(proxy, other)
    with pytest.raises(OSError, match="there are 2 listeners already"):
        add(proxy, other, "third")
    target = Address("127.0.0.1", other.port)
    with pytest.raises(OSError, match="there are 2 listeners already"):
        call(proxy, lambda: inner.routes.add_now(inner.route("third", ANY, target)))
    assert [route.name for route in inner.routes] == ["redis", "second"]


def test_the_door_is_all_routes(proxy, other):
    """Refused means that nobody listens on any of them, not even on one that is added meanwhile; later all do."""
    route = add(proxy, other)
    proxy.use(REFUSE)
    late = add(proxy, other, "late")
    assert not late.listening
    for port in (proxy.port, route.address.port):
        with pytest.raises(ConnectionRefusedError):
            Wire(port)
    proxy.use("calm")
    routes = proxy.service._proxy.routes
    wait_for(lambda: all(each.listening for each in routes), "the door to open")
    for port in (proxy.port, route.address.port, late.address.port):
        with Wire(port) as client:
            assert client.ask("PING") == "PONG"


def test_shut_while_it_opens(proxy, other):
    """A route that is removed while it begins to listen does not listen."""
    inner = proxy.service._proxy

    async def do():
        route = inner.route("second", ANY, Address("127.0.0.1", other.port))
        adding = asyncio.ensure_future(inner.routes.add(route))
        asyncio.get_running_loop().call_soon(inner.routes.remove, "second")
        await adding
        return route

    route = proxy.service._loop.run(do())
    assert not route.listening


def test_shut_and_wanted_again_while_it_opens(proxy):
    """Shut for less time than it takes to listen: it listens, on the same port, and so does what is added then."""
    routes = proxy.service._proxy.routes

    async def do():
        routes.close()
        await asyncio.sleep(0.01)  # the closed socket is closed a turn of the loop later
        opening = asyncio.ensure_future(routes.open())
        asyncio.get_running_loop().call_soon(routes.close)
        await asyncio.gather(opening, routes.open())

    proxy.service._loop.run(do())
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"


def test_stop(either_loop, redis70, other):
    """The end of the proxy is the end of all its routes."""
    proxy = at_its_own_port(redis70)
    route = add(proxy, other)
    with Wire(route.address.port) as client:
        assert client.ask("PING") == "PONG"
        proxy.stop()
        assert client.read_to_end() == (b"", "FIN")
    for port in (proxy.port, route.address.port):
        with pytest.raises(ConnectionRefusedError):
            Wire(port)


def up(proxy):
    """What the metrics say of each listener's server."""
    said = proxy.service.metrics("")[1].decode()
    found = re.findall(r'^chaosproxy_upstream_up{listener="(.*)"} (.*)$', said, re.MULTILINE)
    return {listener: float(value) for listener, value in found}


def wait_up(proxy, wanted):
    """Who has dialled goes on with it a moment after the first bytes may have passed."""
    wait_for(lambda: up(proxy) == wanted, f"{wanted}")


def test_down_and_up_again(proxy, other, caplog, monkeypatch):
    """The log says once by which listener nobody can be connected, and when that is over; so does a metric, of the last client."""
    route = add(proxy, other)
    assert up(proxy) == {}
    other.stop()
    for _ in range(2):
        with Wire(route.address.port) as client:
            assert client.read_to_end() == (b"", "FIN")
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"
    wait_up(proxy, {LISTENER: 1, "second": 0})
    monkeypatch.setattr(servers, "_free_port", lambda **_: other.port)
    again = servers.start("redis70")
    try:
        with Wire(route.address.port) as client:
            assert client.ask("PING") == "PONG"
        wait_up(proxy, {LISTENER: 1, "second": 1})
    finally:
        again.stop()
    where = f"127.0.0.1:{other.port}"
    assert [r.message for r in caplog.records if r.name == "chaosproxy.proxy"] == [
        f"second: no connection to the server: {where}: Connection refused",
        "second: the server is there again",
    ]


def test_at_once(proxy, other):
    """A route that is added from inside the loop accepts from that moment on; while the door is shut it does not."""
    inner = proxy.service._proxy

    def add_now(name):
        route = inner.route(name, ANY, Address("127.0.0.1", other.port))
        inner.routes.add_now(route)
        return socket.create_connection(("127.0.0.1", route.address.port), 10)

    with call(proxy, lambda: add_now("second")) as early:
        early.sendall(b"PING\r\n")
        assert early.recv(100) == b"+PONG\r\n"
    with pytest.raises(ValueError, match="there is a route second already"):
        call(proxy, lambda: add_now("second"))
    proxy.use(REFUSE)
    with pytest.raises(ConnectionRefusedError):
        call(proxy, lambda: add_now("late"))
    proxy.use("calm")
    late = inner.routes["late"]
    wait_for(lambda: late.listening, "the door to open")
    with Wire(late.address.port) as client:
        assert client.ask("PING") == "PONG"
