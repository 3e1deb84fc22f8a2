"""What keys were before each write: how a lagging replica would still know them.

Takes a key's DUMP from before a write; gives the one that was true so long, or so many writes, ago.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

#: How many keys are remembered, and how many writes of each; the oldest are forgotten first.
MOST_KEYS = 4096
MOST_WRITES = 256


@dataclass(frozen=True, slots=True)
class Image:
    """A key as it was until a write at time `until`: its serialized value, None where it did not exist."""

    until: float
    dump: bytes | None


@dataclass(slots=True)
class Memory:
    """The images of a rule's keys, by database and key, oldest write first."""

    _images: OrderedDict[tuple[int, bytes], deque[Image]] = field(default_factory=OrderedDict)

    def keep(self, db: int, key: bytes, now: float, dump: bytes | None) -> None:
        """A write follows: keep what the key was until now."""
        place = (db, key)
        images = self._images.setdefault(place, deque(maxlen=MOST_WRITES))
        self._images.move_to_end(place)
        images.append(Image(now, dump))
        while len(self._images) > MOST_KEYS:
            self._images.popitem(last=False)

    def as_of(self, db: int, key: bytes, then: float) -> Image | None:
        """What the key was at that time; None: it has not changed since, as far as is known."""
        for image in self._images.get((db, key), ()):
            if image.until > then:
                return image
        return None

    def behind(self, db: int, key: bytes, writes: int) -> Image | None:
        """What the key was before its last so many writes; None: there were not so many."""
        images = self._images.get((db, key), ())
        return images[-writes] if len(images) >= writes else None
