"""Who speaks HTTP to the control address with bytes of their own: requests in requests, and what answers say to browsers."""

import http.client
from contextlib import closing

import pytest

from tests.proxying import serve_proxy
from tests.wire import talk


@pytest.fixture(scope="module")
def proxy():
    with serve_proxy("redis://127.0.0.1:1", "calm") as proxy:
        yield proxy


HIDDEN = b"DELETE /events HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "header",
    [
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding:\tchunked",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding\r\n : chunked",
        b"Transfer-Encoding:\x0bchunked",
        b"X: y\rTransfer-Encoding: chunked",
        b"Content-Length: 0\r\nContent-Length: %d" % len(HIDDEN),
        b"Content-Length: %d\r\nContent-Length: 0" % len(HIDDEN),
        b"Content-Length: +%d" % len(HIDDEN),
        b"Content-Length: -1",
        b"Content-Length: 0x10",
        b"Content-Length: 1_0",
        b"Content-Length: " + b"9" * 5000,
        b"Content-Length : %d" % len(HIDDEN),
        b"Content-Length\x00: %d" % len(HIDDEN),
        b"Content-Length: 0,%d" % len(HIDDEN),
        b"no colon\r\nContent-Length: %d" % len(HIDDEN),
        b" Content-Length: %d" % len(HIDDEN),
        b"\x0bContent-Length: %d" % len(HIDDEN),
    ],
)
def test_no_request_in_a_request(proxy, header):
    """Where two readers could disagree how long a body is, it is refused and nothing behind it is taken for a request."""
    head = (
        b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n"
    )
    said, _ = talk(int(proxy.control.rpartition(":")[2]), head % header + HIDDEN)
    assert said.count(b"HTTP/1.1 ") == 1, said
    assert said.split(b" ", 2)[1][:1] == b"4"
    assert b"Connection: close" in said


def test_a_body_is_a_body(proxy):
    """With one plain length it is the body, and the next request begins behind it."""
    port = int(proxy.control.rpartition(":")[2])
    head = b"PUT /profile HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"
    said, _ = talk(port, head % len(HIDDEN) + HIDDEN + last)
    assert [line.split()[1] for line in said.splitlines() if line.startswith(b"HTTP/1.1 ")] == [
        b"400", b"200"
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "CONNECT"])
@pytest.mark.parametrize("path", ["/", "/profile", "/metrics", "/page/main.js", "/nowhere", "*"])
def test_what_browsers_are_told(proxy, method, path):
    """No answer lets another site in, be it a page, a refusal or a preflight; none may be taken for something else or framed."""
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"}
    where = proxy.control.removeprefix("http://")
    with closing(http.client.HTTPConnection(where, timeout=30)) as link:
        for more in ({}, headers):
            link.request(method, path, headers=more)
            answer = link.getresponse()
            check(answer, answer.read())


def check(answer, said):
    names = {name.lower() for name in answer.headers}
    assert not [name for name in names if name.startswith("access-control-")]
    assert "set-cookie" not in names
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Python" not in answer.headers["Server"]
    if "text/html" in answer.headers.get("Content-Type", ""):
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    # TRACE gives nothing of the request back.
    assert b"evil.example" not in said
