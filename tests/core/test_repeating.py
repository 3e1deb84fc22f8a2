"""Copies of a command: when they are sent, how many, and what is written down of them. `tests/faults` has the rest."""

import pytest

from chaosproxy.core.effect import LimitReached
from tests.conversation import Talk
from tests.failing import Director

TWO_RULES = """
- {fault: duplicate, name: at-once, times: 3}
- {fault: duplicate, name: later, gap: 1s}
"""


def test_two_rules_add_up():
    """One rule's copies follow at once, another's later; each is told by itself."""
    with Talk(TWO_RULES) as talk:
        talk.client("INCR k")
        talk.expect_upstream("INCR k", "INCR k", "INCR k")
        talk.upstream(":1", ":2", ":3")
        talk.expect_client(":1")
        talk.expect_fired("at-once", detail="sent 3 times")
        talk.wait(1)
        talk.side(":4")
        talk.expect_fired("later", detail="sent 2 times, 1 s apart")


def test_where_there_is_no_later_all_follow_at_once():
    """In a transaction both rules' copies are queued right behind, and EXEC's array has one element."""
    with Talk(TWO_RULES) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("INCR k")
        talk.expect_upstream(*["INCR k"] * 4)
        talk.upstream(*["+QUEUED"] * 4)
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:1 :2 :3 :4]")
        talk.expect_client("*[:1]")
        talk.expect_fired("at-once")
        talk.expect_fired("later", detail="sent 2 times")


@pytest.mark.parametrize(
    ("command", "switched", "sent"),
    [("INCR k", True, False), ("FLUSHALL", True, True), ("INCR k", False, True)],
)
def test_a_copy_behind_a_failover(command, switched, sent):
    """Who stays with the old primary sends its copies there too: what was lost does not come back by them."""
    faults = """
- {fault: duplicate, gap: 1s}
- {fault: failover, name: fo, style: cluster, outage: 9s, when: {trigger: manual}}
- {fault: failover, name: other, style: managed, when: {trigger: manual}}
"""
    with Talk(faults) as talk:
        director = Director(talk)
        talk.client(command)
        talk.expect_upstream(command)
        talk.upstream(":1")
        talk.expect_client(":1")
        talk.world.engine.by_name["fo"].counter.requests = int(switched)
        director.look()
        talk.wait(1)
        assert len(talk._asked) == sent
        detail = "sent 2 times, 1 s apart"
        if sent:
            talk.side(":2")
        else:
            detail += "; answered CLUSTERDOWN The cluster is down"
        talk.expect_fired("duplicate", detail=detail)


def test_copies_keep_their_distance():
    """Each copy is sent a gap after the one before it, answered or not, counted from when the first was applied."""
    with Talk("- {fault: duplicate, times: 4, gap: 2s}") as talk:
        talk.client("INCR k")
        talk.expect_upstream("INCR k")
        talk.wait(10)
        talk.upstream(":1")
        talk.expect_client(":1")
        for _ in range(3):
            talk.wait(1.99)
            sent = len(talk._asked)
            talk.wait(0.01)
            assert len(talk._asked) == sent + 1
        for reply in (":2", ":3", ":4"):
            talk.expect_nothing_fired()
            talk.side(reply)
        talk.expect_fired("duplicate", detail="sent 4 times, 2 s apart")


@pytest.mark.parametrize("inline", [b"INCR k\r\n", b"  incr   k\r\n"])
def test_a_copy_says_the_same(inline):
    """The first goes as it came; a copy is the same words."""
    with Talk("- {fault: duplicate}") as talk:
        talk.client(inline)
        heard = talk.heard("upstream")
        assert heard.startswith(inline)
        assert heard[len(inline) :].lower() == b"*2\r\n$4\r\nincr\r\n$1\r\nk\r\n"
        talk.upstream(":1", ":2")
        talk.expect_client(":1")


def test_blocked_behind_it():
    """A copy does not wait for what the client sends behind, nor the other way round."""
    with Talk("- {fault: duplicate, match: {commands: RPUSH}}") as talk:
        talk.client("RPUSH q x", "BLPOP other 0")
        talk.expect_upstream("RPUSH q x", "RPUSH q x", "BLPOP other 0")
        talk.upstream(":1", ":2")
        talk.expect_client(":1")


def test_no_more_copies_to_come_than_may_be_held():
    """What would be kept until its time is counted; beyond that it is not repeated, and afterwards it is again."""
    with Talk(
        "- {fault: duplicate, match: {commands: SET}, times: 2, gap: 1s}", max_buffer=600
    ) as talk:
        talk.client("SET a 1", "SET b 1", "SET c 1")
        talk.expect_upstream("SET a 1", "SET b 1", "SET c 1")
        talk.upstream("+OK", "+OK", "+OK")
        talk.expect_client("+OK", "+OK", "+OK")
        assert talk.skipped("duplicate") == ["too_large"]
        assert talk.effects.count(LimitReached("kept")) == 1
        talk.wait(1)
        talk.side("+OK")
        talk.side("+OK")
        talk.handshake("SET c 1", "+OK")
        talk.wait(1)
        talk.side("+OK")
        for _ in range(3):
            talk.expect_fired("duplicate", detail="sent 2 times, 1 s apart")
