"""The event loop, in a thread of its own, so that whoever starts a proxy keeps their thread.

Takes coroutines and functions from other threads; gives their results. uvloop where it is installed.
"""

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

#: `asyncio` here keeps uvloop out even where it is installed.
CHOICE: Final = "CHAOSPROXY_LOOP"
#: Older uvloops do not always tell that a connection is gone: its client had reset it while it was not read.
LEAST_UVLOOP: Final = (0, 23)

_log = logging.getLogger("chaosproxy.loop")


class BusyError(TimeoutError):
    """The loop has had no time for what was asked, and it will not be done."""

    def __init__(self) -> None:
        super().__init__("the data side is busy; ask again")


class Lockable(Protocol):
    """A lock of any kind."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool:
        """Take it; False if it was not free in time."""

    def release(self) -> None:
        """Give it back."""


@contextmanager
def in_time(lock: Lockable, patience: float | None) -> Iterator[None]:
    """Hold a lock. Raises BusyError if it is not free within so many seconds; None: however long that takes."""
    if not lock.acquire(timeout=-1 if patience is None else patience):
        raise BusyError
    try:
        yield
    finally:
        lock.release()


class LoopThread:
    """A running loop. `stop` it in the end; it ends with the process in any case."""

    def __init__(self) -> None:
        self.loop = new_loop()
        self._thread = threading.Thread(target=self._run, name="chaosproxy-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine there and give its result.

        Raises BusyError if it has not begun after so many seconds (it never will), and TimeoutError if it has not ended (it is cancelled).
        """
        future = self._claim(coroutine, timeout)
        if not future.done() and future.cancel():
            raise TimeoutError
        return future.result()

    def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Call a function there and give its result. Raises BusyError if that has not begun after so many seconds: it never will."""

        async def called() -> T:
            return function()

        # If the loop is at it, whoever asked is told what has really become of it.
        return self._claim(called(), timeout).result()

    def _claim(self, coroutine: Coroutine[Any, Any, T], timeout: float | None) -> Future[T]:
        """Have a coroutine run there. Gives what it has come to, or will come to if it has begun within so many seconds and not ended.

        Raises BusyError if it has not begun: whoever comes first claims it, the loop to run it or who asks to give it up.
        """
        begun = Lock()

        async def claimed() -> T:
            if not begun.acquire(blocking=False):
                coroutine.close()
                raise BusyError
            return await coroutine

        future = asyncio.run_coroutine_threadsafe(claimed(), self.loop)
        with suppress(TimeoutError):  # one of its own is given, not raised
            future.exception(timeout)
        if not future.done() and begun.acquire(blocking=False):
            raise BusyError
        return future

    def settle(self, timeout: float) -> None:
        """Wait until it has done what it is at, so many seconds at most; one that has ended is at nothing."""
        if self.loop.is_running():
            with suppress(TimeoutError):
                self.call(lambda: None, timeout)

    def stop(self) -> None:
        """End the loop, and whatever still runs in it."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
        if not self.loop.is_closed():
            _close(self.loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        # What they held is closed in the rounds that follow: a client that was just being accepted.
        for _ in range(3):
            self.loop.run_until_complete(asyncio.sleep(0))


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop, and what is left open in it. Where a warning of that is to be an error it is one that is shown."""
    actions = (
        action for action, _, kind, *_ in warnings.filters if issubclass(ResourceWarning, kind)
    )
    with warnings.catch_warnings():
        if next(actions, "") == "error":
            # uvloop warns of a transport before it closes it, and then waits until all are: one whose warning was raised never is.
            warnings.simplefilter("always", ResourceWarning)
        loop.close()


async def in_a_thread(function: Callable[[], T]) -> T:
    """Call a function that blocks, while whoever awaits it goes on with everything else."""
    return await asyncio.to_thread(function)


def new_loop() -> asyncio.AbstractEventLoop:
    """Make the fastest loop there is that can be relied on."""
    if os.environ.get(CHOICE) != "asyncio":
        with suppress(ImportError):
            import uvloop  # noqa: PLC0415 - it may not be there

            version: str = uvloop.__version__  # type: ignore[attr-defined]
            if tuple(map(int, version.split(".")[:2])) >= LEAST_UVLOOP:
                loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
                return loop
            least = ".".join(map(str, LEAST_UVLOOP))
            _log.warning("uvloop %s is not used: it needs %s or newer", version, least)
    return asyncio.new_event_loop()
