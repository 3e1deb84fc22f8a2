"""Malformed commands, as the very server answers them: the connection that says them ends, or goes on, just as it would without a proxy.

Takes bytes, and a server with a proxy before it; gives proof that both say the same to them, and nobody else notices.
"""

import pytest

from tests.fuzz.properties import Properties
from tests.fuzz.streams import REQUEST_BYTES, SIZES, pieces
from tests.proxying import serve_proxy
from tests.wire import Wire, encode, talk

PING = b"*1\r\n$4\r\nPING\r\n"
#: So long that no single read sees the end of such a line: one of just over 64 KiB is too long, or is not, by how the server happens to read it.
LONG = 500_000
#: What is wrong with a request; a whole one stands before each, and one that may never be read behind it.
WRONG = (
    *(b"*1000000000\r\n", b"*1048577\r\n", b"*2147483648\r\n", b"*-1\r\n", b"*-5\r\n", b"*0\r\n", b"*+1\r\n", b"*01\r\n"),
    *(b"*1\r\n$536870913\r\n", b"*1\r\n$536870912\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$+4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n"),
    *(b"*1\r\n$9223372036854775808\r\n", b"*9223372036854775808\r\n", b"*1\r\n:4\r\n", b"*1\r\n+PING\r\n", b"*1\r\nPING\r\n"),
    *(b"*\r\n", b"*x\r\n", b"*1 \r\n", b"* 1\r\n", b"*1\n$4\nPING\n", b"*1\r\n$4\r\nPINGxx", b"*1\r\n$3\r\nPING\r\n"),
    *(b"*" + b"1" * LONG, b"*1\r\n$" + b"1" * LONG, b"x" * LONG, b"x" * LONG + b"\r\n", b"\0\r\n", b'PING "unbalanced\r\n'),
    *(b"*1\r\n" * 1000, b"\r\n" * 1000, b"*0\r\n" * 1000, b"*1048576\r\n" + b"$0\r\n\r\n" * 2000, b"*100\r\n" + b"$1\r\na\r\n" * 100),
    *(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\xff" * 100, b"+OK\r\n", b"$-1\r\n"),
)  # fmt: skip

LOOKED_AT = """
faults:
- {fault: latency, match: {commands: [GET, PING, ECHO]}, at: before_forward, delay: 1ms, when: {nth: 1000000}}
"""


@pytest.fixture(scope="module", params=["calm", LOOKED_AT], ids=["calm", "looked at"])
def proxy(request, serve):
    server = serve("redis70")
    with serve_proxy(server.url, request.param) as running:
        running.behind = server.port
        yield running


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong[:24])[2:-1])
def test_as_the_server_says(proxy, wrong):
    """The same error in the server's own words, the same bytes up to the end; another connection goes on."""
    with proxy.connect() as other:
        assert other.ask("PING") == "PONG"
        sent = PING + wrong + PING
        direct, _ = talk(proxy.behind, sent)
        for step in (0, 4096):
            said, _ = talk(proxy.port, sent, step=step)
            assert said == direct
        assert other.ask("PING") == "PONG"


def test_a_million_arguments(proxy):
    """As many as may be are passed on; the server says what it makes of them."""
    sent = encode("DEL", *[b"k"] * 1_000_000)
    with Wire(proxy.port) as wire:
        wire.socket.settimeout(60)
        wire.send_bytes(sent)
        assert wire.read() == [b":0\r\n"]
        assert wire.ask("PING") == "PONG"


properties = Properties()


@properties.of(60, raw=REQUEST_BYTES, sizes=SIZES)
def anything(raw, sizes):
    """What the server says to any bytes is what a client of the proxy hears, in whatever pieces they come."""
    if b"CLIENT" in raw.upper() or b"HELLO" in raw.upper():
        # Each has a name and a number of its own.
        return
    for proxy in _proxies:
        direct, _ = talk(proxy.behind, raw)
        with Wire(proxy.port) as wire:
            try:
                for piece in pieces(raw, sizes):
                    wire.send_bytes(piece)
                wire.finish()
            except OSError:
                # It has been closed on in the middle, as the server does.
                pass
            said, _ = wire.read_to_end()
        assert said == direct


_proxies = []


@pytest.fixture
def here(proxy):
    _proxies.append(proxy)
    yield
    _proxies.clear()


test_quickly, test_for_minutes = properties.tests()
test_quickly = pytest.mark.usefixtures("here")(test_quickly)
test_for_minutes = pytest.mark.usefixtures("here")(test_for_minutes)
