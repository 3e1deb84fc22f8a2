"""What of a replication stream has not crossed yet: held back for its lag, and lost when the standby takes over.

Takes pieces and times; gives those whose time has come, and in the end the writes that never crossed.
"""

from collections import deque
from typing import Final

from chaosproxy.topology.stream import Piece, Write

#: As many bytes are held; more are not read from the primary until some have crossed.
MOST: Final = 64 << 20
FOREVER: Final = float("inf")


class Backlog:
    """The pieces between a primary and its standby, oldest first.

    `lag`: how many seconds after its arrival a piece crosses. `keep`: so many writes, the latest, never cross. `crossed` is
    the replication offset of what has. Once `frozen` nothing crosses any more, and only what is written is remembered.
    """

    def __init__(self, lag: float = 0.0, keep: int = 0) -> None:
        self.lag = lag
        self.keep = keep
        self.size = 0
        self.frozen = False
        self.crossed: int | None = None
        self._held: deque[tuple[float, Piece]] = deque()
        self._writes = 0
        self._lost: list[Write] = []

    @property
    def full(self) -> bool:
        """Whether it holds as much as it may."""
        return self.size > MOST and not self.frozen

    @property
    def due(self) -> float:
        """When the next piece may cross; FOREVER: not before more comes."""
        if self._held and self._may_cross():
            return self._due(*self._held[0])
        return FOREVER

    @property
    def lost(self) -> list[Write]:
        """The writes that are held, oldest first."""
        return [*self._lost, *(write for _, piece in self._held for write in piece.writes)]

    def add(self, piece: Piece, now: float) -> None:
        """A piece has come from the primary."""
        if self.frozen:
            self._lost += piece.writes
            return
        self._held.append((now, piece))
        self._writes += len(piece.writes)
        self.size += len(piece.raw)

    def take(self, now: float) -> list[bytes]:
        """Give what crosses now."""
        out = []
        while not self.frozen and self.due <= now:
            _, piece = self._held.popleft()
            self._writes -= len(piece.writes)
            self.size -= len(piece.raw)
            if piece.end is not None:
                self.crossed = piece.end
            out.append(piece.raw)
        return out

    def freeze(self) -> None:
        """From here on nothing crosses."""
        self._lost = self.lost
        self.frozen = True
        self._held.clear()
        self._writes = self.size = 0

    def _due(self, arrived: float, piece: Piece) -> float:
        # What comes before the first command makes the standby what the primary was: that takes no time.
        return arrived if piece.end is None else arrived + self.lag

    def _may_cross(self) -> bool:
        return (
            self._writes - len(self._held[0][1].writes) >= self.keep or not self._held[0][1].writes
        )
