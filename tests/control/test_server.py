"""The HTTP server: its three routes, the token, and that nobody can occupy it."""

import http.client
import json
import socket
import time

import pytest

from chaosproxy import __version__
from chaosproxy.control import server as server_module
from chaosproxy.control.server import MOST_REQUESTS, ControlServer
from chaosproxy.net.address import Address
from tests.proxying import wait_for


class Proxy:
    """What is asked of a proxy."""

    problem: str | None = None

    def unready(self):
        return self.problem

    def metrics(self, accept):
        return f"text/plain; accept={accept}", b"numbers\n"


@pytest.fixture
def proxy():
    return Proxy()


@pytest.fixture
def serve(proxy):
    """Start a control server; gives it. All are stopped in the end."""
    started = []

    def start(token=None, host="127.0.0.1"):
        started.append(ControlServer(Address(host, 0), proxy, token))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def ask(server, path, method="GET", **headers):
    """Ask once; gives status, content type and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_healthz(serve):
    """Alive is alive."""
    status, kind, body = ask(serve(), "/healthz")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"status": "ok", "version": __version__}


def test_readyz(serve, proxy):
    """Ready or not, and why not."""
    server = serve()
    assert ask(server, "/readyz")[0] == 200
    proxy.problem = "the server does not answer"
    status, _, body = ask(server, "/readyz")
    assert status == 503
    assert json.loads(body) == {"status": "not ready", "problem": "the server does not answer"}


def test_metrics(serve):
    """In the format that was asked for; a query changes nothing."""
    status, kind, body = ask(serve(), "/metrics?x=1", Accept="application/openmetrics-text")
    assert (status, body) == (200, b"numbers\n")
    assert kind == "text/plain; accept=application/openmetrics-text"


def test_head(serve):
    """HEAD is GET without a body."""
    assert ask(serve(), "/healthz", "HEAD") == (200, "application/json", b"")


def test_what_is_not_there(serve):
    """Other routes are told apart from other methods."""
    server = serve()
    status, _, body = ask(server, "/nowhere")
    assert (status, json.loads(body)) == (404, {"error": "there is no /nowhere"})
    assert ask(server, "/healthz", "BREW")[0] == 501


def test_token(serve):
    """With a token all but the three open routes want it."""
    server = serve(token="secret")
    for path in ("/healthz", "/readyz", "/metrics"):
        assert ask(server, path)[0] == 200
    assert ask(server, "/nowhere")[0] == 401
    assert ask(server, "/nowhere", Authorization="Bearer wrong")[0] == 401
    assert ask(server, "/nowhere", Authorization="Basic secret")[0] == 401
    assert ask(server, "/nowhere", Authorization="Bearer secret")[0] == 404


def test_url_and_address(serve):
    """The port is the kernel's, and the URL one that this machine can ask."""
    server = serve(host="0.0.0.0")
    assert server.address.port > 0
    assert server.url == f"http://127.0.0.1:{server.address.port}"
    assert ask(server, "/healthz")[0] == 200


def test_ipv6(serve):
    """IPv6 where there is one."""
    try:
        server = serve(host="::1")
    except OSError as error:
        pytest.skip(f"needs IPv6: {error}")
    assert server.url == f"http://[::1]:{server.address.port}"


def test_port_taken(serve, proxy):
    """A port that is taken is an error."""
    with pytest.raises(OSError, match="in use"):
        ControlServer(serve().address, proxy, None)


def test_keeps_alive(serve):
    """One connection may ask more than once."""
    connection = http.client.HTTPConnection("127.0.0.1", serve().address.port, timeout=10)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
    connection.close()


def test_bounded(serve, monkeypatch):
    """Connections that say nothing can be so many and no more, and go again by themselves."""
    monkeypatch.setattr(server_module._Handler, "timeout", 0.5)
    server = serve()
    where = ("127.0.0.1", server.address.port)
    silent = [socket.create_connection(where, 10) for _ in range(MOST_REQUESTS)]
    try:
        with socket.create_connection(where, 10) as late:
            assert late.recv(100).startswith(b"HTTP/1.1 503 ")
        wait_for(lambda: ask(server, "/healthz")[0] == 200, "room")
    finally:
        for connection in silent:
            connection.close()


def test_slow_question_does_not_stop_others(serve, proxy, monkeypatch):
    """One that takes long is nobody else's problem."""
    monkeypatch.setattr(proxy, "unready", lambda: time.sleep(1), raising=False)
    server = serve()
    with socket.create_connection(("127.0.0.1", server.address.port), 10) as slow:
        slow.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        began = time.monotonic()
        assert ask(server, "/healthz")[0] == 200
        assert time.monotonic() - began < 0.9
        assert slow.recv(100).startswith(b"HTTP/1.1 200 ")


def test_nonsense(serve):
    """What is no HTTP is refused, and those who hang up in the middle disturb nobody."""
    server = serve()
    with socket.create_connection(("127.0.0.1", server.address.port), 10) as odd:
        odd.sendall(b"*1\r\n$4\r\nPING\r\n\r\n")
        assert b"400" in odd.recv(200)
    socket.create_connection(("127.0.0.1", server.address.port), 10).close()
    assert ask(server, "/healthz")[0] == 200
