"""A Sentinel of the proxy's own: every question that clients ask, in both protocols, and the messages they wait for."""

import pytest

from chaosproxy.topology.own_sentinel import ID, Service, Visitor, messages
from tests.wire import WireError, decode, encode, reply_end

HERE, THERE = (b"127.0.0.1", 41), (b"127.0.0.1", 42)
SERVICE = Service(b"mine", HERE, [THERE])


@pytest.fixture(params=[2, 3])
def visitor(request):
    visitor = Visitor()
    if request.param == 3:
        said = ask(visitor, "HELLO", 3)
        assert (said[b"proto"], said[b"mode"]) == (3, b"sentinel")
    return visitor


def raw(visitor, *words):
    return visitor.answer(
        [word if isinstance(word, bytes) else str(word).encode() for word in words], SERVICE
    )


def ask(visitor, *words):
    return decode(raw(visitor, *words))


def fields(said):
    return said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=True))


def replies(data):
    """Cut several replies."""
    found = []
    while data:
        end = reply_end(data)
        found.append(data[:end])
        data = data[end:]
    return found


def test_who_is_the_primary(visitor):
    """By its name, in any case of the command; a service that is not there has none."""
    for word in ("get-master-addr-by-name", "GET-PRIMARY-ADDR-BY-NAME"):
        assert ask(visitor, "sentinel", word, "mine") == [b"127.0.0.1", b"41"]
        assert ask(visitor, "SENTINEL", word, "other") is None


def test_descriptions(visitor):
    """Maps in RESP3, flat arrays in RESP2, with what clients look at."""
    (primary,) = map(fields, ask(visitor, "SENTINEL", "MASTERS"))
    assert primary == fields(ask(visitor, "SENTINEL", "MASTER", "mine"))
    wanted = {
        b"name": b"mine",
        b"ip": b"127.0.0.1",
        b"port": b"41",
        b"flags": b"master",
        b"num-slaves": b"1",
    }
    assert wanted.items() <= primary.items()
    for word in ("REPLICAS", "SLAVES"):
        (replica,) = map(fields, ask(visitor, "SENTINEL", word, "mine"))
        wanted = {
            b"name": b"127.0.0.1:42",
            b"port": b"42",
            b"flags": b"slave",
            b"master-port": b"41",
        }
        assert wanted.items() <= replica.items()
    assert ask(visitor, "SENTINEL", "SENTINELS", "mine") == []
    for word in ("MASTER", "REPLICAS", "SENTINELS", "CKQUORUM"):
        assert ask(visitor, "SENTINEL", word, "other") == WireError(
            "ERR No such master with that name"
        )
    assert ask(visitor, "SENTINEL", "CKQUORUM", "mine").startswith("OK 1 usable Sentinels.")
    assert ask(visitor, "SENTINEL", "MYID") == ID
    assert len(ID) == 40


def test_everything_else(visitor):
    """What clients say first is taken, what a Sentinel does not know is refused as it refuses it."""
    assert ask(visitor, "PING") == "PONG"
    assert ask(visitor, "PING", "x") == b"x"
    assert ask(visitor, "ROLE") == [b"sentinel", [b"mine"]]
    assert b"address=127.0.0.1:41,slaves=1" in ask(visitor, "INFO", "sentinel")
    assert ask(visitor, "CLIENT", "SETNAME", "x") == ask(visitor, "AUTH", "x") == "OK"
    assert ask(visitor, "CLIENT", "ID") == 1
    assert ask(visitor, "COMMAND") == []
    assert ask(visitor, "GET", "k").startswith("ERR unknown command 'GET'")
    assert ask(visitor, "SENTINEL", "CONFIG", "GET", "*") == WireError(
        "ERR unknown subcommand 'CONFIG'. Try SENTINEL HELP."
    )
    for words in (("SENTINEL",), ("SUBSCRIBE",), ("PSUBSCRIBE",)):
        assert ask(visitor, *words) == WireError(
            f"ERR wrong number of arguments for '{words[0].lower()}' command"
        )
    assert ask(visitor, "HELLO", 4) == WireError("NOPROTO unsupported protocol version")
    assert not visitor.leaving
    assert ask(visitor, "QUIT") == "OK"
    assert visitor.leaving


def test_names(visitor):
    """Who gives itself one is told it again."""
    assert ask(visitor, "CLIENT", "GETNAME") is None
    for words in (
        ("SETNAME", "a"),
        ("AUTH", "u", "p", "SETNAME", "a"),
        ("SETNAME", "a", "AUTH", "u", "p"),
    ):
        ask(visitor, "CLIENT", "SETNAME", "b")
        ask(visitor, "HELLO", visitor.protocol, *words)
        assert ask(visitor, "CLIENT", "GETNAME") == b"a"
    ask(visitor, "HELLO", visitor.protocol, "AUTH", "u", "p")
    assert ask(visitor, "HELLO", 3, "FOO").startswith("ERR Syntax error in HELLO")
    assert b"server" not in ask(visitor, "INFO", "SENTINEL")
    assert ask(visitor, "INFO", "all") == ask(visitor, "INFO")


def test_hello_without_a_version(visitor):
    """It changes nothing."""
    before = visitor.protocol
    assert fields(ask(visitor, "HELLO"))[b"proto"] == before
    ask(visitor, "HELLO", 2)
    assert visitor.protocol == 2


def test_subscriptions(visitor):
    """One confirmation a channel, counted; messages reach who asked for them, as often as they did."""
    kind = b">" if visitor.protocol == 3 else b"*"
    confirmations = replies(raw(visitor, "SUBSCRIBE", "+switch-master", "+sdown", "+sdown"))
    assert [decode(each)[1:] for each in confirmations] == [
        [b"+switch-master", 1],
        [b"+sdown", 2],
        [b"+sdown", 2],
    ]
    assert all(each[:1] == kind for each in confirmations)
    assert decode(raw(visitor, "PSUBSCRIBE", "+s*")) == [b"psubscribe", b"+s*", 3]
    heard = replies(visitor.hears(b"+switch-master", b"text"))
    assert [decode(each) for each in heard] == [
        [b"message", b"+switch-master", b"text"],
        [b"pmessage", b"+s*", b"+switch-master", b"text"],
    ]
    assert heard[0] == kind + encode("message", "+switch-master", "text")[1:]
    assert visitor.hears(b"-odown", b"text") == b""
    assert decode(raw(visitor, "UNSUBSCRIBE", "+sdown", "x").split(b":2\r\n")[0] + b":2\r\n") == [
        b"unsubscribe",
        b"+sdown",
        2,
    ]
    assert ask(visitor, "UNSUBSCRIBE") == [b"unsubscribe", b"+switch-master", 1]
    assert ask(visitor, "PUNSUBSCRIBE") == [b"punsubscribe", b"+s*", 0]
    assert ask(visitor, "UNSUBSCRIBE") == [b"unsubscribe", None, 0]


def test_a_ping_while_subscribed():
    """RESP2 clients get it as a message, as from a server."""
    visitor = Visitor()
    raw(visitor, "SUBSCRIBE", "x")
    assert ask(visitor, "PING") == [b"pong", b""]
    assert ask(visitor, "PING", "y") == [b"pong", b"y"]


def test_what_is_said_at_a_failover():
    """In the order in which Sentinels say it, with both addresses."""
    said = messages(b"mine", HERE, THERE)
    assert [channel for channel, _ in said] == [b"+sdown", b"+odown", b"+switch-master", b"+slave"]
    assert dict(said)[b"+switch-master"] == b"mine 127.0.0.1 41 127.0.0.1 42"
    assert dict(said)[b"+slave"] == b"slave 127.0.0.1:41 127.0.0.1 41 @ mine 127.0.0.1 42"
