"""A client's way in: how long it waits, what turns it away, what it may say meanwhile."""

import asyncio
from time import monotonic

import pytest

from chaosproxy.core.admission import Meeting
from chaosproxy.core.decision import Admit
from chaosproxy.core.effect import Fired, Skipped
from chaosproxy.net.entrance import EARLY, Entrance

ERROR = Admit("error", raw=b"-ERR no\r\n")


def meeting(decision):
    """A decision, and the event that says that it was carried out."""
    fired = Fired(
        fault="x", type="admit", position="before_forward", command="(connect)", keys=(), db=0,
        client="", connection=1, match=1, applied="no", told="reset", outcome="fail", digest="",
        generation=1, detail=decision.what,
    )  # fmt: skip
    return Meeting(decision, fired)


def go(loop, *admitted, let_in_after=None, heard=None):
    """Go through; gives what turned the client away, and how long it took. `heard` gets what is written down."""
    written = [] if heard is None else heard

    async def walk():
        entrance = Entrance([meeting(admit) for admit in admitted], written.append)
        began = monotonic()

        def let_in():
            # A timer of uvloop's may be early.
            if (left := began + let_in_after - monotonic()) > 0:
                asyncio.get_running_loop().call_later(max(left, 0.001), let_in)
            else:
                entrance.let_in()

        if let_in_after is not None:
            let_in()
        return await entrance.pass_through(), monotonic() - began

    return loop.run(walk(), 59)


def test_nothing_decided(loop):
    """Where nothing was decided nothing is in the way."""
    assert go(loop)[0] is None
    assert go(loop, Admit("accept"))[0] is None


def test_delays_add_up(loop):
    """Each wait is waited, and then the client goes on or is turned away."""
    met, took = go(loop, Admit("accept", 0.05), Admit("accept", 0.05))
    assert met is None
    assert took >= 0.09  # uvloop counts in milliseconds, and begins early
    met, took = go(loop, Admit("accept", 0.05), ERROR)
    assert met is ERROR
    assert took >= 0.04


@pytest.mark.parametrize("what", ["refuse", "reset", "error"])
def test_turned_away(loop, what):
    """What ends it is told; what was decided after it is not met."""
    end = Admit(what)
    assert go(loop, end, Admit("accept", 60))[0] is end


def test_let_in(loop):
    """Another profile ends every wait, for ever or not, and nobody is turned away under the old one."""
    for admitted in (
        [Admit("accept_silent")],
        [Admit("accept", 60)],
        [Admit("accept", 60), ERROR],
        [Admit("accept_silent"), ERROR],
        [Admit("reset", 60)],
    ):
        met, took = go(loop, *admitted, let_in_after=0.05)
        assert met is None
        assert 0.05 <= took < 50


def test_what_is_said_early(loop):
    """First words are kept in order, and it is told when they are enough."""
    entrance = loop.call(lambda: Entrance([], print))
    entrance.keep(b"PI")
    entrance.keep(b"NG")
    assert not entrance.is_full
    assert entrance.take() == b"PING"
    assert entrance.take() == b""
    entrance.keep(bytes(EARLY + 1))
    assert entrance.is_full


# -- what is written down


def test_written_down_when_it_has_happened(loop):
    """What a client met is told when it has met it, in order."""
    heard = []
    go(loop, Admit("accept", 0.01), ERROR, heard=heard)
    assert [effect.detail for effect in heard] == ["accept", "error"]


def test_let_in_is_written_down(loop):
    """Who was let in early was not turned away: the event says how long it waited, the rest is skipped."""
    heard = []
    go(loop, Admit("reset", 60), ERROR, let_in_after=0.05, heard=heard)
    fired, skipped = heard
    assert (fired.told, fired.outcome) == ("late", "ok")
    assert fired.detail == "reset: let in at a switch"
    assert 0.04 <= fired.delay < 50
    assert (skipped.fault, skipped.reason) == ("x", "switched")


def test_who_leaves_early_is_written_down(loop):
    """Who left while it was kept waiting met nothing else."""
    heard = []

    async def leave():
        admitted = [meeting(Admit("accept", 60)), meeting(ERROR)]
        task = asyncio.create_task(Entrance(admitted, heard.append).pass_through())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    loop.run(leave(), 10)
    fired, skipped = heard
    assert (fired.told, fired.outcome) == ("nothing", "fail")
    assert fired.detail == "accept: the connection ended while it was kept waiting"
    assert skipped.reason == "client_gone"


def test_gone_before_it_has_come_anywhere(loop):
    """A client may be gone in the moment in which it came: what it would have met is written down as missed, once."""
    heard = []

    async def come_and_go():
        entrance = Entrance([meeting(Admit("accept", 60)), meeting(ERROR)], heard.append)
        coming = asyncio.ensure_future(entrance.pass_through())
        coming.cancel()
        await asyncio.wait([coming])
        assert not heard  # it never ran
        entrance.left()
        entrance.left()

    loop.run(come_and_go(), 59)
    assert heard == [Skipped("x", "client_gone", 1)] * 2


def test_gone_on_its_way(loop):
    """One that waits already has written down itself what it missed."""
    heard = []

    async def come_and_go():
        entrance = Entrance([meeting(Admit("accept_silent")), meeting(ERROR)], heard.append)
        coming = asyncio.ensure_future(entrance.pass_through())
        await asyncio.sleep(0)
        coming.cancel()
        await asyncio.wait([coming])
        entrance.left()

    loop.run(come_and_go(), 59)
    assert heard == [meeting(Admit("accept_silent")).fired, Skipped("x", "client_gone", 1)]
