"""What a failover loses: the writes of its window, and how what they wrote to was before.

Takes each write on its way (its places, then how they were) and when it was applied; gives, at the switch, the requests that put
everything back, and the list of what is lost by that.

A *place* is a key in a database. Its image is of use only if nothing comes between that and the write: so while a write is
on its way nobody else writes to its places (`claim`). Writes to other places pass meanwhile. A command that waits for others
(BLPOP) claims nothing while it does: whoever writes to a place that one waits at takes the images of all its places.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from chaosproxy.core.memory import COST, Image, restore
from chaosproxy.core.resp import encode_command

Place = tuple[int, bytes]
#: Stands for every key of every database.
EVERYTHING: Final[Place] = (-1, b"")
#: How many bytes of images are kept at most; with the oldest goes what could be undone.
MOST_BYTES: Final = 256 << 20


@dataclass(slots=True, eq=False)
class Written:
    """One write, or one transaction, on its way or applied.

    `writes`: of each command in it that was applied, its name and the keys it may have written. `kept`: those that cannot be
    undone, by name, and why. `images`: how its places were just before, None: that is not known. `swaps`: the databases
    that it has swapped, two by two. `certain`: Redis has said that it was applied; else nobody knows. `partly`: it has failed, and
    may have written before that. `claimed`: its places are its own for now. `giver`: which of others' writes gave it what it had waited
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


@dataclass(slots=True)
class UndoLog:
    """The writes that a failover may still lose: those of the last `seconds`, or the last so many `writes`.

    `opens`: since when all that is written will be lost, if that is known. `window`: the same once it has begun.
    """

    seconds: float | None = None
    writes: int | None = None
    opens: float | None = None
    window: float | None = None
    size: int = 0
    _applied: deque[Written] = field(default_factory=deque)
    _claims: dict[Place, list[int]] = field(default_factory=dict)
    _waiting: list[int] = field(default_factory=list)
    _parked: list[Written] = field(default_factory=list)
    #: Places whose image is from inside the window already: no other is needed.
    _known: set[Place] = field(default_factory=set)

    # -- on its way

    def reach(self, places: Iterable[Place]) -> tuple[Place, ...]:
        """These places, and those that commands write to which wait at one of them."""
        found = dict.fromkeys(places)
        grown = bool(self._parked)
        while grown:
            grown = False
            for parked in self._parked:
                if not found.keys().isdisjoint(parked.places):
                    new = [place for place in parked.places if place not in found]
                    found.update(dict.fromkeys(new))
                    grown = grown or bool(new)
        return tuple(found)

    def waited_at(self, dbs: Collection[int]) -> list[Place]:
        """Where in these databases somebody waits: who swaps them may give them what they wait for."""
        return [place for parked in self._parked for place in parked.places if place[0] in dbs]

    def missing(self, places: Iterable[Place]) -> tuple[Place, ...]:
        """Of these places those whose image is still needed."""
        return tuple(place for place in places if place not in self._known)

    def claim(self, written: Written, places: Sequence[Place]) -> bool:
        """Take these places for a write on its way; False if another connection has one: it is to be woken then.

        If one waits there and goes on because of this write, this one's images say how all was before.
        """
        owner = written.connection
        every = EVERYTHING in places
        held = list(self._claims) if every else [*places, EVERYTHING]
        crowd = [each for each in self._parked if every or not set(each.places).isdisjoint(places)]
        # Who goes on because of which of two writes could not be told, even of one connection.
        owners = {-1} if crowd else {owner}
        if any(not owners.issuperset(self._claims.get(place, ())) for place in held):
            if owner not in self._waiting:
                self._waiting.append(owner)
            return False
        for place in places:
            self._claims.setdefault(place, []).append(owner)
        written.places, written.claimed = tuple(places), True
        for parked in crowd:
            parked.images.clear()
            parked.giver = written
        return True

    def gives(self, written: Written) -> bool:
        """Whether somebody waits who may go on because of this write."""
        return any(parked.giver is written for parked in self._parked)

    def release(self, written: Written) -> list[int]:
        """A write has left its places: give the connections that may try again."""
        if not written.claimed:
            return []
        written.claimed = False
        for place in written.places:
            self._claims[place].pop()
            if not self._claims[place]:
                del self._claims[place]
        woken, self._waiting = self._waiting, []
        return woken

    def park(self, written: Written) -> list[int]:
        """It waits at the server for what others write: they may."""
        written.waits = True
        self._parked.append(written)
        return self.release(written)

    def end(self, written: Written, now: float) -> list[int]:
        """Redis has answered it: keep what was applied, and give the connections that may try again."""
        self.applied(written, now)
        return self.release(written)

    def applied(self, written: Written, now: float) -> None:
        """Redis has answered it, and it does not leave its places yet."""
        self._leave(written)
        giver, written.giver = written.giver, None
        took = bool(written.writes) and giver is not None and _knows(giver, written.places)
        written.writes += written.given
        if giver is not None and took and (giver.claimed or giver.logged):
            if giver.logged:
                self.size += sum(len(key) + COST for _, own in written.writes for key in own)
                giver.writes += written.writes
            else:
                giver.given += written.writes
            return
        if giver is not None:
            written.images = dict.fromkeys(written.places)
        if written.writes or written.kept or written.partly:
            self._keep(written, now)

    def drop(self, written: Written, now: float) -> list[int]:
        """Nobody will answer it any more: if it has left, it may have been applied all the same."""
        written.writes[:] = written.given
        if written.sent and not written.waits:
            written.certain = False
            self._keep(written, now)
        self._leave(written)
        return self.release(written)

    def _leave(self, written: Written) -> None:
        if written.waits:
            written.waits = False
            self._parked.remove(written)

    # -- applied

    def _keep(self, written: Written, now: float) -> None:
        written.at, written.logged = now, True
        self._applied.append(written)
        self.size += written.size
        if written.swaps:
            self._known.clear()
        since = self.opens if self.window is None else self.window
        if since is not None and now >= since and self.writes is None:
            self._known.update(place for place, image in written.images.items() if image)
        if self.window is None:
            self._forget_old(now)
        while self.size > MOST_BYTES:
            self._forget()

    def _forget_old(self, now: float) -> None:
        """Let go of what cannot be lost any more."""
        if self.writes is None:
            oldest = now - (self.seconds or 0.0)
            # It may begin later than it was to: its window is older then.
            oldest = oldest if self.opens is None else min(oldest, self.opens)
            while self._applied[0].at < oldest:
                self._forget()
            return
        count = sum(len(each.writes) for each in self._applied)
        while count - len(self._applied[0].writes) >= self.writes:
            count -= len(self._applied[0].writes)
            self._forget()

    def _forget(self) -> None:
        """With the oldest goes what could be undone; what comes to its places is asked about anew."""
        oldest = self._applied.popleft()
        oldest.logged = False
        self._known.difference_update(oldest.images)
        self.size -= oldest.size

    # -- the switch

    def lose(self) -> Lost:
        """Take all that is lost at a switch now."""
        taken: list[Written] = []
        count = 0
        while self._applied:
            last = self._applied[-1]
            if count >= self.writes if self.writes is not None else last.at < (self.window or 0.0):
                break
            taken.append(self._applied.pop())
            last.logged = False
            count += len(last.writes)
        self.clear()
        self.window = None
        return _lost(taken)

    def clear(self) -> None:
        """What has been applied by now cannot be lost any more."""
        for each in self._applied:
            each.logged = False
        self._applied.clear()
        self._known.clear()
        self.size = 0


def _knows(giver: Written, places: Iterable[Place]) -> bool:
    """Whether its images say how these places were: not if it may have written anywhere."""
    return not set(giver.places).isdisjoint(places)


def _lost(taken: Sequence[Written]) -> Lost:
    """What these writes, the last one first, come to, and what puts their places back."""
    writes = [write for each in reversed(taken) for write in each.writes]
    kept = [each for unit in reversed(taken) for each in unit.kept]
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
        # What one that nobody answered for does not know says nothing.
        first.update(
            (place, image)
            for place, image in each.images.items()
            if image is not None or each.certain
        )
    put_back()
    if db:
        ask(encode_command(b"SELECT", b"0"))
    lost = Lost(tuple(writes), tuple(kept), tuple(requests), tuple(puts))
    return but(_together(lost, unknown, taken), unknown, "no_image")


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
