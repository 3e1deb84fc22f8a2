"""What happens before Redis sees a command: decisions add up in profile order, and are carried out stage by stage."""

import pytest

from chaosproxy.core.effect import LimitReached
from tests.conversation import Talk


def rules(*entries: str) -> str:
    return "\n".join(f"- {{{entry}}}" for entry in entries)


def before(fault: str, more: str = "", commands: str = "SET") -> str:
    return f"fault: {fault}, match: {{commands: {commands}}}, at: before_forward{more}"


LATE = before("latency", ", delay: 1s")
RUN = before("run", ", commands: [[INCR, n]]")
REFUSE = before("reply", ", error: OOM")
CUT = before("disconnect")
LOSE = before("blackhole", ", what: request")
HOLD = "fault: reorder, match: {commands: SET}, waiting: 2, max: 1s"
SLOW = "fault: bandwidth, match: {commands: SET}, rate: 1000B/s"
TWICE = "fault: duplicate, match: {commands: SET}"
OOM = "-OOM command not allowed when used memory > 'maxmemory'."


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_delays_sum(protocol):
    """Two delays of a request are waited for one after the other; each is told with its own."""
    with Talk(rules(LATE, LATE), protocol=protocol) as talk:
        talk.client("SET a 1")
        talk.wait(1.9)
        talk.expect_upstream()
        talk.wait(0.1)
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert [event.delay for event in talk.events()] == [1.0, 1.0]


@pytest.mark.parametrize("final", [REFUSE, CUT, LOSE])
def test_the_first_final_decision_ends_the_chain(final):
    """What stands before it in the profile happens; what stands behind it is counted as a match and told why it does not."""
    late = before("latency", ", delay: 1s")
    after = "fault: disconnect, name: after, match: {commands: SET}, at: after_apply"
    with Talk(rules(late, RUN, final, late, RUN, REFUSE, TWICE, after)) as talk:
        talk.client("SET a 1")
        talk.expect_silence()
        talk.wait(1)
        talk.expect_upstream("INCR n")
        talk.upstream(":1")
        talk.heard("client")
        talk._awaited.clear()
        for name in ("latency-2", "run-2", "duplicate", "after"):
            assert talk.matched(name) == 1
            assert talk.skipped(name) == ["ended"]
        assert [event.fault for event in talk.events()][:2] == ["latency", "run"]
        assert {event.applied for event in talk.events()} == {"no"}
        talk.expect_upstream()


def test_in_the_order_of_the_stages():
    """First the delay, then the barrier, then what runs ahead of it, then the slow line, and its copy behind it."""
    with Talk(rules(TWICE, SLOW, RUN, HOLD, LATE)) as talk:
        talk.client("SET a 1")
        talk.wait(0.9)
        talk.expect_silence()
        assert not talk.conversation._line.head.tickets
        talk.wait(0.1)
        assert talk.conversation._line.head.tickets
        talk.wait(0.9)
        talk.expect_silence()
        talk.wait(0.1)
        assert talk.heard("upstream").startswith(b"*2\r\n$4\r\nINCR")
        talk.wait(0.01)
        talk.expect_upstream()
        talk.wait(1)
        sent = talk.heard("upstream")
        assert sent.count(b"SET") == 2
        talk.upstream(":1", "+OK", "+OK")
        talk.wait(1)
        talk.expect_client("+OK")
        assert len(talk.events()) == 5


def test_everything_at_once_in_a_transaction():
    """The same between MULTI and EXEC: ours goes aside, copies are hidden in the array."""
    with Talk(rules(LATE, RUN, TWICE)) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1", "EXEC")
        talk.wait(1)
        talk.expect_side("INCR n")
        talk.expect_upstream()
        talk.side(":1")
        talk.expect_upstream("SET a 1", "SET a 1", "EXEC")
        talk.upstream("+QUEUED", "+QUEUED", "*[+OK +OK]")
        talk.expect_client("+QUEUED", "*[+OK]")


@pytest.mark.parametrize("fault", [LATE, RUN, REFUSE, CUT, LOSE, HOLD, SLOW, TWICE])
def test_too_large(fault):
    """A request that may not be held passes, whatever was to happen to it, and the rule says why nothing did."""
    head = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500\r\n"
    with Talk(rules(fault), max_buffer=100) as talk:
        talk.client(head + b"x" * 200)
        talk.expect_upstream(head + b"x" * 200)
        talk.client(b"x" * 300 + b"\r\n")
        talk.expect_upstream(b"x" * 300 + b"\r\n")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_nothing_fired()
        assert [reason for live in talk.world.engine.rules for reason in live.skipped] == [
            "too_large"
        ]


def test_a_rewritten_request():
    """What is rewritten goes out in its new form, copies too; the event's digest is that of the one that came."""
    change = "fault: expire_key, match: {commands: SET}, mode: {ttl_set: 3s}"
    with Talk(rules(change, TWICE)) as talk:
        talk.client("SET a 1 EX 60")
        talk.expect_upstream("SET a 1 EX 3", "SET a 1 EX 3")
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK")
        digests = {event.digest for event in talk.events()}
        talk.client("SET a 1 EX 3")
        talk.heard("upstream")
        talk.upstream("+OK", "+OK")
        talk.heard("client")
        assert digests != {event.digest for event in talk.events()}


def test_nothing_after_all():
    """A fault that finds nothing to do is skipped, and the chain goes on."""
    read = "fault: drop_write, match: {keys: a}, tell: error"
    with Talk(rules(read, before("latency", ", delay: 1s", "GET"))) as talk:
        talk.client("GET a")
        talk.wait(1)
        talk.expect_upstream("GET a")
        assert talk.skipped("drop_write") == ["not_applicable"]


@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_a_transaction_of_which_too_much_is_kept(at):
    """Rules keep so much of one transaction and no more; what comes behind that is forwarded, and they say so."""
    rule = f"- {{fault: latency, match: {{commands: SET}}, at: {at}, delay: 0s}}"
    large = "SET k " + "x" * 600
    with Talk(rule, max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        for _ in range(5):
            talk.handshake(large, "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[+OK +OK +OK +OK +OK]")
        talk.expect_client("*[+OK +OK +OK +OK +OK]")
        assert talk.skipped("latency") == ["too_large"] * 3
        assert talk.effects.count(LimitReached("kept")) == 3
        for _ in range(2):
            talk.expect_fired("latency", applied="yes")
        talk.handshake("MULTI", "+OK")
        talk.handshake(large, "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[+OK]")
        talk.expect_client("*[+OK]")
        talk.expect_fired("latency", applied="yes")


def test_answers_that_wait_for_exec():
    """The same of what stands in for commands that the server never sees."""
    rule = "- {fault: reply, match: {commands: GET}, at: before_forward, value: " + "x" * 600 + "}"
    with Talk(rule, max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        for _ in range(2):
            talk.client("GET a")
            talk.expect_client("+QUEUED")
        talk.handshake("GET a", "+QUEUED")
        assert talk.skipped("reply") == ["too_large"]
        talk.expect_nothing_fired()
        made = '"' + "x" * 600 + '"'
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["A"]')
        talk.expect_client(f'*[{made} {made} "A"]')
        for _ in range(2):
            talk.expect_fired("reply", told="ok")


def test_a_failover_refuses_whatever_is_kept():
    """What a server in its state would refuse is refused."""
    rule = "- {fault: failover, style: managed, when: {from: 0s}}\n- {fault: latency, match: {commands: SET}, at: after_apply, delay: 0s}"
    with Talk(rule, max_buffer=300) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SET k " + "x" * 600, "+QUEUED")
        state = talk.world.engine.failovers[0].state
        state.old, state.switched = "READONLY", talk.now
        talk.client("SET k 1")
        assert talk.heard("client").startswith(b"-READONLY")
        talk.heard("upstream")
        assert "too_large" in talk.skipped("latency")
