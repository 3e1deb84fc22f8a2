"""`duplicate`: a write is applied again, and the client sees one reply."""

import pytest

from tests.conversation import Talk

TWICE = "- {fault: duplicate, match: {keys: k}}"
LATER = "- {fault: duplicate, match: {keys: k}, times: 3, gap: 1s}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_right_behind(protocol):
    """The copy follows at once, whatever the client sent behind; its reply is hidden."""
    with Talk(TWICE, protocol=protocol) as talk:
        talk.client("GET a", "RPUSH k x", "GET b")
        talk.expect_upstream("GET a", "RPUSH k x", "RPUSH k x", "GET b")
        talk.upstream('"A"', ":1", ":2", '"B"')
        talk.expect_client('"A"', ":1", '"B"')
        talk.expect_fired("duplicate", applied="yes", told="ok", detail="sent 2 times")


def test_so_many_times():
    """`times` counts the first one too."""
    with Talk("- {fault: duplicate, times: 4}") as talk:
        talk.client("INCR k")
        talk.expect_upstream(*["INCR k"] * 4)
        talk.upstream(":1", ":2", ":3", ":4")
        talk.expect_client(":1")


def test_a_read_is_left_alone():
    """Reading twice does nothing that anybody could see."""
    with Talk(TWICE) as talk:
        talk.client("GET k", "FOO k")
        talk.expect_upstream("GET k", "FOO k")
        talk.upstream("$-1", "-ERR unknown command")
        talk.expect_client("$-1", "-ERR unknown command")
        assert talk.skipped("duplicate") == ["not_applicable"]


@pytest.mark.parametrize(
    ("sent", "copies"),
    [("BLPOP k 0", 0), ("XREADGROUP GROUP g c BLOCK 0 STREAMS k >", 0),
     ("XREADGROUP GROUP g c STREAMS k >", 1)],
)  # fmt: skip
def test_what_would_wait_is_left_alone(sent, copies):
    """A copy of a blocking command would take what the client's next one is for."""
    with Talk(TWICE) as talk:
        talk.client(sent)
        talk.expect_upstream(*[sent] * (1 + copies))
        talk.upstream(*["*-1"] * (1 + copies))
        talk.expect_client("*-1")
        assert len(talk.skipped("duplicate")) == 1 - copies


def test_an_error_is_told_and_copied():
    """Where the first is refused, so will be the copy; the event says that it was not applied."""
    with Talk(TWICE) as talk:
        talk.client("RPUSH k x")
        talk.expect_upstream("RPUSH k x", "RPUSH k x")
        talk.upstream("-OOM no", "-OOM no")
        talk.expect_client("-OOM no")
        talk.expect_fired("duplicate", applied="no", told="error")


@both
def test_in_a_transaction(protocol):
    """The copy is queued behind it; EXEC's array has one element for both, and it is the first's."""
    with Talk(TWICE, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("RPUSH k x")
        talk.expect_upstream("RPUSH k x", "RPUSH k x")
        talk.upstream("+QUEUED", "+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*[:1 :2 "A"]')
        talk.expect_client('*[:1 "A"]')
        talk.expect_fired("duplicate", applied="yes", told="ok", detail="sent 2 times")


@both
def test_in_a_transaction_a_gap_means_nothing(protocol):
    """Copies with a gap are queued right behind too: after EXEC there would be no transaction."""
    with Talk(LATER, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("INCR k")
        talk.expect_upstream(*["INCR k"] * 3)
        talk.upstream("+QUEUED", "+QUEUED", "+QUEUED")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:1 :2 :3]")
        talk.expect_client("*[:1]")
        talk.expect_fired("duplicate", detail="sent 3 times")


def test_refused_in_a_transaction():
    """Where queueing is refused, so is the copy; the transaction is the server's to abort."""
    with Talk(TWICE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("RPUSH k x")
        talk.expect_upstream("RPUSH k x", "RPUSH k x")
        talk.upstream("-OOM no", "-OOM no")
        talk.expect_client("-OOM no")
        talk.handshake("EXEC", "-EXECABORT no")
        talk.expect_fired("duplicate", applied="no", told="error")


def test_a_transaction_that_is_discarded():
    """Neither was applied."""
    with Talk(TWICE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("RPUSH k x")
        talk.heard("upstream")
        talk.upstream("+QUEUED", "+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("DISCARD", "+OK")
        talk.expect_fired("duplicate", applied="no")


# -- with a gap


@both
def test_with_a_gap(protocol):
    """The copies come later, on the side connection, in the client's database; nobody waits for them."""
    with Talk(LATER, protocol=protocol) as talk:
        talk.handshake("SELECT 3", "+OK")
        talk.client("INCR k", "GET a")
        talk.expect_upstream("INCR k", "GET a")
        talk.wait(5)
        talk.upstream(":1", '"A"')
        talk.expect_client(":1", '"A"')
        talk.expect_nothing_fired()
        talk.wait(1)
        talk.expect_side("INCR k", db=3)
        talk.side(":2")
        talk.wait(1)
        talk.expect_side("INCR k", db=3)
        talk.expect_nothing_fired()
        talk.side(":3")
        talk.expect_fired(
            "duplicate", applied="yes", told="ok", outcome="ok", detail="sent 3 times, 1 s apart"
        )


def test_copies_that_are_refused():
    """What the server said of a copy is in the event."""
    with Talk("- {fault: duplicate, gap: 1s}") as talk:
        talk.handshake("RENAME a b", "+OK")
        talk.wait(1)
        talk.side("-ERR no such key")
        detail = "sent 2 times, 1 s apart; answered ERR no such key"
        talk.expect_fired("duplicate", detail=detail)


def test_not_repeated_if_it_was_not_applied():
    """A write that Redis refused is not done again later, when it might be done."""
    with Talk(LATER) as talk:
        talk.handshake("INCR k", "-OOM no")
        assert talk.skipped("duplicate") == ["refused"]
        assert talk.conversation.due is None


@pytest.mark.parametrize("works", [0, 1])
def test_the_side_connection_fails(works):
    """Where no copy was sent nothing has fired; where one was, it is told of that."""
    with Talk(LATER) as talk:
        talk.handshake("INCR k", ":1")
        talk.wait(1)
        talk.side(*[":2"] * works)
        talk.wait(1)
        talk.side()
        if works:
            talk.expect_fired("duplicate", detail="sent 2 times, 1 s apart")
        else:
            assert talk.skipped("duplicate") == ["side_connection"]


@pytest.mark.parametrize("end", ["client_gone", "upstream_gone", "cut"])
def test_the_connection_ends_before_the_copies(end):
    """They are sent at once, for who delivers twice does not know of it; the event says what is not known."""
    with Talk(LATER) as talk:
        talk.handshake("INCR k", ":1")
        talk.wait(1)
        talk.side(":2")
        getattr(talk, end)(*["reset"] if end == "cut" else [])
        if end != "client_gone":
            talk.expect_closed("close" if end == "upstream_gone" else "reset")
        talk.expect_side("INCR k")
        detail = "sent 3 times, within 1 s instead of 1 s apart; the connection ended before all were answered"
        talk.expect_fired("duplicate", detail=detail)


def test_the_connection_ends_before_it_was_applied():
    """No copy is sent of what nobody knows to be applied."""
    with Talk(LATER) as talk:
        talk.client("INCR k")
        talk.expect_upstream("INCR k")
        talk.upstream_gone()
        talk.expect_closed("close")
        assert talk.skipped("duplicate") == ["upstream_gone"]


def test_another_profile():
    """At a switch the copies still to come are sent at once."""
    with Talk(LATER) as talk:
        talk.handshake("INCR k", ":1")
        talk.wait(0.25)
        talk.switch()
        talk.side(":2")
        talk.side(":3")
        detail = "sent 3 times, within 0.25 s instead of 1 s apart"
        talk.expect_fired("duplicate", generation=1, detail=detail)


def test_another_profile_before_it_was_applied():
    """What the old profile would have repeated is not, once it is no longer in force."""
    with Talk(LATER) as talk:
        talk.client("INCR k")
        talk.expect_upstream("INCR k")
        talk.switch()
        talk.upstream(":1")
        talk.expect_client(":1")
        assert talk.skipped("duplicate") == ["switched"]


# -- where replies are odd


@pytest.mark.parametrize("settings", ["times: 2", "times: 2, gap: 1s"])
def test_replies_are_off(settings):
    """Where the client wants no replies the copy follows right behind, and nobody is told of it."""
    with Talk(f"- {{fault: duplicate, {settings}}}") as talk:
        talk.client("CLIENT REPLY OFF", "INCR k")
        talk.expect_upstream("CLIENT REPLY OFF", "INCR k", "INCR k")
        talk.handshake("CLIENT REPLY ON", "+OK")
        talk.handshake("GET k", '"2"')
        talk.expect_fired("duplicate", applied="unknown", told="nothing")


def test_the_reply_is_skipped():
    """CLIENT REPLY SKIP is for the first; the copy's reply comes, and is hidden."""
    with Talk(TWICE) as talk:
        talk.client("CLIENT REPLY SKIP", "INCR k", "GET k")
        talk.expect_upstream("CLIENT REPLY SKIP", "INCR k", "INCR k", "GET k")
        talk.upstream(":2", '"2"')
        talk.expect_client('"2"')


def test_asking_is_for_one_command():
    """A copy of what ASKING was for would be sent elsewhere: it is left alone."""
    with Talk(TWICE) as talk:
        talk.handshake("ASKING", "+OK")
        talk.handshake("INCR k", ":1")
        assert talk.skipped("duplicate") == ["not_applicable"]


# -- with others


def test_a_swallowed_write_is_not_repeated():
    """A final decision, before or after it in the profile, leaves nothing to repeat."""
    drop = "- {fault: drop_write, tell: error}"
    for rules in (f"{TWICE}\n{drop}", f"{drop}\n{TWICE}"):
        with Talk(rules) as talk:
            talk.client("INCR k")
            assert talk.heard("client").startswith(b"-ERR")
            assert talk.skipped("duplicate") == ["ended"]


def test_the_first_reply_is_the_one_that_is_cut_off():
    """A lost acknowledgement of a write that is applied twice."""
    rules = TWICE + "\n- {fault: disconnect, at: after_apply}"
    with Talk(rules) as talk:
        talk.client("INCR k")
        talk.expect_upstream("INCR k", "INCR k")
        talk.upstream(":1", ":2")
        talk.expect_closed("reset")
        talk.expect_fired("duplicate", applied="yes", told="reset", outcome="unknown")
        talk.expect_fired("disconnect", applied="yes")


def test_a_changed_command_is_repeated_as_it_goes_out():
    """What another rule made of the request is what is sent twice."""
    rules = "- {fault: expire_key, mode: {ttl_set: 3s}}\n" + TWICE
    with Talk(rules) as talk:
        talk.client("SETEX k 60 v")
        first = talk.heard("upstream")
        assert first.count(b"SETEX") == 2
        assert b"$2\r\n60\r\n" not in first
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK")


@pytest.mark.parametrize("times", [0, 1, 1001])
def test_settings(problems, times):
    """Once is no duplicate, and a thousand are enough."""
    assert len(problems(f"- {{fault: duplicate, times: {times}}}")) == 1
