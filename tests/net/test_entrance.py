"""A client's way in: how long it waits, what turns it away, what it may say meanwhile."""

import asyncio
from time import monotonic

import pytest

from chaosproxy.core.decision import Admit
from chaosproxy.net.entrance import EARLY, Entrance

ERROR = Admit("error", raw=b"-ERR no\r\n")


def go(loop, *admitted, let_in_after=None):
    """Go through; gives what turned the client away, and how long it took."""

    async def walk():
        entrance = Entrance(admitted)
        if let_in_after is not None:
            asyncio.get_running_loop().call_later(let_in_after, entrance.let_in)
        began = monotonic()
        return await entrance.pass_through(), monotonic() - began

    return loop.run(walk(), 10)


def test_nothing_decided(loop):
    """Where nothing was decided nothing is in the way."""
    assert go(loop)[0] is None
    assert go(loop, Admit("accept"))[0] is None


def test_delays_add_up(loop):
    """Each wait is waited, and then the client goes on or is turned away."""
    met, took = go(loop, Admit("accept", 0.05), Admit("accept", 0.05))
    assert met is None
    assert took >= 0.1
    met, took = go(loop, Admit("accept", 0.05), ERROR)
    assert met is ERROR
    assert took >= 0.05


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
        assert 0.05 <= took < 5


def test_what_is_said_early(loop):
    """First words are kept in order, and it is told when they are enough."""
    entrance = loop.call(Entrance)
    entrance.keep(b"PI")
    entrance.keep(b"NG")
    assert not entrance.is_full
    assert entrance.take() == b"PING"
    assert entrance.take() == b""
    entrance.keep(bytes(EARLY + 1))
    assert entrance.is_full
