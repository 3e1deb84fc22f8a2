"""What is still to come on a line: whether its client waits for something that comes by itself."""

import pytest

from chaosproxy.core.awaited import is_coming
from tests.conversation import Talk

DROP = "- {fault: drop_write, match: {commands: SET}, tell: ok}"


def waits(talk: Talk) -> bool:
    return talk.conversation.waits


def test_a_reply():
    """From a command to its reply; half a command is nothing that is answered."""
    for rules in ("", "- {fault: latency, match: {keys: b}, at: before_forward, delay: 1s}"):
        with Talk(rules) as talk:
            assert not waits(talk)
            talk.client("GET a")
            talk.expect_upstream("GET a")
            assert waits(talk)
            talk.upstream('"A"')
            talk.expect_client('"A"')
            talk.client(b"*2\r\n$3\r\nGET\r\n")
            assert not waits(talk)
            talk.heard("upstream")


@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_a_time(at):
    """What is held until a time comes, on either way."""
    with Talk(f"- {{fault: latency, match: {{commands: GET}}, at: {at}, delay: 1s}}") as talk:
        talk.client("GET a")
        if at == "after_apply":
            talk.expect_upstream("GET a")
            talk.upstream('"A"')
        assert waits(talk)
        talk.wait(1)
        talk.heard("upstream")
        talk.heard("client")
        assert waits(talk) == (at == "before_forward")
        talk.events()


@pytest.mark.parametrize("watching", [False, True])
def test_what_is_asked_for_a_command(watching):
    """Before it has a place among the replies: on its own connection, and on the side."""
    with Talk(DROP) as talk:
        if watching:
            talk.handshake("WATCH w", "+OK")
        talk.client("SET a 1")
        assert not talk.conversation._line.slots
        assert waits(talk)
        talk.client_gone()
        talk.heard("upstream")
        talk.expect_fired("drop_write")


@pytest.mark.parametrize(
    ("what", "at"), [("request", "before_forward"), ("reply", "after_apply"), ("connection", "after_apply")]
)  # fmt: skip
def test_what_is_lost(what, at):
    """What a fault has lost for good does not come, nor does anything behind it."""
    with Talk(f"- {{fault: blackhole, match: {{keys: a}}, at: {at}, what: {what}}}") as talk:
        talk.client("GET a", "GET b")
        if at == "after_apply":
            talk.expect_upstream("GET a", "GET b")
            assert waits(talk)
            talk.upstream('"A"', '"B"')
        assert not waits(talk)
        talk.events()


def test_a_silence_that_ends():
    """One for a time is waited for."""
    with Talk(
        "- {fault: blackhole, match: {keys: a}, at: after_apply, what: connection, for: 1s}"
    ) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        assert waits(talk)
        talk.wait(1)
        talk.expect_client('"A"')
        assert not is_coming(talk.conversation._line, timed=False)
        talk.events()
