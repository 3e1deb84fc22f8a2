"""The one timer of a conversation: never early, and only the last deadline counts."""

import asyncio
from time import monotonic

import pytest

from chaosproxy.net.alarm import Alarm
from tests.busy import measured


def ring_times(loop, plan):
    """Run `plan(alarm)` in the loop and give when the alarm rang, and what it said the time was."""

    async def go():
        rung = []
        rang = asyncio.Event()

        def ring(now):
            rung.append((now, monotonic()))
            rang.set()

        await plan(Alarm(ring), rang)
        return rung

    return loop.run(go(), 60)


@pytest.mark.parametrize("delay", [0.0, 0.0004, 0.0017, 0.0101, 0.05])
def test_never_early(loop, delay):
    """It rings at its time or a little later, though loops count in whole milliseconds."""
    dues = []

    async def plan(alarm, rang):
        for _ in range(5):
            now = monotonic()
            dues.append(now + delay)
            alarm.set(now + delay, now)
            assert alarm.due == now + delay
            await rang.wait()
            rang.clear()
            assert alarm.due is None

    with measured() as busy:
        rung = ring_times(loop, plan)
        late = 5 + busy.lost
    for due, (now, real) in zip(dues, rung, strict=True):
        assert due <= now < due + late
        assert real >= due - 0.0001


def test_only_the_last_deadline_counts(loop):
    """A new deadline replaces the old one, also by none."""

    async def plan(alarm, rang):
        now = monotonic()
        alarm.set(now + 0.01, now)
        alarm.set(now + 0.03, now)
        await asyncio.sleep(0.06)
        alarm.set(monotonic() + 0.01, monotonic())
        alarm.set(None, monotonic())
        await asyncio.sleep(0.03)

    assert len(ring_times(loop, plan)) == 1


def test_past_deadline(loop):
    """A deadline that is over rings at once, but not from inside `set`."""

    async def plan(alarm, rang):
        now = monotonic()
        alarm.set(now - 5, now)
        assert alarm.due == now - 5
        await rang.wait()
        assert alarm.due is None

    assert len(ring_times(loop, plan)) == 1
