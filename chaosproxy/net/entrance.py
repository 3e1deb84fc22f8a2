"""A client on its way in: what it meets before anybody is dialled for it, and what it says before anybody hears it.

Takes what was decided for it, and its first bytes; gives the one thing that turns it away, or None when it may go on, and
what writes down that it met this.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Final

from chaosproxy.core.admission import Meeting
from chaosproxy.core.decision import Admit
from chaosproxy.core.effect import Fired, Skipped

#: What a client may send before its upstream side is there, in bytes; then it is no longer read.
EARLY: Final = 65536


class Entrance:
    """One client's way in. Once `let_in` is called nothing holds or stops it any more."""

    __slots__ = ("_admitted", "_early", "_let_in", "_record")

    def __init__(
        self, admitted: Sequence[Meeting], record: Callable[[Fired | Skipped], None]
    ) -> None:
        self._admitted = admitted or ()
        self._record = record
        # Hardly any client meets anything.
        self._let_in = asyncio.Event() if admitted else None
        self._early: bytearray | None = None

    @property
    def is_full(self) -> bool:
        """Whether the client has said as much as it may for now."""
        return self._early is not None and len(self._early) > EARLY

    @property
    def waits(self) -> bool:
        """Whether the client has said something and only its upstream side is missing: no rule keeps it out."""
        return bool(self._early) and self._let_in is None

    def keep(self, data: bytes) -> None:
        """The client says something already."""
        if self._early is None:
            self._early = bytearray()
        self._early += data

    def take(self) -> bytes:
        """Give all it has said, and keep nothing."""
        early, self._early = self._early or b"", None
        return bytes(early)

    def let_in(self) -> None:
        """Another profile is in force: what was decided under the old one is over."""
        if self._let_in is not None:
            self._let_in.set()

    async def pass_through(self) -> Admit | None:
        """Wait as long as was decided; give what turns the client away (refuse, reset, error), or None."""
        if self._let_in is None:
            return None
        ahead, self._admitted = deque(self._admitted), ()
        reason = "switched"
        try:
            while ahead and not self._let_in.is_set():
                meeting = ahead.popleft()
                admit = meeting.decision
                if admit.delay and not await self._wait(self._let_in, meeting, admit.delay):
                    break
                self._record(meeting.fired)
                match admit.what:
                    case "accept":
                        continue
                    case "accept_silent":
                        await self._let_in.wait()
                    case _:
                        return admit
        except asyncio.CancelledError:
            reason = "client_gone"
            raise
        finally:
            self._miss(ahead, reason)
        return None

    def left(self) -> None:
        """The client is gone, maybe before it has come as far as to meet anything."""
        missed, self._admitted = self._admitted, ()
        self._miss(missed, "client_gone")

    def _miss(self, meetings: Iterable[Meeting], reason: str) -> None:
        for meeting in meetings:
            fired = meeting.fired
            self._record(Skipped(fired.fault, reason, fired.generation))

    async def _wait(self, let_in: asyncio.Event, meeting: Meeting, delay: float) -> bool:
        """Let the client wait; False if that ended before its time, which is then what it met."""
        began = monotonic()
        try:
            async with asyncio.timeout(delay):
                await let_in.wait()
        except TimeoutError:
            return True
        except asyncio.CancelledError:
            self._record(meeting.gone(monotonic() - began))
            raise
        self._record(meeting.let_in(monotonic() - began))
        return False


#: Of all clients that are in: nothing waits at it any more, and nothing may be kept.
PASSED: Final = Entrance((), lambda _effect: None)
