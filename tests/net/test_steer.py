"""What a user asks of a running proxy: faults act or do not, connections are told of and cut, between real sockets."""

import pytest

from chaosproxy.core.steering import UnknownFaultError
from tests.proxying import serve_proxy, wait_for

MANUAL = """
faults:
- {fault: disconnect, name: cut, match: {commands: INCR}, when: {trigger: manual}, at: after_apply}
- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 60s}
"""


@pytest.fixture
def proxy(either_loop, redis70):
    with serve_proxy(redis70.url, MANUAL) as proxy:
        yield proxy


def test_triggered(proxy):
    """One request, one act, on the next match; what was asked for can be seen until then."""
    with proxy.connect() as client:
        assert client.ask("INCR", "n") == 1
        status = proxy.service.trigger("cut")
        assert (status["name"], status["requested"], status["fired"]) == ("cut", 1, 0)
        client.send("INCR", "n")
        assert client.read_to_end() == (b"", "RST")
    with proxy.connect() as client:
        assert client.ask("INCR", "n") == 3
    assert [event["match"] for event in proxy.wait_events()] == [2]


def test_switched_off(proxy):
    """A fault that is switched off lets everything pass, at once; on again it acts."""
    assert proxy.service.enable("slow", False)["enabled"] is False
    with proxy.connect() as client:
        assert client.ask("GET", "n") is None
        assert proxy.service.enable("slow", True)["enabled"] is True
        client.send("GET", "n")
        wait_for(lambda: proxy.metric("held_commands") == 1, "the reply to be held")


def test_unknown(proxy):
    """A fault that is not there is named."""
    for ask in (proxy.service.trigger, lambda name: proxy.service.enable(name, True)):
        with pytest.raises(UnknownFaultError, match="did you mean 'slow'"):
            ask("sloe")


def test_told_of(proxy):
    """Each connection with its number, name, database, and what it waits for."""
    with proxy.connect() as first, proxy.connect() as second:
        assert first.ask("CLIENT", "SETNAME", "worker") == "OK"
        assert second.ask("SELECT", "3") == "OK"
        first.send("GET", "n")
        wait_for(lambda: proxy.metric("held_commands") == 1, "the reply to be held")
        one, two = proxy.service.connections()
    assert (one["name"], one["holding"], one["waiting_replies"]) == ("worker", True, 1)
    assert (two["db"], two["holding"], two["connected"]) == (3, False, True)
    assert one["id"] < two["id"]
    assert one["age"] >= two["age"] >= 0
    assert one["address"] == "127.0.0.1"


def test_cut(proxy):
    """Cut off, the client sees a reset and the server loses it too; nobody else notices."""
    with proxy.connect() as first, proxy.connect() as second:
        ids = {int(client.ask("CLIENT", "ID")) for client in (first, second)}
        one, _ = proxy.service.connections()
        assert proxy.service.cut(one["id"])
        assert first.read_to_end() == (b"", "RST")

        def alive():
            there = second.ask("CLIENT", "LIST").decode()
            return sum(f"id={number} " in there for number in ids)

        # A server that has just heard of an end still lists whose it was.
        wait_for(lambda: alive() == 1, "the server to lose it")
        assert not proxy.service.cut(one["id"])
        assert not proxy.service.cut(999)


def test_cut_while_held(proxy):
    """A connection whose reply is held is cut at once, and the event says what became of it."""
    with proxy.connect() as client:
        client.send("GET", "n")
        wait_for(lambda: proxy.metric("held_commands") == 1, "the reply to be held")
        assert proxy.service.cut(proxy.service.connections()[0]["id"])
        assert client.read_to_end() == (b"", "RST")
    (event,) = proxy.wait_events()
    assert (event["applied"], event["told"], event["outcome"]) == ("yes", "nothing", "unknown")
    assert event["delay"] < 60


def test_cut_before_it_is_let_in(proxy):
    """Who is still kept waiting at the entrance can be cut too."""
    proxy.use("faults:\n- {fault: admit, new_connections: accept_silent}\n")
    with proxy.connect() as client:
        wait_for(proxy.service.connections, "the connection")
        (one,) = proxy.service.connections()
        assert not one["connected"]
        assert proxy.service.cut(one["id"])
        assert client.read_to_end() == (b"", "RST")
