"""How replies leave: in the client's order, each at its time, as much of each as was decided."""

import pytest

from tests.conversation import Talk, reply

RUN_LAST = "- {fault: run, match: {commands: SET}, at: after_reply, commands: [[INCR, n]]}"
LATE_GET = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


@both
def test_each_at_its_time(protocol):
    """A reply leaves when its time has come and all before it have left, never earlier."""
    rules = """
- {fault: latency, match: {commands: GET, keys: slow}, at: after_apply, delay: 3s}
- {fault: latency, match: {commands: GET, keys: quick}, at: after_apply, delay: 1s}
"""
    with Talk(rules, protocol=protocol) as talk:
        talk.client("GET quick", "GET slow", "GET quick", "PING")
        talk.heard("upstream")
        talk.upstream('"1"', '"2"', '"3"', "+PONG")
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('"1"')
        talk.wait(1.9)
        talk.expect_client()
        talk.wait(0.1)
        talk.expect_client('"2"', '"3"', "+PONG")


def test_it_wants_to_be_woken_for_the_first_only():
    """The next deadline is that of the reply whose turn it is."""
    with Talk(LATE_GET) as talk:
        talk.client("GET a", "GET b")
        talk.heard("upstream")
        assert talk.conversation.due is None
        talk.upstream('"A"')
        talk.wait(0.5)
        talk.upstream('"B"')
        assert talk.conversation.due == 101.0
        talk.wait(0.5)
        talk.expect_client('"A"')
        assert talk.conversation.due == 101.5
        talk.wait(0.5)
        talk.expect_client('"B"')
        assert talk.conversation.due is None


def test_what_was_to_run_after_a_reply_that_has_not_left():
    """Commands that were to run after a reply do not run if the reply never leaves, or its profile ends."""
    for end in ("switch", "client_gone"):
        with Talk(LATE_GET + "\n" + RUN_LAST) as talk:
            talk.client("GET a", "SET a 1")
            talk.heard("upstream")
            talk.upstream('"A"', "+OK")
            getattr(talk, end)()
            talk.heard("client")
            assert talk.skipped("run") == ["switched" if end == "switch" else "client_gone"]


@both
@pytest.mark.parametrize(
    ("at", "count", "cuts", "pieces"),
    [
        ("after_reply", "", "[3, -3]", [b"$5\r", b"\nhell", b"o\r\n"]),
        ("mid_reply", ", bytes: 6", "[3, -3]", [b"$5\r", b"\nhe"]),
        ("mid_reply", ", bytes: 2", "[3, -3]", [b"$5"]),
        ("mid_reply", ", bytes: 3", "[3, -3]", [b"$5\r"]),
        ("after_apply", "", "[3, -3]", []),
    ],
)
def test_in_pieces_up_to_a_cut(protocol, at, count, cuts, pieces):
    """A reply that is sliced and cut leaves in its pieces, as far as the cut lets it."""
    rules = f"""
- {{fault: slice, match: {{commands: GET}}, split: {cuts}, gap: 1s}}
- {{fault: disconnect, match: {{commands: GET}}, at: {at}{count}}}
"""
    with Talk(rules, protocol=protocol) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream('"hello"')
        for number, piece in enumerate(pieces):
            if number:
                assert all(event.fault == "slice" for event in talk.events())
                talk.wait(1)
            talk.expect_client(piece)
        talk.expect_closed("reset")


def test_the_upstream_goes_while_a_reply_leaves_in_pieces():
    """All that was received is still given, at its times, and then the end."""
    rule = "- {fault: slice, match: {commands: GET}, split: [3, -3], gap: 1s}"
    with Talk(rule) as talk:
        talk.client("GET a", "GET b")
        talk.heard("upstream")
        talk.upstream('"hello"')
        talk.upstream_gone()
        talk.expect_client(b"$5\r")
        talk.wait(2)
        talk.expect_client(b"\nhello\r\n")
        talk.expect_closed("close")
        assert talk.skipped("slice") == ["upstream_gone"]


def test_the_upstream_stops_making_sense_while_replies_wait():
    """All that is held is given at once, in order, behind it what made no sense; what was decided is let go."""
    rules = (
        LATE_GET
        + """
- {fault: slice, match: {commands: SET}, split: [1, 3], gap: 1s}
- {fault: disconnect, match: {commands: TYPE}, at: after_reply}
"""
        + RUN_LAST
    )
    with Talk(rules) as talk:
        talk.client("SET a 1", "GET a", "TYPE a", "SET b 1")
        talk.heard("upstream")
        talk.upstream("+OK", '"A"', "+string")
        talk.expect_client(b"+")
        talk.upstream(b"?\r\n")
        talk.expect_client(b"OK\r\n", '"A"', "+string", b"?\r\n")
        talk.expect_raw("upstream")
        assert talk.skipped("disconnect") == ["raw"]
        assert talk.skipped("slice") == ["raw"]
        assert talk.skipped("run") == ["raw", "raw"]


@pytest.mark.parametrize("end", ["switch", "raw"])
def test_a_cut_that_is_let_go_while_its_reply_is_on_its_way(end):
    """A reply of which only a part was to be given, in pieces, is given whole once nothing is to be cut any more."""
    rules = """
- {fault: slice, match: {commands: GET}, size: 2, gap: 1s}
- {fault: disconnect, match: {commands: GET}, at: mid_reply, bytes: 6}
"""
    with Talk(rules) as talk:
        talk.client("GET a", "PING")
        talk.heard("upstream")
        talk.upstream('"hello"')
        talk.expect_client(b"$5")
        if end == "switch":
            talk.switch()
            talk.expect_client(b"\r\nhello\r\n")
        else:
            talk.upstream(b"?\r\n")
            talk.expect_raw("upstream")
            talk.expect_client(b"\r\nhello\r\n?\r\n")
        assert talk.skipped("disconnect") == ["switched" if end == "switch" else "raw"]


@both
def test_a_message_behind_a_reply_in_pieces(protocol):
    """What came in the middle of a reply that leaves in pieces comes behind the last of them."""
    kind = ">" if protocol == 3 else "*"
    first, second = f'{kind}["subscribe" "a" :1]', f'{kind}["subscribe" "b" :2]'
    message = f'{kind}["message" "a" "x"]'
    rule = "- {fault: slice, match: {commands: SUBSCRIBE}, split: [-1], gap: 1s}"
    with Talk(rule, protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b")
        talk.heard("upstream")
        talk.upstream(first, message, second)
        talk.expect_client(first, reply(second)[:-1])
        talk.wait(1)
        talk.expect_client(b"\n", message)
