"""What a story is, and where it plays: actors who talk to Redis, a clock, and somebody who listens.

Takes an address and a function for lines; gives actors and what they say.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

from chaosproxy.demo.client import Client

#: How long a model thinks and a person waits, in seconds.
MODEL = 0.02
PACE = 0.2


class Scene:
    """One performance. Actors may act at once, each in a thread; what they say is told line by line."""

    def __init__(self, address: tuple[str, int], say: Callable[[str], None]) -> None:
        self._address, self._say = address, say
        self._began = time.monotonic()
        self._lock = Lock()

    def tell(self, name: str, text: str) -> None:
        """Say what somebody did, with the time since the beginning."""
        with self._lock:
            self._say(f"  {time.monotonic() - self._began:5.2f} s  {name:<8}  {text}")

    def client(self, name: str) -> Client:
        """Open a connection for this actor."""
        return Client(self._address, name, self.tell)

    def together(self, *acts: Callable[[], None]) -> None:
        """Have them act at the same time, and wait for all; what one of them raises is raised."""
        with ThreadPoolExecutor(len(acts)) as actors:
            for act in [actors.submit(act) for act in acts]:
                act.result()


#: Plays once and gives how the memory was broken, "" if it is whole. The text is a session that was never used.
Play = Callable[[Scene, str], str]


@dataclass(frozen=True, slots=True)
class Story:
    """An application with a bug, the profiles that bring it out, and its repair."""

    name: str
    summary: str
    profiles: tuple[str, ...]
    buggy: Play
    repaired: Play


def missing(wanted: list[str], found: list[str]) -> str:
    """Say what a memory lacks, or that its order is another; "" if it has all of it in order."""
    if found == wanted:
        return ""
    lacks = [each for each in wanted if each not in found]
    return f"gone: {', '.join(lacks)}" if lacks else f"in this order: {', '.join(found)}"
