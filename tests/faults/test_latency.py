"""`latency`: a request or a reply waits; what stands behind it waits too; nothing is lost or changes places."""

import pytest

from tests.conversation import Talk

BEFORE = "- {fault: latency, match: {commands: GET}, at: before_forward, delay: 300ms}"
AFTER = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 300ms}"
INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_a_request_waits(protocol):
    """What stands before it is not held up; what stands behind it waits, and all go out in order."""
    with Talk(BEFORE, protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1")
        talk.client("SET a 3")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.wait(0.299)
        talk.expect_silence()
        talk.wait(0.001)
        talk.expect_upstream("GET a", "SET a 2", "SET a 3")
        talk.expect_nothing_fired()
        talk.upstream('"1"', "+OK", "+OK")
        talk.expect_client('"1"', "+OK", "+OK")
        talk.expect_fired(
            "latency",
            position="before_forward",
            applied="yes",
            told="late",
            outcome="ok",
            delay=0.3,
        )


@both
def test_a_reply_waits(protocol):
    """The command is applied at once; its reply, and all behind it, come late."""
    with Talk(AFTER, protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1", "GET a", "SET a 2")
        talk.upstream("+OK", '"1"', "+OK")
        talk.expect_client("+OK")
        talk.wait(0.299)
        talk.expect_client()
        talk.expect_nothing_fired()
        talk.wait(0.001)
        talk.expect_client('"1"', "+OK")
        talk.expect_fired("latency", position="after_apply", applied="yes", told="late", delay=0.3)


def test_the_delay_of_a_reply_begins_when_it_is_whole():
    """A reply that comes in pieces waits from its last one, and nothing of it is given before."""
    with Talk(AFTER) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(b"$5\r\nhel")
        talk.wait(1)
        talk.expect_client()
        talk.upstream(b"lo\r\n")
        talk.wait(0.2)
        talk.expect_client()
        talk.wait(0.1)
        talk.expect_client('"hello"')


def test_two_delayed_replies_wait_side_by_side():
    """Each waits from when it came: replies that came together are late together."""
    with Talk(AFTER) as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"A"')
        talk.wait(0.1)
        talk.upstream('"B"')
        talk.wait(0.2)
        talk.expect_client('"A"')
        talk.wait(0.1)
        talk.expect_client('"B"')


def test_an_error_waits_too():
    """An error was not applied, and comes late."""
    with Talk(AFTER) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream("-WRONGTYPE Operation")
        talk.wait(0.3)
        talk.expect_client("-WRONGTYPE Operation")
        talk.expect_fired("latency", applied="no", told="late")


@both
def test_in_a_transaction(protocol):
    """A queued command's +QUEUED is not its reply: before_forward delays the command, after_apply delays EXEC's."""
    rules = BEFORE + "\n" + AFTER
    with Talk(rules, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a", "EXEC")
        talk.wait(0.3)
        talk.expect_upstream("GET a", "EXEC")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.upstream('*["A"]')
        talk.expect_client()
        talk.wait(0.3)
        talk.expect_client('*["A"]')
        talk.expect_fired("latency", position="before_forward", applied="yes", told="late")
        talk.expect_fired("latency-2", position="after_apply", applied="yes", told="late")


def test_a_transaction_that_is_not_carried_out():
    """WATCH failed: nothing was applied, so nothing was delayed after it."""
    with Talk(BEFORE + "\n" + AFTER) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a", "EXEC")
        talk.wait(0.3)
        talk.expect_upstream("GET a", "EXEC")
        talk.upstream("+QUEUED", "*-1")
        talk.expect_client("+QUEUED", "*-1")
        talk.expect_fired("latency", applied="no", told="error")
        assert talk.skipped("latency-2") == ["aborted"]


def test_with_no_replies():
    """With CLIENT REPLY OFF the request waits; that it was applied nobody can know."""
    with Talk(BEFORE + "\n" + AFTER) as talk:
        talk.client("CLIENT REPLY OFF", "GET a")
        talk.expect_upstream("CLIENT REPLY OFF")
        talk.wait(0.3)
        talk.expect_upstream("GET a")
        talk.expect_fired("latency", applied="unknown", told="nothing")
        assert talk.skipped("latency-2") == ["no_reply"]


def test_blocked():
    """A blocking command's reply is late by the delay, whatever time it waited by itself."""
    rule = "- {fault: latency, match: {commands: BLPOP}, at: after_apply, delay: 300ms}"
    with Talk(rule) as talk:
        talk.client("BLPOP q 0", "GET a")
        talk.expect_upstream("BLPOP q 0", "GET a")
        talk.wait(10)
        talk.upstream('*["q" "job"]', '"A"')
        talk.wait(0.3)
        talk.expect_client('*["q" "job"]', '"A"')


def test_pushes_while_a_reply_is_late():
    """Pushes behind a late reply wait behind it; pushes before it have gone."""
    with Talk(AFTER, protocol=3) as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream(INVALIDATED, '"A"', INVALIDATED)
        talk.expect_client(INVALIDATED)
        talk.upstream(INVALIDATED)
        talk.wait(0.3)
        talk.expect_client('"A"', INVALIDATED, INVALIDATED)
        talk.upstream('"B"', INVALIDATED)
        talk.wait(0.3)
        talk.expect_client('"B"', INVALIDATED)


@both
def test_several_confirmations(protocol):
    """SUBSCRIBE a b is answered by two frames: both are late, a message between them keeps behind the first."""
    kind = ">" if protocol == 3 else "*"
    rule = "- {fault: latency, match: {commands: SUBSCRIBE}, at: after_apply, delay: 300ms}"
    first, second = f'{kind}["subscribe" "a" :1]', f'{kind}["subscribe" "b" :2]'
    with Talk(rule, protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b")
        talk.expect_upstream("SUBSCRIBE a b")
        talk.upstream(first)
        talk.wait(1)
        talk.expect_client()
        talk.upstream(f'{kind}["message" "a" "x"]', second)
        talk.wait(0.3)
        talk.expect_client(first, second, f'{kind}["message" "a" "x"]')


def test_delays_add_up():
    """Delays of several rules sum, before and after."""
    rules = f"{BEFORE}\n{BEFORE}\n{AFTER}\n{AFTER}"
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.wait(0.599)
        talk.expect_upstream()
        talk.wait(0.001)
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.wait(0.599)
        talk.expect_client()
        talk.wait(0.001)
        talk.expect_client('"A"')
        assert [event.fault for event in talk.events()] == [
            "latency", "latency-2", "latency-3", "latency-4",
        ]  # fmt: skip


def test_drawn():
    """A delay is drawn anew for each match, and the same seed draws the same."""
    rule = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: {uniform: [100ms, 200ms]}}"

    def drawn(seed: int) -> list[float | None]:
        with Talk(rule, seed=seed) as talk:
            for _ in range(3):
                talk.client("GET a")
                talk.expect_upstream("GET a")
                talk.upstream('"A"')
                talk.wait(0.2)
                talk.expect_client('"A"')
            return [event.delay for event in talk.events()]

    delays = drawn(7)
    assert len(set(delays)) == 3
    assert all(0.1 <= delay <= 0.2 for delay in delays)
    assert drawn(7) == delays
    assert drawn(8) != delays


@pytest.mark.parametrize("rule", [BEFORE, AFTER])
def test_another_profile(rule):
    """Calm lets go at once what waits."""
    with Talk(rule) as talk:
        talk.client("GET a", "GET b")
        if "after" in rule:
            talk.expect_upstream("GET a", "GET b")
            talk.upstream('"A"', '"B"')
            talk.switch()
            talk.expect_client('"A"', '"B"')
        else:
            talk.switch()
            talk.expect_upstream("GET a", "GET b")
            talk.upstream('"A"', '"B"')
            talk.expect_client('"A"', '"B"')
            assert len(talk.events()) == 1  # the second was not matched before the switch


def test_another_profile_before_the_reply():
    """A rule that waits for the reply when its profile ends does not act on it."""
    with Talk(AFTER) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.switch("- {fault: latency, match: {commands: GET}, at: after_apply, delay: 100ms}")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        assert talk.skipped("latency") == ["switched"]


@pytest.mark.parametrize("end", ["client_gone", "upstream_gone"])
def test_an_end_while_a_request_waits(end):
    """A request that was held when either side went never was applied."""
    with Talk(BEFORE) as talk:
        talk.client("GET a", "GET b")
        getattr(talk, end)()
        if end == "upstream_gone":
            talk.expect_closed("close")
        talk.expect_fired("latency", applied="no", told="nothing")


def test_the_upstream_goes_while_a_reply_waits():
    """What was received is still delivered, late, and then the end."""
    with Talk(AFTER) as talk:
        talk.client("GET a", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"A"')
        talk.upstream_gone()
        talk.expect_silence()
        talk.client("GET c")
        talk.expect_silence()
        talk.wait(0.3)
        talk.expect_client('"A"')
        talk.expect_closed("close")
        assert talk.matched("latency") == 2
        assert talk.skipped("latency") == ["upstream_gone"]


def test_a_client_half_closes_while_its_request_waits():
    """Most clients that say they have nothing more to say are gone: what a fault holds up is dropped, with all behind it."""
    with Talk(BEFORE) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1")
        talk.client_eof()
        talk.expect_half_close()
        talk.expect_fired("latency", applied="no")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.wait(1)
        talk.expect_upstream()


def test_too_large_to_be_held():
    """A reply larger than may be held passes, and the rule says why it did not act."""
    with Talk(AFTER, max_buffer=1000) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(b"$2000\r\n" + b"x" * 500)
        talk.expect_client()
        talk.upstream(b"x" * 1000)
        talk.expect_client(b"$2000\r\n" + b"x" * 1500)
        talk.upstream(b"x" * 500 + b"\r\n")
        talk.expect_client(b"x" * 500 + b"\r\n")
        assert talk.skipped("latency") == ["too_large"]


def test_a_request_too_large_to_be_held():
    """A request larger than may be held passes as it comes, and the rule says why it did not act."""
    rule = "- {fault: latency, match: {commands: SET}, at: before_forward, delay: 300ms}"
    with Talk(rule, max_buffer=1000) as talk:
        talk.client(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2000\r\n" + b"x" * 500)
        talk.expect_upstream(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2000\r\n" + b"x" * 500)
        talk.client(b"x" * 1500 + b"\r\n")
        talk.expect_upstream(b"x" * 1500 + b"\r\n")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert talk.skipped("latency") == ["too_large"]
