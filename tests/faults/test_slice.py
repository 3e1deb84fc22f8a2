"""`slice`: a reply leaves in pieces, cut where it says; nothing is lost, changed or put out of order."""

import pytest

from tests.conversation import Talk, reply

EMOJI = "😀é😀"
SENT = b"$10\r\n" + EMOJI.encode() + b"\r\n"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def rule(settings, match="match: {commands: GET}"):
    return f"- {{fault: slice, {match}, {settings}}}"


def arrives(talk, *pieces, gap=0.1):
    """Check that these pieces arrive, the first at once and each of the others after the gap."""
    for number, piece in enumerate(pieces):
        if number:
            talk.wait(gap - 0.001)
            assert talk.heard("client") == b""
            talk.wait(0.001)
        assert talk.heard("client") == piece


@pytest.mark.parametrize(
    ("settings", "raw", "pieces"),
    [
        ("split: 1", b"+OK\r\n", [b"+", b"OK\r\n"]),
        ("split: -1", b"+OK\r\n", [b"+OK\r", b"\n"]),
        ("split: [3, 1, -1]", b"+OK\r\n", [b"+", b"OK", b"\r", b"\n"]),
        ("split: [1, -4]", b"+OK\r\n", [b"+", b"OK\r\n"]),  # one place, said twice
        ("split: [2, 99]", b"+OK\r\n", [b"+O", b"K\r\n"]),
        ("size: 2", b"+OK\r\n", [b"+O", b"K\r", b"\n"]),
        ("size: 4", b"+OK\r\n", [b"+OK\r", b"\n"]),
        ("split: before_crlf", b"$1\r\na\r\n", [b"$1\r", b"\na\r", b"\n"]),
        ("split: inside_header", b"*1\r\n$1\r\na\r\n", [b"*", b"1\r\n$", b"1\r\na\r\n"]),
        ("split: inside_multibyte", SENT, [SENT[:6], SENT[6:10], SENT[10:12], SENT[12:]]),
        ("split: inside_multibyte, most: 2", SENT, [SENT[:6], SENT[6:10], SENT[10:]]),
        ("split: inside_multibyte, most: 1", SENT, [SENT[:6], SENT[6:]]),
        ("split: before_crlf, most: 2", b"*3\r\n:1\r\n:2\r\n:3\r\n",
         [b"*3\r", b"\n:1\r\n:2\r", b"\n:3\r\n"]),
    ],
)  # fmt: skip
@both
def test_where_it_is_cut(protocol, settings, raw, pieces):
    """Each piece leaves by itself, a gap after the one before it; put together they are the reply."""
    assert b"".join(pieces) == raw
    with Talk(rule(settings), protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(raw)
        arrives(talk, *pieces)
        detail = "in pieces of " + " + ".join(str(len(piece)) for piece in pieces) + " bytes"
        talk.expect_fired("slice", applied="yes", told="ok", outcome="ok", detail=detail)
        assert talk.conversation.due is None


@pytest.mark.parametrize(
    ("settings", "raw"),
    [
        ("split: 5", "+OK"),
        ("split: -5", "+OK"),
        ("size: 5", "+OK"),
        ("split: inside_multibyte", '"abc"'),
        ("split: inside_header", ":5"),
    ],
)
def test_nothing_to_cut(settings, raw):
    """A reply in which there is no such place passes whole, and nothing has fired."""
    with Talk(rule(settings)) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(raw)
        talk.expect_client(raw)
        assert talk.skipped("slice") == ["not_applicable"]


def test_many_places():
    """A long reply is cut at as many places as that, evenly chosen, or the client would wait for hours."""
    text = "é".encode() * 1000
    raw = b"$2000\r\n" + text + b"\r\n"
    with Talk(rule("split: inside_multibyte")) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream(raw)
        arrives(talk, raw[:8], *(raw[at : at + 200] for at in range(8, 1808, 200)), raw[1808:])
        event = talk.expect_fired("slice")
        assert event.detail.endswith(" + … bytes")


def test_no_more_than_ten_thousand():
    """Nobody asks for a million pieces."""
    raw = b"$20000\r\n" + b"v" * 20000 + b"\r\n"
    with Talk(rule("size: 1, gap: 1ms")) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream(raw)
        assert len(talk.conversation._line.slots[0].pieces) == 10_000
        talk.switch()
        assert talk.heard("client") == raw


@both
def test_what_stands_around_it(protocol):
    """Replies ahead of it have left, those behind it wait for its last piece, and pushes do not get into it."""
    push = '>["invalidate" *["k"]]'
    with Talk(rule("split: 2, gap: 1s"), protocol=protocol) as talk:
        talk.client("PING", "GET a", "PING")
        talk.expect_upstream("PING", "GET a", "PING")
        talk.upstream("+PONG", "+OK", *([push] if protocol == 3 else []), "+PONG")
        talk.expect_client("+PONG", b"+O")
        if protocol == 3:
            talk.upstream(push)
        talk.wait(1)
        pushes = [push] if protocol == 3 else []
        talk.expect_client(b"K\r\n", *pushes, "+PONG", *pushes)


@both
def test_an_error_can_be_cut_too(protocol):
    """Whatever the reply is, its bytes are cut; the event says what the client was told."""
    with Talk(rule("split: 2"), protocol=protocol) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("-WRONGTYPE no")
        arrives(talk, b"-W", b"RONGTYPE no\r\n")
        talk.expect_fired("slice", applied="no", told="error")


@both
def test_in_a_transaction(protocol):
    """The reply of a queued command is cut where it stands in EXEC's array."""
    with Talk(rule("split: 3"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        for queued in ("INCR n", "GET a", "GET b"):
            talk.handshake(queued, "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*[:1 "A" "B"]')
        arrives(talk, b"*3\r\n:1\r\n$1\r", b"\nA\r\n$1\r", b"\nB\r\n")
        talk.expect_fired("slice", command="GET", keys=(b"a",), detail="in pieces of 3 + 4 bytes")
        talk.expect_fired("slice", command="GET", keys=(b"b",), detail="in pieces of 3 + 4 bytes")


def test_in_a_transaction_with_pushes_between():
    """Pushes that an old server puts between the elements stand ahead of an array that is cut."""
    array = b"*2\r\n:1\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\nA\r\n"
    push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"
    with Talk(rule("split: 3"), protocol=3) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("INCR n", "+QUEUED")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(array)
        arrives(talk, push + b"*2\r\n:1\r\n$1\r", b"\nA\r\n")


def test_exec_can_be_cut_itself():
    """EXEC's own rule counts bytes of the whole array, and both rules' cuts are made."""
    rules = rule("split: 3") + "\n- {fault: slice, name: array, match: {commands: EXEC}, split: 1}"
    with Talk(rules) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["A"]')
        arrives(talk, b"*", b"1\r\n$1\r", b"\nA\r\n")


@both
def test_a_push(protocol):
    """With `match: push` a message is cut, and the reply behind it waits for its last piece."""
    kind = ">" if protocol == 3 else "*"
    confirmed = f'{kind}["subscribe" "c" :1]'
    message = reply(f'{kind}["message" "c" "hi"]')
    pong = "+PONG" if protocol == 3 else '*["pong" ""]'
    with Talk(rule("split: [4, -2]", "match: {push: {kind: message}}"), protocol=protocol) as talk:
        talk.handshake("SUBSCRIBE c", confirmed)
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(message, pong)
        arrives(talk, message[:4], message[4:-2], message[-2:] + reply(pong))
        talk.expect_fired("slice", command="message", keys=(b"c",))


# -- with others


def test_two_cuts_add_up():
    """Two rules cut one reply at the places of both; where they agree their gaps add up."""
    rules = rule("split: [1, 3], gap: 100ms") + "\n" + rule("name: two, split: [3, 4], gap: 200ms")
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        arrives(talk, b"+", b"OK")
        arrives(talk, b"", b"\r", gap=0.3)
        arrives(talk, b"", b"\n", gap=0.2)
        talk.expect_fired("slice", detail="in pieces of 1 + 2 + 2 bytes")
        talk.expect_fired("two", detail="in pieces of 3 + 1 + 1 bytes")


def test_another_answer_is_cut_in_its_place():
    """A reply that a later rule replaces is not cut: what the client gets is."""
    rules = (
        rule("size: 2") + "\n- {fault: reply, match: {commands: GET}, at: after_apply, value: 5}"
    )
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream('"a long value"')
        arrives(talk, b":5", b"\r\n")
        talk.expect_fired("reply")
        talk.expect_fired("slice", detail="in pieces of 2 + 2 bytes")


def test_nothing_is_left_to_cut():
    """Where another rule's answer has no such place, the rule that cuts has not fired."""
    rules = (
        rule("split: 9") + "\n- {fault: reply, match: {commands: GET}, at: after_apply, value: 5}"
    )
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream('"a long value"')
        talk.expect_client(":5")
        talk.expect_fired("reply")
        assert talk.skipped("slice") == ["not_applicable"]


def test_a_final_decision_before_it_ends_the_chain():
    """What comes after a final decision in the profile is not asked."""
    rules = "- {fault: disconnect, match: {commands: GET}, at: after_apply}\n" + rule("split: 1")
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_closed("reset")
        assert talk.skipped("slice") == ["ended"]


def test_a_delay_and_a_slow_line_add_up():
    """The first piece leaves after the delay, each as slow as the line is, the gap between them."""
    rules = f"""
- {{fault: latency, match: {{commands: GET}}, at: after_apply, delay: 1s}}
{rule("split: 3, gap: 500ms")}
- {{fault: bandwidth, match: {{commands: GET}}, rate: 100B/s, direction: to_client}}
"""
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.wait(1)
        assert talk.heard("client") == b""
        talk.wait(0.02)
        assert talk.heard("client") == b"+O"
        talk.wait(0.01)
        assert talk.heard("client") == b"K"
        talk.wait(0.5)
        assert talk.heard("client") == b""
        talk.wait(0.02)
        assert talk.heard("client") == b"\r\n"


def test_cut_off_in_the_middle_of_the_pieces():
    """A connection that ends in the middle of a reply gets its share of it in pieces."""
    rules = (
        rule("size: 2") + "\n- {fault: disconnect, match: {commands: GET}, at: mid_reply, bytes: 3}"
    )
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        arrives(talk, b"+O", b"K")
        talk.expect_closed("reset")


# -- ends


@both
def test_another_profile_gives_the_rest_at_once(protocol):
    """At a switch what is still to come of a reply comes, and what waits behind it; so does a reply not begun."""
    with Talk(rule("size: 1"), protocol=protocol) as talk:
        talk.client("GET a", "GET b", "PING")
        talk.heard("upstream")
        talk.upstream("+OK", "+OK", "+PONG")
        talk.expect_client(b"+")
        talk.switch()
        talk.expect_client(b"OK\r\n", "+OK", "+PONG")


def test_the_client_goes_between_two_pieces():
    """Nothing more is given to it, and nothing waits any more."""
    with Talk(rule("size: 1")) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client(b"+")
        talk.client_gone()
        assert talk.conversation.due is None


def test_the_upstream_goes_between_two_pieces():
    """The client gets the rest, each piece at its time, then the end."""
    with Talk(rule("split: 1")) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client(b"+")
        talk.upstream_eof()
        talk.wait(0.1)
        talk.expect_client(b"OK\r\n")
        talk.expect_closed("close")


def test_the_upstream_stops_making_sense_between_two_pieces():
    """The client gets the rest, then what makes no sense."""
    with Talk(rule("split: 1")) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client(b"+")
        talk.upstream(b"garbage\r\n")
        assert talk.expect_raw("upstream")
        talk.expect_client(b"OK\r\ngarbage\r\n")


def test_too_large_to_be_held():
    """A reply larger than may be held passes as it comes."""
    with Talk(rule("split: 1"), max_buffer=100) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream(b"$200\r\n" + b"v" * 150)
        assert len(talk.heard("client")) == 156
        talk.upstream(b"v" * 50 + b"\r\n")
        assert len(talk.heard("client")) == 52
        assert talk.skipped("slice") == ["too_large"]


# -- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("gap: 1s", "give exactly one of split and size"),
        ("split: 1, size: 1", "give exactly one of split and size"),
        ("size: 1, gap: 0s", "gap: expected a duration such as 800ms or 1.5s, longer than 0, got '0s'"),
        ("split: []",
         "split: expected an offset, a list of offsets or a spot, got an empty list"),
        ("split: 0",
         "split: 0 cuts nothing off; offsets count bytes from 1, or from the end from -1"),
        ("split: [1, 0]",
         "split: 0 cuts nothing off; offsets count bytes from 1, or from the end from -1"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing(problems, settings, message):
    """A cut that cuts nothing is told where it is written."""
    assert problems(f"- {{fault: slice, {settings}}}") == [message]


@pytest.mark.parametrize("split", ["inside_emoji", "[1, x]", "1.5", "true"])
def test_splits_that_are_none(problems, split):
    """What is neither an offset nor a spot is told."""
    assert len(problems(f"- {{fault: slice, split: {split}}}")) == 1
