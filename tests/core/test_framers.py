"""Framers are made when something comes that needs one; those that all share stay as they are."""

from chaosproxy.core.framers import NO_REPLIES, NO_REQUESTS, own
from tests.conversation import Talk


def test_an_own_framer_stays():
    """What all share gives way to a new one of its kind, once; nothing that is fed gets into what all share."""
    for shared in (NO_REQUESTS, NO_REPLIES):
        mine = own(shared)
        assert type(mine) is type(shared)
        assert mine is not shared
        mine.feed(b"*1\r\n$4\r\nPI")
        assert own(mine) is mine
        assert (mine.started, shared.started, shared.partial, shared.next()) == (
            True,
            False,
            0,
            None,
        )


def test_the_fast_lane_needs_none():
    """A connection whose commands all pass by the fast lane has none; the first that does not makes them."""
    talk = Talk()
    assert talk.fast
    intake, returns = talk.conversation._intake, talk.conversation._returns
    talk.client("PING")
    talk.upstream("+PONG")
    assert (intake.framer, returns.framer) == (NO_REQUESTS, NO_REPLIES)
    talk.client("HELLO 3")
    assert intake.framer is not NO_REQUESTS
    talk.upstream("%[]")
    assert returns.framer is not NO_REPLIES


def test_bytes_of_any_kind_pass_without_one():
    """A connection that is raw before the server has said anything passes on what comes, each byte once."""
    talk = Talk()
    talk.client("SYNC")
    assert talk.conversation.raw
    talk.upstream(b"+FULL")
    talk.upstream(b"RESYNC\r\n*")
    talk.upstream(b"anything")
    assert talk.heard("client") == b"+FULLRESYNC\r\n*anything"
    assert NO_REPLIES.partial == 0
