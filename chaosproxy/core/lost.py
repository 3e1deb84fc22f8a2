"""Writes that may be lost, what they come to where they are, and the requests that put back how all was before.

Takes writes, the last one first; gives what is lost of them, what stays and why, and the requests for that.

A *place* is a key in a database.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from chaosproxy.core.memory import COST, Image, restore
from chaosproxy.core.resp import encode_command

Place = tuple[int, bytes]
#: Stands for every key of every database.
EVERYTHING: Final[Place] = (-1, b"")


@dataclass(slots=True, eq=False)
class Written:
    """One write, or one transaction, on its way or applied.

    `writes`: of each command in it that was applied, its name and the keys it may have written. `kept`: those that cannot be
    undone, by name, and why. `images`: how its places were just before, None: that is not known. `swaps`: the databases
    that it has swapped, two by two. `certain`: Redis has said that it was applied; else nobody knows. `partly`: it has failed, and
    may have written before that. `blind`: it may have written to any key, and nobody knows how these were. `age`: how often somebody had
    claimed everything as this was claimed. `claimed`: its places are its own for now. `giver`: which of others' writes gave it what it had waited
    for, as far as is known; `given`: what that one's own has given so to others. The two are lost as one. `logged`: it may be lost.
    """

    connection: int
    places: tuple[Place, ...] = ()
    writes: list[tuple[str, tuple[bytes, ...]]] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    images: dict[Place, Image | None] = field(default_factory=dict)
    swaps: list[tuple[int, int]] = field(default_factory=list)
    sent: bool = False
    claimed: bool = False
    waits: bool = False
    certain: bool = True
    partly: bool = False
    blind: bool = False
    age: int = 0
    logged: bool = False
    giver: "Written | None" = None
    given: list[tuple[str, tuple[bytes, ...]]] = field(default_factory=list)
    at: float = 0.0

    @property
    def size(self) -> int:
        """Bytes that it takes: its images, and the names of its keys."""
        images = sum(len(image.dump or b"") for image in self.images.values() if image is not None)
        keys = sum(len(key) + COST for _, key in self.places)
        return images + keys + sum(len(key) + COST for _, own in self.writes for key in own)


@dataclass(frozen=True, slots=True)
class Lost:
    """What is lost at a switch: the writes (name and keys, in their order), and those that cannot be undone (name, why).

    `requests` undo it, `puts` are the keys that they put back, one a request (None: it is about none).
    """

    writes: tuple[tuple[str, tuple[bytes, ...]], ...]
    kept: tuple[tuple[str, str], ...]
    requests: tuple[bytes, ...]
    puts: tuple[bytes | None, ...] = ()


def lost(taken: Sequence[Written]) -> Lost:
    """What these writes, the last one first, come to, and what puts their places back.

    What one has done that may have written anywhere stays, and so does what was there before it: that one may have built on it.
    """
    kept = [each for unit in reversed(taken) for each in unit.kept]
    blind = next((index for index, each in enumerate(taken) if each.blind), len(taken))
    under = [name for each in reversed(taken[blind:]) for name, _ in each.writes]
    kept += [(name, "built_on") for name in under]
    taken = taken[:blind]
    writes = [write for each in reversed(taken) for write in each.writes]
    requests, puts, unknown = _put_back(taken)
    found = Lost(tuple(writes), tuple(kept), tuple(requests), tuple(puts))
    return but(_together(found, unknown, taken), unknown, "no_image")


def _put_back(taken: Sequence[Written]) -> tuple[list[bytes], list[bytes | None], set[bytes]]:
    """What puts their places back, of which keys each, and the keys that stay, as nobody knows how they were."""
    requests: list[bytes] = []
    puts: list[bytes | None] = []
    first: dict[Place, Image | None] = {}
    unknown: set[bytes] = set()
    db = 0

    def ask(request: bytes, key: bytes | None = None) -> None:
        requests.append(request)
        puts.append(key)

    def put_back() -> None:
        nonlocal db
        for (where, key), image in first.items():
            if image is None:
                unknown.add(key)
                continue
            if where != db:
                ask(encode_command(b"SELECT", b"%d" % where))
                db = where
            ask(restore(key, image), key)
        first.clear()

    for each in taken:
        if each.swaps:
            put_back()
        for pair in reversed(each.swaps):
            ask(encode_command(b"SWAPDB", *(b"%d" % number for number in pair)))
        _go_back(first, each)
    put_back()
    if db:
        ask(encode_command(b"SELECT", b"0"))
    return requests, puts, unknown


def _go_back(first: dict[Place, Image | None], written: Written) -> None:
    """How places were before this write as well. What one that nobody answered for does not know says nothing."""
    if not written.certain:
        first.update((place, image) for place, image in written.images.items() if image)
        return
    for place in written.places:
        if place != EVERYTHING:
            # Asked before, it is known from an older one.
            first.setdefault(place, None)
    first.update(written.images)


def _together(lost: Lost, unknown: set[bytes], taken: Sequence[Written]) -> Lost:
    """What was written together with a key that is not put back is not put back either; once databases were swapped a key tells no place."""
    if not unknown or any(each.swaps for each in taken):
        return lost
    size = 0
    while len(unknown) > size:
        size = len(unknown)
        unknown.update(k for _, own in lost.writes if not unknown.isdisjoint(own) for k in own)
    left = [each for each in zip(lost.requests, lost.puts, strict=True) if each[1] not in unknown]
    requests, puts = tuple(each for each, _ in left), tuple(key for _, key in left)
    return replace(lost, requests=requests, puts=puts)


def but(lost: Lost, keys: Collection[bytes], why: str) -> Lost:
    """The same without the writes to these keys, which were not put back."""
    stays = [name for name, own in lost.writes if not set(own).isdisjoint(keys)]
    gone = tuple(write for write in lost.writes if set(write[1]).isdisjoint(keys))
    return replace(lost, writes=gone, kept=lost.kept + tuple((name, why) for name in stays))
