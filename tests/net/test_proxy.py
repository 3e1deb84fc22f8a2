"""The proxy on a real server: start and stop, profiles switched, limits, a server that goes and comes, TLS on both sides."""

import logging
import socket
import ssl
import threading
import time

import pytest

from chaosproxy.net.address import Address
from chaosproxy.net.tls import server_context, upstream_context
from tests import servers
from tests.proxying import wait_for
from tests.wire import Wire, connected, encode

SLOW = "faults:\n- {fault: latency, match: {commands: GET}, at: after_apply, delay: 2s}\n"
HELD = "faults:\n- {fault: latency, match: {commands: GET}, at: before_forward, delay: 60s}\n"
LOST = """
faults:
- {fault: disconnect, name: lost, match: {commands: RPUSH}, at: after_apply, how: reset}
"""


def test_a_fault_end_to_end(serve_here, redis70):
    """Bytes, events and counters agree: the write is applied, its reply lost, the connection reset."""
    proxy = serve_here(redis70.url, LOST, seed=7)
    with proxy.connect() as client:
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    assert redis70.ask("LRANGE", "l", 0, -1) == [b"x"]
    (event,) = proxy.wait_events()
    assert (event["applied"], event["outcome"], event["told"]) == ("yes", "unknown", "reset")
    assert proxy.metric("faults_fired_total", fault="lost", command="RPUSH") == 1
    assert proxy.metric("commands_total", command="RPUSH") == 1


def test_switch(serve_here, redis70):
    """A switched profile is in force on connections that are open, and what the old one held goes on."""
    proxy = serve_here(redis70.url, HELD)
    with proxy.connect() as client:
        assert client.ask("SET", "k", 1) == "OK"
        client.send("GET", "k")
        proxy.wait_held()
        assert client.silent(0.2)
        assert proxy.use("calm") == 2
        assert client.read() == [b"$1\r\n1\r\n"]
        assert proxy.use(LOST) == 3
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    events = proxy.wait_events(2)
    assert [(event["generation"], event["type"]) for event in events] == [
        (1, "latency"),
        (3, "disconnect"),
    ]
    assert proxy.metric("profile_info", generation="3", profile="test") == 1


def test_stop_waits_for_replies(serve_here, redis70):
    """Replies on their way still arrive when it stops; new clients are refused at once."""
    listen = Address("127.0.0.1", servers.free_port())
    proxy = serve_here(redis70.url, SLOW, listen=listen)
    with proxy.connect() as client, proxy.connect() as idle:
        assert client.ask("SET", "k", 1) == "OK"
        assert idle.ask("PING") == "PONG"
        # With its own patience, not that of a test's end.
        stopping = threading.Thread(target=proxy.service.stop)
        proxy._stop = lambda: None
        began = time.monotonic()
        client.send("GET", "k")
        proxy.wait_held()
        stopping.start()
        assert idle.read_to_end() == (b"", "FIN")
        with pytest.raises(ConnectionRefusedError):
            proxy.connect()
        assert client.read_to_end() == (b"$1\r\n1\r\n", "FIN")
        stopping.join(60)
        assert time.monotonic() - began > 1.9


def test_stop_writes_down_what_nobody_waits_for(serve_here, redis70):
    """An answer behind that of a command that waits for others never leaves: what the fault did is written down all the same."""
    refused = "faults:\n- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}\n"
    proxy = serve_here(redis70.url, refused)
    with proxy.connect() as client:
        client.send_bytes(encode("BLPOP", "q", 0) + encode("SET", "k", 1))
        wait_for(lambda: proxy.metric("faults_matched_total") == 1, "the match")
        proxy.stop()
    (event,) = proxy.service.journal.events()
    assert (event["applied"], event["told"]) == ("no", "nothing")


def test_stop_does_not_wait_for_ever(serve_here, redis70):
    """A reply that never comes is waited for only so long."""
    proxy = serve_here(redis70.url)
    with proxy.connect() as client:
        client.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in redis70.ask("CLIENT", "LIST"), "the request")
        began = time.monotonic()
        proxy.service.stop(0.3)
        proxy._stop = lambda: None
        assert 0.3 <= time.monotonic() - began < 50
        assert client.read_to_end()[0] == b""


def test_stop_of_one_that_had_no_time(serve_here, redis70):
    """Who stops on a machine that gives it no time until all patience is over still ends every connection."""
    proxy = serve_here(redis70.url)
    with proxy.connect() as client:
        client.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in redis70.ask("CLIENT", "LIST"), "the request")
        loop = proxy.service._loop.loop
        poll = 0.01  # between two looks at what is still open

        def stall() -> None:
            if proxy.service._proxy._stopping:
                time.sleep(2)
            else:
                loop.call_later(poll, stall)

        loop.call_soon_threadsafe(stall)
        proxy.service.stop(0.3)
        proxy._stop = lambda: None
        assert client.read_to_end()[0] == b""
        assert not proxy.service._proxy.links


def test_server_that_goes_and_comes_back(serve_here, caplog, monkeypatch):
    """Down: clients are closed, counted, told once in the log. Back: the next client is served, its commands known."""
    server = servers.start("redis70")
    try:
        proxy = serve_here(server.url)
        with proxy.connect() as client:
            assert client.ask("PING") == "PONG"
            server.stop()
            assert client.read_to_end() == (b"", "FIN")
        with caplog.at_level(logging.WARNING, logger="chaosproxy"):
            for _ in range(3):
                with proxy.connect() as client:
                    assert client.read_to_end() == (b"", "FIN")
            assert proxy.metric("upstream_errors_total", reason="refused") == 3
            assert proxy.metric("connections_total", result="no_upstream") == 3
            assert proxy.service.unready() == f"127.0.0.1:{server.port} does not answer"
            down = [r.message for r in caplog.records if r.name == "chaosproxy.proxy"]
            assert down == [
                f"no connection to the server: 127.0.0.1:{server.port}: Connection refused"
            ]
        monkeypatch.setattr(servers, "_free_port", lambda **_: server.port)
        again = servers.start("valkey9")
        try:
            with proxy.connect() as client:
                assert client.ask("PING") == "PONG"
            world = proxy.service._proxy.world
            wait_for(lambda: world.server.product == "Valkey", "another look at the server")
            wait_for(lambda: proxy.service.unready() is None, "it to answer")
        finally:
            again.stop()
    finally:
        server.stop()


def test_starts_without_a_server(serve_here, redis70):
    """It listens though nobody answers, and is not ready."""
    port = servers.free_port()
    proxy = serve_here(f"redis://127.0.0.1:{port}")
    assert not proxy.service.survey.answered
    assert proxy.service.unready() == f"127.0.0.1:{port} does not answer"
    with proxy.connect() as client:
        assert client.read_to_end() == (b"", "FIN")


def test_side_connection_has_the_credentials_and_clients_have_not(serve_here, redis70):
    """The URL's user is the proxy's own; a client is nobody until it says who it is."""
    redis70.ask("CONFIG", "SET", "requirepass", "secret")
    redis70.ask("AUTH", "secret")
    try:
        proxy = serve_here(f"redis://:secret@127.0.0.1:{redis70.port}/3")
        assert proxy.service.survey.table_problem == ""
        wait_for(lambda: proxy.service.unready() is None, "it to answer")
        assert proxy.url == f"redis://127.0.0.1:{proxy.port}/3"
        with proxy.connect() as client:
            assert client.raw("GET", "k") == b"-NOAUTH Authentication required.\r\n"
            assert client.ask("AUTH", "secret") == "OK"
            assert b" db=0 " in client.ask("CLIENT", "INFO")
    finally:
        redis70.ask("CONFIG", "SET", "requirepass", "")


def test_not_ready_while_it_loads(serve_here, redis70):
    """A server that answers LOADING is there and yet of no use."""
    proxy = serve_here(redis70.url)
    wait_for(lambda: proxy.service.unready() is None, "it to answer")
    redis70.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
    redis70.ask("REPLICAOF", "127.0.0.1", 1)
    assert proxy.service.unready() == f"127.0.0.1:{redis70.port} does not answer"


def test_many_clients(serve_here, redis70):
    """A few hundred connections at once, each with its own state on the server, and none is left behind."""
    proxy = serve_here(redis70.url)
    with connected(proxy.port, 300) as wires:
        for number, wire in enumerate(wires):
            wire.send("SELECT", number % 8)
            wire.send("SET", f"k{number}", number)
        for wire in wires:
            assert wire.read(2) == [b"+OK\r\n", b"+OK\r\n"]
        assert proxy.metric("connections") == 300
    wait_for(lambda: proxy.metric("connections") == 0, "the end of all")
    wait_for(lambda: redis70.ask("CLIENT", "LIST").count(b"\n") <= 2, "their upstream sides' end")
    assert redis70.ask("DBSIZE") == len(range(0, 300, 8))


def test_unix_sockets(serve_here, tmp_path):
    """From a unix socket to a unix socket."""
    path = tmp_path / "redis.sock"
    server = servers.start("redis70", "--unixsocket", str(path))
    try:
        listen = Address(path=str(tmp_path / "proxy.sock"))
        proxy = serve_here(f"unix://{path}", LOST, listen=listen)
        assert proxy.url == f"unix://{listen.path}"
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(listen.path)
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
            client.sendall(b"RPUSH l x\r\n")
            # There is no RST between unix sockets: the connection just ends.
            assert client.recv(100) == b""
        assert server.ask("LRANGE", "l", 0, -1) == [b"x"]
        assert [event["client"] for event in proxy.wait_events()] == [listen.path]
    finally:
        server.stop()


# TLS.


@pytest.fixture(scope="module")
def tls_server(certificates):
    """A Redis that speaks TLS only, and wants a client's certificate."""
    c = certificates
    server = servers.start(
        "redis70",
        *("--tls-port", "0", "--tls-cert-file", str(c.cert), "--tls-key-file", str(c.key)),
        *("--tls-ca-cert-file", str(c.ca), "--tls-auth-clients", "yes"),
    )
    port = servers.free_port()
    server.ask("CONFIG", "SET", "tls-port", port)
    yield server, port
    server.stop()


@pytest.fixture
def tls_port(tls_server):
    """Its port, with nothing stored in it."""
    server, port = tls_server
    server.ask("FLUSHALL")
    return port


def tls_client(proxy, certificates):
    context = ssl.create_default_context(cafile=certificates.ca)
    wire = Wire(proxy.port)
    wire.socket = context.wrap_socket(wire.socket, server_hostname="localhost")
    return wire


def test_tls_on_both_sides(serve_here, tls_port, certificates):
    """Both sides encrypted, both certificates checked: faults as ever, the last bytes before the end too."""
    c = certificates
    proxy = serve_here(
        f"rediss://localhost:{tls_port}",
        LOST,
        listen_tls=server_context(c.cert, c.key, None),
        upstream_tls=upstream_context(c.ca, c.client_cert, c.client_key, insecure=False),
    )
    assert proxy.url == f"rediss://127.0.0.1:{proxy.port}"
    wait_for(lambda: proxy.service.unready() is None, "it to answer")
    with tls_client(proxy, c) as client:
        value = b"x" * (4 << 20)
        assert client.ask("SET", "big", value) == "OK"
        assert client.ask("GET", "big") == value
        client.send("RPUSH", "tls", "x")
        assert client.read_to_end()[0] == b""
    with tls_client(proxy, c) as client:
        assert client.ask("LRANGE", "tls", 0, -1) == [b"x"]
        client.send("QUIT")
        assert client.read_to_end() == (b"+OK\r\n", "FIN")


def test_half_close_before_tls(serve_here, tls_port, certificates):
    """A plain client's FIN before a TLS upstream: replies still come, then the end."""
    c = certificates
    tls = upstream_context(c.ca, c.client_cert, c.client_key, insecure=False)
    proxy = serve_here(f"rediss://localhost:{tls_port}", upstream_tls=tls)
    with proxy.connect() as client:
        client.send_bytes(b"PING\r\nPING\r\n")
        client.finish()
        assert client.read_to_end() == (b"+PONG\r\n+PONG\r\n", "FIN")


def test_untrusted_server(serve_here, tls_port, certificates):
    """A server whose certificate is not trusted is not spoken to, and that is counted as such."""
    c = certificates
    tls = upstream_context(c.foreign_ca, c.client_cert, c.client_key, insecure=False)
    proxy = serve_here(f"rediss://localhost:{tls_port}", upstream_tls=tls)
    with proxy.connect() as client:
        assert client.read_to_end() == (b"", "FIN")
    assert proxy.metric("upstream_errors_total", reason="tls") == 1
