"""Clients that do not get in: those too many are told so, as Redis tells them, and closed; of them too there can be too many.

Takes a client that has just come, and gives it the error and a moment to read it; those with which no TLS comes about are counted.
"""

import asyncio
import logging
import ssl
from collections import deque
from time import monotonic
from typing import Final

from chaosproxy.counts import Counts
from chaosproxy.net.ending import LINGER, Farewell
from chaosproxy.net.tls import tell_failures

#: What Redis answers to a client too many, word for word.
TOO_MANY: Final = b"-ERR max number of clients reached\r\n"
#: How many are given a moment to read it, at once; whoever comes beyond these is closed without a word.
MOST: Final = 128

_log = logging.getLogger("chaosproxy.refusals")


class Refusals:
    """All of one proxy, counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        # Until when each of those that were told of late is here.
        self._here: deque[float] = deque()
        self._warned = False

    def over_tls(self, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """Give the context in which clients come; those that get no further than that are counted from now on."""
        if context is not None:
            tell_failures(context, self._without_tls, self._left)
        return context

    def _left(self) -> None:
        # Nothing is wrong with a check of whether somebody listens; nor may a log be written from here.
        self._counts.connections["no_tls"] += 1

    def _without_tls(self, why: str) -> None:
        self._counts.connections["no_tls"] += 1
        # Whoever does not speak it tries again and again.
        level = logging.DEBUG if self._warned else logging.WARNING
        self._warned = True
        _log.log(level, "no TLS with a client: %s", why)

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
