"""A token bucket: how many bytes a second may pass, over one connection or all.

Takes sizes and times; gives the time at which they may pass.
"""

#: How long one piece takes, in seconds: short enough to look like a slow line, long enough to cost little.
QUANTUM = 0.02
#: So many pieces are cut at a time.
MOST_PIECES = 1000


class Bucket:
    """`rate` is bytes a second. Nothing is saved up while nothing passes."""

    __slots__ = ("_free", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._free = 0.0

    def take(self, size: int, since: float) -> float:
        """Let `size` bytes pass as soon as those before them have; give the time at which they have passed.

        `since` is when they could have begun: of one transfer's next piece that is when the one before it had passed, not
        the later time at which somebody woke up to send it, or every late waking would make the line slower.
        """
        self._free = max(self._free, since) + size / self.rate
        return self._free

    def is_idle(self, now: float) -> bool:
        """Whether all has passed: then a new one would do as well."""
        return self._free <= now

    @property
    def size(self) -> int:
        """How many bytes take about QUANTUM seconds."""
        return max(1, int(self.rate * QUANTUM))

    def split(self, raw: bytes) -> list[bytes]:
        """Cut pieces of that size off the beginning of some bytes; the last one is the rest.

        Not all at once: of a large reply on a slow line they are millions.
        """
        size = self.size
        some = min(len(raw), MOST_PIECES * size)
        parts = [raw[at : min(at + size, some)] for at in range(0, some, size)]
        return [*parts, raw[some:]] if some < len(raw) else parts
