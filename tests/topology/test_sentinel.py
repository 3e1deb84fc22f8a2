"""What Sentinels say: every address in it found, translated, and nothing else touched."""

import pytest

from chaosproxy.topology.sentinel import Place, master_of, message, places, servers_of, translated
from tests.wire import decode, encode

REAL = {
    (b"10.0.0.1", 7001): (b"127.0.0.1", 41),
    (b"10.0.0.2", 7002): (b"127.0.0.1", 42),
    (b"10.0.0.9", 26379): (b"127.0.0.1", 49),
}


def find(place):
    return REAL.get((place.host, place.port))


def fields(kind, **values):
    """A server's description, as an array (RESP2) or a map (RESP3)."""
    words = [word for pair in values.items() for word in pair]
    array = encode(
        *(word.replace("_", "-") if not at % 2 else word for at, word in enumerate(words))
    )
    return array if kind == 2 else b"%%%d\r\n" % len(values) + array.split(b"\r\n", 1)[1]


def listed(*items):
    return b"*%d\r\n" % len(items) + b"".join(items)


@pytest.fixture(params=[2, 3])
def resp(request):
    return request.param


MASTER = {"name": "mine", "ip": "10.0.0.1", "port": 7001, "runid": "r", "flags": "master"}
REPLICA = {
    "name": "10.0.0.2:7002", "ip": "10.0.0.2", "port": 7002, "flags": "slave", "master_host": "10.0.0.1", "master_port": 7001,
}  # fmt: skip
OTHER = {"name": "a" * 40, "ip": "10.0.0.9", "port": 26379, "flags": "sentinel,disconnected"}


def test_the_address_of_a_master():
    """A pair of host and port; where there is none it stays null."""
    raw = encode("10.0.0.1", 7001)
    assert places(raw) == [Place(b"10.0.0.1", 7001)]
    assert translated(raw, find) == encode("127.0.0.1", 41)
    assert master_of(raw) == Place(b"10.0.0.1", 7001)
    for unknown in (b"*-1\r\n", b"_\r\n"):
        assert translated(unknown, find) == unknown
        assert master_of(unknown) is None
    for nonsense in (b":x\r\n", b"*2\r\n:x\r\n:1\r\n", encode("h", "²"), encode("h", "9" * 5000)):
        assert master_of(nonsense) is None


def test_descriptions(resp):
    """MASTER, MASTERS, REPLICAS and SENTINELS: a replica's name is its address, and it says whose replica it is."""
    raw = listed(fields(resp, **MASTER), fields(resp, **REPLICA), fields(resp, **OTHER))
    assert places(raw) == [
        Place(b"10.0.0.1", 7001),
        Place(b"10.0.0.2", 7002),
        Place(b"10.0.0.9", 26379, "sentinel"),
    ]
    said = translated(raw, find)
    one = {**MASTER, "ip": "127.0.0.1", "port": 41}
    two = {
        **REPLICA,
        "name": "127.0.0.1:42",
        "ip": "127.0.0.1",
        "port": 42,
        "master_host": "127.0.0.1",
        "master_port": 41,
    }
    three = {**OTHER, "ip": "127.0.0.1", "port": 49}
    assert decode(said) == decode(listed(*(fields(resp, **each) for each in (one, two, three))))
    assert translated(fields(resp, **MASTER), find) == fields(resp, **one)
    assert servers_of([raw, raw]) == places(raw)


def test_who_has_no_master():
    """A replica that has none names none: that is no address."""
    odd = fields(2, **REPLICA | {"master_host": "?", "master_port": 0})
    assert places(odd) == [Place(b"10.0.0.2", 7002)]
    assert places(fields(2, name="x", ip="", port="no")) == []
    assert translated(fields(2, ip="10.0.0.1", port=7001), find) == fields(
        2, ip="127.0.0.1", port=41
    )


def test_info():
    """The lines on masters; the rest of the text stays."""
    line = b"master0:name=mine,status=ok,address=%s,slaves=2,sentinels=3\r\n"
    text = b"# Sentinel\r\nsentinel_masters:1\r\n" + line % b"10.0.0.1:7001"
    raw = b"$%d\r\n%s\r\n" % (len(text), text)
    new = text.replace(b"10.0.0.1:7001", b"127.0.0.1:41")
    assert translated(raw, find) == b"$%d\r\n%s\r\n" % (len(new), new)
    verbatim = b"=%d\r\ntxt:%s\r\n" % (len(text) + 4, text)
    assert translated(verbatim, find) == b"=%d\r\ntxt:%s\r\n" % (len(new) + 4, new)
    assert translated(raw, lambda place: None) == raw


HERE = b"10.0.0.2 7002 @ mine 10.0.0.1 7001"
THERE = b"127.0.0.1 42 @ mine 127.0.0.1 41"


@pytest.mark.parametrize(
    ("channel", "text", "told"),
    [
        (b"+switch-master", b"mine 10.0.0.1 7001 10.0.0.2 7002", b"mine 127.0.0.1 41 127.0.0.1 42"),
        (b"+slave", b"slave 10.0.0.2:7002 " + HERE, b"slave 127.0.0.1:42 " + THERE),
        (b"+sdown", b"master mine 10.0.0.1 7001", b"master mine 127.0.0.1 41"),
        (
            b"+odown",
            b"master mine 10.0.0.1 7001 #quorum 2/2",
            b"master mine 127.0.0.1 41 #quorum 2/2",
        ),
        (
            b"+sentinel",
            b"sentinel abc 10.0.0.9 26379 @ mine 10.0.0.1 7001",
            b"sentinel abc 127.0.0.1 49 @ mine 127.0.0.1 41",
        ),
        (b"+new-epoch", b"7", b"7"),
        (b"+vote-for-leader", b"abc 7", b"abc 7"),
        (b"+switch-master", b"mine", b"mine"),
        (
            b"+slave",
            b"slave x 10.9.9.9 1 @ mine 10.9.9.9 x",
            b"slave x 10.9.9.9 1 @ mine 10.9.9.9 x",
        ),
        (b"+slave", b"", b""),
        (b"chat", b"master mine 10.0.0.1 7001", b"master mine 10.0.0.1 7001"),
    ],
)
@pytest.mark.parametrize("kind", [b"*", b">"])
def test_messages(kind, channel, text, told):
    """Whatever a channel says of servers, to subscribers of it and of patterns, in both protocols."""
    assert message(channel, text, find) == told

    def push(*words):
        return kind + encode(*words)[1:]

    assert translated(push("message", channel, text), find) == push("message", channel, told)
    assert translated(push("pmessage", "*", channel, text), find) == push(
        "pmessage", "*", channel, told
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"+OK\r\n",
        b"-ERR unknown command\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"*0\r\n",
        encode("port", 26379),
        encode("subscribe", "+switch-master", "x"),
        encode("message", "only"),
        listed(encode("ip"), encode("10.0.0.1", "x")),
        b"*1\r\n>1\r\n+x\r\n",
        b"*2\r\n*1\r\n>1\r\n+x\r\n+y\r\n",
        b"*3\r\nx",
        fields(2, name="x", flags="master"),
        b"*1\r\n" * 10_000 + b":1\r\n",
        b"%1\r\n+a\r\n" * 10_000 + b":1\r\n",
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_everything_else(raw):
    """Stays as it came, be it understood or not."""
    assert translated(raw, find) == raw
    assert places(raw) == []
