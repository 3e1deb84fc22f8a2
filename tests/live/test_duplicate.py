"""`duplicate` on real servers: applied twice, answered once."""

import pytest

from tests.proxying import serve_proxy, wait_for
from tests.wire import decode, encode

TWICE = "faults:\n- {fault: duplicate, match: {commands: '@write'}}\n"
LATER = "faults:\n- {fault: duplicate, match: {commands: '@write'}, times: 3, gap: 50ms}\n"
NOTHING = "faults:\n- {fault: duplicate, match: {commands: NOBODY.KNOWS}}\n"


@pytest.mark.parametrize("resp", [2, 3])
def test_applied_twice_answered_once(any_server, resp):
    """The list has the element twice, the client heard of the first; what it sent behind is answered in order."""
    with serve_proxy(any_server.url, TWICE) as proxy, proxy.connect(resp=resp) as wire:
        sent = (("ECHO", 1), ("RPUSH", "l", "x"), ("ECHO", 2), ("INCR", "n"), ("GET", "n"))
        wire.send_bytes(b"".join(encode(*words) for words in sent))
        assert [decode(raw) for raw in wire.read(5)] == [b"1", 1, b"2", 1, b"2"]
        assert wire.ask("LRANGE", "l", 0, -1) == [b"x", b"x"]
        first, second = proxy.wait_events(2)
        assert (first["command"], first["applied"], first["told"]) == ("RPUSH", "yes", "ok")
        assert second["detail"] == "sent 2 times"


@pytest.mark.parametrize("resp", [2, 3])
def test_in_a_transaction(any_server, resp):
    """EXEC's array has as many elements as the client queued commands, each of its own type."""
    with serve_proxy(any_server.url, TWICE) as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("SET", "n", 0)
        sent = (
            ("MULTI",),
            ("INCR", "n"),
            ("GET", "n"),
            ("HSET", "h", "f", "v"),
            ("HGETALL", "h"),
            ("EXEC",),
        )
        wire.send_bytes(b"".join(encode(*words) for words in sent))
        replies = [decode(raw) for raw in wire.read(6)]
        hash_ = {b"f": b"v"} if resp == 3 else [b"f", b"v"]
        assert replies == ["OK", *["QUEUED"] * 4, [1, b"2", 1, hash_]]
        assert wire.ask("GET", "n") == b"2"


def test_while_watching(redis70):
    """A transaction that was aborted was applied not even once."""
    with serve_proxy(redis70.url, TWICE) as proxy, proxy.connect() as wire:
        assert wire.ask("WATCH", "n") == "OK"
        redis70.ask("SET", "n", 5)
        assert wire.ask("MULTI") == "OK"
        assert wire.ask("INCR", "n") == "QUEUED"
        assert wire.ask("EXEC") is None
        assert wire.ask("GET", "n") == b"5"
        (event,) = proxy.wait_events()
        assert (event["applied"], event["told"]) == ("no", "error")


@pytest.mark.parametrize("resp", [2, 3])
def test_with_a_gap(any_server, resp):
    """The copies come later, in the client's database, and nobody waits for them."""
    with serve_proxy(any_server.url, LATER) as proxy, proxy.connect(resp=resp) as wire:
        assert wire.ask("SELECT", 3) == "OK"
        # At once, so that the second is on its way before the gap is over, however busy the machine is.
        wire.send_bytes(encode("INCR", "n") + encode("GET", "n"))
        assert [decode(raw) for raw in wire.read(2)] == [1, b"1"]
        wait_for(lambda: wire.ask("GET", "n") == b"3", "the copies")
        (event,) = proxy.wait_events()
        assert event["detail"] == "sent 3 times, 0.05 s apart"
        assert wire.ask("GET", "n") == b"3"


def test_with_a_gap_and_the_client_gone(redis70):
    """A client that leaves does not take the copies with it."""
    with serve_proxy(redis70.url, LATER.replace("50ms", "20s")) as proxy:
        with proxy.connect() as wire:
            assert wire.ask("INCR", "n") == 1
        wait_for(lambda: redis70.ask("GET", "n") == b"3", "the copies")
        (event,) = proxy.wait_events()
        assert event["detail"].endswith("the connection ended before all were answered")


def test_what_would_block_is_left_alone(redis70):
    """A job is taken once, whoever waits for it."""
    with serve_proxy(redis70.url, TWICE) as proxy, proxy.connect() as wire:
        redis70.ask("RPUSH", "q", "job1", "job2")
        assert wire.ask("BLPOP", "q", 1) == [b"q", b"job1"]
        assert redis70.ask("LRANGE", "q", 0, -1) == [b"job2"]
        assert proxy.events() == []


def test_where_no_replies_are_wanted(redis70):
    """With CLIENT REPLY OFF and SKIP it is applied twice, and what is answered later is answered rightly."""
    with serve_proxy(redis70.url, TWICE) as proxy, proxy.connect() as wire:
        wire.send("CLIENT", "REPLY", "SKIP")
        wire.send("INCR", "n")
        assert wire.ask("GET", "n") == b"2"
        wire.send("CLIENT", "REPLY", "OFF")
        wire.send("INCR", "n")
        assert wire.ask("CLIENT", "REPLY", "ON") == "OK"
        assert wire.ask("GET", "n") == b"4"


def test_calm_beside_it(redis70):
    """A rule that matches nothing repeats nothing."""
    with serve_proxy(redis70.url, NOTHING) as proxy, proxy.connect() as wire:
        assert [wire.ask("INCR", "n") for _ in range(3)] == [1, 2, 3]
