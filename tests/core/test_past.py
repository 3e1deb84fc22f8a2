"""A read from the past: in its place among the replies, in a transaction, in both protocols, and what it says of itself."""

import pytest

from chaosproxy.core.memory import Image
from tests.conversation import GATE, PROVEN, Talk, reply
from tests.stale import computed, stale

#: What a computation aside is answered.
ASIDE = ("+OK", *["+QUEUED"] * 5, '*[+OK +OK "old" :1 +OK]')


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_in_its_place(protocol):
    """What was sent before is answered before, what was sent behind behind; nothing of ours is seen."""
    with stale("a", protocol=protocol) as talk:
        talk.client("GET b", "GET a", "GET c")
        talk.expect_upstream("GET b", *GATE)
        talk.upstream('"b"', *PROVEN)
        talk.heard("upstream")
        talk.upstream(computed("+OK", "+OK", '"old"', ":1", "+OK"))
        talk.expect_upstream("GET c")
        talk.upstream('"c"')
        talk.expect_client('"b"', '"old"', '"c"')
        event = talk.expect_fired("stale_read", applied="no", told="ok", outcome="ok", keys=(b"a",))
        assert event.detail == "1 of 1 keys as they were; reply computed in scratch database 15"
        assert talk.skipped("stale_read") == ["not_applicable"] * 2


@pytest.mark.parametrize(
    ("image", "restored"),
    [
        (Image(b"old"), "RESTORE a 0 old REPLACE ABSTTL"),
        (Image(b"old", ends=1700000000123), "RESTORE a 1700000000123 old REPLACE ABSTTL"),
        (Image(None), None),
    ],
)
def test_what_it_was(image, restored):
    """With the end that it had; a key that was not there is not made."""
    with stale() as talk:
        talk.world.engine.rules[0].state.keep(0, b"a", 99.0, image)
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        restores = [restored] if restored else []
        talk.expect_upstream("MULTI", "SELECT 15", *restores, "GET a", "DEL a", "SELECT 0", "EXEC")
        talk.upstream(computed("+OK", *["+OK"] * len(restores), "$-1", ":1", "+OK"))
        talk.expect_client("$-1")
        talk.expect_fired("stale_read")


def test_an_error():
    """Of the type that it had then."""
    with stale("a") as talk:
        talk.client("LLEN a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(computed("+OK", "+OK", "-WRONGTYPE no", ":1", "+OK"))
        talk.expect_client("-WRONGTYPE no")
        talk.expect_fired("stale_read", told="error", outcome="ok")


@both
def test_in_a_transaction(protocol):
    """Computed aside, in the transaction's database; its reply stands among the others', and nothing of ours is queued."""
    with stale("a", db=2, protocol=protocol) as talk:
        talk.handshake("SELECT 2", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.handshake("PING", "+QUEUED")
        talk.client("GET a")
        talk.expect_side(
            "MULTI", "SELECT 15", "DBSIZE", "SELECT 2", "EXEC", db=2, protocol=protocol
        )
        talk.side(*PROVEN)
        talk.expect_side(
            "MULTI",
            "SELECT 15",
            "RESTORE a 0 old REPLACE ABSTTL",
            "GET a",
            "DEL a",
            "SELECT 2",
            "EXEC",
        )
        talk.side("+OK", *["+QUEUED"] * 5, '*[+OK +OK "old" :1 +OK]')
        talk.expect_client("+QUEUED")
        talk.handshake("PING", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:1 :2]")
        talk.expect_client('*[:1 "old" :2]')
        talk.expect_fired("stale_read", applied="no", told="ok")


def test_alone_in_a_transaction():
    """The server saw an empty one."""
    with stale("a") as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a")
        talk.side(*PROVEN)
        talk.side("+OK", *["+QUEUED"] * 5, '*[+OK +OK "old" :1 +OK]')
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[]")
        talk.expect_client('*["old"]')
        talk.expect_fired("stale_read")


def test_refused_in_a_transaction():
    """What the server would not queue it is given to refuse, so that it discards the transaction."""
    with stale("a") as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a b")
        talk.side(*PROVEN)
        talk.side("+OK", "+QUEUED", "+QUEUED", "-ERR arity", "+QUEUED", "+QUEUED", "-EXECABORT no")
        talk.expect_upstream("GET a b")
        talk.upstream("-ERR arity")
        talk.expect_client("-ERR arity")
        talk.handshake("EXEC", "-EXECABORT no")
        assert talk.skipped("stale_read") == ["not_computable"]


@pytest.mark.parametrize("word", ["OFF", "SKIP"])
def test_without_replies(word):
    """Who wants no reply is told nothing of the past."""
    with stale("a") as talk:
        talk.client(f"CLIENT REPLY {word}", "GET a")
        talk.expect_upstream(f"CLIENT REPLY {word}", "GET a")
        talk.expect_client()
        assert talk.skipped("stale_read") == ["no_reply"]


def test_a_blocking_read():
    """What it would have waited for cannot be known; in a transaction it does not wait."""
    with stale("a") as talk:
        talk.client("XREAD BLOCK 0 STREAMS a $")
        talk.expect_upstream("XREAD BLOCK 0 STREAMS a $")
        talk.upstream("*-1")
        talk.expect_client("*-1")
        assert talk.skipped("stale_read") == ["blocking"]
        talk.handshake("MULTI", "+OK")
        talk.client("XREAD BLOCK 0 STREAMS a 0")
        talk.side(*PROVEN)
        talk.side("+OK", *["+QUEUED"] * 5, "*[+OK +OK *-1 :1 +OK]")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[]")
        talk.expect_client(b"*1\r\n" + reply("*-1"))
        talk.expect_fired("stale_read")


def test_the_client_goes_meanwhile():
    """Nobody is left to read it: it was not read."""
    with stale("a") as talk:
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.client_gone()
        assert talk.skipped("stale_read") == ["client_gone"]


def test_the_upstream_goes_meanwhile():
    """Nobody is left to compute it: it was not read, and the client is closed."""
    with stale("a") as talk:
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.upstream_gone()
        talk.expect_closed("close")
        assert talk.skipped("stale_read") == ["upstream_gone"]


def test_another_profile_meanwhile():
    """What has begun is brought to its end."""
    with stale("a") as talk:
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.switch()
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(computed("+OK", "+OK", '"old"', ":1", "+OK"))
        talk.expect_client('"old"')
        talk.expect_fired("stale_read", generation=1)


def test_other_rules():
    """It ends the chain: what stands behind it in the profile has nothing left to act on, a delay ahead of it is kept."""
    early = "- {fault: latency, name: early, at: before_forward, delay: 1s}"
    late = "- {fault: latency, name: late, at: after_apply, delay: 1s}"
    rule = "- {fault: stale_read, behind: 1, match: {commands: '@read'}}"
    with Talk(f"{early}\n{rule}\n{late}") as talk:
        talk.world.engine.rules[1].state.keep(0, b"a", 99.0, Image(b"old"))
        talk.client("GET a")
        talk.expect_silence()
        talk.wait(1.0)
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(computed("+OK", "+OK", '"old"', ":1", "+OK"))
        talk.expect_client('"old"')
        talk.expect_fired("early", delay=1.0)
        talk.expect_fired("stale_read")
        assert talk.skipped("late") == ["ended"]


@both
def test_a_client_that_caches(protocol):
    """Computed aside, so that nothing of it is remembered for the client, and sent as well: of what it caches it hears when that changes."""
    with stale("a", protocol=protocol) as talk:
        talk.handshake("CLIENT TRACKING ON OPTIN", "+OK")
        talk.handshake("CLIENT CACHING YES", "+OK")
        talk.client("GET a", "GET b")
        talk.expect_side(*GATE, protocol=protocol)
        talk.expect_silence()
        talk.side(*PROVEN)
        talk.expect_silence()
        talk.side(*ASIDE)
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"new"', '"b"')
        talk.expect_client('"old"', '"b"')
        event = talk.expect_fired(
            "stale_read", applied="yes", told="ok", outcome="ok", keys=(b"a",)
        )
        assert event.detail == "1 of 1 keys as they were; reply computed in scratch database 15"


def test_a_client_that_caches_in_a_transaction():
    """The read is queued, and its element is the old one; CLIENT TRACKING OFF is the end of that."""
    with stale("a", protocol=3) as talk:
        talk.handshake("CLIENT TRACKING ON", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.client("GET a")
        talk.expect_side(*GATE)
        talk.side(*PROVEN)
        talk.side(*ASIDE)
        talk.expect_upstream("GET a")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["new"]')
        talk.expect_client('*["old"]')
        talk.expect_fired("stale_read", applied="yes", told="ok")
        talk.handshake("CLIENT TRACKING OFF", "+OK")
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(computed("+OK", "+OK", '"old"', ":1", "+OK"))
        talk.expect_client('"old"')
        talk.expect_fired("stale_read", applied="no", told="ok")
