"""A failover's steps over time, who is on the old primary, and what each is refused with."""

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.failover import CutOff, Failover, Lose, Phase, Rejoin, Switch, refuses
from chaosproxy.core.undo import UndoLog

SPECS = CommandTable.bundled().specs
OUTAGE = Phase(2.0, "refuse", "READONLY")
LOADING = Phase(0.5, refusal="LOADING")


def test_one_step_after_the_other():
    """A phase is over when it was due to be, however late somebody looks; a switch takes as long as it takes."""
    failover = Failover((CutOff("reset"), OUTAGE, Switch(), LOADING, Rejoin()))
    assert failover.step(10) is None
    assert not failover.running
    failover.begin(10)
    assert (failover.running, failover.newcomers) == (True, "accept")
    assert failover.step(10) == CutOff("reset")
    assert failover.step(10) == OUTAGE
    assert (failover.due, failover.newcomers) == (12, "refuse")
    assert failover.step(11.9) is None
    assert failover.step(12.3) == Switch()
    assert failover.newcomers == "accept"
    assert failover.step(12.9) is None, "the switch is under way"
    failover.switch_done(13)
    assert failover.step(13) == LOADING
    assert failover.step(13.6) == Rejoin()
    assert failover.step(13.6) is None
    assert (failover.due, failover.running, failover.phase) == (None, False, None)


def test_who_is_old():
    """Who was connected when the switch began is with the old primary; before it everybody is, and nobody is called old."""
    failover = Failover((OUTAGE, Switch(), LOADING))
    failover.begin(10)
    failover.step(10)
    assert [failover.refusal(5), failover.refusal(11)] == ["READONLY", "READONLY"]
    assert not failover.is_old(5)
    failover.step(12)
    failover.switch_done(12.1)
    failover.step(12.1)
    assert (failover.is_old(12), failover.is_old(12.05)) == (True, False)
    assert [failover.refusal(5), failover.refusal(12.2)] == ["READONLY", "LOADING"]
    failover.step(13)
    assert [failover.refusal(5), failover.refusal(12.2)] == ["READONLY", ""]


def test_called_off():
    """Nothing follows, and nobody is left behind but those who were before; once it has switched they stay so."""
    failover = Failover((OUTAGE, Switch(), LOADING))
    failover.begin(10)
    failover.step(10)
    failover.call_off()
    assert (failover.running, failover.refusal(5), failover.newcomers) == (False, "", "accept")
    failover.begin(20)
    failover.step(20)
    failover.step(22)
    failover.call_off()
    assert not failover.is_old(5)
    failover.begin(30)
    failover.step(30)
    failover.step(32)
    failover.switch_done(32)
    failover.call_off()
    assert (failover.is_old(31), failover.running, failover.step(99)) == (True, False, None)


def test_the_same_server_comes_back():
    """After a restart nobody is with an old primary, and all hear what the server says."""
    failover = Failover((Switch(), LOADING), old=None)
    failover.begin(10)
    failover.step(10)
    failover.switch_done(10)
    failover.step(10)
    assert not failover.is_old(5)
    assert failover.refusal(5) == "LOADING"


def test_a_second_failover():
    """It can begin again: who came after the first switch is old after the second."""
    failover = Failover((Switch(),))
    for begins in (10, 20):
        failover.begin(begins)
        failover.step(begins)
        failover.switch_done(begins)
        assert failover.step(begins) is None
    assert failover.is_old(15)


@pytest.mark.parametrize(
    ("code", "refused", "passed"),
    [
        ("", "", "SET GET PING"),
        ("READONLY", "SET EVAL BLPOP SORT GETEX FLUSHALL", "GET PFCOUNT PUBLISH PING INFO"),
        (
            "LOADING",
            "SET GET PING EVAL WAIT",
            "HELLO AUTH SELECT INFO MULTI SUBSCRIBE CLIENT|SETINFO",
        ),
        ("MASTERDOWN", "GET PING", "PUBLISH INFO AUTH HELLO"),
        ("CLUSTERDOWN", "GET SET WATCH", "PING INFO HELLO"),
        ("MOVED", "GET SET", "PING INFO"),
    ],
)
def test_who_is_refused(code, refused, passed):
    """A server in that state refuses by the flags of its own command table."""
    assert [refuses(code, SPECS[name]) for name in refused.split()] == [code] * len(refused.split())
    assert [refuses(code, SPECS[name]) for name in passed.split()] == [""] * len(passed.split())


@pytest.mark.parametrize("name", ["FLUSHALL", "SWAPDB", "FUNCTION|LOAD"])
def test_a_write_without_a_key_to_an_old_primary_of_a_cluster(name):
    """There is no slot that has moved: the old primary is a replica, and takes no writes. Before the switch it does."""
    assert refuses("MOVED", SPECS[name]) == "READONLY"
    assert refuses("CLUSTERDOWN", SPECS[name]) == ""


def test_a_write_to_a_replica_without_a_master():
    """It is READONLY first."""
    assert refuses("MASTERDOWN", SPECS["SET"]) == "READONLY"


def test_what_nobody_knows_is_passed_on():
    """The server says that there is no such command."""
    assert refuses("LOADING", None) == ""


def test_an_exec_is_what_it_carries_out():
    """A transaction that was queued before is refused as its commands would be."""
    queued = (SPECS["GET"], None, SPECS["SET"])
    assert refuses("READONLY", SPECS["EXEC"], queued) == "READONLY"
    assert refuses("READONLY", SPECS["EXEC"], queued[:2]) == ""


def test_what_is_taken_down():
    """Only what may be lost: not long before the window opens, if that is known, and not after the switch of the only failover."""
    assert not Failover(()).records(0)
    failover = Failover((Switch(),), lose=Lose(3.0), log=UndoLog(3.0))
    assert failover.records(0)
    failover.expect(None)
    assert failover.records(0)
    failover.expect(20.0)
    assert [failover.records(now) for now in (15.9, 16.1, 19)] == [False, True, True]
    failover.begin(20.1)
    assert failover.log is not None
    assert failover.log.window == 17, "when it was to begin counts"
    assert failover.records(20.1)
    failover.step(20.1)
    failover.switch_done(20.2)
    assert not failover.records(20.2)
    failover.step(20.2)
    assert not failover.records(30)


def test_one_that_may_begin_again():
    """Of one that begins with an exchange nobody knows when the next one comes: all is taken down, also while this one ends."""
    failover = Failover((Switch(), LOADING), lose=Lose(3.0), log=UndoLog(3.0))
    failover.begin(20)
    assert failover.log is not None
    assert failover.log.window == 17
    failover.step(20)
    failover.switch_done(20)
    assert failover.records(20)
    failover.step(20)
    failover.step(21)
    assert failover.records(22)
    failover.begin(23)
    assert failover.records(23)


def test_by_count_no_time_is_known():
    """The last so many writes are lost, whenever they were made."""
    failover = Failover((Switch(),), lose=Lose(writes=3), log=UndoLog(writes=3))
    failover.expect(20.0)
    assert failover.records(0)
