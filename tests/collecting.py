"""Python collecting garbage while something is read, and another thread let run by that: what may come in between.

Takes what the other thread does. What reads must neither fail nor see half of it.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Garbage is collected whenever there are so many new objects: what is read should be several times as much.
OFTEN = 50


@contextmanager
def meanwhile(then: Callable[[], None]) -> Iterator[None]:
    """Have this done each time, as a thread does that goes on while what is collected comes to its end."""
    before = gc.get_threshold()
    # New ones are then new: of small tuples that have gone Python keeps some thousand.
    used_up = [(number, number) for number in range(10_000)]

    def collecting(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            then()

    gc.callbacks.append(collecting)
    # The older ones never: those take long.
    gc.set_threshold(OFTEN, 1_000_000, 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collecting)
        del used_up
