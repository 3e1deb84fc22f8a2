"""`push` on real servers: messages and invalidations, in both protocols, keep their place whatever is done to them."""

import time

import pytest

from tests.proxying import serve_proxy
from tests.wire import decode, encode


def rule(settings, match="{kind: message}"):
    return f"faults:\n- {{fault: push, match: {{push: {match}}}, {settings}}}\n"


class Subscriber:
    """A client that has subscribed to c, and one beside it that publishes straight to the server."""

    def __init__(self, server, proxy, resp):
        self.server, self.resp = server, resp
        self.wire = proxy.connect(resp=resp)
        self.wire.ask("SUBSCRIBE", "c")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def publish(self, *texts, channel="c"):
        for text in texts:
            assert self.server.ask("PUBLISH", channel, text) == 1

    def heard(self, count):
        return [decode(raw) for raw in self.wire.read(count)]

    @property
    def pong(self):
        return "PONG" if self.resp == 3 else [b"pong", b""]


def message(text):
    return [b"message", b"c", text.encode()]


@pytest.fixture(params=[2, 3])
def resp(request):
    return request.param


def test_drop(any_server, resp):
    """Every other message is lost; the others come, and so does the reply behind them."""
    every_other = rule("do: drop, when: {every: 2}")
    with (
        serve_proxy(any_server.url, every_other) as proxy,
        Subscriber(any_server, proxy, resp) as sub,
    ):
        sub.publish("1", "2", "3", "4")
        sub.wire.send("PING")
        assert sub.heard(3) == [message("1"), message("3"), sub.pong]
        assert [event["match"] for event in proxy.wait_events(2)] == [2, 4]
        assert {event["told"] for event in proxy.events()} == {"nothing"}


def test_delay(any_server, resp):
    """A message is late, and with it what stands behind it; what stands before it is not."""
    late = "do: delay, delay: {}, when: {{nth: 2}}"
    with (
        serve_proxy(any_server.url, rule(late.format("300ms"))) as proxy,
        Subscriber(any_server, proxy, resp) as sub,
    ):
        sub.publish("1")
        assert sub.heard(1) == [message("1")]
        began = time.monotonic()
        sub.publish("2", "3")
        sub.wire.send("PING")
        assert sub.heard(3) == [message("2"), message("3"), sub.pong]
        assert time.monotonic() - began > 0.29
        proxy.use(rule(late.format("300s")))
        sub.publish("4", "5", "6")
        # However late that is, it is not as late as the next one.
        assert sub.heard(1) == [message("4")]
        assert sub.wire.silent(0.1)


def test_duplicate(any_server, resp):
    """A message arrives twice, one right behind the other."""
    with (
        serve_proxy(any_server.url, rule("do: duplicate")) as proxy,
        Subscriber(any_server, proxy, resp) as sub,
    ):
        sub.publish("1", "2")
        assert sub.heard(4) == [message("1"), message("1"), message("2"), message("2")]


def test_inject(any_server, resp):
    """A message that nobody published arrives ahead of a real one."""
    kind = ">" if resp == 3 else "*"
    frame = f'"{kind}3\\r\\n$7\\r\\nmessage\\r\\n$1\\r\\nc\\r\\n$4\\r\\nmade\\r\\n"'
    inject = rule(f"do: inject, frame: {frame}, when: {{nth: 2}}")
    with serve_proxy(any_server.url, inject) as proxy, Subscriber(any_server, proxy, resp) as sub:
        sub.publish("1", "2")
        assert sub.heard(3) == [message("1"), message("made"), message("2")]


def test_patterns_and_channels(any_server, resp):
    """A pattern's message is chosen by the channel it came by."""
    chosen = rule("do: drop", "{kind: pmessage, channel: news.*}")
    with serve_proxy(any_server.url, chosen) as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("PSUBSCRIBE", "*")
        for channel in ("news.a", "olds.a", "news.b"):
            any_server.ask("PUBLISH", channel, "x")
        assert decode(wire.read()[0])[2] == b"olds.a"
        events = proxy.wait_events(2)
        assert [event["keys"] for event in events] == [["news.a"], ["news.b"]]
        assert [event["command"] for event in events] == ["pmessage", "pmessage"]


def test_shard_channels(redis70, resp):
    """Messages of shard channels have a kind of their own."""
    both = "{kind: [message, smessage]}"
    with (
        serve_proxy(redis70.url, rule("do: duplicate", both)) as proxy,
        proxy.connect(resp=resp) as wire,
    ):
        wire.ask("SSUBSCRIBE", "c")
        redis70.ask("SPUBLISH", "c", "x")
        assert [decode(raw) for raw in wire.read(2)] == [[b"smessage", b"c", b"x"]] * 2


@pytest.mark.parametrize("action", ["delay, delay: 200ms", "duplicate", "drop"])
def test_the_place_among_replies(redis70, action):
    """One's own messages stand where the server put them: before the reply to PUBLISH."""
    sent = b"".join(
        encode(*words)
        for words in (
            ("SUBSCRIBE", "c", "d"),
            ("ECHO", 1),
            ("PUBLISH", "c", "x"),
            ("ECHO", 2),
            ("GET", "k"),
        )
    )
    with redis70.connect(resp=3) as direct:
        direct.send_bytes(sent)
        # Where a message for oneself stands beside the reply is the server's to say.
        expected = direct.read(7)
    with serve_proxy(redis70.url, rule(f"do: {action}")) as proxy, proxy.connect(resp=3) as wire:
        wire.send_bytes(sent)
        own = next(raw for raw in expected if b"message" in raw)
        times = {"duplicate": 2, "drop": 0}.get(action, 1)
        wanted = [raw for each in expected for raw in [each] * (times if each == own else 1)]
        assert wire.read(len(wanted)) == wanted


@pytest.mark.parametrize("action", ["drop", "duplicate", "delay, delay: 100ms"])
def test_invalidations(any_server, action):
    """A RESP3 client's cache hears nothing of one key, twice, or late; of others as ever."""
    chosen = rule(f"do: {action}", "{kind: invalidate, channel: 'a*'}")
    with serve_proxy(any_server.url, chosen) as proxy, proxy.connect(resp=3) as wire:
        assert wire.ask("CLIENT", "TRACKING", "ON") == "OK"
        for key in ("a", "b"):
            wire.ask("GET", key)
        any_server.ask("SET", "a", 1)
        any_server.ask("SET", "b", 1)
        wire.send("PING")
        times = {"drop": 0, "duplicate": 2}.get(action, 1)
        wanted = [[b"invalidate", [b"a"]]] * times + [[b"invalidate", [b"b"]], "PONG"]
        assert [decode(raw) for raw in wire.read(len(wanted))] == wanted


def test_invalidations_of_another_connection(any_server):
    """In RESP2 they come by a channel to another connection, and are invalidations all the same."""
    chosen = rule("do: drop", "{kind: invalidate, channel: 'a*'}")
    with (
        serve_proxy(any_server.url, chosen) as proxy,
        proxy.connect() as listener,
        proxy.connect() as reader,
    ):
        number = listener.ask("CLIENT", "ID")
        listener.ask("SUBSCRIBE", "__redis__:invalidate")
        assert reader.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number) == "OK"
        for key in ("a", "b"):
            reader.ask("GET", key)
        any_server.ask("SET", "a", 1)
        any_server.ask("SET", "b", 1)
        assert decode(listener.read()[0]) == [b"message", b"__redis__:invalidate", [b"b"]]
        (event,) = proxy.wait_events()
        assert (event["command"], event["keys"]) == ("invalidate", ["a"])


def test_confirmations(any_server, resp):
    """A confirmation is meant by who names it: it is lost, and the subscription is there."""
    chosen = rule("do: drop", "{kind: subscribe, channel: d}")
    with serve_proxy(any_server.url, chosen) as proxy, proxy.connect(resp=resp) as wire:
        wire.send("SUBSCRIBE", "c", "d", "e")
        assert [decode(raw)[1] for raw in wire.read(2)] == [b"c", b"e"]
        assert any_server.ask("PUBLISH", "d", "x") == 1
        assert decode(wire.read()[0]) == [b"message", b"d", b"x"]


@pytest.mark.parametrize(
    ("at", "given"), [("after_apply", 0), ("mid_reply, bytes: 5", 5), ("after_reply", None)]
)
def test_the_connection_ends_with_a_message(redis70, resp, at, given):
    """A message can be what a connection ends with: before it, in it, or behind it."""
    cut = f"faults:\n- {{fault: disconnect, match: {{push: {{kind: message}}}}, when: {{nth: 2}}, at: {at}}}\n"
    with serve_proxy(redis70.url, cut) as proxy, Subscriber(redis70, proxy, resp) as sub:
        kind = b">" if resp == 3 else b"*"
        raw = [
            kind + b"3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n%d\r\n" % number for number in (1, 2)
        ]
        sub.publish("1", "2")
        assert sub.wire.read_to_end() == (raw[0] + raw[1][:given], "RST")


def test_a_switch_gives_what_is_late(redis70, resp):
    """Another profile gives a late message at once."""
    with (
        serve_proxy(redis70.url, rule("do: delay, delay: 60s")) as proxy,
        Subscriber(redis70, proxy, resp) as sub,
    ):
        sub.publish("1")
        assert sub.wire.silent(0.1)
        proxy.use("calm")
        assert sub.heard(1) == [message("1")]
