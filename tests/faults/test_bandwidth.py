"""`bandwidth`: requests and replies take as long as a slow line takes, in order, whatever else happens to them."""

import pytest

from chaosproxy.core.bucket import Bucket
from chaosproxy.faults.bandwidth import MANY
from tests.conversation import Talk, command, reply
from tests.wire import encode

VALUE = '"' + "v" * 94 + '"'  # with its header and line breaks a hundred bytes and one
SLOW = "- {fault: bandwidth, match: {commands: [GET, SET]}, rate: 100B/s, direction: %s}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def arrives(talk, side, raw, rate=100):
    """Check that bytes arrive at a side at that rate, in pieces of 20 ms, and no sooner."""
    heard, step = b"", max(1, int(rate * 0.02))
    for at in range(0, len(raw), step):
        piece = raw[at : at + step]
        talk.wait(len(piece) / rate - 0.001)
        assert talk.heard(side) == b"", "too early"
        talk.wait(0.001)
        heard += talk.heard(side)
        assert heard == raw[: at + step]


@both
def test_a_reply_passes_slowly(protocol):
    """The request goes at once, the reply takes a second for each hundred bytes."""
    with Talk(SLOW % "to_client", protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(VALUE)
        arrives(talk, "client", reply(VALUE))
        talk.expect_fired("bandwidth", applied="yes", told="ok", detail="100 bytes a second")


@both
def test_a_request_passes_slowly(protocol):
    """The request takes its time, its reply comes at once."""
    sent = "SET a " + "v" * 80
    with Talk(SLOW % "to_upstream", protocol=protocol) as talk:
        talk.client(sent)
        arrives(talk, "upstream", command(sent))
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("bandwidth", applied="yes", told="ok")


def test_each_way_has_its_own_rate():
    """`both`: a request does not wait for a reply that passes the other way meanwhile."""
    with Talk(SLOW % "both") as talk:
        get = command("GET a")
        talk.client(get, get)
        arrives(talk, "upstream", get)
        talk.upstream(VALUE)
        talk.wait(len(get) / 100)
        assert talk.heard("upstream") == get
        assert talk.heard("client") == reply(VALUE)[: len(get) - len(get) % 2]


def test_replies_stay_in_order():
    """What stands behind a slow reply waits for all of it, and then comes at once."""
    with Talk(SLOW % "to_client") as talk:
        talk.client("GET a", "PING", "GET b")
        talk.expect_upstream("GET a", "PING", "GET b")
        talk.upstream(VALUE, "+PONG", VALUE)
        talk.wait(len(reply(VALUE)) / 100 - 0.01)
        assert talk.heard("client") == reply(VALUE)[:-1]
        talk.wait(0.01)
        assert talk.heard("client") == reply(VALUE)[-1:] + reply("+PONG")
        arrives(talk, "client", reply(VALUE))


def test_what_stands_behind_a_slow_request_waits():
    """Requests reach Redis in the client's order, and whole."""
    with Talk(SLOW % "to_upstream") as talk:
        talk.client("GET a", "PING")
        talk.wait(len(command("GET a")) / 100)
        talk.expect_upstream("GET a", "PING")


@pytest.mark.parametrize(("shared", "seconds"), [("connection", 1), ("proxy", 2)])
def test_who_shares_the_rate(shared, seconds):
    """Two connections take as long as one, or twice as long where all share one rate."""
    rule = f"- {{fault: bandwidth, rate: 100B/s, direction: to_client, shared: {shared}}}"
    raw = b"$93\r\n" + b"v" * 93 + b"\r\n"
    assert len(raw) == 100
    with Talk(rule) as one, one.another() as two:
        for talk in (one, two):
            talk.client("GET a")
            talk.expect_upstream("GET a")
            talk.upstream(raw)
        one.wait(seconds - 0.05)
        assert not (one.heard("client") == two.heard("client") == raw)
        one.wait(0.05)
        for talk in (one, two):
            talk.heard("client")
            assert talk.conversation.due is None


def test_two_rates_are_as_slow_as_the_slower_one():
    """Two faults on one exchange: the bytes pass through both buckets."""
    rules = "- {fault: bandwidth, rate: 1000B/s}\n- {fault: bandwidth, name: slower, rate: 100B/s}"
    with Talk(rules) as talk:
        get = command("GET abcdefgh")
        assert len(get) == 27
        talk.client(get)
        talk.wait(0.26)
        assert talk.heard("upstream") == get[:20]  # in pieces of the first one's
        talk.wait(0.01)
        assert talk.heard("upstream") == get[20:]
        talk.upstream(":1")
        talk.wait(0.04)
        talk.expect_client(":1")
        talk.expect_fired("bandwidth", detail="1000 bytes a second")
        talk.expect_fired("slower", detail="100 bytes a second")


@both
def test_in_a_transaction(protocol):
    """Its +QUEUED passes slowly, and so does EXEC's array, for the reply is in there."""
    with Talk(SLOW % "to_client", protocol=protocol) as talk:
        talk.client("MULTI", "GET a", "INCR b", "EXEC")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_upstream("GET a", "INCR b", "EXEC")
        talk.upstream("+QUEUED")
        arrives(talk, "client", reply("+QUEUED"))
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.upstream("*[:1 :2]")
        arrives(talk, "client", reply("*[:1 :2]"))
        talk.expect_fired("bandwidth", command="GET", applied="yes")


def test_an_answer_of_the_proxy_passes_slowly_too():
    """A request that is answered here, and the answer, take as long as if Redis had done it."""
    rules = (
        "- {fault: bandwidth, rate: 100B/s}\n- {fault: reply, at: before_forward, error: ERR no}"
    )
    with Talk(rules) as talk:
        get = command("GET a")
        talk.client(get)
        talk.wait(len(get) / 100)
        talk.expect_upstream()
        arrives(talk, "client", b"-ERR no\r\n")
        talk.expect_fired("bandwidth", applied="no", told="error")


def test_a_delay_comes_first():
    """A delay and a slow line add up."""
    rules = "- {fault: bandwidth, rate: 100B/s, direction: to_upstream}\n- {fault: latency, at: before_forward, delay: 1s}"
    with Talk(rules) as talk:
        get = command("GET a")
        talk.client(get)
        talk.wait(1)
        arrives(talk, "upstream", get)


def test_a_reply_too_large_to_be_held():
    """It passes as it comes: the event speaks of the request alone, or there is none."""
    rules = """
- {fault: bandwidth, name: replies, rate: 100B/s, direction: to_client}
- {fault: bandwidth, name: both, rate: 1KiB/s}
- {fault: bandwidth, name: requests, rate: 2KiB/s, direction: to_upstream}
"""
    with Talk(rules, max_buffer=100) as talk:
        talk.client("GET a")
        talk.wait(1)
        talk.expect_upstream("GET a")
        talk.upstream(b"$1000\r\n" + b"v" * 500)
        assert len(talk.heard("client")) == 507
        talk.upstream(b"v" * 500 + b"\r\n")
        assert len(talk.heard("client")) == 502
        detail = "1024 bytes a second, the request only: the reply is too large to be held"
        talk.expect_fired("both", detail=detail)
        talk.expect_fired("requests", detail="2048 bytes a second")
        assert talk.skipped("replies") == ["too_large"]


def test_a_request_too_large_to_be_held():
    """It passes as it comes, and that is counted."""
    with Talk(SLOW % "both", max_buffer=100) as talk:
        talk.client(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000\r\n" + b"v" * 500)
        assert len(talk.heard("upstream")) > 500
        talk.client(b"v" * 500 + b"\r\n")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert talk.skipped("bandwidth") == ["too_large"]


def test_many_connections():
    """Connections that are gone leave no bucket behind, those on which something passes keep theirs."""
    with Talk(SLOW % "to_client") as talk:
        (live,) = talk.world.engine.rules
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(VALUE)
        mine = live.state[talk.connection]
        for number in range(MANY - 1):
            live.state[-number - 1] = Bucket(100), Bucket(100)
        other = talk.another()
        other.client("GET b")
        other.expect_upstream("GET b")
        assert set(live.state) == {talk.connection, other.connection}
        assert live.state[talk.connection] is mine
        other.client_gone()
        talk.wait(2)
        talk.expect_client(VALUE)


# -- ends


@both
def test_another_profile_lets_all_go(protocol):
    """At a switch the rest of a reply comes at once, and so does the rest of a request."""
    with Talk(SLOW % "both", protocol=protocol) as talk:
        get = command("GET a")
        talk.client(get)
        talk.wait(0.1)
        begun = talk.heard("upstream")
        assert 0 < len(begun) < len(get)
        talk.switch()
        assert begun + talk.heard("upstream") == get
        talk.upstream(VALUE)
        talk.expect_client(VALUE)
    with Talk(SLOW % "to_client", protocol=protocol) as talk:
        talk.client("GET a", "PING")
        talk.heard("upstream")
        talk.upstream(VALUE, "+PONG")
        talk.wait(0.5)
        begun = talk.heard("client")
        assert 0 < len(begun) < 101
        talk.switch()
        assert begun + talk.heard("client") == reply(VALUE) + reply("+PONG")


@pytest.mark.parametrize("end", ["client_gone", "client_eof", "upstream_gone"])
def test_an_end_while_a_request_passes(end):
    """A request that never was whole at Redis was not applied."""
    with Talk(SLOW % "to_upstream") as talk:
        talk.client("GET a", "GET b")
        talk.wait(0.1)
        assert talk.heard("upstream")
        getattr(talk, end)()
        talk.expect_fired("bandwidth", applied="no", told="nothing")
        if end == "client_eof":
            talk.expect_half_close()
        if end == "upstream_gone":
            talk.expect_closed("close")


def test_the_upstream_goes_while_a_reply_passes():
    """The reply is the client's, all of it and at its pace; then comes the end."""
    with Talk(SLOW % "to_client") as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(VALUE)
        talk.upstream_eof()
        arrives(talk, "client", reply(VALUE))
        talk.expect_closed("close")


def test_the_client_goes_while_a_reply_passes():
    """Nothing more is done; the event has been written down when Redis had answered."""
    with Talk(SLOW % "to_client") as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(VALUE)
        talk.wait(0.5)
        assert talk.heard("client")
        talk.client_gone()
        talk.expect_fired("bandwidth", applied="yes")


def test_the_upstream_stops_making_sense_while_a_reply_passes():
    """What is here of the reply comes at once, then what makes no sense."""
    with Talk(SLOW % "to_client") as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(VALUE)
        talk.wait(0.5)
        begun = talk.heard("client")
        talk.upstream(b"garbage\r\n")
        assert begun + talk.heard("client") == reply(VALUE) + b"garbage\r\n"
        assert talk.expect_raw("upstream")


def test_very_many_pieces(monkeypatch):
    """However small the pieces are, few of them are there at a time, each leaves in its time, and together they are what came."""
    monkeypatch.setattr("chaosproxy.core.bucket.MOST_PIECES", 4)
    rule = "- {fault: bandwidth, match: {commands: [GET, SET]}, rate: 50B/s}"
    with Talk(rule) as talk:
        talk.client("SET a 12345")
        sent = b""
        for _ in range(len(encode("SET", "a", "12345"))):
            assert len(talk.conversation._line.head.pieces) <= 5
            talk.wait(0.02)
            sent += talk.heard("upstream")
        assert sent == encode("SET", "a", "12345")
        talk.upstream('"' + "y" * 30 + '"')
        heard = b""
        for _ in range(len(b"$30\r\n\r\n") + 30):
            assert len(talk.conversation._line.slots[0].pieces) <= 5
            talk.wait(0.02)
            heard += talk.heard("client")
        assert heard == b"$30\r\n" + b"y" * 30 + b"\r\n"
        talk.expect_fired("bandwidth")
