"""The HTTP server: its address, its token, and that nobody can occupy it."""

import socket
import threading

import pytest

from chaosproxy.control import handler as handler_module
from chaosproxy.control.server import MOST_REQUESTS, ControlServer
from tests.control.asking import request
from tests.proxying import wait_for


def test_token(serve):
    """With a token all but the three open routes want it."""
    server = serve(token="secret")
    for path in ("/healthz", "/readyz", "/metrics"):
        assert request(server, "GET", path).status == 200
    assert request(server, "GET", "/profile").status == 401
    assert request(server, "GET", "/nowhere").status == 401
    assert request(server, "GET", "/profile", Authorization="Bearer wrong").status == 401
    assert request(server, "GET", "/profile", Authorization="Bearer secret").status == 200


def test_url_and_address(serve):
    """The port is the kernel's, and the URL one that this machine can ask; there any name will do."""
    server = serve(host="0.0.0.0")
    assert server.address.port > 0
    assert server.url == f"http://127.0.0.1:{server.address.port}"
    assert request(server, "GET", "/profile", Host="chaosproxy:9380").status == 200


def test_ipv6(serve):
    """IPv6 where there is one."""
    try:
        server = serve(host="::1")
    except OSError as error:
        pytest.skip(f"needs IPv6: {error}")
    assert server.url == f"http://[::1]:{server.address.port}"


def test_port_taken(serve, backend):
    """A port that is taken is an error."""
    with pytest.raises(OSError, match="in use"):
        ControlServer(serve().address, backend, None)


def test_bounded(serve, monkeypatch):
    """Connections that say nothing can be so many and no more, and go again by themselves."""
    # Long enough that all are there before the first one goes.
    monkeypatch.setattr(handler_module.Handler, "timeout", 4)
    server = serve()
    where = ("127.0.0.1", server.address.port)
    silent = [socket.create_connection(where, 10) for _ in range(MOST_REQUESTS)]
    try:
        with socket.create_connection(where, 10) as late:
            assert late.recv(100).startswith(b"HTTP/1.1 503 ")
        wait_for(lambda: request(server, "GET", "/healthz").status == 200, "room")
    finally:
        for connection in silent:
            connection.close()


def test_slow_question_does_not_stop_others(serve, backend, monkeypatch):
    """One that takes long is nobody else's problem."""
    asked, answer = threading.Event(), threading.Event()
    monkeypatch.setattr(
        backend, "unready", lambda: (asked.set(), answer.wait(20), None)[-1], raising=False
    )
    server = serve()
    with socket.create_connection(("127.0.0.1", server.address.port), 30) as slow:
        slow.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert asked.wait(20)
        assert request(server, "GET", "/healthz").status == 200
        answer.set()
        assert slow.recv(100).startswith(b"HTTP/1.1 200 ")


def test_who_hangs_up(serve):
    """Those who hang up in the middle disturb nobody."""
    server = serve()
    socket.create_connection(("127.0.0.1", server.address.port), 10).close()
    assert request(server, "GET", "/healthz").status == 200
