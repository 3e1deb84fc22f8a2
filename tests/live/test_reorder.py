"""`reorder` on real servers: the server's own order shows that a held command waits until the other was applied."""

import random
import re
import threading
import time

import pytest

from tests.busy import measured
from tests.proxying import serve_proxy, wait_for
from tests.wire import Wire, decode, encode

LATE = """
faults:
- fault: reorder
  match: {commands: SET, keys: k}
  when: {nth: 1}
  until: {command: SET}
  max: 20s
"""


def quoted(line):
    """The words of one of MONITOR's lines."""
    return tuple(re.findall(rb'"([^"]*)"', line))


class Monitor:
    """What a server carries out, in its order, as it says itself."""

    def __init__(self, server):
        self.wire = server.connect()
        assert self.wire.ask("MONITOR") == "OK"
        self.server = server

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def until_now(self, *names):
        """The commands of these names that were carried out so far."""
        self.server.ask("ECHO", "the end")
        seen = []
        while (words := quoted(self.wire.read()[0])) != (b"ECHO", b"the end"):
            seen.append(words)
        return [words for words in seen if words and words[0].decode().upper() in names]


@pytest.mark.parametrize("resp", [2, 3])
def test_held_until_the_other_was_applied(any_server, resp):
    """The first to be sent is the last to be carried out, and both clients were told OK."""
    with serve_proxy(any_server.url, LATE) as proxy, Monitor(any_server) as monitor:
        with proxy.connect(resp=resp) as one, proxy.connect(resp=resp) as two:
            one.send("SET", "k", "old")
            proxy.wait_held()
            assert one.silent(0.1)
            assert monitor.until_now("SET") == []
            assert two.ask("SET", "k", "new") == "OK"
            assert decode(one.read()[0]) == "OK"
            assert monitor.until_now("SET") == [(b"SET", b"k", b"new"), (b"SET", b"k", b"old")]
            assert two.ask("GET", "k") == b"old"
        (event,) = proxy.wait_events()
        assert (event["applied"], event["told"]) == ("yes", "late")
        assert event["detail"] == "let go once SET had been applied"


def test_forwarded_is_not_applied(any_server):
    """As long as the server has the other command and has not carried it out, the held one stays with the proxy."""
    with (
        serve_proxy(any_server.url, LATE) as proxy,
        Monitor(any_server) as monitor,
        proxy.connect() as one,
        proxy.connect() as two,
    ):
        # So that only one command waits in the server's buffers.
        assert one.ask("PING") == two.ask("PING") == "PONG"
        one.send("SET", "k", "old")
        proxy.wait_held()
        any_server.ask("CLIENT", "PAUSE", 20000, "WRITE")
        two.send("SET", "k", "new")
        wait_for(lambda: b"blocked_clients:1" in any_server.ask("INFO", "clients"), "the pause")
        assert one.silent(0.2)
        assert b"blocked_clients:1" in any_server.ask("INFO", "clients")
        assert monitor.until_now("SET") == []
        any_server.ask("CLIENT", "UNPAUSE")
        assert decode(two.read()[0]) == decode(one.read()[0]) == "OK"
        assert monitor.until_now("SET") == [(b"SET", b"k", b"new"), (b"SET", b"k", b"old")]


def test_applied_in_a_transaction(any_server):
    """What was queued opens the barrier when EXEC carries it out."""
    with serve_proxy(any_server.url, LATE) as proxy, proxy.connect() as one, proxy.connect() as two:
        one.send("SET", "k", "old")
        proxy.wait_held()
        assert two.ask("MULTI") == "OK"
        assert two.ask("SET", "k", "new") == "QUEUED"
        assert one.silent(0.1)
        assert two.ask("EXEC") == ["OK"]
        assert decode(one.read()[0]) == "OK"
        assert two.ask("GET", "k") == b"old"


def test_replies_stay_in_order(redis70):
    """A pipeline around a held command is answered in its order."""
    with serve_proxy(redis70.url, LATE) as proxy, proxy.connect() as one, proxy.connect() as two:
        sent = (("ECHO", 1), ("SET", "k", "old"), ("ECHO", 2), ("GET", "k"), ("ECHO", 3))
        one.send_bytes(b"".join(encode(*words) for words in sent))
        assert decode(one.read()[0]) == b"1"
        proxy.wait_held()
        assert one.silent(0.1)
        assert two.ask("SET", "k", "new") == "OK"
        assert [decode(raw) for raw in one.read(4)] == ["OK", b"2", b"old", b"3"]


def test_max(redis70):
    """Where nobody else comes it goes on after `max`."""
    with serve_proxy(redis70.url, LATE.replace("20s", "300ms")) as proxy:
        with proxy.connect() as one, measured() as busy:
            began = time.monotonic()
            assert one.ask("SET", "k", "old") == "OK"
            assert 0.29 < time.monotonic() - began < 15 + busy.lost
        (event,) = proxy.wait_events()
        assert event["detail"] == "let go because max was reached"


@pytest.mark.parametrize("end", ["close", "reset"])
def test_the_client_goes(any_server, end):
    """A held command whose client went is never carried out, and the event says so."""
    with serve_proxy(any_server.url, LATE) as proxy, Monitor(any_server) as monitor:
        one = proxy.connect()
        one.send("SET", "k", "old")
        proxy.wait_held()
        assert one.silent(0.1)
        getattr(one, end)()
        (event,) = proxy.wait_events()
        assert (event["applied"], event["outcome"]) == ("no", "fail")
        assert event["detail"] == "dropped while it was held: client_gone"
        with proxy.connect() as two:
            assert two.ask("SET", "k", "new") == "OK"
            assert two.ask("GET", "k") == b"new"
        assert monitor.until_now("SET") == [(b"SET", b"k", b"new")]


@pytest.mark.parametrize(("order", "expected"), [("as_given", "012"), ("reversed", "210")])
def test_a_crowd(redis70, order, expected):
    """Three that wait for each other are carried out one after the other, in the order that was asked for."""
    rule = f"faults:\n- {{fault: reorder, match: {{commands: RPUSH}}, waiting: 3, order: {order}, max: 20s}}\n"
    with serve_proxy(redis70.url, rule) as proxy:
        wires = [proxy.connect() for _ in range(3)]
        for number, wire in enumerate(wires):
            assert wire.ask("PING") == "PONG"
            wire.send("RPUSH", "k", number)
            if number < 2:
                proxy.wait_held(number + 1)
        assert sorted(decode(wire.read()[0]) for wire in wires) == [1, 2, 3]
        found = b"".join(wires[0].ask("LRANGE", "k", 0, -1)).decode()
        for wire in wires:
            wire.close()
        assert found == expected


def test_shuffled_is_the_seed(redis70):
    """A shuffled crowd goes on in the same order with the same seed."""
    rule = "faults:\n- {fault: reorder, match: {commands: RPUSH}, waiting: 4, order: shuffled, max: 20s}\n"
    found = {}
    for seed in (1, 1, 2, 3, 4, 5):
        redis70.ask("DEL", "k")
        with serve_proxy(redis70.url, rule, seed=seed) as proxy:
            wires = [proxy.connect() for _ in range(4)]
            for number, wire in enumerate(wires):
                assert wire.ask("PING") == "PONG"
                wire.send("RPUSH", "k", number)
                if number < 3:
                    proxy.wait_held(number + 1)
            for wire in wires:
                wire.read()
                wire.close()
        order = b"".join(redis70.ask("LRANGE", "k", 0, -1))
        assert found.setdefault(seed, order) == order
    assert len(set(found.values())) > 1


def test_no_deadlock(redis70):
    """Many clients that all wait for each other, with pipelines and transactions, all come to an end, in order."""
    rule = """
faults:
- {fault: reorder, name: each, match: {commands: [SET, INCR]}, until: {command: "@write"}, max: 50ms}
- {fault: reorder, name: crowd, match: {commands: RPUSH}, waiting: 3, order: shuffled, max: 50ms}
"""
    problems = []

    def work(port, seed):
        chance = random.Random(seed)
        try:
            with Wire(port) as wire:
                for turn in range(15):
                    key = f"k{chance.randrange(2)}"
                    sent = [("ECHO", turn), ("SET", key, turn), ("ECHO", f"{turn}a")]
                    expected = [str(turn).encode(), "OK", f"{turn}a".encode()]
                    if chance.random() < 0.3:
                        sent += [("MULTI",), ("INCR", f"{seed}"), ("ECHO", "x"), ("EXEC",)]
                        expected += ["OK", "QUEUED", "QUEUED", None]
                    if chance.random() < 0.5:
                        sent += [("RPUSH", "l", turn), ("ECHO", f"{turn}b")]
                        expected += [None, f"{turn}b".encode()]
                    wire.send_bytes(b"".join(encode(*words) for words in sent))
                    got = [decode(raw) for raw in wire.read(len(sent))]
                    for is_, should in zip(got, expected, strict=True):
                        assert should in (None, is_), (got, expected)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            problems.append(error)

    with serve_proxy(redis70.url, rule) as proxy:
        threads = [
            threading.Thread(target=work, args=(proxy.port, seed), daemon=True) for seed in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "it hangs"
        assert problems == []
        assert {event["applied"] for event in proxy.events()} == {"yes"}


def test_a_switch_lets_go(redis70):
    """Another profile lets a held command go on, and that is what the event says."""
    with serve_proxy(redis70.url, LATE) as proxy:
        with proxy.connect() as one:
            one.send("SET", "k", "old")
            proxy.wait_held()
            assert one.silent(0.1)
            proxy.use("calm")
            assert decode(one.read()[0]) == "OK"
        (event,) = proxy.wait_events()
        assert event["detail"] == "let go because another profile is in force"
        assert (event["applied"], event["generation"]) == ("yes", 1)
