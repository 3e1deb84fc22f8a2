"""`reorder`: held until others were applied; replies in order; nobody waits for ever, or for who is gone."""

import pytest

from tests.conversation import Talk, profile

LATE = """
- fault: reorder
  match: {commands: SET, keys: k}
  when: {nth: 1}
  until: {command: SET}
  max: 2s
"""
CROWD = "- {fault: reorder, match: {commands: SET}, waiting: 2, order: reversed, max: 2s}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_held_until_the_other_was_applied(protocol):
    """The first goes to Redis when the second's reply is here, not when the second was forwarded."""
    with Talk(LATE, protocol=protocol) as one, one.another(protocol=protocol) as two:
        one.client("SET k old")
        one.expect_silence()
        two.client("SET k new")
        two.expect_upstream("SET k new")
        one.wait(1)
        one.expect_silence()
        two.upstream("+OK")
        two.expect_client("+OK")
        one.expect_upstream("SET k old")
        one.expect_nothing_fired()
        one.upstream("+OK")
        one.expect_client("+OK")
        event = one.expect_fired("reorder", applied="yes", told="late", outcome="ok", match=1)
        assert event.delay == 1
        assert event.detail == "let go once SET had been applied"


@both
def test_replies_stay_in_order(protocol):
    """What stands before a held command is answered meanwhile, what stands behind it waits with it."""
    with Talk(LATE, protocol=protocol) as one, one.another() as two:
        one.client("GET a", "SET k old", "GET b", "SET k newer")
        one.expect_upstream("GET a")
        one.upstream('"A"')
        one.expect_client('"A"')
        one.expect_silence()
        two.client("SET k new")
        two.upstream("+OK")
        two.heard("upstream")
        two.expect_client("+OK")
        one.expect_upstream("SET k old", "GET b", "SET k newer")
        one.upstream("+OK", '"B"', "+OK")
        one.expect_client("+OK", '"B"', "+OK")
        one.expect_fired("reorder")


@both
def test_pushes_pass_a_held_command(protocol):
    """A message for a subscriber does not wait for its own held command."""
    confirmed = '*["subscribe" "c" :1]' if protocol == 2 else '>["subscribe" "c" :1]'
    message = confirmed[0] + '["message" "c" "hi"]'
    rule = "- {fault: reorder, match: {commands: PING}, until: {command: SET, same: any}}"
    with Talk(rule, protocol=protocol) as talk:
        talk.client("SUBSCRIBE c")
        talk.expect_upstream("SUBSCRIBE c")
        talk.upstream(confirmed)
        talk.expect_client(confirmed)
        talk.client("PING")
        talk.upstream(message)
        talk.expect_client(message)
        talk.wait(2)
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        talk.expect_fired("reorder", detail="let go because max was reached")


def test_an_error_is_not_applied():
    """A command that the server refuses has not been applied, and opens nothing."""
    with Talk(LATE) as one, one.another() as two:
        one.client("SET k old")
        two.client("SET k new")
        two.expect_upstream("SET k new")
        two.upstream("-OOM no")
        two.expect_client("-OOM no")
        one.expect_silence()
        one.client_gone()


def test_what_another_fault_swallows_is_not_applied():
    """A write that is answered here, and never done, opens nothing."""
    rules = (
        LATE
        + "- {fault: reply, match: {commands: SET}, when: {nth: 2}, at: before_forward, value: OK}"
    )
    with Talk(rules) as one, one.another() as two:
        one.client("SET k old")
        two.client("SET k new")
        two.expect_client('"OK"')
        one.expect_silence()
        one.wait(2)
        one.expect_upstream("SET k old")
        one.upstream("+OK")
        one.expect_client("+OK")


def test_the_reply_need_not_have_reached_the_other_client():
    """Applied means that Redis has done it: what then happens to the reply is another matter."""
    rules = (
        LATE
        + "- {fault: latency, match: {commands: SET}, when: {nth: 2}, at: after_apply, delay: 5s}"
    )
    with Talk(rules) as one, one.another() as two:
        one.client("SET k old")
        two.client("SET k new")
        two.expect_upstream("SET k new")
        two.upstream("+OK")
        two.expect_silence()
        one.expect_upstream("SET k old")
        one.upstream("+OK")
        one.expect_client("+OK")
        two.wait(5)
        two.expect_client("+OK")


@both
def test_max(protocol):
    """After `max` it goes on, and the event says so."""
    with Talk(LATE, protocol=protocol) as talk:
        talk.client("SET k old")
        talk.wait(1.9)
        talk.expect_silence()
        talk.wait(0.1)
        talk.expect_upstream("SET k old")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        event = talk.expect_fired("reorder", told="late", detail="let go because max was reached")
        assert event.delay == pytest.approx(2)


def test_all_of_them_hold_each_other_up_no_longer_than_max():
    """Where every command waits for another one nobody waits for ever: the first to give up opens the rest."""
    rule = "- {fault: reorder, match: {commands: SET}, until: {command: SET}, max: 2s}"
    with Talk(rule) as one, one.another() as two:
        one.client("SET k 1")
        one.wait(0.5)
        two.client("SET k 2")
        one.wait(1.4)
        one.expect_silence()
        two.expect_silence()
        one.wait(0.1)
        one.expect_upstream("SET k 1")
        two.expect_silence()
        one.upstream("+OK")
        one.expect_client("+OK")
        two.expect_upstream("SET k 2")
        two.upstream("+OK")
        two.expect_client("+OK")
        one.expect_fired("reorder", detail="let go because max was reached")
        two.expect_fired("reorder", detail="let go once SET had been applied")


def test_two_barriers_each_hold_as_long_as_they_say():
    """A command at two barriers goes on when both let it: one that gives up does not open the other."""
    rules = """
- {fault: reorder, name: short, match: {commands: SET}, until: {command: DEL, same: any}, max: 1s}
- {fault: reorder, name: long, match: {commands: SET}, until: {command: INCR, same: any}, max: 3s}
"""
    with Talk(rules) as one, one.another() as two:
        one.client("SET k 1")
        one.wait(2)
        one.expect_silence()
        two.client("INCR n")
        two.upstream(":1")
        two.heard("upstream")
        two.heard("client")
        one.expect_upstream("SET k 1")
        one.upstream("+OK")
        one.expect_client("+OK")
        short = one.expect_fired("short", detail="let go because max was reached")
        long = one.expect_fired("long", detail="let go once INCR had been applied")
        assert (short.delay, long.delay) == (1, 2)


# -- transactions


@both
def test_a_transaction_is_applied_at_exec(protocol):
    """A queued command opens a barrier when EXEC has carried it out, not before."""
    with Talk(LATE, protocol=protocol) as one, one.another(protocol=protocol) as two:
        one.client("SET k old")
        two.handshake("MULTI", "+OK")
        two.handshake("SET k new", "+QUEUED")
        one.expect_silence()
        two.client("EXEC")
        two.expect_upstream("EXEC")
        one.expect_silence()
        two.upstream("*[+OK]")
        two.expect_client("*[+OK]")
        one.expect_upstream("SET k old")
        one.upstream("+OK")
        one.expect_client("+OK")


def test_a_transaction_that_was_aborted_opens_nothing():
    """What was queued and then discarded has not been applied."""
    with Talk(LATE) as one, one.another() as two:
        one.client("SET k old")
        for sent, answer in (("WATCH k", "+OK"), ("MULTI", "+OK"), ("SET k new", "+QUEUED")):
            two.handshake(sent, answer)
        two.handshake("EXEC", "*-1")
        one.expect_silence()
        one.client_gone()


@both
def test_held_inside_a_transaction(protocol):
    """A queued command is held before it is queued, and all that stands behind it waits, EXEC too."""
    with Talk(LATE, protocol=protocol) as one, one.another() as two:
        one.client("MULTI", "SET k old", "INCR n", "EXEC")
        one.expect_upstream("MULTI")
        one.upstream("+OK")
        one.expect_client("+OK")
        two.client("SET k new")
        two.upstream("+OK")
        two.heard("upstream")
        two.heard("client")
        one.expect_upstream("SET k old", "INCR n", "EXEC")
        one.upstream("+QUEUED", "+QUEUED", "*[+OK :1]")
        one.expect_client("+QUEUED", "+QUEUED", "*[+OK :1]")
        one.expect_fired("reorder", applied="yes", told="late")


# -- a crowd


def test_a_crowd_goes_on_in_its_order():
    """`waiting: 2, order: reversed`: the last to come is applied first, and only then the other."""
    with Talk(CROWD) as one, one.another() as two:
        one.client("SET k 1")
        one.expect_silence()
        two.client("SET j 2")
        two.expect_upstream("SET j 2")
        one.expect_silence()
        two.upstream("+OK")
        two.expect_client("+OK")
        one.expect_upstream("SET k 1")
        one.upstream("+OK")
        one.expect_client("+OK")
        for talk in (one, two):
            talk.expect_fired("reorder", detail="let go reversed, once 2 were waiting")


def test_who_gave_up_is_no_longer_one_of_the_crowd():
    """One that went on after `max`, and is not answered yet, does not count as waiting."""
    with Talk(CROWD) as one, one.another() as two, one.another() as three:
        one.client("SET k 1")
        one.wait(2)
        one.expect_upstream("SET k 1")
        two.client("SET k 2")
        two.expect_silence()
        three.client("SET k 3")
        three.expect_upstream("SET k 3")
        two.expect_silence()
        three.upstream("+OK")
        three.expect_client("+OK")
        two.expect_upstream("SET k 2")


def test_one_that_is_answered_here_lets_the_next_one_go():
    """A held command that in the end never goes to Redis is not waited for."""
    rules = (
        CROWD
        + "\n- {fault: reply, match: {commands: SET}, when: {nth: 2}, at: before_forward, error: OOM}"
    )
    with Talk(rules) as one, one.another() as two:
        one.client("SET k 1")
        two.client("SET k 2")
        assert two.heard("client").startswith(b"-OOM")
        one.expect_upstream("SET k 1")
        two.expect_fired("reorder", applied="no", told="error")


def test_one_without_a_reply_lets_the_next_one_go():
    """Where no replies are wanted nobody knows when it was applied: the next one goes when it was sent."""
    with Talk(CROWD) as one, one.another() as two:
        one.client("SET k 1")
        two.client("CLIENT REPLY OFF")
        two.client("SET k 2")
        two.expect_upstream("CLIENT REPLY OFF", "SET k 2")
        one.expect_upstream("SET k 1")
        two.expect_fired("reorder", applied="unknown", told="nothing")


# -- ends


@both
@pytest.mark.parametrize("end", ["client_gone", "client_eof"])
def test_the_client_goes_while_its_command_is_held(protocol, end):
    """Its command is dropped and never reaches Redis, and the event says so; others are not held up."""
    with Talk(LATE, protocol=protocol) as one, one.another() as two:
        one.client("SET k old", "GET a")
        one.wait(0.5)
        getattr(one, end)()
        event = one.expect_fired("reorder", applied="no", told="nothing", outcome="fail")
        assert event.delay == 0.5
        assert event.detail == "dropped while it was held: client_gone"
        if end == "client_eof":
            one.expect_half_close()
        two.client("SET k new")
        two.expect_upstream("SET k new")
        two.upstream("+OK")
        two.expect_client("+OK")
        one.expect_upstream()


def test_the_upstream_goes_while_a_command_is_held():
    """The command is dropped, the client's connection ends, and the event says so."""
    with Talk(LATE) as talk:
        talk.client("SET k old")
        talk.upstream_gone()
        talk.expect_closed("close")
        talk.expect_fired(
            "reorder", applied="no", outcome="fail",
            detail="dropped while it was held: upstream_gone",
        )  # fmt: skip


def test_the_connection_is_cut_while_a_command_is_held():
    """Another client's fault ends the connection: the held command is dropped with it."""
    with Talk(LATE) as talk:
        talk.client("SET k old")
        talk.cut("reset")
        talk.expect_closed("reset")
        talk.expect_fired("reorder", applied="no", detail="dropped while it was held: cut")


def test_who_waits_in_a_crowd_does_not_wait_for_who_is_gone():
    """One of a crowd goes while it is its turn: the next one's turn comes at once."""
    with Talk(CROWD) as one, one.another() as two:
        one.client("SET k 1")
        two.client("SET k 2")
        two.expect_upstream("SET k 2")
        two.client_gone()
        one.expect_upstream("SET k 1")


@both
def test_another_profile_lets_it_go(protocol):
    """At a switch it goes on, and the event says that and what became of it; nothing is dropped."""
    with Talk(LATE, protocol=protocol) as talk:
        talk.client("SET k old", "GET a")
        talk.wait(0.5)
        talk.switch()
        talk.expect_upstream("SET k old", "GET a")
        talk.upstream("+OK", "$-1")
        talk.expect_client("+OK", "$-1")
        event = talk.expect_fired("reorder", applied="yes", told="late", generation=1)
        assert event.detail == "let go because another profile is in force"
        assert event.delay == 0.5


def test_the_upstream_stops_making_sense_while_a_command_is_held():
    """What was held goes out as it came."""
    with Talk(LATE) as talk:
        talk.client("SET k old")
        talk.upstream(b"garbage\r\n")
        assert talk.expect_raw("upstream")
        talk.expect_client(b"garbage\r\n")
        talk.expect_upstream("SET k old")


# -- with others


def test_a_delay_comes_before_a_barrier():
    """Latency before a barrier: the command is not counted as held before its delay is over."""
    rules = (
        "- {fault: latency, match: {commands: SET}, when: {nth: 1}, at: before_forward, delay: 1s}"
        + LATE
    )
    with Talk(rules) as one, one.another() as two:
        one.client("SET k old")
        two.client("SET k new")
        two.upstream("+OK")
        two.heard("upstream")
        two.heard("client")
        one.wait(1)
        one.expect_silence()
        two.client("SET k newer")
        two.upstream("+OK")
        two.heard("upstream")
        two.heard("client")
        one.expect_upstream("SET k old")


def test_a_final_decision_before_it_ends_the_chain():
    """A command that was answered already is not held."""
    rules = "- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}" + LATE
    with Talk(rules) as talk:
        talk.client("SET k old")
        assert talk.heard("client").startswith(b"-OOM")
        assert talk.skipped("reorder") == ["ended"]


# -- settings


@pytest.mark.parametrize(
    "settings",
    [
        "until: {command: [PING, SET]}",
        "match: {commands: [PING, SET]}, until: {command: '@write'}",
        "match: {commands: PING}, until: {command: PING, same: any}",
        "until: {command: JSON.SET}",
        "match: {commands: PING}, waiting: 2",
    ],
)
def test_what_may_open_it(settings):
    """As long as one of the commands may come to the same key, or any will do, it is no problem."""
    assert profile(f"- {{fault: reorder, {settings}}}").rules


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("max: 1s", "give exactly one of until and waiting"),
        ("until: {command: SET}, waiting: 2", "give exactly one of until and waiting"),
        ("waiting: 1", "waiting: expected how many are to wait (a whole number from 2), got 1"),
        ("until: {command: SET}, order: reversed", "order: order goes with waiting"),
        (
            "until: {same: key}",
            "until: 'command' is missing, expected {command: SET, same: key, applied: 1}",
        ),
    ],
)
def test_settings_that_contradict_each_other(problems, settings, message):
    """What opens it is said once, and nothing is said that has no meaning."""
    assert problems(f"- {{fault: reorder, {settings}}}") == [message]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("until: {command: [SET, STE]}",
         "until.command: unknown command STE"),
        ("until: {command: '@wirte'}",
         "until.command: no ACL category or command flag is called @wirte"),
        ("until: {command: '@handshake'}",
         "until.command: @handshake stands in match.commands only; name the commands"),
        ("until: {command: [PING, MULTI]}",
         "until.command: can never hold on the same key, none of these has one; on any key it is same: any"),
        ("match: {commands: PING}, until: {command: SET}",
         "until.command: can never hold on the same key, none of 'commands' has one; on any key it is same: any"),
    ],
)  # fmt: skip
def test_commands_that_there_are_not(problems, settings, message):
    """What would never open it is told."""
    assert problems(f"- {{fault: reorder, {settings}}}") == [message]
