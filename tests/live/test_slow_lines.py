"""`bandwidth` and `slice` on real sockets: how fast bytes pass, and in what pieces they are read."""

import functools
import itertools
import socket
import threading
import time

import pytest

from tests.busy import TRIES, measured, within
from tests.proxying import serve_proxy
from tests.wire import Wire, decode, encode

KIB = 1024
SIZE = 96 * KIB
#: A rate is kept to within this share of it.
CLOSE = 0.1


def slow(settings):
    return f"faults:\n- {{fault: bandwidth, match: {{keys: big}}, rate: 64KiB/s, {settings}}}\n"


class LateError(AssertionError):
    """Something took longer than it should: on a busy machine the server may have been kept from it, which nobody here notices."""


def in_time(test):
    """Have a test done again that was late, and not done in time even once in a few times."""

    @functools.wraps(test)
    def again(*args, **kwargs):
        for _ in range(TRIES - 1):
            try:
                return test(*args, **kwargs)
            except LateError:
                pass
        return test(*args, **kwargs)

    return again


class Clock:
    """Counts from where it was made; `busy` says what of it the machine was busy."""

    def __init__(self, busy):
        self.busy, self.began, self.lost = busy, time.monotonic(), busy.lost

    def is_at(self, seconds, close=CLOSE):
        """Whether it is that late now, to within a share of it; what the machine kept waiting for may come on top of that.

        Raises LateError if it is later.
        """
        took, lost = time.monotonic() - self.began, self.busy.lost - self.lost
        assert took >= (1 - close) * seconds, took
        if took > (1 + close) * seconds + lost:
            raise LateError(took, lost)
        return True


@pytest.fixture
def clock():
    """Give a function that makes clocks."""
    with measured() as busy:
        yield lambda: Clock(busy)


@pytest.fixture
def big(redis70):
    redis70.ask("SET", "big", b"v" * SIZE)
    return redis70


@in_time
def test_replies(big, clock):
    """96 KiB at 64 KiB a second take one and a half seconds; whole and unchanged they arrive."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        watch = clock()
        wire.send("GET", "big")
        wire.read()
        assert watch.is_at(SIZE / (64 * KIB))
        assert wire.ask("STRLEN", "big") == SIZE
        (event, _) = proxy.wait_events(2)
        assert event["detail"] == "65536 bytes a second"


@in_time
def test_replies_arrive_bit_by_bit(big, clock):
    """Half of the time brings half of the bytes: it is a slow line, not a late one."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        watch = clock()
        wire.send("GET", "big")
        received, reads = 0, 0
        while received < SIZE:
            received += len(wire.socket.recv(1 << 20))
            reads += 1
            now, lost = time.monotonic() - watch.began, watch.busy.lost - watch.lost
            assert received <= (1 + CLOSE) * now * 64 * KIB + 8 * KIB
            if received < (1 - CLOSE) * (now - lost) * 64 * KIB - 8 * KIB:
                raise LateError(received, now, lost)
        # Who is kept waiting finds more at once.
        assert reads > 30 - 30 * lost / (SIZE / (64 * KIB))


@in_time
def test_requests(big, clock):
    """The other way it takes as long: the server has the whole value when that time is over, and not before."""
    with serve_proxy(big.url, slow("direction: to_upstream")) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        value = b"w" * SIZE
        watch = clock()
        assert wire.ask("SET", "big", value) == "OK"
        assert watch.is_at(SIZE / (64 * KIB))
        assert big.ask("GET", "big") == value
        watch = clock()
        assert wire.ask("SET", "other", value) == "OK"
        assert watch.is_at(0.25, 1)


@in_time
def test_both_ways_at_once(big, clock):
    """A request on its way does not slow a reply down."""
    with (
        serve_proxy(big.url, slow("direction: both, shared: proxy")) as proxy,
        proxy.connect() as up,
        proxy.connect() as down,
    ):
        assert up.ask("PING") == down.ask("PING") == "PONG"
        big.ask("SET", "big", b"v" * SIZE)
        watch = clock()
        up.send("APPEND", "big", b"w" * SIZE)
        down.send("GET", "big")
        down.read()
        assert watch.is_at(SIZE / (64 * KIB))
        assert decode(up.read()[0]) == 2 * SIZE
        assert watch.is_at(SIZE / (64 * KIB), 2 * CLOSE)


@pytest.mark.parametrize(("shared", "seconds"), [("connection", 1.5), ("proxy", 3.0)])
@in_time
def test_shared(big, shared, seconds, clock):
    """Two connections take as long as one, or twice as long if they share one rate."""
    with serve_proxy(big.url, slow(f"direction: to_client, shared: {shared}")) as proxy:
        wires = [proxy.connect() for _ in range(2)]
        for wire in wires:
            wire.ask("PING")
        watch = clock()
        threads = [
            threading.Thread(target=lambda wire=wire: wire.send("GET", "big") or wire.read())
            for wire in wires
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert watch.is_at(seconds)
        for wire in wires:
            wire.close()


@in_time
def test_a_switch_lets_the_rest_pass(big, clock):
    """Another profile lets the rest of a reply pass at once."""
    with serve_proxy(big.url, slow("direction: to_client")) as proxy, proxy.connect() as wire:
        wire.send("GET", "big")
        assert wire.socket.recv(10) == b"$98304\r\nvv"
        proxy.use("calm")
        wire.buffer = b"$98304\r\nvv"
        watch = clock()
        wire.read()
        assert watch.is_at(0.5, 1)


# -- pieces


TEXT = "😀é😀"
#: Seconds between two pieces: a loop that is kept waiting for longer sends the second before it reads the first.
GAP = 0.5


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
@within(0.05)
def test_each_piece_is_read_by_itself(redis70, resp, settings, cuts):
    """With a gap that the machine does not sleep through each piece is one read, and together they are the reply."""
    rule = f"faults:\n- {{fault: slice, match: {{commands: GET}}, {settings}, gap: {GAP}s}}\n"
    raw = b"$10\r\n" + TEXT.encode() + b"\r\n"
    assert len(raw) == 17
    cuts = [cut + 1 if cut == 15 and "size" not in settings else cut for cut in cuts]
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect(resp=resp) as wire:
        redis70.ask("SET", "k", TEXT.encode())
        found = proxy.received(wire, len(cuts) + 1, lambda: wire.send("GET", "k"))
        edges = [0, *cuts, len(raw)]
        assert [data for _, data in found] == [
            raw[low:high] for low, high in itertools.pairwise(edges)
        ]
        for (before, _), (after, _) in itertools.pairwise(found):
            assert after - before > 0.8 * GAP


@within(0.05)
def test_pieces_of_one_byte(redis70):
    """They are read one by one, and need not be far apart for it: TCP_NODELAY is set on both sides."""
    rule = f"faults:\n- {{fault: slice, match: {{commands: PING}}, size: 1, gap: {GAP / 2}s}}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        found = proxy.received(wire, 7, lambda: wire.send("PING"))
        assert [data for _, data in found] == [b"%c" % char for char in b"+PONG\r\n"]
        (link,) = proxy.service._proxy.links.values()
        for side in (link.client, link._upstream):
            sock = side.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_what_stands_behind_comes_behind(redis70):
    """A pipeline's other replies come before and behind the pieces, never between them."""
    rule = "faults:\n- {fault: slice, match: {commands: GET}, split: 3, gap: 50ms}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        sent = b"".join(encode(*words) for words in (("ECHO", "a"), ("GET", "k"), ("ECHO", "b")))
        found = proxy.received(wire, 2, lambda: wire.send_bytes(sent))
        data = b"".join(data for _, data in found)
        assert data == b"$1\r\na\r\n$-1\r\n$1\r\nb\r\n"


@pytest.mark.parametrize("resp", [2, 3])
@within(0.3)
def test_in_a_transaction(any_server, resp):
    """The element of EXEC's array is cut where it stands in the array."""
    rule = "faults:\n- {fault: slice, match: {commands: GET}, split: inside_multibyte, most: 1, gap: 500ms}\n"
    with serve_proxy(any_server.url, rule) as proxy, proxy.connect(resp=resp) as wire:
        any_server.ask("FLUSHALL")
        wire.ask("SET", "k", TEXT.encode())
        wire.ask("MULTI")
        assert wire.ask("INCR", "n") == wire.ask("GET", "k") == "QUEUED"
        found = proxy.received(wire, 2, lambda: wire.send("EXEC"))
        whole = b"*2\r\n:1\r\n$10\r\n" + TEXT.encode() + b"\r\n"
        assert [data for _, data in found] == [whole[:14], whole[14:]]


@within(0.3)
def test_a_message_in_pieces(redis70):
    """A message for a subscriber is cut as well."""
    rule = "faults:\n- {fault: slice, match: {push: {kind: message}}, split: inside_multibyte, most: 1, gap: 500ms}\n"
    with serve_proxy(redis70.url, rule) as proxy, proxy.connect() as wire:
        wire.ask("SUBSCRIBE", "c")
        publish = lambda: redis70.ask("PUBLISH", "c", TEXT.encode())  # noqa: E731
        (_, first), (_, second) = proxy.received(wire, 2, publish)
        assert first.endswith(b"\xf0")
        assert decode(first + second) == [b"message", b"c", TEXT.encode()]


def test_a_slow_client_of_a_sliced_reply_is_no_problem(redis70):
    """A client that leaves between two pieces leaves nothing behind."""
    rule = "faults:\n- {fault: slice, match: {commands: PING}, size: 1, gap: 60s}\n"
    with serve_proxy(redis70.url, rule) as proxy:
        wire = Wire(proxy.port)
        wire.send("PING")
        assert wire.socket.recv(10) == b"+"
        wire.reset()
        with proxy.connect() as other:
            assert other.ask("ECHO", "x") == b"x"
