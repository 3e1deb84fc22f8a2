"""Clients too many: told so, as Redis tells them, and closed; of them too there can be too many.

Takes a client that has just come; gives it the error and a moment to read it.
"""

import asyncio
from collections import deque
from time import monotonic
from typing import Final

from chaosproxy.counts import Counts
from chaosproxy.net.ending import LINGER, Farewell

#: What Redis answers to a client too many, word for word.
TOO_MANY: Final = b"-ERR max number of clients reached\r\n"
#: How many are given a moment to read it, at once; whoever comes beyond these is closed without a word.
MOST: Final = 128


class Refusals:
    """All of one proxy, counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        # Until when each of those that were told of late is here.
        self._here: deque[float] = deque()

    def refuse(self, client: asyncio.Transport, full: bool) -> None:
        """One more; `full`: there are as many clients as may be, else something else is scarce."""
        self._counts.connections["max_clients"] += 1
        self._counts.limits.reached("connections", full)
        now = monotonic()
        while self._here and self._here[0] <= now:
            self._here.popleft()
        if len(self._here) >= MOST:
            client.abort()
            return
        self._here.append(now + LINGER)
        client.write(TOO_MANY)
        Farewell(client, eof=False)
