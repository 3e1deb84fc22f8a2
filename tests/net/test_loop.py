"""The loop's thread: results and exceptions come back, and it ends when it is told to."""

import asyncio
import resource
import threading

import pytest

from chaosproxy.net.loop import LoopThread, allow_connections, in_a_thread, new_loop


def test_results_and_exceptions_come_back(loop):
    """Whoever asks from another thread gets what a direct call would have given."""

    async def double(value):
        await asyncio.sleep(0)
        return 2 * value

    assert loop.run(double(21)) == 42
    assert loop.call(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        loop.call(lambda: 1 // 0)


def test_patience(loop):
    """What takes too long is given up, and cancelled."""
    cancelled = threading.Event()

    async def never():
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        loop.run(never(), 0.05)
    assert cancelled.wait(5)


def test_stop_ends_what_runs(either_loop):
    """Nothing is left running, nothing waits for ever, and stopping twice is stopping once."""
    loop = LoopThread()
    ended = threading.Event()

    async def background():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    holder = []

    async def start():
        holder.append(asyncio.ensure_future(background()))
        await asyncio.sleep(0)

    loop.run(start())
    loop.stop()
    assert ended.is_set()
    loop.stop()
    assert loop.loop.is_closed()


def test_choice(either_loop):
    """Uvloop where it is wanted, asyncio's own otherwise."""
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.partition(".")[0] == either_loop


def test_open_files():
    """The limit of open files is raised for as many clients as it allows, and it is told how many those are."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert allow_connections(10) == 10
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        assert allow_connections(400) == 400
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 800
        most = allow_connections(10**9)
        assert most < 10**9
        assert 2 * most <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_in_a_thread():
    """What blocks is waited for while the loop goes on; its result and its exception come back."""
    release = threading.Event()
    waiting = asyncio.create_task(in_a_thread(lambda: release.wait(20)))
    await asyncio.sleep(0)
    release.set()
    assert await waiting
    with pytest.raises(ZeroDivisionError):
        await in_a_thread(lambda: 1 // 0)
