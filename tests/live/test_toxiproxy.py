"""Toxiproxy's toxics on a whole proxy, between real sockets: each does to a Redis connection what its name says."""

import json
from contextlib import closing
from http.client import HTTPConnection
from time import monotonic

import pytest

from tests import servers
from tests.proxying import serve_proxy, wait_for
from tests.wire import Wire


@pytest.fixture
def proxy(redis70):
    with serve_proxy(redis70.url) as proxy:
        yield proxy


@pytest.fixture
def ask(proxy):
    """Ask as Toxiproxy's clients do; gives what is answered."""

    def ask(method, path, body=None):
        headers = {} if body is None else {"Content-Type": "application/json"}
        with closing(HTTPConnection(proxy.control.partition("//")[2], timeout=60)) as link:
            link.request(method, path, None if body is None else json.dumps(body), headers)
            answer = link.getresponse()
            text = answer.read()
        assert answer.status < 300, text
        return json.loads(text) if text else None

    return ask


@pytest.fixture
def port(ask, redis70):
    """A proxy of Toxiproxy's kind, and where it listens."""
    upstream = f"127.0.0.1:{redis70.port}"
    # Nobody else is given it while the proxy does not listen there.
    port = servers.free_port()
    listen = f"127.0.0.1:{port}"
    made = ask("POST", "/proxies", {"name": "cache", "listen": listen, "upstream": upstream})
    assert made["listen"] == listen
    return port


def toxic(ask, kind, stream="downstream", **attributes):
    body = {"type": kind, "stream": stream, "attributes": attributes}
    ask("POST", "/proxies/cache/toxics", body)


def took(wire, *words):
    began = monotonic()
    wire.raw(*words)
    return monotonic() - began


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_latency(proxy, ask, port, stream):
    """It waits, from the first command of an open connection on; by the other listener nobody does."""
    with Wire(port) as client, proxy.connect() as other:
        client.raw("PING")
        toxic(ask, "latency", stream, latency=300)
        assert took(client, "SET", "k", "v") >= 0.299
        assert took(client, "HELLO", "2") >= 0.299
        assert other.ask("GET", "k") == b"v"
        assert {event["fault"][:7] for event in proxy.wait_events(2)} == {"cache-1"}
        ask("DELETE", f"/proxies/cache/toxics/latency_{stream}")
        assert client.ask("GET", "k") == b"v"
        assert len(proxy.events()) == 2


def test_a_toxic_of_a_proxy_that_is_disabled(proxy, ask, redis70, caplog):
    """It is in force as soon as the proxy is enabled; nobody is told that its listener is not there."""
    upstream = f"127.0.0.1:{redis70.port}"
    ask("POST", "/proxies", {"name": "cache", "upstream": upstream, "enabled": False})
    toxic(ask, "latency", latency=300)
    listen = ask("POST", "/proxies/cache", {"enabled": True})["listen"]
    with Wire(int(listen.rpartition(":")[2])) as client:
        assert took(client, "PING") >= 0.299
    ask("POST", "/proxies/cache", {"enabled": False})
    ask("POST", "/proxies/cache/toxics/latency_downstream", {"attributes": {"latency": 1}})
    ask("DELETE", "/proxies/cache")
    assert [r.message for r in caplog.records if "no listener" in r.message] == []


def test_bandwidth(ask, port):
    """So many KB a second."""
    with Wire(port) as client:
        client.raw("SET", "k", b"v" * 20_000)
        toxic(ask, "bandwidth", rate=50)
        assert took(client, "GET", "k") >= 0.299


def test_slicer(proxy, ask, port):
    """Replies come in pieces."""
    with Wire(port) as client:
        client.raw("SET", "k", b"v" * 100)
        toxic(ask, "slicer", average_size=30, delay=60_000)
        assert took(client, "GET", "k") >= 0.15


def test_limit_data(ask, port):
    """A large reply is cut, a small one is not."""
    with Wire(port) as client:
        client.raw("SET", "k", b"v" * 100)
        toxic(ask, "limit_data", bytes=20)
        assert client.ask("PING") == "PONG"
        client.send("GET", "k")
        assert client.read_to_end() == (b"$100\r\n" + b"v" * 14, "FIN")


def test_timeout(proxy, ask, port, redis70):
    """After a time the connection is closed, without an answer; upstream Redis has not seen the command, downstream it has."""
    for stream, applied in (("upstream", None), ("downstream", b"v")):
        with Wire(port) as client:
            toxic(ask, "timeout", stream, timeout=100)
            client.send("SET", stream, "v")
            assert client.read_to_end() == (b"", "FIN")
        with redis70.connect() as past:
            assert past.ask("GET", stream) == applied
        ask("POST", "/reset")


def test_timeout_for_ever(ask, port):
    """Without a time it stays open and silent."""
    with Wire(port) as client:
        toxic(ask, "timeout", timeout=0)
        client.send("PING")
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.socket.recv(10)


def test_reset_peer(ask, port):
    """An open connection is reset at its next command, a new one at once."""
    with Wire(port) as client:
        client.raw("PING")
        toxic(ask, "reset_peer", timeout=0)
        client.send("PING")
        assert client.read_to_end() == (b"", "RST")
    try:
        with Wire(port) as client:
            assert client.read_to_end() == (b"", "RST")
    except ConnectionResetError:
        pass  # it came while the client was still about to connect


def test_slow_close(ask, port):
    """QUIT is answered late, and then the connection ends."""
    with Wire(port) as client:
        toxic(ask, "slow_close", delay=200)
        began = monotonic()
        client.send("QUIT")
        assert client.read_to_end() == (b"+OK\r\n", "FIN")
        assert monotonic() - began >= 0.199


def test_our_faults(ask, port, redis70):
    """What Toxiproxy cannot do: a write that is acknowledged and lost."""
    with Wire(port) as client:
        toxic(ask, "drop_write", tell="ok", match={"commands": "SET"})
        assert client.ask("SET", "k", "v") == "OK"
        assert client.ask("GET", "k") is None


def test_disabled(proxy, ask, port):
    """Disabled nobody is accepted and who was connected is cut off; enabled again it is the same port; the other listener stays."""
    with Wire(port) as client, proxy.connect() as other:
        client.raw("PING")
        assert ask("POST", "/proxies/cache", {"enabled": False})["enabled"] is False
        assert client.read_to_end()[0] == b""
        with pytest.raises(ConnectionRefusedError):
            Wire(port)
        assert other.ask("PING") == "PONG"
    ask("POST", "/reset")
    with Wire(port) as client:
        assert client.ask("PING") == "PONG"
    ask("DELETE", "/proxies/cache")
    with pytest.raises(ConnectionRefusedError):
        Wire(port)


def test_another_server(ask, port, serve):
    """A proxy leads to its own server, whichever the main one is."""
    other = serve("redis62")
    with Wire(port) as client:
        client.raw("PING")
        ask("POST", "/proxies/cache", {"upstream": f"127.0.0.1:{other.port}"})
        assert client.read_to_end()[0] == b""
    with Wire(port) as client:
        assert b"redis_version:6.2" in client.ask("INFO", "server")


def test_another_profile_ends_toxics(proxy, ask, port):
    """What is put in force otherwise replaces them, and they are no longer listed."""
    with Wire(port) as client:
        toxic(ask, "latency", latency=60_000)
        ask("DELETE", "/profile")
        assert client.ask("PING") == "PONG"
        assert ask("GET", "/proxies/cache/toxics") == []
    wait_for(lambda: proxy.service.profile.name == "calm", "calm")
