"""How busy the machine is: by how much a time that is measured on it may be longer for that reason alone.

Takes nothing; gives how many seconds somebody who only ever waits a moment was kept waiting beyond that, all together. A test
that has to get something done within a time is done again where it failed and was kept waiting.
"""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

P = ParamSpec("P")

#: So often a test is tried on a machine that keeps it waiting; how the last one ends is how it ends.
TRIES = 5

#: The moment that is waited for, again and again, in seconds.
MOMENT = 0.005


class Busy:
    """A thread that waits for short moments as long as `over` is not set, and adds up what each was too long."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lost = 0.0
        self._due = time.monotonic() + MOMENT
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def lost(self) -> float:
        """Seconds so far; a moment that is too long already counts."""
        return self._lost + max(0.0, time.monotonic() - self._due)

    def stop(self) -> None:
        """Measure no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(MOMENT):
            now = time.monotonic()
            self._lost += max(0.0, now - self._due)
            self._due = now + MOMENT


@contextmanager
def measured() -> Iterator[Busy]:
    """Measure within this block."""
    busy = Busy()
    try:
        yield busy
    finally:
        busy.stop()


def within(seconds: float) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Have a test done again that fails and was kept waiting for so long: what it must not sleep through.

    What a fixture has made is what it was when the test has failed; what it needs of that the test makes itself.
    """

    def decorate(test: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(test)
        def again(*args: P.args, **kwargs: P.kwargs) -> None:
            for _ in range(TRIES - 1):
                with measured() as busy:
                    try:
                        return test(*args, **kwargs)
                    except Exception:
                        if busy.lost < seconds:
                            raise
            return test(*args, **kwargs)

        return again

    return decorate
