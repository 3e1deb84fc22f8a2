"""One HTTP connection: bodies, bounds, what is no HTTP, and mistakes of ours."""

import http.client
import logging
import socket
from contextlib import closing

import pytest

from chaosproxy.control.answer import MOST_BODY
from tests.control.asking import request


@pytest.fixture
def raw(serve):
    """Send bytes to a server of its own and give all that it answers, until it hangs up."""
    server = serve()

    def send(*parts):
        with socket.create_connection(("127.0.0.1", server.address.port), 60) as link:
            for part in parts:
                link.sendall(part)
            link.shutdown(socket.SHUT_WR)
            said = b""
            while more := link.recv(65536):
                said += more
        return said

    return send


def test_headers(ask):
    """What every answer says: nothing is kept, nothing is guessed, nothing about what runs it."""
    headers = ask("GET", "/profile").headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"].startswith("chaosproxy/")
    assert "Python" not in headers["Server"]


def test_keeps_alive(serve):
    """One connection may ask more than once, also with bodies and after a refusal."""
    with closing(http.client.HTTPConnection("127.0.0.1", serve().address.port, timeout=60)) as link:
        link.connect()
        # Once it is closed it would be made again without a word.
        link.auto_open = 0
        for method, path, body, status in (
            ("GET", "/healthz", None, 200),
            ("PUT", "/profile", b'{"name": "lost-ack"}', 200),
            ("PUT", "/profile", b'{"name": 3}', 400),
            ("GET", "/nowhere", None, 404),
            ("GET", "/profile", None, 200),
        ):
            link.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = link.getresponse()
            said = answer.read()
            assert answer.status == status, path
        assert b"lost-ack" in said


def test_keeps_alive_where_that_is_asked_for(raw):
    """HTTP/1.0 goes on only where it is asked to, and is told whether it does."""
    head = b"GET /healthz HTTP/1.0\r\n"
    goes_on = head + b"Connection: keep-alive\r\n\r\n"
    first, second, third = raw(goes_on * 2 + head + b"\r\n").split(b"HTTP/1.1 200 ")[1:]
    for said in (first, second):
        assert b"Connection: keep-alive\r\n" in said
    assert b"Connection: close\r\n" in third


def test_too_large(ask, backend):
    """A body that is too large is refused by its length; its sender can hear that."""
    said = ask("PUT", "/profile", b" " * (MOST_BODY + 1), Content_Type="application/json")
    assert said.status == 413
    assert str(MOST_BODY) in said.json["error"]
    assert ask("PUT", "/profile", b" " * MOST_BODY, Content_Type="application/json").status == 400
    assert backend.generation == 1


@pytest.mark.parametrize("length", [b"x", b"-1", b"", b"1\r\nContent-Length: 2"])
def test_bad_lengths(raw, length):
    """A length that is none, or two, is refused and the connection ends: nobody knows where a request would begin."""
    said = raw(
        b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + b"\r\n\r\n{}"
    )
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1") == 1


def test_chunked(raw):
    """Bodies without a length are not taken."""
    said = raw(
        b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert said.startswith(b"HTTP/1.1 411 ")


def test_half_a_body(raw):
    """A body that ends early is no request."""
    said = raw(b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    assert said.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"*1\r\n$4\r\nPING\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 70000 + b"\r\n\r\n", b"431"),
        (b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
        (b"(GET) /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /healthz\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /profile HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\n\r\n", b"403"),
        (b"GET /profile HTTP/1.1\r\nHost: [\r\n\r\n", b"403"),
        (
            b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            + b"9" * 5000
            + b"\r\n\r\n",
            b"413",
        ),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", b"431"),
    ],
)
def test_nonsense(raw, sent, status):
    """What is no HTTP, or too much of it, is refused as JSON too."""
    said = raw(sent)
    assert said.startswith(b"HTTP/1.1 " + status), said
    assert b'{"error": ' in said


def test_limits_are_counted(raw, backend):
    """Too long an address, too many header lines, too large a body: each is one more."""
    raw(b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n")
    raw(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n")
    raw(b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n")
    counted = dict(backend.limits.items())
    assert (counted["control_head"], counted["control_body"]) == (2, 1)


def test_guarded(serve):
    """Foreign names are refused before anything is looked at; open routes are not asked for a name."""
    server = serve()
    assert request(server, "GET", "/profile", Host="evil.example").status == 403
    assert request(server, "PUT", "/profile", {"name": "calm"}, Host="evil.example").status == 403
    assert request(server, "GET", "/healthz", Host="evil.example").status == 200


def test_a_mistake_of_ours(ask, backend, monkeypatch, caplog):
    """It is logged, said, and the next request is answered; it says nothing about the inside."""
    monkeypatch.setattr(backend, "in_force", lambda: 1 / 0, raising=False)
    with caplog.at_level(logging.ERROR, "chaosproxy.control"):
        said = ask("GET", "/profile")
    assert (said.status, said.json) == (500, {"error": "a mistake in chaosproxy; its log has it"})
    assert "ZeroDivisionError" in caplog.text
    assert ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PATCH", "QUERY"])
def test_methods_that_a_route_has_not(ask, method):
    """A method that there is and that this route does not take is told so, with those it takes."""
    said = ask(method, "/healthz")
    assert (said.status, said.headers["Allow"]) == (405, "GET, HEAD")


def test_a_sender_that_waits_to_be_told(serve):
    """`Expect: 100-continue` is answered at once where the body is wanted, and with the refusal itself where it is not."""
    with socket.create_connection(("127.0.0.1", serve().address.port), 60) as link:
        head = b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        link.sendall(head + b"Content-Length: 16\r\n\r\n")
        assert link.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(b'{"name": "calm"}')
        assert link.recv(1000).startswith(b"HTTP/1.1 200 ")
        link.sendall(head + b"Content-Length: 99999999\r\n\r\n")
        assert link.recv(1000).startswith(b"HTTP/1.1 413 ")
