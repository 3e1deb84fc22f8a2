"""One client's conversation: bytes pass, replies stay in order, and it ends as its ends do."""

import pytest

from chaosproxy.core.ending import ENDED
from tests.conversation import GATE, PROVEN, Talk, command

INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_nothing_in_force(protocol):
    """Without a fault the bytes that leave are the bytes that came, in both directions."""
    with Talk(protocol=protocol) as talk:
        talk.client("SET a b", b"GET  a\r\n", "GET c")
        talk.expect_upstream("SET a b", b"GET  a\r\n", "GET c")
        talk.upstream("+OK", '"b"')
        talk.expect_client("+OK", '"b"')
        talk.upstream("$-1")
        talk.expect_client("$-1")


def test_unfinished_requests_and_replies_pass():
    """Without a fault nothing waits for the end of a request or a reply."""
    with Talk() as talk:
        talk.client(b"*2\r\n$3\r\nGET\r\n$1")
        talk.expect_upstream(b"*2\r\n$3\r\nGET\r\n$1")
        talk.client(b"\r\na\r\n")
        talk.expect_upstream(b"\r\na\r\n")
        talk.upstream(b"$5\r\nhel")
        talk.expect_client(b"$5\r\nhel")
        talk.upstream(b"lo\r\n")
        talk.expect_client(b"lo\r\n")


# -- commands that get no reply


def test_no_reply_is_waited_for_after_skip():
    """A command that waits to know what it means goes on when nothing more can change that."""
    rule = "- {fault: latency, match: {commands: GET}, at: before_forward, delay: 300ms}"
    with Talk(rule) as talk:
        talk.client("CLIENT REPLY SKIP", "GET a")
        talk.expect_upstream("CLIENT REPLY SKIP")
        talk.wait(0.3)
        talk.expect_upstream("GET a")
        talk.expect_fired("latency", applied="unknown", told="nothing")


def test_nothing_is_kept_while_replies_are_off():
    """A client that wants no replies can send any number of commands."""
    with Talk() as talk:
        talk.client("CLIENT REPLY OFF")
        talk.client("SET a b", "SET a c")
        talk.client("SET a d")
        talk.expect_upstream("CLIENT REPLY OFF", "SET a b", "SET a c", "SET a d")
        assert talk.conversation.describe()["waiting_replies"] == 0


# -- the upstream goes


def test_a_local_reply_never_takes_the_place_of_one_that_is_lost():
    """When the upstream goes before a reply, nothing that stands behind it reaches the client."""
    rule = "- {fault: reply, match: {commands: GET}, at: before_forward, error: LOADING}"
    with Talk(rule) as talk:
        talk.client("BLPOP q 0", "GET a")
        talk.expect_upstream("BLPOP q 0")
        talk.upstream_gone()
        talk.expect_closed("close")


def test_a_hidden_reply_is_never_seen_in_part():
    """When the upstream goes in the middle of a reply to the proxy, the client gets nothing of it; the write is lost."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}") as talk:
        talk.client("SET a b")
        talk.expect_upstream("MULTI", "SELECT 15", "DBSIZE", "SELECT 0", "EXEC")
        talk.upstream(b"+O")
        talk.upstream_gone()
        talk.expect_closed("close")
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail", detail=ENDED)
        assert talk.skipped("drop_write") == []


def test_an_unfinished_reply_is_given():
    """When the upstream goes in the middle of a reply, the client gets what came, and the end."""
    with Talk() as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream(b"$5\r\nhel")
        talk.upstream_eof()
        talk.expect_client(b"$5\r\nhel")
        talk.expect_closed("close")


# -- what is not RESP


def test_the_upstream_stops_making_sense_while_a_write_is_swallowed():
    """Both sides pass as they come; what the proxy held goes out as it came."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}") as talk:
        talk.client("SET a b", "GET x")
        talk.expect_upstream("MULTI", "SELECT 15", "DBSIZE", "SELECT 0", "EXEC")
        talk.upstream(b"garbage\r\n")
        assert talk.expect_raw("upstream")
        talk.expect_client(b"garbage\r\n")
        talk.expect_upstream("SET a b", "GET x")
        talk.client("SET a b")
        talk.expect_upstream("SET a b")
        assert talk.skipped("drop_write") == ["raw"]


def test_replication_is_handed_over():
    """SYNC is answered with what is no RESP: from there on bytes pass, and nothing is wrong."""
    with Talk() as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.client("SYNC")
        talk.expect_upstream()
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_upstream("SYNC")
        talk.upstream(b"\n\n$18446744073709551615\r\nREDIS00")
        talk.expect_client(b"\n\n$18446744073709551615\r\nREDIS00")
        talk.client(b"REPLCONF ACK 1\r\n")
        talk.expect_upstream(b"REPLCONF ACK 1\r\n")
        assert talk.conversation.raw


# -- another profile comes into force


def test_a_silent_connection_heals_at_a_switch():
    """What was held on a silent connection goes on when its profile ends, all of it and in order."""
    rule = "- {fault: blackhole, match: {commands: GET}, at: after_apply, what: connection}"
    with Talk(rule) as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream(":1", ":2")
        talk.client("GET c")
        talk.expect_silence()
        talk.switch()
        talk.expect_upstream("GET c")
        talk.expect_client(":1", ":2")
        talk.upstream(":3")
        talk.expect_client(":3")
        talk.expect_fired("blackhole", match=1)
        assert talk.skipped("blackhole") == ["switched"]


def test_a_lost_write_stays_lost():
    """What an event says was never applied is not applied later: its connection ends at a switch."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: nothing}") as talk:
        talk.client("SET a b", "GET c")
        talk.expect_silence()
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail")
        talk.switch()
        talk.expect_upstream()
        talk.expect_closed("reset")


def test_a_lost_reply_comes_late_at_a_switch():
    """No reply takes the place of one that was held back for good."""
    rule = "- {fault: blackhole, match: {commands: GET}, at: after_apply, what: reply}"
    with Talk(rule) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream(":1", "+PONG")
        talk.expect_silence()
        talk.switch()
        talk.expect_client(":1", "+PONG")


# -- pushes


def test_a_push_waits_for_nobody():
    """A push behind a delayed reply comes right after it, though the next reply is looked at as a whole."""
    rules = """
- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}
- {fault: disconnect, match: {commands: BLPOP}, at: after_reply}
"""
    with Talk(rules, protocol=3) as talk:
        talk.client("GET a", "BLPOP q 0")
        talk.expect_upstream("GET a", "BLPOP q 0")
        talk.upstream(":1", INVALIDATED)
        talk.expect_client()
        talk.wait(1)
        talk.expect_client(":1", INVALIDATED)
        talk.upstream(INVALIDATED)
        talk.expect_client(INVALIDATED)


def test_pushes_inside_an_array_stay_where_they_are():
    """A transaction that changes the connection is looked at as a whole, and not a byte moves."""
    array = b"*2\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n+OK\r\n"
    with Talk(protocol=3) as talk:
        talk.client("MULTI", "SELECT 1", "SET a b", "EXEC")
        talk.expect_upstream("MULTI", "SELECT 1", "SET a b", "EXEC")
        talk.upstream("+OK", "+QUEUED", "+QUEUED", array)
        talk.expect_client("+OK", "+QUEUED", "+QUEUED", array)
        assert talk.conversation.describe()["db"] == 1


def test_more_elements_than_the_header_says():
    """SUBSCRIBE a b between MULTI and EXEC: every frame is the transaction's, the next reply the next command's."""
    sent = ("MULTI", "PING", "SUBSCRIBE a b", "EXEC", "GET a")
    array = ('*[+PONG >["subscribe" "a" :1]]', '>["subscribe" "b" :2]')
    rule = "- {fault: reply, match: {commands: GET}, at: after_apply, value: 5}"
    with Talk(rule, protocol=3) as talk:
        talk.client(*sent)
        talk.expect_upstream(*sent[:-1])
        talk.upstream("+OK", "+QUEUED", "+QUEUED", *array)
        talk.expect_client("+OK", "+QUEUED", "+QUEUED", *array)
        talk.expect_upstream("GET a")
        talk.upstream("$-1")
        talk.expect_client(":5")


@both
def test_a_confirmation_of_nothing(protocol):
    """A frame that begins as a confirmation and is none passes, and harms nobody."""
    kind = ">" if protocol == 3 else "*"
    with Talk(protocol=protocol) as talk:
        talk.client("SUBSCRIBE a")
        talk.expect_upstream("SUBSCRIBE a")
        talk.upstream(f'{kind}["subscribe"]')
        talk.expect_client(f'{kind}["subscribe"]')
        talk.upstream(f'{kind}["subscribe" "a" :1]')
        talk.expect_client(f'{kind}["subscribe" "a" :1]')


# -- transactions


def test_nothing_of_ours_goes_into_a_transaction_that_is_open():
    """A second MULTI, which servers refuse, is not preceded by the proof of the scratch database."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}") as talk:
        talk.client("MULTI")
        probes = ("COPY chaosproxy:probe chaosproxy:probe", "DEL chaosproxy:probe")
        talk.expect_upstream("SELECT 15", "DBSIZE", "SELECT 0", *probes)
        talk.upstream("+OK", ":0", "+OK", "-ERR source and destination objects are the same", ":0")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.client("MULTI")
        talk.expect_upstream("MULTI")


def test_hidden_commands_are_carried_out_before_a_cut():
    """A cut waits until the server has done what was to run before it."""
    rules = """
- {fault: run, match: {commands: SET}, at: before_forward, commands: [[INCR, n]]}
- {fault: disconnect, match: {commands: SET}, at: before_forward}
"""
    with Talk(rules) as talk:
        talk.client("SET a b")
        talk.expect_upstream("INCR n")
        talk.expect_nothing_fired()
        talk.upstream(":1")
        talk.expect_closed("reset")
        talk.expect_fired("run", applied="no", told="reset")
        talk.expect_fired("disconnect", applied="no", told="reset")


def test_a_run_is_written_down_though_nobody_waits_for_it():
    """What the side connection was asked is told, also when the client goes before the answer."""
    rule = "- {fault: run, match: {commands: SET}, at: after_apply, commands: [[INCR, n]]}"
    with Talk(rule) as talk:
        talk.client("SET a b")
        talk.expect_upstream("SET a b")
        talk.upstream("+OK")
        talk.expect_side("INCR n", db=0, where="upstream")
        talk.client_gone()
        talk.expect_fired("run", applied="yes", told="nothing", outcome="unknown")


def test_each_skip_is_for_one_command():
    """CLIENT REPLY SKIP is used up by the command behind it, also if the proxy answers that one itself."""
    rule = "- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.client("CLIENT REPLY SKIP", "SET a 1", "SET a 2")
        talk.expect_upstream("CLIENT REPLY SKIP", "PING")
        talk.expect_client("-OOM command not allowed when used memory > 'maxmemory'.")


@pytest.mark.parametrize("before", [[], ["PING"], ["CLIENT REPLY SKIP"]])
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("reply, match: {commands: SET}, at: before_forward, value: made", "ok"),
        ("drop_write, match: {commands: SET}, tell: error", "error"),
    ],
)
def test_a_skip_is_used_up_by_a_command_that_rules_leave_alone(before, rule, told):
    """The one behind it is answered, though what uses the skip up is looked at and never answered."""
    left = (
        "- {fault: latency, match: {commands: GET}, when: {nth: 9}, at: before_forward, delay: 1s}"
    )
    with Talk(f"{left}\n- {{fault: {rule}}}") as talk:
        talk.client(*before, "CLIENT REPLY SKIP", "GET a", "SET b 1", "GET c")
        for answered in [*["+PONG"] * (before == ["PING"]), '"C"']:
            talk.upstream(answered)
        talk.expect_upstream(*before, "CLIENT REPLY SKIP", "GET a", "GET c")
        *first, answer = talk.heard("client").removesuffix(b"$1\r\nC\r\n").splitlines()
        assert first == [b"+PONG"] * (before == ["PING"]) + [b"$4"] * (told == "ok")
        assert (answer == b"made") if told == "ok" else answer.startswith(b"-")
        talk.expect_fired(rule.partition(",")[0], applied="no", told=told)


def test_asking_is_for_one_command():
    """ASKING is used up by the command behind it, also if the proxy answers that one itself."""
    rule = "- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("SET a 1", "SET a 2")
        talk.expect_upstream("PING")
        talk.expect_client(*["-OOM command not allowed when used memory > 'maxmemory'."] * 2)
        talk.upstream("+PONG")


def test_caching_is_for_one_command():
    """CLIENT CACHING is used up like this too, and not by another CLIENT."""
    rule = "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}"
    with Talk(rule) as talk:
        talk.handshake("CLIENT TRACKING ON OPTIN REDIRECT 5", "+OK")
        talk.handshake("CLIENT CACHING YES", "+OK")
        talk.handshake("CLIENT GETREDIR", ":5")
        talk.client("GET a", "GET b")
        talk.expect_upstream("PING")
        talk.expect_client('"made"', '"made"')
        talk.upstream("+PONG")


def test_what_is_answered_is_not_repeated():
    """A write that ends before it is forwarded is not applied twice either, and the rule says why."""
    rules = """
- {fault: duplicate, match: {commands: SET}}
- {fault: drop_write, match: {commands: SET}, tell: error}
"""
    with Talk(rules) as talk:
        talk.client("SET a 1")
        talk.expect_upstream()
        talk.expect_client("-ERR the write was dropped by the fault drop_write")
        assert talk.skipped("duplicate") == ["ended"]


# -- the ends


def test_nothing_happens_after_its_end():
    """Whatever still comes for a conversation that is over: no bytes, no effects, no error, nothing to wait for."""
    rule = "- {fault: run, match: {commands: SET}, at: after_reply, commands: [[INCR, n]]}"
    with Talk(rule) as talk:
        talk.client("SET a 1", "SET b 1")
        talk.expect_upstream("SET a 1", "SET b 1")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.flushed()
        talk.client_gone()
        told = len(talk.effects)
        conversation = talk.conversation
        conversation.receive_from_client(command("GET a"), talk.now)
        conversation.receive_from_upstream(b"+OK\r\n", talk.now)
        conversation.client_eof(talk.now)
        conversation.client_gone(talk.now)
        conversation.upstream_eof(talk.now)
        conversation.upstream_gone(talk.now)
        conversation.flushed(talk.now)
        conversation.side_answer(1, [b":1\r\n"], talk.now)
        conversation.wake(talk.now)
        conversation.cut("reset", talk.now)
        conversation.switch(talk.now)
        talk._look()
        assert len(talk.effects) == told
        assert conversation.due is None


def test_an_answer_to_nothing():
    """An answer of the side connection that nobody asked for changes nothing."""
    with Talk() as talk:
        talk.conversation.side_answer(99, [b":1\r\n"], talk.now)
        talk.client("GET a")
        talk.expect_upstream("GET a")


def test_a_client_half_closes():
    """Its FIN is passed on once, behind all it has said; what it asked is still answered, and the upstream ends it."""
    with Talk() as talk:
        talk.client("GET a", "GET b")
        talk.client_eof()
        talk.expect_upstream("GET a", "GET b")
        talk.expect_half_close()
        talk.client_eof()
        talk.upstream('"A"', '"B"')
        talk.expect_client('"A"', '"B"')
        talk.upstream_eof()
        talk.expect_closed("close")


def test_a_client_half_closes_while_its_request_waits_to_be_understood():
    """Only what a fault holds up is dropped: what waits for a reply to know what it means is sent first."""
    rule = "- {fault: latency, match: {commands: SET, keys: x}, at: after_apply, delay: 1s}"
    with Talk(rule) as talk:
        talk.client("SELECT 1", "SET a 1", "GET a")
        talk.client_eof()
        talk.expect_upstream("SELECT 1")
        talk.upstream("+OK")
        talk.expect_upstream("SET a 1", "GET a")
        talk.expect_half_close()
        talk.upstream("+OK", '"1"')
        talk.expect_client("+OK", "+OK", '"1"')


DROPPED = "- {fault: drop_write, match: {commands: SET}, tell: ok}"


def test_a_client_half_closes_behind_what_waits():
    """Its FIN does not wait for what may never come: the server ends with it, and takes nothing from a list for nobody."""
    with Talk(DROPPED) as talk:
        talk.client("BLPOP q 0", "SET k v")
        talk.expect_upstream("BLPOP q 0", *GATE)
        talk.client_eof()
        for _ in range(2):
            talk.expect_silence()
            talk.expect_side("PING")
            talk.side("+PONG")
        talk.expect_half_close()
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail")
        talk.upstream_eof()
        talk.expect_closed("close")


@pytest.mark.parametrize("asked", [0, 1])
def test_a_client_half_closes_behind_what_would_have_waited(asked):
    """What comes in the meantime was on its way: all that it has sent is carried out."""
    with Talk(DROPPED) as talk:
        talk.client("BLPOP q 0", "SET k v")
        talk.expect_upstream("BLPOP q 0", *GATE)
        talk.client_eof()
        for _ in range(asked):
            talk.side("+PONG")
        talk.upstream('*["q" "1"]', *PROVEN)
        talk.expect_client('*["q" "1"]')
        talk.side("+PONG")
        talk.heard("upstream")
        talk.upstream("+OK", *["+QUEUED"] * 5, "*[:1 +OK +OK :1 +OK]")
        talk.expect_half_close()
        talk.expect_client("+OK")
        talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok")


def test_a_client_half_closes_within_a_request():
    """What a rule had wanted to see the whole of goes ahead of the FIN; nothing is left that another profile would send."""
    with Talk("- {fault: latency, match: {commands: SET}, at: before_forward, delay: 1s}") as talk:
        half = b"*3\r\n$3\r\nSET\r\n$1\r\na"
        talk.client("GET a", half)
        talk.expect_upstream("GET a")
        talk.client_eof()
        talk.expect_upstream(half)
        talk.expect_half_close()
        talk.switch()
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.upstream_eof()
        talk.expect_closed("close")


def test_a_client_half_closes_while_a_failover_holds_all_requests():
    """Its FIN waits with what it has said, whether or not a rule looks at that."""
    with Talk() as talk:
        talk.world.hold()
        talk.client("GET a", "GET b")
        talk.client_eof()
        talk.expect_silence()
        talk.world.go_on()
        talk.wake()
        talk.expect_upstream("GET a", "GET b")
        talk.expect_half_close()
        talk.upstream('"A"', '"B"')
        talk.expect_client('"A"', '"B"')


def test_a_client_that_has_nothing_to_say_half_closes_while_a_failover_holds_all_requests():
    """There is nothing that its FIN could wait for."""
    with Talk() as talk:
        talk.world.hold()
        talk.client_eof()
        talk.expect_half_close()


def test_the_upstream_cannot_be_had():
    """Where no upstream connection could be made, or it ends at once, the client is closed."""
    with Talk() as talk:
        talk.upstream_gone()
        talk.expect_closed("close")


def test_an_error_nobody_asked_for():
    """What a server says before it closes is told: too many clients, a protocol error."""
    with Talk() as talk:
        talk.upstream("-ERR max number of clients reached")
        talk.expect_client("-ERR max number of clients reached")
        talk.upstream_eof()
        talk.expect_closed("close")
        assert not talk.conversation.raw


def test_a_reply_nobody_asked_for():
    """A server that answers what was not asked is not understood any more; nothing of it is kept back."""
    with Talk() as talk:
        talk.upstream("+OK", "+OK")
        assert "nobody asked for" in talk.expect_raw("upstream")
        talk.expect_client("+OK", "+OK")


def test_a_client_that_makes_no_sense():
    """Its bytes pass as they come; replies to what came before still meet their rules."""
    rule = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
    with Talk(rule) as talk:
        talk.client("GET a", b"*1\r\n:5\r\n", "GET b")
        talk.expect_upstream("GET a", b"*1\r\n:5\r\n", "GET b")
        assert talk.expect_raw("client")
        talk.upstream('"A"', "-ERR Protocol error: expected '$', got ':'")
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('"A"', "-ERR Protocol error: expected '$', got ':'")
        talk.client("GET c")
        talk.expect_upstream("GET c")


def test_an_end_that_was_decided_before_the_upstream_stopped_making_sense():
    """A cut whose turn it is comes first; what follows is never looked at."""
    rule = "- {fault: disconnect, match: {commands: GET}, at: after_apply}"
    with Talk(rule) as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"A"', b"?\r\n")
        talk.expect_closed("reset")


# -- what it says of itself


def test_describe():
    """What the control API shows of a connection."""
    rule = "- {fault: latency, match: {commands: GET}, at: before_forward, delay: 1s}"
    with Talk(rule, protocol=3) as talk:
        talk.handshake("CLIENT SETNAME web", "+OK")
        talk.handshake("SELECT 2", "+OK")
        talk.handshake("SUBSCRIBE a", '>["subscribe" "a" :1]')
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1", "GET a")
        talk.expect_upstream("SET a 1")
        assert talk.conversation.describe() == {
            "id": 1,
            "address": "10.0.0.9",
            "listener": "redis",
            "name": "web",
            "db": 2,
            "protocol": 3,
            "in_transaction": True,
            "subscribed": True,
            "buffered": 0,
            "waiting_replies": 1,
            "holding": False,
            "raw": False,
            "opened": 100.0,
        }
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        assert talk.conversation.holding
        talk.wait(1)
        talk.expect_upstream("GET a")
        assert not talk.conversation.holding


def test_holding_a_reply():
    """A reply that is here and may not leave is held; one that is not here is not."""
    with Talk("- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}") as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        assert not talk.conversation.holding
        talk.upstream('"A"')
        assert talk.conversation.holding
        assert talk.conversation.buffered == 7
        talk.wait(1)
        talk.expect_client('"A"')
        assert not talk.conversation.holding


def test_paused_while_only_the_proxy_waits():
    """A reply that only the proxy waits for is read once what is held ahead of it has left: nothing else waits for it."""
    rules = """
- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}
- {fault: run, match: {commands: SET}, at: before_forward, commands: [[INCR, n]]}
"""
    with Talk(rules, max_buffer=100) as talk:
        talk.client("GET a", "SET a 1", "PING")
        talk.heard("upstream")
        talk.upstream(b"$200\r\n" + b"x" * 200 + b"\r\n")
        assert talk.conversation.upstream_paused
        talk.wait(1)
        talk.heard("client")
        assert not talk.conversation.upstream_paused
        talk.upstream(":1", "+OK", "+PONG")
        talk.expect_client("+OK", "+PONG")
        talk.expect_fired("latency")
        talk.expect_fired("run", applied="yes")
