"""A client on its way in: what it meets before anybody is dialled for it, and what it says before anybody hears it.

Takes what was decided for it, and its first bytes; gives the one thing that turns it away, or None when it may go on.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from chaosproxy.core.decision import Admit

#: What a client may send before its upstream side is there, in bytes; then it is no longer read.
EARLY: Final = 65536


class Entrance:
    """One client's way in. Once `let_in` is called nothing holds or stops it any more."""

    __slots__ = ("_admitted", "_early", "_let_in")

    def __init__(self, admitted: Sequence[Admit] = ()) -> None:
        self._admitted = admitted
        self._let_in = asyncio.Event()
        self._early = bytearray()

    @property
    def is_full(self) -> bool:
        """Whether the client has said as much as it may for now."""
        return len(self._early) > EARLY

    def keep(self, data: bytes) -> None:
        """The client says something already."""
        self._early += data

    def take(self) -> bytes:
        """Give all it has said, and keep nothing."""
        early = bytes(self._early)
        self._early.clear()
        return early

    def let_in(self) -> None:
        """Another profile is in force: what was decided under the old one is over."""
        self._let_in.set()

    async def pass_through(self) -> Admit | None:
        """Wait as long as was decided; give what turns the client away (refuse, reset, error), or None."""
        for admit in self._admitted:
            if admit.delay:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._let_in.wait(), admit.delay)
            if self._let_in.is_set():
                return None
            match admit.what:
                case "accept":
                    continue
                case "accept_silent":
                    await self._let_in.wait()
                case _:
                    return admit
        return None
