"""The last minutes, a line a second: what a chart is drawn from without anybody having watched.

Takes a function that reads what was counted so far; gives what has happened in each second, bounded in number.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, time
from typing import Any, Final

from chaosproxy.control.answer import Answer, Request, as_json
from chaosproxy.control.backend import Backend

#: How often it is looked, in seconds.
STEP: Final = 1.0
#: For how many looks it is remembered.
KEPT: Final = 900


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was counted since the start, and what is now.

    `delayed` times a delay was added, `delay` seconds in all. `fired` is by a fault's name, whichever profile it was in.
    """

    profile: str
    generation: int
    commands: int
    delayed: int
    delay: float
    connections: int
    fired: Mapping[str, int]


class Timeline:
    """Looks every `step` seconds, from `start` to `stop`, in a thread of its own; may be read from any."""

    def __init__(self, read: Callable[[], Numbers], step: float = STEP, kept: int = KEPT) -> None:
        self._read = read
        self._step = step
        self._seconds: deque[dict[str, Any]] = deque(maxlen=kept)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaosproxy-timeline", daemon=True)
        self._last = read()
        self._looked = monotonic()

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more, but once at what has happened since the last look."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
            self.look(monotonic())

    def seconds(self) -> list[dict[str, Any]]:
        """Give what is remembered, the latest last."""
        with self._lock:
            return list(self._seconds)

    def look(self, now: float) -> None:
        """Write down what has happened since the last look; `now` is monotonic."""
        then, new = self._last, self._read()
        with self._lock:
            number = self._seconds[-1]["n"] + 1 if self._seconds else 1
            self._seconds.append(
                {
                    "n": number,
                    "at": datetime.fromtimestamp(time(), UTC).isoformat(timespec="milliseconds"),
                    "seconds": round(now - self._looked, 3),
                    "profile": new.profile,
                    "generation": new.generation,
                    "commands": new.commands - then.commands,
                    "delayed": new.delayed - then.delayed,
                    "delay": round(new.delay - then.delay, 6),
                    "connections": new.connections,
                    "fired": {
                        name: more
                        for name, count in new.fired.items()
                        if (more := count - then.fired.get(name, 0)) > 0
                    },
                }
            )
        self._last, self._looked = new, now

    def _run(self) -> None:
        due = monotonic() + self._step
        while not self._stopping.wait(max(0.0, due - monotonic())):
            now = monotonic()
            self.look(now)
            # After a pause of the whole machine nothing is made up for.
            due = max(due + self._step, now)


def get_timeline(backend: Backend, request: Request) -> Answer:
    """What is remembered, or what of it is new."""
    request.only("after")
    seconds = backend.timeline()
    after = request.number("after", 0)
    last = seconds[-1]["n"] if seconds else 0
    return as_json({"seconds": [each for each in seconds if each["n"] > after], "last": last})
