"""What stands around an exchange: how it is written, and what a conversation finds there."""

import pytest

from chaosproxy.core.circumstances import (
    AFTER,
    BATCH,
    CONNECTION,
    PUSH,
    AfterTest,
    BatchTest,
    ConnectionTest,
    PushTest,
)
from chaosproxy.core.setting import Invalid
from tests.conversation import Talk


@pytest.mark.parametrize(
    ("kind", "value", "parsed"),
    [
        (BATCH, {"index": 2}, BatchTest(2)),
        (BATCH, {"index": "last"}, BatchTest(-1)),
        (CONNECTION, {"nth": 2}, ConnectionTest(nth=2)),
        (CONNECTION, {"listener": "node-1"}, ConnectionTest(listener="node-1")),
        (CONNECTION, {"opened_before": "x", "state": "blocked"},
         ConnectionTest(opened_before="x", state="blocked")),
        (AFTER, {"command": "del"}, AfterTest(("DEL",))),
        (AFTER, {"command": ["@write"], "same": "connection"},
         AfterTest(("@write",), "connection")),
        (PUSH, {"kind": "message"}, PushTest(("message",))),
        (PUSH, {"kind": ["message", "pmessage"], "channel": "c*"},
         PushTest(("message", "pmessage"), (b"c*",))),
    ],
)  # fmt: skip
def test_as_written(kind, value, parsed):
    """Each is written as a small mapping, and names are read as those of commands are."""
    assert kind.parse(value) == parsed


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (BATCH, {"index": 0}, "expected a place in the batch (a whole number from 1) or last, got 0"),
        (BATCH, {"index": "first"},
         "expected a place in the batch (a whole number from 1) or last, got 'first'"),
        (BATCH, {}, "expected {index: 2} or {index: last}, got nothing"),
        (CONNECTION, {"listener": "127.0.0.1:7000"},
         "expected a name of letters, digits, - and _ (at most 64), got '127.0.0.1:7000'"),
        (CONNECTION, {"nth": 0}, "expected a connection's number (a whole number from 1), got 0"),
        (CONNECTION, {"state": "idle"},
         "expected transaction, watching, subscribed or blocked, got 'idle'"),
        (AFTER, {"same": "key"}, "'command' is missing, expected {command: DEL, same: key}"),
        (PUSH, {"kind": "messages"}, "expected message, pmessage"),
        (PUSH, {"kind": []}, "expected at least one kind, got an empty list"),
    ],
)  # fmt: skip
def test_what_is_none(kind, value, message):
    """What cannot be meant is told."""
    with pytest.raises(Invalid) as raised:
        kind.parse(value)
    assert raised.value.message.startswith(message)


# -- the place in a batch


def batch(index, more=""):
    """A rule that answers what stands at a place."""
    return f"- {{fault: reply, match: {{batch: {{index: {index}}}}}, at: before_forward, value: x{more}}}"


@pytest.mark.parametrize(("index", "place"), [(1, 0), (2, 1), (3, 2), (4, None), ("last", 2)])
def test_the_place_in_a_pipeline(index, place):
    """What comes in one piece is a batch, counted from one; the last is the one behind which nothing is."""
    with Talk(batch(index)) as talk:
        commands = ["GET a", "GET b", "GET c"]
        talk.client(*commands)
        here = [command for at, command in enumerate(commands) if at != place]
        talk.expect_upstream(*here)
        talk.upstream(*['"up"'] * len(here))
        talk.expect_client(*['"x"' if at == place else '"up"' for at in range(3)])


def test_what_was_answered_is_a_batch_of_its_own():
    """A command that comes when all before it are answered is the first again, and the last."""
    with Talk(batch(2) + "\n" + batch("last", ", name: last")) as talk:
        for _ in range(3):
            talk.client("GET a")
            talk.expect_client('"x"')
        assert talk.skipped("reply") == []
        assert talk.matched("reply") == 0
        assert talk.matched("last") == 3


def test_what_comes_before_the_answer_is_of_the_batch():
    """A pipeline need not come in one piece: as long as something is unanswered it goes on."""
    with Talk(batch(3)) as talk:
        talk.client("GET a")
        talk.client("GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.upstream('"a"')
        talk.expect_client('"a"')
        talk.client("GET c")
        talk.expect_upstream()
        talk.upstream('"b"')
        talk.expect_client('"b"', '"x"')


def test_half_a_command_is_not_nothing():
    """Where the next command has begun to arrive this one is not the last, and the next is of this batch."""
    with Talk(batch("last")) as talk:
        talk.client(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGE")
        talk.expect_upstream("GET a")
        talk.upstream('"a"')
        talk.expect_client('"a"')
        talk.client(b"T\r\n$1\r\nb\r\n")
        talk.expect_client('"x"')
    with Talk(batch(2)) as talk:
        talk.client(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGE")
        talk.expect_upstream("GET a")
        talk.upstream('"a"')
        talk.expect_client('"a"')
        talk.client(b"T\r\n$1\r\nb\r\n")
        talk.expect_client('"x"')


def test_another_fault_does_not_move_places():
    """What another rule answers at once, holds or repeats is a place all the same."""
    others = """
- {fault: reply, name: first, match: {batch: {index: 1}}, at: before_forward, value: y}
- {fault: latency, match: {keys: b}, at: before_forward, delay: 1s}
- {fault: duplicate, match: {keys: c}}
"""
    with Talk(others + batch(4, ", name: fourth")) as talk:
        talk.client("GET a", "GET b", "INCR c", "GET d")
        talk.expect_client('"y"')
        talk.expect_upstream()
        talk.wait(1)
        talk.expect_upstream("GET b", "INCR c", "INCR c")
        talk.upstream('"b"', ":1")
        talk.expect_client('"b"', ":1", '"x"')
        # The copy's reply is still to come; the client waits for nothing.
        talk.client("GET a")
        talk.expect_client('"y"')
        talk.upstream(":2")


def test_a_push_is_no_place():
    """A message that is held up does not make the next command a part of a batch."""
    rules = batch(1) + "\n- {fault: push, do: delay, delay: 1s}"
    with Talk(rules, protocol=3) as talk:
        talk.upstream('>["message" "c" "hi"]')
        talk.client("GET a")
        talk.wait(1)
        talk.expect_client('>["message" "c" "hi"]', '"x"')


def test_plain_commands_have_places_too():
    """Commands that no rule speaks of are counted."""
    rule = (
        "- {fault: reply, match: {commands: GET, batch: {index: 3}}, at: before_forward, value: x}"
    )
    with Talk(rule) as talk:
        talk.client("PING", "PING", "GET a")
        talk.expect_upstream("PING", "PING")
        talk.upstream("+PONG", "+PONG")
        talk.expect_client("+PONG", "+PONG", '"x"')


@pytest.mark.parametrize(
    ("behind", "last"),
    [
        (b"", True),
        (b"*1\r\n$4\r\nEXEC\r\n", True),
        (b"*1\r\n$4\r\nEX", False),
        (b"*2\r\n$3\r\nGET\r\n$1\r\nb\r\n", False),
        (b"*2\r\n$3\r\nGET\r\n$1", False),
    ],
)
def test_the_last_of_a_transaction(behind, last):
    """The last command of a transaction is the one before EXEC, or the one behind which nothing is here yet."""
    rule = "- {fault: reply, match: {commands: GET, batch: {index: last}}, at: before_forward, value: x}"
    with Talk(rule) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n" + behind)
        if last:
            talk.expect_client("+QUEUED")
        else:
            talk.expect_upstream("GET a")
        talk.heard("upstream")


# -- the command before


def test_before_means_since_the_profile_came_into_force():
    """What came before a switch is not looked back upon."""
    rule = "- {fault: reply, match: {after: {command: SELECT, same: connection}}, at: before_forward, value: x}"
    with Talk(rule) as talk:
        talk.handshake("SELECT 1", "+OK")
        talk.switch(rule)
        talk.handshake("GET a", '"a"')
        talk.handshake("SELECT 2", "+OK")
        talk.client("GET a")
        talk.expect_client('"x"')


def test_history_detail():
    """A refused command, and one that a fault answered, is the command before all the same."""
    rules = """
- {fault: reply, name: refused, match: {commands: DEL}, at: before_forward, error: OOM}
- {fault: reply, name: after, match: {commands: LPUSH, after: {command: DEL}}, at: before_forward, value: x}
"""
    with Talk(rules) as talk, talk.another() as other:
        talk.client("DEL k")
        assert talk.heard("client").startswith(b"-OOM")
        other.client("LPUSH k v")
        other.expect_client('"x"')


# -- states


@pytest.mark.parametrize(
    ("state", "before"),
    [
        ("transaction", [("MULTI", "+OK")]),
        ("watching", [("WATCH k", "+OK")]),
        ("subscribed", [("SUBSCRIBE c", '>["subscribe" "c" :1]')]),
    ],
)
def test_states(state, before):
    """What a connection is in is known when its command comes."""
    rule = f"- {{fault: reply, match: {{commands: ECHO, connection: {{state: {state}}}}}, at: before_forward, error: no}}"
    with Talk(rule, protocol=3) as talk:
        talk.handshake("ECHO a", '"a"')
        for sent, answer in before:
            talk.handshake(sent, answer)
        talk.client("ECHO a")
        talk.expect_client("-ERR no")
        talk.heard("upstream")
        if state == "transaction":
            talk.upstream("-ERR unknown command")


def test_blocked():
    """A connection is blocked as long as a blocking command on it is unanswered: others can be cut for it."""
    rule = """
- {fault: disconnect, match: {commands: DEL, connection: {nth: 2}}, at: after_reply, who: all}
- {fault: reply, name: behind, match: {commands: GET, connection: {state: blocked}}, at: before_forward, value: x}
"""
    with Talk(rule) as talk:
        talk.handshake("GET a", '"a"')
        talk.client("BLPOP q 0", "GET a")
        talk.expect_upstream("BLPOP q 0")
        talk.upstream('*["q" "v"]')
        talk.expect_client('*["q" "v"]', '"x"')
        talk.handshake("GET a", '"a"')


@pytest.mark.parametrize(("state", "cut"), [("blocked", True), ("transaction", False)])
def test_matching_connections_are_cut_by_their_state(state, cut):
    """`who: matching` with a state ends the connections that are in it now."""
    rule = f"- {{fault: disconnect, match: {{commands: BLPOP, connection: {{state: {state}}}}}, at: after_reply, who: matching}}"
    with Talk(rule) as talk:
        assert not talk.conversation.matches_client("disconnect")
        talk.client("BLPOP q 0")
        talk.expect_upstream("BLPOP q 0")
        assert talk.conversation.matches_client("disconnect") is cut
        assert not talk.conversation.matches_client("nobody")
