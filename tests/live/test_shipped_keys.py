"""Shipped profiles about keys that go, or are old: each does what it says, and a program that is made for it gets by."""

import time

import pytest
import redis
from redis.cache import CacheConfig

from tests.busy import within
from tests.proxying import serve_proxy, wait_for
from tests.wire import decode

WEEK = 604800


def client(port, **how):
    """An everyday client that repeats nothing by itself."""
    return redis.Redis.from_url(f"redis://127.0.0.1:{port}", decode_responses=True, **how)


# -- ttl-lapse


def chat(store, turns, *, renew, pause=0.3):
    """A chat that is written to again and again; gives how many turns are there after each, and when it was written and done."""
    found = []
    for turn in range(turns):
        began = time.monotonic()
        length = store.rpush("chat:1", f"user:{turn}")
        if renew or length == 1:
            store.expire("chat:1", WEEK)
        found.append((length, began, time.monotonic()))
        time.sleep(pause)
    return found


@within(0.5)
def test_ttl_lapse(redis70):
    """A time that is set with the first turn only runs out in the middle of a conversation; renewed, it does not."""
    redis70.ask("FLUSHALL")
    with serve_proxy(redis70.url, "ttl-lapse") as proxy, client(proxy.port) as store:
        first, *turns = chat(store, 9, renew=False)
        # Two seconds after the first one it begins anew, however many came by then.
        again = next(number for number, turn in enumerate(turns) if turn[0] == 1)
        assert [length for length, *_ in turns[:again]] == [*range(2, again + 2)]
        # The server counts in whole milliseconds, of which the first had begun.
        assert all(began < first[2] + 2.002 for _, began, _ in turns[:again])
        assert turns[again][2] > first[1] + 2
        assert again > 1
        assert {event["detail"] for event in proxy.events()} == {"time to live set to 2 s"}
        redis70.ask("FLUSHALL")
        assert [length for length, *_ in chat(store, 9, renew=True)] == [*range(1, 10)]
        wait_for(lambda: not store.exists("chat:1"), "the end of the chat")
    with serve_proxy(redis70.url, "calm") as proxy, client(proxy.port) as store:
        lengths = [length for length, *_ in chat(store, 9, renew=False, pause=0.0)]
        assert lengths == [*range(1, 10)]


def test_ttl_lapse_by_every_command(redis82):
    """Whoever sets a time sets two seconds."""
    redis82.ask("SET", "c", "v")
    redis82.ask("HSET", "h", "f", "v")
    with serve_proxy(redis82.url, "ttl-lapse") as proxy, proxy.connect() as wire:
        began = time.monotonic()
        wire.ask("SET", "a", "v", "EX", WEEK)
        wire.ask("SETEX", "b", WEEK, "v")
        wire.ask("GETEX", "c", "PX", WEEK * 1000)
        wire.ask("HEXPIRE", "h", WEEK, "FIELDS", 1, "f")
        wire.ask("MULTI")
        wire.ask("RPUSH", "l", "v")
        wire.ask("EXPIREAT", "l", int(time.time()) + WEEK)
        assert wire.ask("EXEC") == [1, 1]
        lives = [redis82.ask("PTTL", key) for key in "abcl"]
        lives += redis82.ask("HPTTL", "h", "FIELDS", 1, "f")
        passed = 1000 * (time.monotonic() - began)
        assert all(2000 - passed - 5 < millis <= 2000 for millis in lives), (lives, passed)


# -- eviction-storm


def visits(server, seed):
    """200 reads of 50 sessions; gives which of them were not there, in order, as the client saw it."""
    server.ask("FLUSHALL")
    for number in range(50):
        server.ask("SET", f"session:{number}", "whole")
    missing = []
    with serve_proxy(server.url, "eviction-storm", seed=seed) as proxy, client(proxy.port) as store:
        for visit in range(200):
            if store.get(f"session:{visit % 50}") is None:
                missing.append(visit)
                store.set(f"session:{visit % 50}", "whole")
    return missing


@pytest.mark.servers("redis70", "valkey9")
def test_eviction_storm(server):
    """About one key in ten is gone when it is asked for; with one seed the same ones; subscribers hear of evictions and no more."""
    server.ask("CONFIG", "SET", "notify-keyspace-events", "Eeg")
    with server.connect() as ear:
        ear.ask("PSUBSCRIBE", "__keyevent@0__:*")
        missing = visits(server, 1)
        server.ask("PUBLISH", "__keyevent@0__:end", "")
        heard = []
        while not heard or not heard[-1].endswith(b":end"):
            heard.append(decode(ear.read()[0])[2])
    assert 8 <= len(missing) <= 40
    assert heard.count(b"__keyevent@0__:evicted") >= len(missing)
    assert set(heard) == {b"__keyevent@0__:evicted", b"__keyevent@0__:end"}
    assert visits(server, 1) == missing
    assert visits(server, 2) != missing


def test_eviction_storm_in_a_history(redis70):
    """Who appends to what was evicted has a history that begins in the middle; who looks at the length knows."""
    lost = noticed = 0
    with serve_proxy(redis70.url, "eviction-storm", seed=3) as proxy, client(proxy.port) as store:
        for conversation in range(20):
            turns = []
            for turn in range(6):
                turns.append(f"{conversation}:{turn}")
                if store.rpush(f"chat:{conversation}", turns[-1]) != len(turns):
                    noticed += 1
                    redis70.ask("DEL", f"chat:{conversation}")
                    redis70.ask("RPUSH", f"chat:{conversation}", *turns)
            kept = redis70.ask("LRANGE", f"chat:{conversation}", 0, -1)
            lost += kept != [turn.encode() for turn in turns]
        fired = proxy.metric("faults_fired_total")
    assert noticed == fired > 0
    assert lost == 0


# -- stale-replica


@pytest.mark.servers("redis70", "valkey9")
@within(0.3)
def test_stale_replica(server):
    """What was just sent is not there when the page is loaded again, for a second; who asks the primary has it."""
    server.ask("FLUSHALL")
    with serve_proxy(server.url, "stale-replica") as proxy, client(proxy.port) as store:
        began = time.monotonic()
        assert store.rpush("chat", "one") == 1
        written = time.monotonic()
        assert store.lrange("chat", 0, -1) == []
        assert store.exists("chat") == 0
        asked = time.monotonic()
        while store.lrange("chat", 0, -1) != ["one"]:
            assert asked < written + 1 + 0.05
            asked = time.monotonic()
        assert time.monotonic() - began > 0.99
        store.rpush("chat", "two")
        assert store.lrange("chat", 0, -1) == ["one"]
        with store.pipeline() as pipe:
            pipe.lrange("chat", 0, -1)
            pipe.rpush("chat", "three")
            assert pipe.execute() == [["one"], 3]
        assert server.ask("LRANGE", "chat", 0, -1) == [b"one", b"two", b"three"]


@within(0.3)
def test_stale_replica_loses_what_is_written_back(redis70):
    """Who reads from a replica and writes the whole back drops what came in between; who appends does not."""
    redis70.ask("FLUSHALL")
    with serve_proxy(redis70.url, "stale-replica") as proxy, client(proxy.port) as store:
        for turn in ("one", "two", "three"):
            store.set("whole", (store.get("whole") or "") + turn)
            store.append("appended", turn)
        assert redis70.ask("GET", "whole") == b"three"
        assert redis70.ask("GET", "appended") == b"onetwothree"


# -- stale-cache


@pytest.mark.parametrize(("profile", "seen"), [("calm", "new"), ("stale-cache", "old")])
def test_stale_cache(redis82, profile, seen):
    """redis-py's own cache keeps what it has, as nobody tells it; without the profile it is told."""
    redis82.ask("SET", "price", "old")
    with (
        serve_proxy(redis82.url, profile) as proxy,
        client(proxy.port, protocol=3, cache_config=CacheConfig()) as store,
    ):
        assert store.get("price") == "old"
        redis82.ask("SET", "price", "new")
        if profile == "calm":
            wait_for(lambda: store.get("price") == "new", "the invalidation")
        else:
            proxy.wait_events()
        assert store.get("price") == seen
        assert len(proxy.events()) == (profile != "calm")
        # Everything else arrives.
        assert store.set("other", "v")
        assert store.get("other") == "v"


def test_stale_cache_by_either_way(server):
    """A push of RESP3 is lost, and so is a message that a client of RESP2 has redirected; other messages are not."""
    server.ask("SET", "price", "old")
    with (
        serve_proxy(server.url, "stale-cache") as proxy,
        proxy.connect() as told,
        proxy.connect() as reader,
        proxy.connect(resp=3) as modern,
    ):
        number = told.ask("CLIENT", "ID")
        told.ask("SUBSCRIBE", "__redis__:invalidate")
        told.ask("SUBSCRIBE", "news")
        assert reader.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number) == "OK"
        assert modern.ask("CLIENT", "TRACKING", "ON") == "OK"
        assert reader.ask("GET", "price") == modern.ask("GET", "price") == b"old"
        server.ask("SET", "price", "new")
        assert len(proxy.wait_events(2)) == 2
        server.ask("PUBLISH", "news", "hello")
        assert decode(told.read()[0]) == [b"message", b"news", b"hello"]
        assert modern.ask("GET", "price") == b"new"
