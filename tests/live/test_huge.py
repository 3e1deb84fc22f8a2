"""A huge value passes through without being held: what a proxy has in memory meanwhile does not depend on its size.

Takes a proxy in a process of its own and a value, there and back; gives the most it had in memory above what it had before.
"""

import pytest

from tests.bench import probe
from tests.bench.fleet import Fleet
from tests.bench.peers import choose

MEBI = 1 << 20
#: What it may have more than before, however large the value; most of it is what sockets' buffers hold.
MOST = 16 * MEBI


@pytest.fixture
def grows(tmp_path, redis70, monkeypatch):
    """Send a value through a fresh proxy and read it back through it, slowly at first; gives by how much that had grown."""

    def measure(size: int, peer: str, loop: str) -> dict[str, float]:
        monkeypatch.setenv("CHAOSPROXY_LOOP", loop)
        (known,) = choose([peer], {})
        fleet = Fleet(tmp_path, redis70.port)
        try:
            program, port, _ = fleet.fresh(known)
            return probe.huge(port, program, size)
        finally:
            fleet.stop_all()

    return measure


@pytest.mark.parametrize(
    ("peer", "loop"),
    [("chaos-calm", "uvloop"), ("chaos-calm", "asyncio"), ("chaos-nothing", "uvloop")],
)
def test_64_mebibytes(grows, peer, loop):
    """64 MiB pass in both directions within 16 MiB, without faults and with faults for other commands, on both loops."""
    grown = grows(64 * MEBI, peer, loop)
    assert set(grown) == {"huge_set", "huge_get"}
    assert max(grown.values()) < MOST, grown


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_the_largest_value_that_there_is(grows, loop):
    """512 MiB, as much as servers take, need no more than 64 do."""
    grown = grows(512 * MEBI, "chaos-calm", loop)
    assert max(grown.values()) < MOST, grown
