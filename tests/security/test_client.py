"""A hostile client: what it writes into events, metrics and the proxy's own Sentinel, and what that costs."""

import json
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from chaosproxy.net.address import Address
from tests.proxying import serve_proxy, start_proxy
from tests.wire import Wire

EATEN = "faults:\n  - {fault: reply, at: before_forward, error: ERR eaten}\n"
#: What ends a line, a string, a label, or a sample somewhere.
NASTY = (
    '"}\n{"n": 1, "fault": "forged"}\n',
    'x"} 1\nchaosproxy_forged_total 1\n',
    "\\",
    "\r\n+OK\r\n",
    "\u2028\u2029\x85\x00",
    "<!--]]>&lt;",
    "=cmd|' /C calc'!A0",
)


def test_no_event_is_forged(redis70):
    """Keys and command names with ends of lines in them are one event a line, with what was sent in its own field."""
    with start_proxy(redis70.url, EATEN) as proxy:
        with proxy.connect() as wire:
            for text in NASTY:
                wire.raw(text, "x")
                wire.raw("GET", text)
        proxy.wait_events(2 * len(NASTY))
        raw = (proxy.folder / "events.jsonl").read_bytes()
    # Also for readers that see an end of a line in more than one character.
    lines = raw.decode().splitlines()
    events = [json.loads(line) for line in lines[1:]]
    assert len(events) == 2 * len(NASTY)
    assert {event["fault"] for event in events} == {"reply"}
    assert [event["keys"] for event in events[1::2]] == [[text] for text in NASTY]


def test_no_label_is_a_clients(redis70):
    """Whatever commands are called, metrics have the names that the server knows and `other`: neither forged nor without end."""
    with serve_proxy(redis70.url, EATEN) as proxy:
        with proxy.connect() as wire:
            wire.raw("GET", "x")
            before = len(proxy.get("/metrics")[1].splitlines())
            for number, text in enumerate(NASTY * 100):
                wire.raw(f"{number}{text}", "x")
                wire.raw("GET", text)
        text = proxy.get("/metrics")[1]
        assert len(text.splitlines()) - before < 60
        families = {family.name for family in prometheus(text)}
        assert all(name.startswith("chaosproxy_") for name in families)
        assert "chaosproxy_forged" not in families
        accepted = proxy.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")[1]
        assert {family.name for family in openmetrics(accepted)}
        assert proxy.metric("commands_total", command="other") == 100 * len(NASTY)


@pytest.fixture
def sentinel(redis70):
    """A proxy that is its own Sentinel."""
    with serve_proxy(
        redis70.url, "calm", sentinel_service="mine", listen_sentinel=Address("127.0.0.1", 0)
    ) as proxy:
        yield proxy, proxy.service.sentinel.port


def test_patterns_for_the_sentinel(sentinel):
    """Patterns come from clients there: the slowest ones cost nobody else anything, and there are so many at most."""
    proxy, port = sentinel
    with Wire(port) as wire, Wire(port) as other:
        slow = [b"*" + b"[^+]" * 15_000, b"*a" * 30_000, b"*" + b"?" * 60_000]
        for pattern in slow:
            wire.raw("PSUBSCRIBE", pattern)
        assert b"psubscribe" in other.raw("PSUBSCRIBE", "*")
        begun = time.process_time()
        own = proxy.service._proxy.behind._own
        proxy.service._loop.call(own.moved)
        assert b"pmessage" in other.read()[0]
        assert time.process_time() - begun < 5
        # As many as there may be, at once and one after the other.
        wire.send("SUBSCRIBE", *range(1200))
        assert wire.read() == [b"-ERR too many subscriptions\r\n"]
        wire.send("SUBSCRIBE", *range(900))
        wire.read(900)
        wire.send("SUBSCRIBE", *range(900, 1100))
        assert wire.read() == [b"-ERR too many subscriptions\r\n"]


@pytest.mark.parametrize(
    "head",
    [b"*2\r\n$4\r\nPING\r\n$500000000\r\n", b"*1000000\r\n", b"PING " + b"x" * 100_000],
    ids=["argument", "arguments", "inline"],
)
def test_a_long_request_for_the_sentinel(sentinel, head):
    """What no question is as long as is refused as soon as that is known, and nothing of it kept."""
    _, port = sentinel
    with Wire(port) as wire:
        wire.send_bytes(head)
        said, _ = wire.read_to_end()
        assert said.startswith(b"-ERR Protocol error")
    with Wire(port) as wire:
        assert wire.ask("PING") == "PONG"
