"""Clients that are not read at the moment: whether they are still there.

Takes links whose client is no longer read, or is again; counts why, and aborts those whose client has reset its connection meanwhile.
"""

import asyncio
from typing import Final

from chaosproxy.counts import Limits
from chaosproxy.net.connection import Link
from chaosproxy.net.ending import was_reset

#: How often it is looked, in seconds.
_WATCH: Final = 0.1


class Held:
    """The links whose client is not read. A socket that is not read says nothing of its end; so it is asked."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._links: set[Link] = set()
        self._watching = False

    def add(self, link: Link) -> None:
        """A link's client is no longer read."""
        self._links.add(link)
        if link.relaying:
            self._limits.reached("client", link.conversation.client_paused)
        else:
            self._limits.reached("early", link.entrance.is_full)
        if not self._watching:
            self._watching = True
            asyncio.get_running_loop().call_later(_WATCH, self._look)

    def discard(self, link: Link) -> None:
        """It is read again, or gone."""
        self._links.discard(link)

    def _look(self) -> None:
        for link in list(self._links):
            if link.client is None or was_reset(link.client):
                self._links.discard(link)
                link.abort()
        self._watching = bool(self._links)
        if self._watching:
            asyncio.get_running_loop().call_later(_WATCH, self._look)
