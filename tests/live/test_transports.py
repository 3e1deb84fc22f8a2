"""TLS, unix sockets, users and names, from one end to the other: real clients, the command line, real servers."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from chaosproxy.net.address import parse_address
from chaosproxy.net.loop import CHOICE
from tests import servers
from tests.net.certificates import Certificates, make
from tests.net.pairs import AT_ONCE, info
from tests.proxying import RunningProxy, serve_proxy, start_proxy, wait_for

LOST = "\nfaults:\n- {fault: drop_write, name: lost, match: {keys: lost}, tell: ok}\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Certificates:
    return make(tmp_path_factory.mktemp("tls"))


@dataclass
class TlsServer:
    server: servers.Server
    port: int

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.port}"


def start_tls(c: Certificates, *options: str) -> TlsServer:
    """A server that speaks TLS, and wants a certificate of its clients."""
    if reason := servers.available("redis70"):
        pytest.skip(reason)
    files = ("--tls-cert-file", c.cert, "--tls-key-file", c.key, "--tls-ca-cert-file", c.ca)
    server = servers.start(
        "redis70", *map(str, files), "--tls-auth-clients", "yes", *AT_ONCE, *options
    )
    port = servers.free_port()
    assert server.ask("CONFIG", "SET", "tls-port", port) == "OK"
    return TlsServer(server, port)


@pytest.fixture(scope="module")
def behind(certificates) -> Iterator[TlsServer]:
    found = start_tls(certificates)
    yield found
    found.server.stop()


@pytest.fixture
def before(certificates):
    """Give a function that starts a proxy that speaks TLS to its clients and has a certificate for the server."""
    c = certificates
    started: list[RunningProxy] = []
    ours = ("--tls-cert", c.cert, "--tls-key", c.key)
    theirs = ("--upstream-tls-cert", c.client_cert, "--upstream-tls-key", c.client_key)

    def start(url: str, *args: object, ca=None, profile: str = "calm") -> RunningProxy:
        options = (*ours, *theirs, "--upstream-tls-ca", ca or c.ca, *args)
        proxy = start_proxy(url, profile, *map(str, options))
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.stop()


def client(proxy: RunningProxy, c: Certificates, resp: int = 2, **more) -> redis.Redis:
    settings = {
        "host": "localhost",
        "ssl": True,
        "ssl_ca_certs": str(c.ca),
        "socket_timeout": 60,
    } | more
    settings["retry"] = Retry(NoBackoff(), 0)
    return redis.Redis(port=proxy.port, protocol=resp, **settings)


def cli(*args: object) -> tuple[int, str]:
    """Run redis-cli; gives its status and what it said, on whichever of the two."""
    done = subprocess.run(
        ["redis-cli", *map(str, args)], capture_output=True, text=True, check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


@pytest.mark.parametrize("resp", [2, 3])
def test_redis_py(before, behind, certificates, resp):
    """TLS on both sides, with a certificate wanted on either; a fault acts as ever."""
    c = certificates
    proxy = before(behind.url, "--tls-ca", c.ca, profile=LOST)
    assert proxy.url.startswith("rediss://")
    own = {"ssl_certfile": str(c.client_cert), "ssl_keyfile": str(c.client_key)}
    with client(proxy, c, resp, **own) as r:
        assert r.set("kept", "x" * 100_000)
        assert r.set("lost", 1)
        assert r.mget("kept", "lost") == [b"x" * 100_000, None]
    assert behind.server.ask("EXISTS", "kept", "lost") == 1
    assert len(proxy.wait_events(1, "lost")) == 1


def test_redis_cli(before, behind, certificates):
    """The same by redis-cli."""
    c = certificates
    proxy = before(behind.url, "--tls-ca", c.ca)
    files = ("--tls", "--cacert", c.ca, "--cert", c.client_cert, "--key", c.client_key)
    assert cli("-h", "localhost", "-p", proxy.port, *files, "SET", "cli", "v") == (0, "OK")
    assert behind.server.ask("GET", "cli") == b"v"


def test_a_client_that_does_not_trust_the_proxy(before, behind, certificates):
    """It says so, and others go on."""
    c = certificates
    proxy = before(behind.url)
    stranger = client(proxy, c, ssl_ca_certs=str(c.foreign_ca))
    with pytest.raises(redis.ConnectionError, match="certificate verify failed"):
        stranger.ping()
    status, said = cli(
        "-h", "localhost", "-p", proxy.port, "--tls", "--cacert", c.foreign_ca, "PING"
    )
    assert status
    assert "certificate verify failed" in said
    with client(proxy, c) as r:
        assert r.ping()


def test_a_client_without_a_certificate(before, behind, certificates):
    """Where one is wanted it is refused, with TLS' own words; one that speaks no TLS at all is let go. Both are counted."""
    c = certificates
    proxy = before(behind.url, "--tls-ca", c.ca)
    stranger = client(proxy, c)
    with pytest.raises(
        redis.ConnectionError, match=r"(?i)certificate required|closed|reset|pipe|EOF"
    ):
        stranger.ping()
    refused = proxy.metric("connections_total", result="no_tls")
    assert refused >= 1
    assert "no TLS with a client: " in (proxy.folder / "stderr").read_text()
    with socket.create_connection(("127.0.0.1", proxy.port), 60) as plain:
        plain.sendall(b"PING\r\n")
        assert plain.recv(1) == b""
    assert proxy.metric("connections_total", result="no_tls") == refused + 1
    assert proxy.metric("connections_total") == refused + 1


@pytest.mark.parametrize("wrong", ["authority", "name", "plain"])
def test_a_server_that_is_not_trusted(before, behind, certificates, wrong):
    """The log says why nobody is connected, and clients are closed, not left waiting."""
    c = certificates
    match wrong:
        case "authority":
            proxy = before(behind.url, ca=c.foreign_ca)
            why = "certificate"
        case "name":
            with socket.create_server(("127.0.0.2", 0)) as other:
                relay = threading.Thread(target=pass_on, args=(other, behind.port), daemon=True)
                relay.start()
                proxy = before(f"rediss://127.0.0.2:{other.getsockname()[1]}")
                with pytest.raises(redis.ConnectionError), client(proxy, c) as r:
                    r.ping()
            why = "IP address mismatch, certificate is not valid for '127.0.0.2'"
        case _:
            proxy = before(f"rediss://localhost:{behind.server.port}")
            why = "no connection to the server: localhost:"
    with pytest.raises(redis.ConnectionError), client(proxy, c) as r:
        r.ping()
    # A server that speaks no TLS may as well be silent.
    reason = {} if wrong == "plain" else {"reason": "tls"}
    assert proxy.metric("upstream_errors_total", **reason) >= 1
    proxy.stop()
    assert why in proxy.stderr
    assert "(does not answer yet)" in proxy.stderr


def pass_on(listener: socket.socket, port: int) -> None:
    """Pass connections on to a port, as long as somebody listens."""

    def copy(one: socket.socket, two: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                two.sendall(data)
        except OSError:
            pass
        two.close()

    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        two = socket.create_connection(("127.0.0.1", port))
        for ends in ((one, two), (two, one)):
            threading.Thread(target=copy, args=ends, daemon=True).start()


def test_users(before, behind, certificates):
    """Each client is the user that it says it is, and the proxy's own connection is the URL's."""
    server = behind.server
    server.ask("ACL", "SETUSER", "app", "on", ">pw", "~app:*", "+@all", "-@dangerous")
    server.ask("ACL", "SETUSER", "ours", "on", ">own", "~*", "&*", "+@all")
    try:
        url = behind.url.replace("//", "//ours:own@")
        proxy = before(url, profile=LOST)
        with client(proxy, certificates, username="app", password="pw") as r:
            assert r.set("app:k", 1)
            with pytest.raises(redis.exceptions.NoPermissionError):
                r.set("other", 1)
            assert r.acl_whoami() == "app"
        with pytest.raises(redis.AuthenticationError):
            client(proxy, certificates, username="app", password="no").ping()
        assert b"user=ours" in server.ask("CLIENT", "LIST")
        assert "own" not in proxy.url
    finally:
        server.ask("ACL", "DELUSER", "app", "ours")


def test_unix_sockets(tmp_path):
    """From a unix socket to a unix socket, by redis-py and redis-cli."""
    if reason := servers.available("redis70"):
        pytest.skip(reason)
    behind, here = tmp_path / "behind", tmp_path / "here"
    server = servers.start("redis70", "--unixsocket", str(behind))
    try:
        with serve_proxy(f"unix://{behind}", LOST, listen=parse_address(f"unix:{here}")):
            with redis.Redis(unix_socket_path=str(here)) as r:
                assert r.set("k", 1)
                assert r.set("lost", 1)
            assert cli("-s", here, "GET", "k") == (0, "1")
        assert server.ask("KEYS", "*") == [b"k"]
        assert not here.exists()
    finally:
        server.stop()


def test_a_name_is_looked_up_for_each_connection(redis70, monkeypatch):
    """A name that comes to stand for another address leads there, for who connects from then on."""
    monkeypatch.setenv(CHOICE, "asyncio")
    real, answers = socket.getaddrinfo, ["127.0.0.1"]

    def look_up(host, *args, **more):
        return real(answers[-1] if host == "db.example" else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with (
        socket.create_server(("127.0.0.2", redis70.port)) as other,
        serve_proxy(f"redis://db.example:{redis70.port}") as proxy,
        proxy.connect() as first,
    ):
        assert first.ask("PING") == "PONG"
        answers.append("127.0.0.2")
        with proxy.connect() as second:
            there, _ = other.accept()
            with there:
                second.send("PING")
                assert there.recv(100) == b"*1\r\n$4\r\nPING\r\n"
                there.sendall(b"+OTHER\r\n")
                assert second.read() == [b"+OTHER\r\n"]
        assert first.ask("PING") == "PONG"


def test_a_standby_by_tls(before, certificates):
    """A real failover between two servers that are reached by TLS: the link goes to the primary by TLS as well."""
    c = certificates
    profile = "\nfaults:\n- {fault: failover, name: gone, match: {commands: DEL}, style: sentinel, lose: {writes: 1}}\n"
    two = [start_tls(c), start_tls(c, "--tls-replication", "yes")]
    try:
        proxy = before(two[0].url, "--standby", two[1].url, profile=profile)
        wait_for(lambda: info(two[1].server)["master_link_status"] == "up", "the link")
        assert two[1].server.ask("CONFIG", "GET", "tls-replication")[1] == b"no"
        with client(proxy, c) as r:
            assert r.mset({"a": 1, "b": 2})
            assert r.set("c", 3)
            with pytest.raises(redis.ConnectionError):
                r.execute_command("DEL", "a")
        wait_for(lambda: info(two[1].server)["role"] == "master", "the switch")
        assert sorted(two[1].server.ask("KEYS", "*")) == [b"a", b"b"]
        proxy.stop()
        assert two[1].server.ask("CONFIG", "GET", "tls-replication")[1] == b"yes"
        assert [info(each.server)["role"] for each in two] == ["master", "master"]
    finally:
        for each in two:
            each.server.stop()


def test_old_protocols_are_refused(before, behind):
    """Nothing below TLS 1.2 is spoken to clients."""
    proxy = before(behind.url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", proxy.port), 60) as raw, pytest.raises(OSError):  # noqa: PT011
        context.wrap_socket(raw)
