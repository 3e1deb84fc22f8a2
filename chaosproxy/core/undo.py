"""What a failover loses: the writes of its window, and how what they wrote to was before.

Takes each write on its way (its places, then how they were) and when it was applied; gives, at the switch, those that are lost (`lost`:
what they come to).

A place's image is of use only if nothing comes between that and the write: so while a write is
on its way nobody else writes to its places (`claim`). Writes to other places pass meanwhile. A command that waits for others
(BLPOP) claims nothing while it does: whoever writes to a place that one waits at takes the images of all its places.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from chaosproxy.core.lost import EVERYTHING, Lost, Place, Written, lost
from chaosproxy.core.memory import COST

#: How many bytes of images are kept at most; with the oldest goes what could be undone.
MOST_BYTES: Final = 256 << 20


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
    #: How often everything was claimed: what was known of a place before says nothing of what is written there behind that.
    _age: int = 0
    #: The same as one that had waited, and may have written anywhere, was last answered.
    _blinded: int = 0

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
        if every:
            self._age += 1
            self._known.clear()
        written.places, written.claimed, written.age = tuple(places), True, self._age
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
        if written.waits and not written.writes:
            # What was sent behind it goes on by itself, and nobody has asked just before that.
            for each in self._parked:
                each.giver = None if each.connection == written.connection else each.giver
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
            written.certain, written.blind = False, EVERYTHING in written.places
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
        since = self.opens if self.window is None else self.window
        if written.blind and not written.claimed:
            # It has waited: others wrote meanwhile, and what they had asked before that says nothing now.
            self._age += 1
            self._blinded = self._age
            self._known.clear()
        elif written.claimed and written.age < self._blinded:
            written.blind = True
        stands = written.age == self._age and EVERYTHING not in written.places
        if stands and since is not None and now >= since and self.writes is None:
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
        return lost(taken)

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
