"""Shipped profiles do what they say: each one's story, played by small programs on a real server."""

import json
import socket
import threading
import time
from contextlib import suppress

import pytest
import redis

from chaosproxy.profile import find, load
from tests.busy import measured, within
from tests.proxying import serve_proxy, wait_for
from tests.wire import Wire, decode, encode

# -- late-writer


def client(port, **how):
    """An everyday client that repeats nothing by itself."""
    return redis.Redis.from_url(f"redis://127.0.0.1:{port}", decode_responses=True, **how)


def add(store, text, think):
    """A chat that stores its whole history as one value: read, think, write."""
    history = json.loads(store.get("chat") or "[]")
    history.append(text)
    think()
    store.set("chat", json.dumps(history))


def append(store, text, think):
    """The same without overwriting."""
    think()
    store.rpush("turns", text)


def change(store, text, think):
    """The same, done again by who was late."""

    def change_it(pipe):
        history = json.loads(pipe.get("watched") or "[]")
        think()
        pipe.multi()
        pipe.set("watched", json.dumps([*history, text]))

    store.transaction(change_it, "watched")


def two_tabs(proxy, write, *, in_turn=False):
    """B begins when A has read and is still thinking; both are told that they succeeded. `in_turn`: A's write is held before B's."""
    reading, done = threading.Barrier(2, timeout=60), []

    def tab(text):
        first = [True]

        def think():
            if first.pop() if first else False:
                reading.wait()
                if in_turn and text == "b":
                    proxy.wait_held()

        with client(proxy.port) as store:
            write(store, text, think)
            done.append(text)

    threads = [threading.Thread(target=tab, args=(text,)) for text in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == ["a", "b"]


def test_late_writer_loses_a_turn(redis70):
    """Who rewrites the whole loses what was written last, every time; under calm the loss is another one."""
    for _ in range(5):
        redis70.ask("FLUSHALL")
        with serve_proxy(redis70.url, "late-writer") as proxy:
            two_tabs(proxy, add, in_turn=True)
            (event,) = proxy.wait_events()
            assert event["detail"] == "let go once SET had been applied"
        # A wrote first and was applied last.
        assert json.loads(redis70.ask("GET", "chat")) == ["a"]


@pytest.mark.parametrize(("write", "key"), [(append, "turns"), (change, "watched")])
def test_late_writer_is_survived(redis70, write, key):
    """Who appends, or does it again when he was late, has both turns, every time."""
    for _ in range(5):
        redis70.ask("FLUSHALL")
        with serve_proxy(redis70.url, "late-writer") as proxy:
            two_tabs(proxy, write)
        found = (
            redis70.ask("LRANGE", key, 0, -1)
            if key == "turns"
            else [text.encode() for text in json.loads(redis70.ask("GET", key))]
        )
        assert sorted(found) == [b"a", b"b"]


def test_late_writer_on_a_list_that_is_trimmed(redis70):
    """The first LTRIM, from a stale view, comes after the second one, and cuts off what was new."""
    redis70.ask("RPUSH", "l", *range(6))
    with (
        serve_proxy(redis70.url, "late-writer") as proxy,
        proxy.connect() as one,
        proxy.connect() as two,
    ):
        one.send("LTRIM", "l", 1, 4)
        proxy.wait_held()
        assert one.silent(0.1)
        assert two.ask("RPUSH", "l", "new") == 7
        assert two.ask("LTRIM", "l", 1, -1) == "OK"
        assert decode(one.read()[0]) == "OK"
        assert b"new" not in redis70.ask("LRANGE", "l", 0, -1)


def test_late_writer_alone_is_just_late(redis70):
    """Where nobody else writes the first write to a key takes three seconds, and the next ones nothing."""
    with (
        serve_proxy(redis70.url, "late-writer") as proxy,
        proxy.connect() as wire,
        measured() as busy,
    ):
        began = time.monotonic()
        assert wire.ask("SET", "k", 1) == "OK"
        assert 2.9 < time.monotonic() - began < 20 + busy.lost
        began, lost = time.monotonic(), busy.lost
        assert wire.ask("SET", "k", 2) == "OK"
        assert time.monotonic() - began < 2.9 + busy.lost - lost


# -- crash-tail


@pytest.mark.parametrize("resp", [2, 3])
def test_crash_tail(any_server, resp):
    """Ten writes are there, three were acknowledged and are not, the next one meets the crash of all connections."""
    with serve_proxy(any_server.url, "crash-tail") as proxy, proxy.connect() as other:
        assert other.ask("PING") == "PONG"
        with proxy.connect(resp=resp) as wire:
            told = [wire.ask("RPUSH", "turns", number) for number in range(13)]
            # Each is told what it would have been told; the eleventh to thirteenth are lost.
            assert told == [*range(1, 11), 11, 11, 11]
            wire.send("RPUSH", "turns", 13)
            assert wire.read_to_end() == (b"", "RST")
            assert other.read_to_end() == (b"", "RST")
        with proxy.connect() as again:
            assert again.ask("LRANGE", "turns", 0, -1) == [b"%d" % number for number in range(10)]
            assert again.ask("RPUSH", "turns", "back") == 11
        events = proxy.wait_events(4)
        assert [event["fault"] for event in events] == ["lost-tail"] * 3 + ["crash"]
        assert [event["outcome"] for event in events] == ["false_ok"] * 3 + ["fail"]
        assert {event["applied"] for event in events} == {"no"}


def test_crash_tail_with_other_numbers(redis70):
    """How many are kept and lost is the user's to say."""
    overrides = ("lost-tail.when.skip=2", "lost-tail.when.first=1", "crash.when.nth=4")
    profile = load([find("crash-tail")], overrides=overrides)
    with serve_proxy(redis70.url) as proxy:
        assert proxy.service is not None
        proxy.service.use(profile, 1)
        with proxy.connect() as wire:
            assert [wire.ask("INCR", "n") for _ in range(3)] == [1, 2, 3]
            wire.send("INCR", "n")
            assert wire.read_to_end() == (b"", "RST")
        assert redis70.ask("GET", "n") == b"2"


def test_crash_tail_takes_scripts_and_transactions_too(redis70):
    """A write by a script, or in a transaction, is one of those that are counted and lost."""
    script = "return redis.call('rpush', KEYS[1], ARGV[1])"
    with serve_proxy(redis70.url, "crash-tail") as proxy, proxy.connect() as wire:
        for number in range(10):
            wire.ask("RPUSH", "turns", number)
        assert wire.ask("EVAL", script, 1, "turns", "x") == 11
        for sent, told in (
            (("MULTI",), "OK"),
            (("RPUSH", "turns", "y"), "QUEUED"),
            (("EXEC",), [11]),
        ):
            assert wire.ask(*sent) == told
        assert redis70.ask("LLEN", "turns") == 10


# -- split-frames and torn-emoji


def exchanges(wire):
    """Some commands, and what the bytes of their replies are."""
    sent = [("PING",), ("SET", "k", "värde 😀"), ("GET", "k"), ("GET", "nobody"), ("RPUSH", "l", "a", "b", "é"),
            ("LRANGE", "l", 0, -1), ("HSET", "h", "f", "1"), ("HGETALL", "h"), ("INCR", "k"), ("GET", "big"),
            ("MULTI",), ("GET", "k"), ("LRANGE", "l", 0, -1), ("EXEC",)]  # fmt: skip
    replies = [wire.raw(*words) for words in sent]
    wire.send_bytes(b"".join(encode(*words) for words in sent))
    return replies + wire.read(len(sent))


@pytest.mark.parametrize("profile", ["split-frames", "torn-emoji"])
@pytest.mark.parametrize("resp", [2, 3])
def test_pieces_are_the_same_bytes(redis70, profile, resp):
    """Whatever is cut, put together again it is what the server said."""
    found = []
    for through in (False, True):
        redis70.ask("FLUSHALL")
        redis70.ask("SET", "big", "😀" * 5000)
        if not through:
            with redis70.connect(resp=resp) as wire:
                found.append(exchanges(wire))
            continue
        with serve_proxy(redis70.url, profile) as proxy, proxy.connect(resp=resp) as wire:
            found.append(exchanges(wire))
            assert proxy.events()
    assert found[0] == found[1]


def reads(wire, end):
    """What each read gives, until a reply is whole."""
    data = []
    while not b"".join(data).endswith(end):
        data.append(wire.socket.recv(1 << 16))
    return data


def test_split_frames_cuts_at_every_kind_of_place(redis70):
    """Over some replies there are all three kinds of cuts, and each piece is a read of its own."""
    with serve_proxy(redis70.url, "split-frames") as proxy, proxy.connect() as wire:
        redis70.ask("RPUSH", "l", "a", "b")
        seen = set()
        for _ in range(40):
            wire.send("LRANGE", "l", 0, -1)
            data = reads(wire, b"b\r\n")
            ends = {piece[-1:] for piece in data[:-1]}
            seen |= {"length" for end in ends if end == b"$"}
            seen |= {"line end" for end in ends if end == b"\r"}
            seen |= {"first byte" for _ in [0] if data[0] == b"*"}
        assert seen == {"length", "line end", "first byte"}
        faults = {event["fault"] for event in proxy.events()}
        assert faults == {"cut-at-the-ends", "cut-in-lengths", "cut-in-line-ends"}


@within(0.3)
def test_torn_emoji(redis70):
    """A text comes in pieces none of which is a text by itself; one without such characters comes whole."""
    text = "😀 five 😀 of 😀 these 😀 and 😀 é"
    # So far apart that a machine which is busy for a moment does not give two at once.
    profile = load([find("torn-emoji")], overrides=("torn-emoji.gap=500ms",))
    with serve_proxy(redis70.url) as proxy, proxy.connect() as wire:
        proxy.service.use(profile, 1)
        redis70.ask("SET", "plain", "plain text")
        redis70.ask("SET", "k", text.encode())
        (whole,) = proxy.received(wire, 1, lambda: wire.send("GET", "plain"))
        assert whole[1].endswith(b"text\r\n")
        data = [each for _, each in proxy.received(wire, 6, lambda: wire.send("GET", "k"))]
        assert data[-1].endswith("é".encode() + b"\r\n")
        torn = b"".join(data).partition(b"\r\n")[2][:-2]
        assert torn.decode() == text
        assert "\ufffd" in "".join(piece.decode(errors="replace") for piece in data)


def test_torn_emoji_and_a_real_client(redis70):
    """A client that decodes whole replies has every text byte for byte."""
    texts = ["😀é😀", "日本語の会話", "plain", "a" * 5000 + "ü"]
    with serve_proxy(redis70.url, "torn-emoji") as proxy, client(proxy.port) as store:
        store.rpush("chat", *texts)
        assert store.lrange("chat", 0, -1) == texts


# -- pubsub-loss


@pytest.mark.parametrize("resp", [2, 3])
@within(1)
def test_pubsub_loss(redis70, resp):
    """Of many messages some are lost; after ten or so the connection is reset, and the way back takes its time."""
    with serve_proxy(redis70.url, "pubsub-loss") as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("SUBSCRIBE", "c")
        for number in range(30):
            redis70.ask("PUBLISH", "c", number)
        data, end = wire.read_to_end()
        assert end == "RST"
        lost = proxy.events("lost-message")
        arrived = data.count(b"message")
        assert lost
        assert arrived + len(lost) >= 10
        began = time.monotonic()
        with proxy.connect(resp=resp) as again, measured() as busy:
            again.ask("SUBSCRIBE", "c")
            assert 0.29 < time.monotonic() - began < 15 + busy.lost
        (cut,) = proxy.events("lost-subscriber")
        assert cut["match"] >= 10
        assert proxy.events("slow-return")


def test_pubsub_loss_whatever_the_seed(redis70):
    """Which messages are lost is the seed's; that the subscriber loses its connection is not."""
    for seed in range(5):
        with serve_proxy(redis70.url, "pubsub-loss", seed=seed) as proxy, proxy.connect() as wire:
            wire.ask("SUBSCRIBE", "c")
            for number in range(30):
                redis70.ask("PUBLISH", "c", number)
            assert wire.read_to_end()[1] == "RST"


@within(1)
def test_pubsub_loss_and_a_real_client(redis70):
    """redis-py subscribes again by itself: nobody is told of the gap, and later messages come."""
    with serve_proxy(redis70.url, "pubsub-loss") as proxy:
        store = redis.Redis(port=proxy.port, decode_responses=True)
        listener = store.pubsub()
        listener.subscribe("c")
        got = []

        def listen():
            # All that has come: on a busy machine it may be more than one, every time.
            while message := listener.get_message(timeout=0.05):
                if message["type"] == "message":
                    got.append(int(message["data"]))

        published = 0
        deadline = time.monotonic() + 60
        while not proxy.events("slow-return") or not got or got[-1] < published - 3:
            assert time.monotonic() < deadline
            redis70.ask("PUBLISH", "c", published)
            published += 1
            with suppress(redis.ConnectionError):
                listen()
            time.sleep(0.01)
        listener.close()
        store.close()
        assert len(got) < published
        assert got == sorted(set(got))


# -- too-many-clients


def test_too_many_clients(redis70):
    """Ten are in; the eleventh is told so and turned away; when one leaves there is room."""
    with serve_proxy(redis70.url, "too-many-clients") as proxy:
        wires = [proxy.connect() for _ in range(10)]
        assert [wire.ask("PING") for wire in wires] == ["PONG"] * 10
        with proxy.connect() as eleventh:
            assert eleventh.read_to_end() == (b"-ERR max number of clients reached\r\n", "FIN")
        with client(proxy.port) as store, pytest.raises(redis.ConnectionError, match="max number"):
            store.ping()
        wires.pop().close()
        wait_for(lambda: b"connected_clients:11\r" in redis70.ask("INFO", "clients"), "room")
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"
        for wire in wires:
            wire.close()


def test_too_many_clients_as_redis_says_it(redis70):
    """It is what Redis says itself at its maxclients, byte for byte."""
    redis70.ask("CONFIG", "SET", "maxclients", 1)
    try:
        with socket.create_connection(("127.0.0.1", redis70.port), 10) as direct:
            own = direct.recv(100)
    finally:
        redis70.ask("CONFIG", "SET", "maxclients", 10000)
    with serve_proxy(redis70.url, "too-many-clients") as proxy:
        wires = [proxy.connect() for _ in range(10)]
        assert [wire.ask("PING") for wire in wires] == ["PONG"] * 10
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as eleventh:
            assert eleventh.recv(100) == own
        for wire in wires:
            wire.close()


# -- brownout


def test_brownout(redis70):
    """Everything is answered, and rightly; a quarter of the keys takes a second and a half, the others do not."""
    redis70.ask("SET", "big", b"v" * 256 * 1024)
    took, late = {}, {}

    def look(port, key):
        with Wire(port) as wire:
            wire.ask("PING")
            began, lost = time.monotonic(), busy.lost
            assert wire.ask("SET", key, key) == "OK"
            took[key], late[key] = time.monotonic() - began, busy.lost - lost
            assert wire.ask("GET", key) == key.encode()

    with serve_proxy(redis70.url, "brownout") as proxy, measured() as busy:
        keys = [f"key:{number}" for number in range(24)]
        threads = [threading.Thread(target=look, args=(proxy.port, key)) for key in keys]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        proxy.wait_events(48, "slow-replies")
        slow = {event["keys"][0] for event in proxy.events("slow-shard")}
        assert set(took) == set(keys)
        assert 1 <= len(slow) <= 12
        assert {key for key in keys if took[key] >= 1.5} >= slow
        others = [key for key in keys if key not in slow]
        # One or the other may be late for the server's sake.
        assert sum(took[key] < 1.49 + late[key] for key in others) > len(others) / 2
        assert 0 < len(proxy.events("slow-connections")) < 24
        delays = [event["delay"] for event in proxy.events("slow-replies")]
        assert len(delays) >= 48
        assert max(delays) <= 1
        with proxy.connect() as wire:
            wire.ask("PING")
            began = time.monotonic()
            wire.ask("GET", "big")
            assert time.monotonic() - began > 0.45
        assert proxy.events("narrow-line")
        assert all(event["outcome"] == "ok" for event in proxy.events())


def test_brownout_is_the_same_quarter(redis70):
    """Which keys are slow is the seed's, whoever asks and whenever."""
    found = []
    for _ in range(2):
        with serve_proxy(redis70.url, "brownout", seed=3) as proxy:
            wires = [proxy.connect() for _ in range(12)]
            for number, wire in enumerate(wires):
                wire.send("GET", f"key:{number}")
            for wire in wires:
                wire.read()
                wire.close()
            proxy.wait_events(12, "slow-replies")
            found.append(sorted(event["keys"][0] for event in proxy.events("slow-shard")))
    assert found[0] == found[1]
    assert found[0]
