"""What happens once Redis has applied a command: positions in their order, rules in theirs, decisions added up."""

import pytest

from tests.conversation import Talk


def rules(*entries: str) -> str:
    return "\n".join(f"- {{{entry}}}" for entry in entries)


def at(position: str, fault: str, commands: str = "GET") -> str:
    return f"fault: {fault}, match: {{commands: {commands}}}, at: {position}"


LATE = at("after_apply", "latency") + ", delay: 1s"
ANSWER = at("after_apply", "reply") + ", value: made"
RUN = at("after_apply", "run") + ", commands: [[INCR, n]]"
LAST_RUN = at("after_reply", "run") + ", commands: [[INCR, n]]"
LOST = at("after_apply", "disconnect")
TORN = at("mid_reply", "disconnect") + ", bytes: 3"
LATER = at("after_reply", "disconnect")


def ask(talk: Talk, answer: str = '"value"') -> None:
    talk.client("GET k")
    talk.expect_upstream("GET k")
    talk.upstream(answer)


def test_delays_sum():
    """Two delays of a reply are waited for one after the other."""
    with Talk(rules(LATE, LATE)) as talk:
        ask(talk)
        talk.wait(1.9)
        talk.expect_client()
        talk.wait(0.1)
        talk.expect_client('"value"')


def test_the_first_final_decision_ends_the_chain():
    """What comes after it in the profile is not done, counted as a match, and told why."""
    with Talk(rules(LATE, ANSWER, LATE, RUN, LOST)) as talk:
        ask(talk)
        talk.wait(1)
        talk.expect_client('"made"')
        for name in ("latency-2", "run", "disconnect"):
            assert talk.matched(name) == 1
            assert talk.skipped(name) == ["ended"]


def test_positions_act_in_the_order_of_life():
    """Whatever the order in the profile: what is earlier in the exchange's life happens first; the reply waits for what runs."""
    with Talk(rules(LATER, TORN, LATE, RUN)) as talk:
        ask(talk)
        talk.expect_side("INCR n")
        talk.wait(5)
        talk.expect_client()
        talk.side(":1")
        talk.expect_client(b"$5\r")
        talk.expect_closed("reset")
        assert [event.fault for event in talk.events()] == ["latency", "run", "disconnect-2"]
        assert talk.skipped("disconnect") == ["ended"]


def test_rules_of_one_position_act_in_profile_order():
    """The second answer never comes, whichever matched by the reply."""
    by_reply = (
        at("after_apply", "reply").replace("GET}", "GET, reply: {type: bulk}}") + ", value: first"
    )
    with Talk(rules(by_reply, ANSWER)) as talk:
        ask(talk)
        talk.expect_client('"first"')
        assert talk.skipped("reply-2") == ["ended"]


def test_a_rule_sees_the_servers_reply():
    """A rule that looks at the reply looks at what the server said, not at what another rule made of it."""
    by_reply = (
        at("after_apply", "latency").replace("GET}", "GET, reply: {error: OOM}}") + ", delay: 1s"
    )
    with Talk(rules(ANSWER, by_reply)) as talk:
        ask(talk, "-OOM no")
        talk.expect_client('"made"')
        assert talk.matched("latency") == 1
        assert talk.skipped("latency") == ["ended"]


def test_nothing_after_all():
    """A fault that finds nothing to do in this reply is skipped, and says so."""
    with Talk(rules("fault: slice, split: inside_multibyte, match: {commands: GET}")) as talk:
        ask(talk)
        talk.expect_client('"value"')
        assert talk.skipped("slice") == ["not_applicable"]


def test_all_of_a_transaction():
    """What is decided for its commands is done with EXEC's reply: delays of two commands sum, the first cut counts."""
    late_set = at("after_apply", "latency", "SET") + ", delay: 1s"
    cut_set = at("after_reply", "disconnect", "SET")
    with Talk(rules(LATE, late_set, cut_set, LATER)) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("SET a 1", "+QUEUED")
        talk.client("EXEC", "PING")
        talk.expect_upstream("EXEC", "PING")
        talk.upstream('*["A" +OK]', "+PONG")
        talk.wait(0.9)
        talk.expect_client()
        talk.wait(1.1)
        talk.expect_client('*["A" +OK]')
        talk.expect_closed("reset")


@pytest.mark.parametrize("protocol", [2, 3])
def test_elements_that_fail(protocol):
    """An element that is an error was not applied; its neighbours were."""
    with Talk(rules(LAST_RUN), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("GET b", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(b"*2\r\n-WRONGTYPE no\r\n$1\r\nB\r\n")
        talk.expect_client(b"*2\r\n-WRONGTYPE no\r\n$1\r\nB\r\n")
        talk.flushed()
        talk.side(":1")
        talk.side(":1")
        talk.expect_fired("run", applied="no", keys=(b"a",))
        talk.expect_fired("run", applied="yes", keys=(b"b",))


@pytest.mark.parametrize("array", ["*[]", '*["A" "B"]'])
def test_an_array_of_other_commands(array):
    """An EXEC with more or fewer elements than commands passes as it is, and nothing is done to any of them."""
    before = at("before_forward", "latency") + ", delay: 1s"
    with Talk(rules(before, LOST)) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED", late=1)
        talk.client("EXEC", "PING")
        talk.expect_upstream("EXEC", "PING")
        talk.upstream(array, "+PONG")
        talk.expect_client(array, "+PONG")
        talk.expect_fired("latency", applied="unknown")
        assert talk.skipped("disconnect") == ["raw"]


def test_an_end_while_exec_is_under_way():
    """Whether EXEC was carried out nobody knows: unknown. Before it was sent: no."""
    before = at("before_forward", "latency") + ", delay: 1s"
    for exec_sent, applied in ((True, "unknown"), (False, "no")):
        with Talk(rules(before)) as talk:
            talk.handshake("MULTI", "+OK")
            talk.handshake("GET a", "+QUEUED", late=1)
            if exec_sent:
                talk.client("EXEC")
                talk.expect_upstream("EXEC")
            talk.upstream_gone()
            talk.expect_closed("close")
            talk.expect_fired("latency", applied=applied)


def test_a_discarded_transaction():
    """DISCARD, RESET: nothing of it was applied."""
    before = at("before_forward", "latency") + ", delay: 1s"
    for end in ("DISCARD", "RESET"):
        with Talk(rules(before, LOST)) as talk:
            talk.handshake("MULTI", "+OK")
            talk.handshake("GET a", "+QUEUED", late=1)
            talk.handshake(end, "+OK")
            talk.expect_fired("latency", applied="no", told="error")
            assert talk.skipped("disconnect") == ["aborted"]
