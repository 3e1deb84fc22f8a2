"""What lies between MULTI and EXEC: the commands a server has queued, and which part of EXEC's array each gives.

Takes commands as they are queued; gives their parts of the array.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chaosproxy.core.channels import Args, Channels

#: More commands in one transaction are not kept count of.
MOST_QUEUED: Final = 1_000_000


@dataclass(slots=True)
class Entry:
    """One command between MULTI and EXEC. `frames`: how many elements of EXEC's array it gives.

    `args` are kept only where they matter at EXEC. `absent`: the server never saw it, the proxy gives its element.
    `element` is whatever the conversation keeps with it.
    """

    frames: int
    args: Args | None
    element: object = None
    absent: bool = False


@dataclass(slots=True)
class Transaction:
    """From MULTI's +OK to EXEC. `db` follows queued SELECTs, `channels` queued subscriptions.

    `unanswered`: there was no +OK, since its client wanted no reply; the server may have refused it.
    """

    db: int
    channels: Channels
    entries: list[Entry] = field(default_factory=list)
    #: Bytes that are kept of its commands for the rules: they themselves, their keys' images, answers of ours.
    held: int = 0
    unanswered: bool = False

    @property
    def turns(self) -> bool:
        """Whether a queued command changes the connection when EXEC carries it out."""
        return any(entry.args is not None for entry in self.entries)

    @property
    def looked_at(self) -> bool:
        """Whether something was decided for an element of EXEC's array."""
        return any(entry.element is not None for entry in self.entries)

    def asks_for(self, kind: bytes | None) -> bool:
        """Whether EXEC's reply has confirmations of this kind."""
        return any(kind == (entry.args[0] or b"").lower() for entry in self.entries if entry.args)

    def shares(self, array: Sequence[bytes]) -> list[range]:
        """Where each entry's part is in EXEC's elements and the frames that follow them: all, or as far as they are here.

        A subscription that is refused only now (Valkey's SSUBSCRIBE) gives one error, however many channels it names.
        """
        shares = []
        index = 0
        for entry in self.entries:
            refused = index < len(array) and array[index][:1] == b"-"
            share = range(index, index + (0 if entry.absent else 1 if refused else entry.frames))
            shares.append(share)
            index = share.stop
        return shares

    @property
    def overflows(self) -> bool:
        """Whether frames may follow EXEC's array that its header does not count."""
        return any(entry.frames > 1 for entry in self.entries)

    def missing(self, array: Sequence[bytes]) -> int:
        """How many frames are still to follow EXEC's elements and those frames that are here: its header does not count them all."""
        return max(0, self.shares(array)[-1].stop - len(array))
