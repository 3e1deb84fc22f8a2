"""What keys were before each write: how a lagging replica would still know them.

Takes a key as it was before a write; gives how it was so long, or so many writes, ago.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from chaosproxy.core.resp import encode_command

#: How many keys are remembered, how many writes of each, and how many bytes in all; the oldest are forgotten first.
MOST_KEYS = 4096
MOST_WRITES = 256
MOST_BYTES = 64 << 20
#: Bytes that an image takes beside its value and its key's name.
COST = 128


@dataclass(frozen=True, slots=True)
class Image:
    """A key as it was: its serialized value (None: it did not exist), and when its life ends.

    `ends` is milliseconds since 1970 by the server's clock, None: never.
    """

    dump: bytes | None
    ends: int | None = None


@dataclass(slots=True)
class Memory:
    """The images of a rule's keys, by database and key, oldest write first.

    `span` and `writes`: no image older than so many seconds, or followed by so many others, will be asked for.
    """

    span: float | None = None
    writes: int | None = None
    size: int = 0
    _images: OrderedDict[tuple[int, bytes], deque[tuple[float, Image]]] = field(
        default_factory=OrderedDict
    )

    def keep(self, db: int, key: bytes, now: float, image: Image) -> None:
        """A write was applied: keep what the key was until now; one that is too large takes its key's past with it."""
        place = (db, key)
        if _size(key, image) > MOST_BYTES:
            self._drop(place)
            return
        images = self._images.setdefault(place, deque())
        self._images.move_to_end(place)
        images.append((now, image))
        self.size += _size(key, image)
        most = min(self.writes or MOST_WRITES, MOST_WRITES)
        while len(images) > most or (len(images) > 1 and self._is_over(images[0][0], now)):
            self.size -= _size(key, images.popleft()[1])
        while len(self._images) > MOST_KEYS or self.size > MOST_BYTES:
            self._drop(next(iter(self._images)))

    def _is_over(self, until: float, now: float) -> bool:
        return self.span is not None and until <= now - self.span

    def forget(self, db: int | None = None) -> None:
        """What is known of a database (None: of all) holds no more."""
        for place in [place for place in self._images if db in (None, place[0])]:
            self._drop(place)

    def _drop(self, place: tuple[int, bytes]) -> None:
        self.size -= sum(_size(place[1], each) for _, each in self._images.pop(place, ()))

    def as_of(self, db: int, key: bytes, then: float) -> Image | None:
        """What the key was at that time; None: it has not changed since, as far as is known."""
        for until, image in self._images.get((db, key), ()):
            if until > then:
                return image
        return None

    def behind(self, db: int, key: bytes, writes: int) -> Image | None:
        """What the key was before its last so many writes; None: that is not known.

        Of a key that was made by fewer writes than that, a replica so far behind knows nothing yet.
        """
        images = self._images.get((db, key), ())
        if len(images) >= writes:
            return images[-writes][1]
        return images[0][1] if images and images[0][1].dump is None else None


@dataclass(slots=True)
class Taken:
    """One key as it is before a write; `image` is None as long as the server has not said, or would not."""

    memory: Memory
    db: int
    key: bytes
    image: Image | None = None


def _size(key: bytes, image: Image) -> int:
    return COST + len(key) + len(image.dump or b"")


def restore(key: bytes, image: Image) -> bytes:
    """The request that makes a key what it was: its value, type and end."""
    if image.dump is None:
        return encode_command(b"UNLINK", key)
    ends = b"%d" % (image.ends or 0)
    return encode_command(b"RESTORE", key, ends, image.dump, b"REPLACE", b"ABSTTL")
