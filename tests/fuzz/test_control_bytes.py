"""Any bytes on the control address: requests that are nearly right, in any pieces, several on a connection.

Takes streams of HTTP with something broken in them; gives proof that every answer is HTTP with a status that is told of, that none is a
mistake of ours, that pieces make no difference, and that the connection comes to an end.
"""

import json
import logging
import re
import socket
from contextlib import suppress
from functools import cache
from time import monotonic

import pytest
from hypothesis import strategies as st

from chaosproxy.control import sockets, visitor
from chaosproxy.control.api import ROUTES
from chaosproxy.control.server import ControlServer
from chaosproxy.net.address import Address
from tests.control.asking import Backend
from tests.fuzz.properties import Properties
from tests.fuzz.streams import SIZES, changed, pieces

properties = Properties()

TOLD = {200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 422, 431, 503, 505}
#: How long an answer may take on a busy machine, in seconds.
PATIENCE = 55.0

METHODS = st.sampled_from(
    [b"GET", b"HEAD", b"PUT", b"POST", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"get", b"G\0T", b"", b"(x)"]
)  # fmt: skip
PATHS = st.sampled_from(
    [route.pattern.encode() for route in ROUTES if route.pattern != "/events/stream"]
    + [b"/proxies/redis/toxics/latency_downstream", b"/faults/x/trigger", b"/profiles/calm", b"/profiles/%2e%2e%2fetc", b"*"]
    + [b"//x/y", b"http://[", b"http://localhost/profile", b"/events?after=1&after=2", b"/events?wait=1ms", b"/events?after=x"]
    + [b"/events?after=" + b"9" * 30, b"/%ff%00", b"/" + b"a/" * 200, b"/profile?a=b", b"/timeline?after=-1", b"?", b"/connections/1"]
)  # fmt: skip
VERSIONS = st.sampled_from(
    [b" HTTP/1.1"] * 6
    + [b" HTTP/1.0", b"", b" HTTP/2.0", b" HTTP/1.\xb2", b" FTP/1.1", b" HTTP/1.1 x"]
)
LINES = st.lists(
    st.sampled_from(
        [
            *(b"Host: localhost", b"Host: 127.0.0.1:1", b"Host: [::1]", b"Host: evil.example", b"Host: [", b"Host:", b"Host: a\0b"),
            *(b"Origin: http://localhost", b"Origin: null", b"Origin: http://[", b"Origin: http://evil.example", b"Sec-Fetch-Site: cross-site"),
            *(b"Content-Type: application/json", b"Content-Type: text/plain", b"Content-Type: application/json; charset=x", b"Content-Type: \xff"),
            *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", b"Expect: 100-continue", b"Expect: x", b"Connection: close"),
            *(b"Connection: keep-alive", b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: " + b"9" * 5000),
            *(b"Content-Length: 0x10", b"Content-Length: \xb2", b"Authorization: Bearer x", b"Authorization: \xff", b"Accept: \xff"),
            *(b"Accept: application/openmetrics-text", b"Last-Event-ID: 3", b" folded", b"no colon", b": empty", b"A: " + b"x" * 3000),
        ]
    ),
    max_size=5,
)  # fmt: skip

NAMES = st.sampled_from(
    ["name", "seed", "set", "yaml", "enabled", "upstream", "listen", "type", "stream", "toxicity", "attributes", "latency", "rate", "x"]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.sampled_from(["calm", "lost-ack", "redis", "latency", "reset_peer", "limit_data", "reply", "downstream", "upstream"]),
        st.sampled_from(["127.0.0.1:0", "127.0.0.1:1", "unix:/x", "[", "localhost:0", ":", "h:99999", "faults: []", "faults: [{fault: x}]"]),
        st.text(max_size=6),
        st.sampled_from(["\ud800", "x" * 200, "\x00", "\u2028"]),
    ),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(NAMES, values, max_size=4),
    max_leaves=6,
)  # fmt: skip
BODIES = st.one_of(
    st.just(b""),
    st.dictionaries(NAMES, VALUES, max_size=5).map(lambda value: json.dumps(value).encode()),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"[" * 5000, b'{"a":' * 5000, b"\xff", b"1" * 5000, b'{"name": "calm", "name": 1}', b"NaN", b"{}x"]),
    st.binary(max_size=20),
)  # fmt: skip


def request(method, path, version, lines, body, honest):
    length = [b"Content-Length: %d" % len(body)] if honest else []
    head = b"\r\n".join(
        [*[method + b" " + path + version, b"Host: localhost"][: 1 + honest], *lines, *length]
    )
    return head + b"\r\n\r\n" + body


REQUESTS = st.builds(request, METHODS, PATHS, VERSIONS, LINES, BODIES, st.booleans())
#: Of which more will be answered with something else than a refusal.
FAIR = st.builds(
    request,
    st.sampled_from([b"GET", b"PUT", b"POST", b"PATCH", b"DELETE"]),
    PATHS,
    st.just(b" HTTP/1.1"),
    st.just([b"Content-Type: application/json"]),
    BODIES,
    st.just(True),
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["insert", "cut", "double", "swap", "byte"]),
        st.integers(0, 1 << 16),
        st.integers(0, 60),
        st.sampled_from([b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\r\n\r\n", b"\xff", b"A: b\r\n" * 120, b"x" * 70_000]),
        st.just(b""),
    ),
    max_size=2,
)  # fmt: skip
STREAMS = st.tuples(st.lists(REQUESTS | FAIR, min_size=1, max_size=4), CHANGES).map(
    lambda both: changed(b"".join(both[0]), both[1])
)


@cache
def calm():
    return Backend().profile


@pytest.fixture(scope="module")
def control():
    """One server. Nobody has to be waited for, as all say when they have said everything, and on a busy machine each may take long."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((sockets, "PATIENCE"), (visitor, "PATIENCE"), (sockets, "LINGER")):
            patch.setattr(module, name, 60.0)
        running = ControlServer(Address("127.0.0.1", 0), Backend(), None)
        _servers.append(running)
        log, mistakes = logging.getLogger("chaosproxy.control"), logging.Handler(logging.ERROR)
        mistakes.emit = _mistakes.append
        log.addHandler(mistakes)
        yield
        running.stop()
        log.removeHandler(mistakes)
        _servers.clear()
        _mistakes.clear()


_servers = []
#: What the log says of mistakes of ours: one that ends a connection is in no answer.
_mistakes = []


def said(parts):
    """Send them, with nothing behind them; gives what is answered, each answer held against what HTTP is, as `answers` does."""
    [running] = _servers
    running.backend = backend = Backend(profile=calm())
    answer, began = b"", monotonic()
    with socket.create_connection(("127.0.0.1", running.address.port), PATIENCE) as link:
        # It may have said what it has to say to what is still being sent, which is there to be read.
        with suppress(OSError):
            for part in parts:
                link.sendall(part)
            link.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while more := link.recv(1 << 16):
                answer += more
    assert monotonic() - began < PATIENCE
    assert "mistake" not in answer.decode("latin-1")
    assert [record.getMessage() for record in _mistakes] == []
    assert len(backend.toxiproxy.proxies()) <= 100
    return answers(answer)


def answers(raw):
    """Read answers as a client does that knows nothing of what it has asked: of each its status, and whether it is the last; no 100."""
    found = []
    while raw:
        head, end, raw = raw.partition(b"\r\n\r\n")
        assert end, head
        line, *lines = head.split(b"\r\n")
        status = int(re.fullmatch(rb"HTTP/1\.1 (\d{3}) [A-Z][A-Za-z' -]*", line)[1])
        if status == 100:
            continue
        assert status in TOLD, line
        headers = dict(each.split(b": ", 1) for each in lines)
        found.append((status, headers.get(b"Connection") == b"close"))
        if status != 204:
            assert headers[b"Content-Type"]
            length = int(headers[b"Content-Length"])
            # The answer to HEAD has a length and no body.
            if raw.startswith(b"HTTP/1.1 ") or not raw:
                continue
            body, raw = raw[:length], raw[length:]
            assert len(body) == length
            if headers[b"Content-Type"] == b"application/json":
                assert isinstance(json.loads(body), dict | list)
            if status >= 400 and status != 503:
                assert json.loads(body)["error"]
    assert not any(closes for _, closes in found[:-1])
    return found


@properties.of(150, raw=STREAMS, sizes=SIZES)
def streams(raw, sizes):
    """A connection that says anything at all."""
    if b"/events/stream" in raw:
        return
    whole = said([raw])
    # What is refused with more of it on its way may be cut off there.
    assert said(pieces(raw, sizes))[:1] == whole[:1]


#: Such as one connection can have many of: nothing is wrong with their length.
BARE = st.sampled_from([b"/healthz", b"/profile", b"/nowhere", b"/events?after=x", b"/profiles/calm", b"/connections/1"]).map(
    lambda path: b"GET %s HTTP/1.1\r\nHost: localhost\r\nA: %s\r\n\r\n" % (path, b"x" * 1500)
)  # fmt: skip


@properties.of(100, requests=st.lists(FAIR | BARE, min_size=1, max_size=60), sizes=SIZES)
def sequences(requests, sizes):
    """Right requests with any bodies in a row: each is answered, up to one whose body nobody wants, which says that it is the last."""
    found = said(pieces(b"".join(requests), sizes))
    status, closes = found[-1]
    assert len(found) == len(requests) or (len(found) < len(requests) and closes and status >= 400)


test_quickly, test_for_minutes = properties.tests()
test_quickly = pytest.mark.usefixtures("control")(test_quickly)
test_for_minutes = pytest.mark.usefixtures("control")(test_for_minutes)
