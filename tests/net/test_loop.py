"""The loop's thread: results and exceptions come back, and it ends when it is told to."""

import asyncio
import socket
import threading
import time
import warnings

import pytest

from chaosproxy.net.loop import CHOICE, BusyError, LoopThread, in_a_thread, in_time, new_loop
from tests.busy import within


def test_results_and_exceptions_come_back(loop):
    """Whoever asks from another thread gets what a direct call would have given."""

    async def double(value):
        await asyncio.sleep(0)
        return 2 * value

    assert loop.run(double(21)) == 42
    assert loop.call(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        loop.call(lambda: 1 // 0)


@within(0.5)  # what has not begun by then never does
def test_patience(loop):
    """What takes too long is given up, and cancelled."""
    cancelled = threading.Event()

    async def never():
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        loop.run(never(), 1)
    assert cancelled.wait(10)


@pytest.fixture
def held(loop):
    """A loop that does nothing else until it is let go."""
    busy, release = threading.Event(), threading.Event()

    def block():
        busy.set()
        release.wait(60)

    loop.loop.call_soon_threadsafe(block)
    assert busy.wait(30)
    yield release
    release.set()


def test_what_has_not_begun_in_time_never_does(loop, held):
    """Whoever is told that the loop was busy can rely on it: it is not done later, either."""
    done = []

    async def add():
        done.append("run")

    with pytest.raises(BusyError, match="the data side is busy; ask again"):
        loop.call(lambda: done.append("called"), 0.05)
    with pytest.raises(BusyError):
        loop.run(add(), 0.05)
    held.set()
    assert loop.call(lambda: list(done), 30) == []


@within(0.5)  # as above
def test_what_has_begun_is_waited_for(loop):
    """What is being done is not given up: its result counts, also where that is an exception."""
    begun, release = threading.Event(), threading.Event()

    def slow():
        begun.set()
        release.wait(60)
        return "done"

    def late():
        if begun.wait(5):
            time.sleep(1.2)  # longer than who asked has patience
        release.set()

    helper = threading.Thread(target=late)
    helper.start()
    try:
        assert loop.call(slow, 1) == "done"
    finally:
        helper.join()

    def fails():
        raise TimeoutError("its own")

    async def fails_too():
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        loop.call(fails, 30)
    with pytest.raises(TimeoutError, match="its own"):
        loop.run(fails_too(), 30)


def test_settled(loop, held):
    """What it is at is waited for, and not for ever; once it has ended there is nothing to wait for."""
    began = time.monotonic()
    loop.settle(0.05)
    assert time.monotonic() - began >= 0.05
    done = []
    loop.loop.call_soon_threadsafe(lambda: done.append("done"))
    held.set()
    loop.settle(60)
    assert done == ["done"]
    loop.stop()
    loop.settle(10)


def test_a_lock_that_is_not_free_in_time():
    """Nobody waits for another for ever, unless that is asked for."""
    lock = threading.Lock()
    with in_time(lock, None), pytest.raises(BusyError), in_time(lock, 0.01):
        pass
    with in_time(lock, 0.01):
        assert lock.locked()
    assert not lock.locked()


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


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_stop_closes_what_was_left_open(action, monkeypatch):
    """A connection that nobody has closed holds up no end, whatever is to be made of warnings; one that was to be an error is shown."""
    pytest.importorskip("uvloop", reason="needs uvloop: pip install 'chaosproxy[fast]'")
    monkeypatch.setenv(CHOICE, "uvloop")
    loop = LoopThread()
    ours, theirs = socket.socketpair()

    async def connect():
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)

    loop.run(connect())
    with theirs:
        theirs.settimeout(20)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter(action)
            loop.stop()
        assert loop.loop.is_closed()
        assert theirs.recv(1) == b""
    assert [each.category for each in told] == [ResourceWarning] * (action == "error")


def test_choice(either_loop):
    """Uvloop where it is wanted, asyncio's own otherwise."""
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.partition(".")[0] == either_loop


@pytest.mark.parametrize(
    ("version", "used"),
    [("0.9.1", False), ("0.22.1", False), ("0.23.0", True), ("0.100.0b1", True), ("1.0", True)],
)
def test_an_old_uvloop(version, used, monkeypatch, caplog):
    """One that is too old to be relied on is left alone, and that is said."""
    uvloop = pytest.importorskip("uvloop", reason="no uvloop: pip install '.[fast]'")
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.setattr(uvloop, "__version__", version)
    loop = new_loop()
    loop.close()
    assert isinstance(loop, uvloop.Loop) is used
    said = f"uvloop {version} is not used: it needs 0.23 or newer"
    assert caplog.messages == ([] if used else [said])


async def test_in_a_thread():
    """What blocks is waited for while the loop goes on; its result and its exception come back."""
    release = threading.Event()
    waiting = asyncio.create_task(in_a_thread(lambda: release.wait(20)))
    await asyncio.sleep(0)
    release.set()
    assert await waiting
    with pytest.raises(ZeroDivisionError):
        await in_a_thread(lambda: 1 // 0)
