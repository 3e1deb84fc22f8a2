"""Frames nobody asked for: rules see them as commands, and they keep their place whatever happens to them."""

import pytest

from chaosproxy.core.pushes import as_command
from tests.conversation import GATE, PROVEN, Talk, reply

DELAYED = """
- {fault: push, do: delay, delay: 1s, match: {push: {kind: message, channel: b}}}
"""


def message(channel: str) -> str:
    return f'>["message" "{channel}" "text"]'


@pytest.mark.parametrize(
    ("raw", "name", "keys"),
    [
        ('>["message" "news" "text"]', "message", (b"news",)),
        ('*["pmessage" "n*" "news" "text"]', "pmessage", (b"news",)),
        ('>["invalidate" *["a" "b"]]', "invalidate", (b"a", b"b")),
        (">[+invalidate _]", "invalidate", ()),
        ('>["tracking-redir-broken" :5]', "tracking-redir-broken", ()),
        ('>["alone"]', "alone", ()),
        (">[]", "", ()),
        (">[:1 +x]", "", (b"x",)),
        ('>["message" :x]', "", ()),
    ],
)
def test_a_push_as_a_command(raw, name, keys):
    """Its kind is the command's name, its channel (or the keys it is about) are the keys."""
    command = as_command(reply(raw))
    assert (command.name, command.keys) == (name, keys)


def test_pushes_keep_their_order_around_one_that_is_held():
    """A push that is delayed holds up those behind it, and never those before it."""
    with Talk(DELAYED, protocol=3) as talk:
        talk.client("GET k")
        talk.expect_upstream("GET k")
        talk.upstream(message("a"), message("b"), message("c"), '"v"')
        talk.expect_client(message("a"))
        talk.wait(1)
        talk.expect_client(message("b"), message("c"), '"v"')
        talk.expect_fired("push", command="message", keys=(b"b",), delay=1.0, told="late")


def test_pushes_keep_their_order_while_a_reply_is_delayed():
    """Pushes ahead of a reply that has no turn yet stay in their order, held or not."""
    rules = DELAYED + "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
    with Talk(rules, protocol=3) as talk:
        talk.client("GET k", "PING")
        talk.expect_upstream("GET k", "PING")
        talk.upstream('"v"', message("a"), message("b"), message("c"), "+PONG")
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('"v"', message("a"), message("b"), message("c"), "+PONG")


@pytest.mark.parametrize("lost", [False, True])
def test_pushes_in_an_array_of_ours(lost):
    """What Redis 6.2 says to the client in the middle of an EXEC of ours reaches it, ahead of the reply, and meets the rules."""
    rules = "- {fault: drop_write, match: {commands: SET}, tell: ok}\n"
    rules += "- {fault: push, do: drop, match: {push: {kind: invalidate}}}\n" * lost
    invalid = '>["invalidate" *["k"]]'
    with Talk(rules, protocol=3) as talk:
        talk.client("SET k v")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        # Its header does not count them.
        array = b"*5\r\n%b:1\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n" % reply(invalid)
        talk.upstream("+OK", *["+QUEUED"] * 5, array)
        talk.expect_client(*[] if lost else [invalid], "+OK")
        if lost:
            talk.expect_fired("push", command="invalidate", keys=(b"k",))
        talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok")


def test_an_array_of_ours_that_was_not_carried_out():
    """It has no pushes, and the write is answered all the same."""
    with Talk("- {fault: drop_write, match: {commands: SET}, tell: ok}", protocol=3) as talk:
        talk.client("SET k v")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream("+OK", "-NOPERM no", *["+QUEUED"] * 4, "-EXECABORT no")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_upstream("SET k v", "CHAOSPROXY.REFUSED", "EXEC")
        talk.upstream("+QUEUED", "-ERR unknown", "-EXECABORT no")
        talk.expect_client("+OK")
        talk.expect_fired("drop_write", told="ok")
