"""Another user than the side connection is told what it may do itself, as the server says, and nothing else."""

import pytest

from tests.conversation import GATE, PROVEN, Talk
from tests.stale import stale

DROP = "- {fault: drop_write, tell: ok, match: {commands: ['@write', EVAL]}}"
DENIED = '"User low has no permissions"'
OTHER = "reply made from the reply table: the side connection is another user"
#: What a server says that does not know, or whose side connection may not ask; nothing: it was not reached.
SILENT = ((), ("-ERR unknown subcommand",), ("-NOPERM no",))


def watching(talk: Talk, user: str = "low") -> None:
    talk.handshake(f"AUTH {user} pw", "+OK")
    talk.handshake("WATCH w", "+OK")


def test_the_same_user():
    """Nothing has to be asked: without a user in the URL both are the server's default one."""
    with Talk(DROP) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("INCR k")
        talk.expect_side(*GATE)
        talk.side()
        talk.expect_client(":1")
    with Talk(DROP) as talk:
        talk.world.user = b"boss"
        watching(talk, "boss")
        talk.client("INCR k")
        talk.expect_side(*GATE)
        talk.side()
        talk.expect_client(":1")


def test_only_while_it_is_computed_aside():
    """On the client's own connection the server sees to it."""
    with Talk(DROP) as talk:
        talk.handshake("AUTH low pw", "+OK")
        talk.client("INCR k")
        talk.expect_upstream(*GATE)
        assert not talk._asked


def test_may():
    """What the client may do is computed aside, and its reply is the server's."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("INCR k")
        talk.expect_upstream()
        talk.expect_side("ACL DRYRUN low INCR k", db=0)
        talk.side("+OK")
        talk.expect_side(*GATE)
        talk.side(*PROVEN)
        talk.side("+OK", *["+QUEUED"] * 5, "*[:1 +OK :8 :1 +OK]")
        talk.expect_client(":8")
        talk.expect_fired(
            "drop_write",
            told="ok",
            outcome="false_ok",
            detail="reply computed in scratch database 15",
        )


@pytest.mark.parametrize(
    "sent", ["INCR k", "GETSET k a", "EVAL x 1 k", "SORT k BY w* STORE k", "FLUSHALL"]
)
def test_may_not(sent):
    """What it may not do the server refuses, in its own words: a dropped write is no reason to be told that it was done."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client(sent)
        talk.expect_side(f"ACL DRYRUN low {sent}")
        talk.side(DENIED)
        talk.expect_upstream(sent)
        talk.upstream("-NOPERM no")
        talk.expect_client("-NOPERM no")
        assert talk.skipped("drop_write") == ["refused"]
        assert not talk.events()


@pytest.mark.parametrize("said", SILENT)
def test_nobody_knows(said):
    """The reply is made up, from nothing that is stored; what cannot be made up is the server's to answer, or to refuse."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("INCR k")
        talk.side(*said)
        talk.expect_client(":1")
        talk.expect_fired("drop_write", told="ok", outcome="false_ok", detail=OTHER)
        talk.client("EVAL x 1 k")
        talk.side(*said)
        talk.expect_upstream("EVAL x 1 k")
        talk.upstream("-NOPERM no")
        talk.expect_client("-NOPERM no")
        assert talk.skipped("drop_write") == ["unknown_reply"]


def test_what_a_yes_is_not_enough_for():
    """What a script calls, or a pattern names, is not seen before it is done: nothing is computed of it for another user."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("SORT k BY w* STORE k")
        talk.side("+OK")
        assert not talk._asked
        talk.expect_client(":1")
        talk.expect_fired("drop_write", told="ok", detail=OTHER)
        talk.client("EVAL x 1 k")
        talk.side("+OK")
        assert not talk._asked
        talk.expect_upstream("EVAL x 1 k")


@pytest.mark.parametrize("sent", ["SORT_RO k BY w*", "GET k"])
def test_a_read(sent):
    """So it is with what is read as it was."""
    with stale("k") as talk:
        watching(talk)
        talk.client(sent)
        talk.side("+OK")
        if sent == "GET k":
            talk.expect_side(*GATE)
        else:
            assert not talk._asked
            talk.expect_upstream(sent)
            assert talk.skipped("stale_read") == ["rights"]


@pytest.mark.parametrize("said", [*SILENT, ("+OK",)])
def test_what_cannot_be_computed(said):
    """It is made up for whoever may do it; also there a server that would refuse it is asked."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("FLUSHALL")
        talk.expect_side("ACL DRYRUN low FLUSHALL")
        talk.side(*said)
        talk.expect_client("+OK")
        talk.expect_fired("drop_write", told="ok", detail="reply made from the reply table")


def test_let_go_in_the_meantime():
    """The server is gone, and the client is still owed a reply from before: nobody waits for the answer."""
    slow = "- {fault: latency, at: after_apply, delay: 1s, match: {commands: [GET]}}"
    with Talk(slow + "\n" + DROP) as talk:
        watching(talk)
        talk.client("GET a", "INCR k")
        talk.expect_upstream("GET a")
        talk.upstream("$-1")
        talk.expect_side("ACL DRYRUN low INCR k")
        talk.upstream_gone()
        talk.side("+OK")
        assert not talk._asked
        talk.wait(1)
        talk.expect_client("$-1")
        told = [(event.fault, event.told) for event in talk.events()]
        assert told == [("drop_write", "nothing"), ("latency", "late")]
        talk.expect_closed("close")


def test_behind_what_came_before():
    """Who the client is may be about to change: it is asked once that is known."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("AUTH other pw", "INCR k")
        talk.expect_upstream("AUTH other pw")
        assert not talk._asked
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_side("ACL DRYRUN other INCR k")
        talk.side(DENIED)
        talk.expect_upstream("INCR k")
