"""From the client to the upstream: one request after the other, whole where a rule may want it, in any pieces."""

import pytest

from chaosproxy.core.slot_map import Seat, SlotMap
from tests.conversation import Talk, command

REFUSE_SET = "- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}"
LATE_SET = "- {fault: latency, match: {commands: SET}, at: before_forward, delay: 1s}"
OOM = "-OOM command not allowed when used memory > 'maxmemory'."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_in_any_pieces(size):
    """However the bytes are cut, the rules see the same commands, and the upstream gets the same bytes."""
    sent = b"".join(map(command, ["GET a", "SET a 1", b"PING\r\n", b"\r\n", "SET b 2", "GET b"]))
    with Talk(REFUSE_SET) as talk:
        for at in range(0, len(sent), size):
            talk.client(sent[at : at + size])
        # The empty line belongs to the command behind it.
        talk.expect_upstream("GET a", b"PING\r\n", "GET b")
        talk.upstream('"A"', "+PONG", '"B"')
        talk.expect_client('"A"', OOM, "+PONG", OOM, '"B"')


def test_inline():
    """A line of words is a command like any other."""
    with Talk(REFUSE_SET) as talk:
        talk.client(b"set a 1\r\n", b"  get a\n")
        talk.expect_upstream(b"  get a\n")
        talk.expect_client(OOM)


@pytest.mark.parametrize("seat", [None, Seat(b"h", (7000, 7001), 1, SlotMap(2))])
@pytest.mark.parametrize(
    "rule",
    [
        "{fault: reply, at: before_forward, error: ERR no}",
        "{fault: blackhole, what: request, at: before_forward}",
        "{fault: latency, at: before_forward, delay: 1s}",
    ],
)
@pytest.mark.parametrize("first", [b"POST / HTTP/1.1\r\n", b"Host: evil.example\r\n", "post x"])
def test_http_is_for_the_server_to_end(rule, first, seat):
    """What a browser sends for a page never meets a rule: the server, which ends it, gets all of it in one piece."""
    body = b"content-length: 10\r\n\r\nFLUSHALL\r\n"
    with Talk(f"- {rule}", seat=seat) as talk:
        talk.client(first, body)
        talk.expect_upstream(first, body)
        assert "HTTP" in talk.expect_raw("client")
        talk.expect_nothing_fired()


def test_http_waits_for_nothing_before_it():
    """A server that ends the connection at it drops replies that it has not sent: so the two must come together."""
    with Talk(REFUSE_SET) as talk:
        post = b"POST / HTTP/1.1\r\nSET a 1\r\n"
        talk.client("GET a", post)
        talk.expect_upstream("GET a", post)
        assert "HTTP" in talk.expect_raw("client")
        talk.upstream('"A"')
        talk.expect_client('"A"')


def test_only_what_a_rule_may_want_is_held():
    """A request whose name interests nobody passes as it comes; one that does is held whole."""
    with Talk(REFUSE_SET) as talk:
        talk.client(b"*2\r\n$3\r\nGET\r\n$5\r\nab")
        talk.expect_upstream(b"*2\r\n$3\r\nGET\r\n$5\r\nab")
        talk.client(b"cde\r\n*3\r\n$3\r\nSE")
        talk.expect_upstream(b"cde\r\n")
        talk.client(b"T\r\n$1\r\na\r\n$1\r\n1")
        talk.expect_upstream()
        talk.client(b"\r\n")
        talk.expect_client()
        talk.upstream('"A"')
        talk.expect_client('"A"', OOM)


def test_a_name_that_is_not_known_yet_is_held():
    """Nothing passes before it is known whether a rule wants it, unless it is too large to be held."""
    with Talk(REFUSE_SET, max_buffer=100) as talk:
        talk.client(b"*2\r\n$3\r\nG")
        talk.expect_upstream()
        talk.client(b"ET\r\n")
        talk.expect_upstream(b"*2\r\n$3\r\nGET\r\n")
        talk.client(b"$1\r\na\r\n")
        talk.expect_upstream(b"$1\r\na\r\n")
        talk.client(b"*2\r\n$200\r\n" + b"x" * 150)
        talk.expect_upstream(b"*2\r\n$200\r\n" + b"x" * 150)
        talk.client(b"x" * 50 + b"\r\n$1\r\na\r\n")
        talk.expect_upstream(b"x" * 50 + b"\r\n$1\r\na\r\n")


def test_no_more_is_read_than_may_be_held():
    """While a request waits, those behind it wait in the client's own stack."""
    with Talk(LATE_SET, max_buffer=1000) as talk:
        talk.client("SET a 1", *["GET a"] * 40)
        assert not talk.conversation.client_paused
        talk.client(*["GET a"] * 40)
        assert talk.conversation.client_paused
        assert talk.conversation.buffered == 80 * len(command("GET a"))
        talk.wait(1)
        talk.expect_upstream("SET a 1", *["GET a"] * 80)
        assert not talk.conversation.client_paused


def test_a_large_request_behind_one_that_waits():
    """What is too large to be held passes once its turn has come; nothing of ours is put into the middle of it."""
    rules = (
        LATE_SET
        + "\n- {fault: run, match: {commands: RPUSH}, at: before_forward, commands: [[INCR, n]]}"
    )
    large = b"*3\r\n$5\r\nRPUSH\r\n$1\r\na\r\n$2000\r\n"
    with Talk(rules, max_buffer=1000) as talk:
        talk.client("SET a 1", large)
        talk.client(b"x" * 1000)
        talk.wait(1)
        talk.expect_upstream("SET a 1", large + b"x" * 1000)
        talk.client(b"x" * 1000 + b"\r\n")
        talk.expect_upstream(b"x" * 1000 + b"\r\n")
        assert talk.skipped("run") == ["too_large"]


def test_a_large_multi():
    """A MULTI that is too large to be a command is not preceded by ours: half of it may be on its way."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}", max_buffer=100) as talk:
        raw = b"*2\r\n$5\r\nMULTI\r\n$200\r\n" + b"x" * 150
        talk.client(raw)
        talk.expect_upstream(raw)
        talk.client(b"x" * 50 + b"\r\n")
        talk.expect_upstream(b"x" * 50 + b"\r\n")
        talk.upstream("-ERR wrong number of arguments for 'multi' command")
        talk.expect_client("-ERR wrong number of arguments for 'multi' command")


def test_a_multi_without_replies():
    """Where ours gets no reply of its own the scratch database is not proven before a MULTI."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}") as talk:
        talk.client("CLIENT REPLY OFF", "MULTI", "GET a", "EXEC")
        talk.expect_upstream("CLIENT REPLY OFF", "MULTI", "GET a", "EXEC")


def test_the_handshake_is_left_alone():
    """What a client sends to introduce itself interests no rule that does not ask for it; after the first other command it does."""
    rule = "- {fault: reply, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.handshake("HELLO 2", '*["proto" :2]')
        talk.handshake("CLIENT SETINFO LIB-NAME x", "+OK")
        talk.handshake("SELECT 0", "+OK")
        talk.handshake("INFO", '"x"')
        talk.client("GET a", "INFO", "HELLO 2")
        talk.expect_client(OOM, OOM, OOM)


def test_a_plain_command_ends_the_handshake():
    """Also one that no rule is interested in."""
    rule = "- {fault: reply, match: {commands: '@handshake'}, at: before_forward, error: OOM}"
    with Talk(rule) as talk:
        talk.client("HELLO 3", "AUTH x")
        talk.expect_client(OOM, OOM)
        talk.handshake("GET a", '"A"')
        talk.handshake("HELLO 2", '*["proto" :2]')


@pytest.mark.parametrize("turning", ["SELECT 1", "MULTI", "CLIENT REPLY SKIP", "RESET", "HELLO 3"])
def test_what_a_command_means_is_known_first(turning):
    """A command that a rule looks at waits for the reply to one that may change what it means; others do not."""
    with Talk(LATE_SET) as talk:
        talk.client(turning, "GET a", "SET a 1", "GET b")
        talk.expect_upstream(turning, "GET a")
        talk.wait(5)
        assert talk.matched("latency") == (1 if "SKIP" in turning else 0)
        talk.heard("upstream")


def test_the_database_is_the_one_of_its_turn():
    """A rule for one database counts what the server will carry out there, however deep the pipeline."""
    rule = "- {fault: reply, match: {commands: GET, db: 1}, at: before_forward, value: made}"
    with Talk(rule) as talk:
        talk.client("GET a", "SELECT 1", "GET a", "SELECT 2", "GET a")
        talk.expect_upstream("GET a", "SELECT 1")
        talk.upstream('"0"')
        talk.upstream("+OK")
        talk.expect_upstream("SELECT 2")
        talk.upstream("+OK")
        talk.expect_upstream("GET a")
        talk.upstream('"2"')
        talk.expect_client('"0"', "+OK", '"made"', "+OK", '"2"')


# -- another profile comes into force


def test_a_switch_while_ours_run_aside():
    """What runs already is waited for and told; what was to happen after it does not."""
    rules = """
- {fault: run, match: {commands: SET}, at: before_forward, commands: [[INCR, n]]}
- {fault: disconnect, match: {commands: SET}, at: after_apply}
"""
    with Talk(rules) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1")
        talk.expect_side("INCR n")
        talk.switch()
        talk.expect_upstream()
        talk.side(":1")
        talk.expect_upstream("SET a 1")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*[+OK]")
        talk.expect_fired("run", applied="yes")
        assert talk.skipped("disconnect") == ["switched"]


def test_a_switch_while_it_waits_to_be_understood():
    """A command that has met no rule yet meets the new profile's."""
    with Talk(LATE_SET) as talk:
        talk.client("MULTI", "SET a 1")
        talk.expect_upstream("MULTI")
        talk.switch(REFUSE_SET)
        talk.upstream("+OK")
        talk.expect_upstream("CHAOSPROXY.REFUSED")
        talk.upstream("-ERR unknown command")
        talk.expect_client("+OK", OOM)
        assert talk.matched("latency") == 0


def test_a_switch_while_a_command_nobody_wanted_waits():
    """A MULTI that waits for nothing but the old profile's proof meets the new profile's rules too."""
    rule = "- {fault: drop_write, match: {commands: SET}, tell: ok}"
    with Talk(rule) as talk:
        talk.client("SELECT 1", "MULTI")
        talk.expect_upstream("SELECT 1")
        talk.switch("- {fault: reply, match: {commands: MULTI}, at: before_forward, error: OOM}")
        talk.upstream("+OK")
        talk.expect_upstream()
        talk.expect_client("+OK", OOM)


def test_a_switch_while_a_request_is_paced():
    """What is left of a slow request goes at once, and nothing of it twice."""
    rule = "- {fault: bandwidth, match: {commands: SET}, rate: 100B/s, direction: to_upstream}"
    with Talk(rule) as talk:
        talk.client("SET a 1", "GET a")
        talk.wait(0.1)
        given = talk.heard("upstream")
        assert 0 < len(given) < 20
        talk.switch()
        talk.expect_upstream(command("SET a 1")[len(given) :], "GET a")
        talk.upstream("+OK", '"1"')
        talk.expect_client("+OK", '"1"')


def test_the_upstream_stops_making_sense_while_a_request_is_paced():
    """What is left of it passes at once, then what stands behind it."""
    rule = "- {fault: bandwidth, match: {commands: SET}, rate: 100B/s, direction: to_upstream}"
    with Talk(rule) as talk:
        talk.client("SET a 1", "GET a", b"*2\r\n$3\r\nGE")
        talk.wait(0.1)
        given = talk.heard("upstream")
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_client(b"?\r\n")
        talk.expect_upstream(command("SET a 1")[len(given) :], "GET a", b"*2\r\n$3\r\nGE")
