"""The one timer of a conversation.

Takes deadlines on the monotonic clock; gives a call at each, never early.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

#: So many seconds before its time an alarm is on time; what it tells is its time all the same.
SLACK = 0.00005
#: The shortest wait that both loops take for one: uvloop counts whole milliseconds.
SHORTEST = 0.001


class Alarm:
    """Calls `ring(now)` once `due` has come; `now` is at least `due`."""

    __slots__ = ("_ring", "_timer", "due")

    def __init__(self, ring: Callable[[float], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self.due: float | None = None

    def set(self, due: float | None, now: float) -> None:
        """Replace the deadline; None: there is none."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.due = due
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(due - now, 0), self._expire)

    def _expire(self) -> None:
        due, now = self.due, monotonic()
        if due is None:
            return
        if due - now > SLACK:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(due - now, SHORTEST), self._expire)
            return
        self.due = self._timer = None
        self._ring(max(now, due))


def _nobody(_now: float) -> None:
    """Ring for nobody."""


#: The alarm of whoever has had no deadline yet, which is never set to one: most clients never have any.
UNSET: Final = Alarm(_nobody)
