"""`bandwidth` and `slice` on real sockets: how fast bytes pass, and in what pieces they are read."""

import itertools
import threading
import time

import pytest

from tests.proxying import serve_proxy
from tests.wire import Wire, decode, encode

KIB = 1024
SIZE = 96 * KIB
#: A rate is kept to within this share of it.
CLOSE = 0.1


def slow(settings):
    return f"faults:\n- {{fault: bandwidth, match: {{keys: big}}, rate: 64KiB/s, {settings}}}\n"


def timed(function):
    began = time.monotonic()
    function()
    return time.monotonic() - began


@pytest.fixture
def big(redis70):
    redis70.ask("SET", "big", b"v" * SIZE)
    return redis70


def test_replies(big):
    """96 KiB at 64 KiB a second take one and a half seconds; whole and unchanged they arrive."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        took = timed(lambda: wire.send("GET", "big") or wire.read())
        assert took == pytest.approx(SIZE / (64 * KIB), rel=CLOSE)
        assert wire.ask("STRLEN", "big") == SIZE
        (event, _) = proxy.wait_events(2)
        assert event["detail"] == "65536 bytes a second"


def test_replies_arrive_bit_by_bit(big):
    """Half of the time brings half of the bytes: it is a slow line, not a late one."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        began = time.monotonic()
        wire.send("GET", "big")
        received, reads = 0, 0
        while received < SIZE:
            received += len(wire.socket.recv(1 << 20))
            reads += 1
            due = (time.monotonic() - began) * 64 * KIB
            assert received == pytest.approx(due, rel=CLOSE, abs=8 * KIB)
        assert reads > 30


def test_requests(big):
    """The other way it takes as long: the server has the whole value when that time is over, and not before."""
    with serve_proxy(big.url, slow("direction: to_upstream")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        value = b"w" * SIZE
        took = timed(lambda: wire.ask("SET", "big", value))
        assert took == pytest.approx(SIZE / (64 * KIB), rel=CLOSE)
        assert big.ask("GET", "big") == value
        assert timed(lambda: wire.ask("SET", "other", value)) < 0.5


def test_both_ways_at_once(big):
    """A request on its way does not slow a reply down."""
    with (
        serve_proxy(big.url, slow("direction: both, shared: proxy")) as proxy,
        proxy.connect() as up,
        proxy.connect() as down,
    ):
        assert up.ask("PING") == down.ask("PING") == "PONG"
        began = time.monotonic()
        up.send("APPEND", "big", b"w" * SIZE)
        down.send("GET", "big")
        down.read()
        took = time.monotonic() - began
        assert took == pytest.approx(SIZE / (64 * KIB), rel=CLOSE)
        assert decode(up.read()[0]) == 2 * SIZE
        assert time.monotonic() - began == pytest.approx(took, rel=2 * CLOSE)


@pytest.mark.parametrize(("shared", "seconds"), [("connection", 1.5), ("proxy", 3.0)])
def test_shared(big, shared, seconds):
    """Two connections take as long as one, or twice as long if they share one rate."""
    with serve_proxy(big.url, slow(f"direction: to_client, shared: {shared}")) as proxy:
        wires = [proxy.connect() for _ in range(2)]
        for wire in wires:
            wire.ask("PING")
        began = time.monotonic()
        threads = [
            threading.Thread(target=lambda wire=wire: wire.send("GET", "big") or wire.read())
            for wire in wires
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        for wire in wires:
            wire.close()
        assert took == pytest.approx(seconds, rel=CLOSE)


def test_a_switch_lets_the_rest_pass(big):
    """Another profile lets the rest of a reply pass at once."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.send("GET", "big")
        assert wire.socket.recv(10) == b"$98304\r\nvv"
        proxy.use("calm")
        wire.buffer = b"$98304\r\nvv"
        assert timed(wire.read) < 1


# -- pieces


def pieces(wire, count):
    """Read so many pieces, each with what one read gives and when it came."""
    found = []
    while len(found) < count:
        data = wire.socket.recv(1 << 16)
        assert data, "it ended"
        found.append((time.monotonic(), data))
    return found


TEXT = "😀é😀"


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize(
    ("settings", "cuts"),
    [
        ("split: [6, 7]", [6, 7]),
        ("split: -1", [15]),
        ("split: inside_multibyte", [6, 10, 12]),
        ("split: before_crlf", [4, 15]),
        ("split: inside_header", [1]),
        ("size: 5", [5, 10, 15]),
    ],
)
def test_each_piece_is_read_by_itself(redis70, resp, settings, cuts):
    """With a gap of 100 ms each piece is one read, and together they are the reply."""
    rule = f"faults:\n- {{fault: slice, match: {{commands: GET}}, {settings}}}\n"
    raw = b"$10\r\n" + TEXT.encode() + b"\r\n"
    assert len(raw) == 17
    cuts = [cut + 1 if cut == 15 and "size" not in settings else cut for cut in cuts]
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect(resp=resp) as wire:
        redis70.ask("SET", "k", TEXT.encode())
        wire.send("GET", "k")
        found = pieces(wire, len(cuts) + 1)
        edges = [0, *cuts, len(raw)]
        assert [data for _, data in found] == [
            raw[low:high] for low, high in itertools.pairwise(edges)
        ]
        for (before, _), (after, _) in itertools.pairwise(found):
            assert after - before > 0.08


def test_the_gap_need_not_be_long(redis70):
    """TCP_NODELAY is set: 20 ms are enough for pieces of one byte to be read one by one."""
    rule = "faults:\n- {fault: slice, match: {commands: PING}, size: 1, gap: 20ms}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        wire.send("PING")
        assert [data for _, data in pieces(wire, 7)] == [b"%c" % char for char in b"+PONG\r\n"]


def test_what_stands_behind_comes_behind(redis70):
    """A pipeline's other replies come before and behind the pieces, never between them."""
    rule = "faults:\n- {fault: slice, match: {commands: GET}, split: 3, gap: 50ms}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        wire.send_bytes(
            b"".join(encode(*words) for words in (("ECHO", "a"), ("GET", "k"), ("ECHO", "b")))
        )
        data = b"".join(data for _, data in pieces(wire, 2))
        assert data == b"$1\r\na\r\n$-1\r\n$1\r\nb\r\n"


@pytest.mark.parametrize("resp", [2, 3])
def test_in_a_transaction(any_server, resp):
    """The element of EXEC's array is cut where it stands in the array."""
    rule = "faults:\n- {fault: slice, match: {commands: GET}, split: inside_multibyte, most: 1}\n"
    with serve_proxy(any_server.url, rule) as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("SET", "k", TEXT.encode())
        wire.ask("MULTI")
        assert wire.ask("INCR", "n") == wire.ask("GET", "k") == "QUEUED"
        wire.send("EXEC")
        whole = b"*2\r\n:1\r\n$10\r\n" + TEXT.encode() + b"\r\n"
        assert [data for _, data in pieces(wire, 2)] == [whole[:14], whole[14:]]


def test_a_message_in_pieces(redis70):
    """A message for a subscriber is cut as well."""
    rule = "faults:\n- {fault: slice, match: {push: {kind: message}}, split: inside_multibyte, most: 1}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        wire.ask("SUBSCRIBE", "c")
        redis70.ask("PUBLISH", "c", TEXT.encode())
        (_, first), (_, second) = pieces(wire, 2)
        assert first.endswith(b"\xf0")
        assert decode(first + second) == [b"message", b"c", TEXT.encode()]


def test_a_slow_client_of_a_sliced_reply_is_no_problem(redis70):
    """A client that leaves between two pieces leaves nothing behind."""
    rule = "faults:\n- {fault: slice, match: {commands: PING}, size: 1, gap: 1s}\n"
    with serve_proxy(redis70.url, rule) as proxy:
        wire = Wire(proxy.port)
        wire.send("PING")
        assert wire.socket.recv(10) == b"+"
        wire.reset()
        with proxy.connect() as other:
            assert other.ask("ECHO", "x") == b"x"
