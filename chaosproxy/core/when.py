"""Which of the matching exchanges a rule acts on: `when`, with its counts and its keyed streams.

Takes one match after another (its key, its connection, the time); gives a match number and a roll, or the reason why not.
"""

from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Final

from chaosproxy.core.match import Exchange
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import When

#: So many rolls come of one hash, 64 bits each; a float has 53 of them.
_ROLLS: Final = Struct("<8Q")
_A_HASH: Final = 8
_BITS: Final = 2.0**-53
#: Of how many keys or connections is counted; the longest untouched is forgotten first, and begins anew.
MOST_SCOPES: Final = 65536
#: A longer key is counted by its digest, in bytes.
LONGEST_KEY: Final = 256
#: So far ahead is looked for the next match whose roll is low enough, in matches.
_FAR: Final = 64
#: Reasons for which a match is not even counted.
_UNCOUNTED: Final = ("disabled", "not_armed", "window")
#: All matches that are still to come.
ALL: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Turn:
    """A match that is to be acted on.

    `match` is its number, `stream` the key of its random stream, `draw` the roll of `chance` if there was one. `per` is what
    the rule counts over ('' for the whole fault), `ordinal` how many matches came there since the profile came into force,
    counted or not. `delay` is set in a replay: the seconds that were recorded.
    """

    match: int
    stream: str
    draw: float | None
    per: str
    ordinal: int
    delay: float | None = None


class Counter:
    """One rule's `when`. `since` is the time the profile came into force; `recording` is what to fire in a replay."""

    __slots__ = (
        "_block", "_counts", "_divided", "_high", "_hit", "_low", "_name", "_numbered", "_prefix", "_recording", "_rolls", "_seen", "_selected",
        "_since", "_timed", "_when", "armed", "enabled", "requests", "spends",
    )  # fmt: skip

    def __init__(
        self, when: When, seed: int, name: str, since: float, recording: Recording | None = None
    ) -> None:
        self._when = when
        self._name = name
        self._prefix = f"{seed}/{name}/"
        self._since = since
        self._recording = recording
        # Which of what `when` says there is to ask at all: this is done for every match.
        self._divided = when.per in {"key", "connection"}
        self._timed = (when.from_, when.until) != (None, None)
        self._numbered = (when.skip, when.nth, when.first, when.every) != (0, None, None, None)
        self._seen: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._selected: dict[str, int] = {}
        # The rolls that were made last, and which they are.
        self._block: tuple[str, int] | None = None
        self._rolls: tuple[int, ...] = ()
        # The rolls of the matches from `_low` up to `_high` are too high.
        self._low = self._high = 0
        # Whether that of `_high` is known not to be.
        self._hit = False
        self.armed = when.armed_by is None
        self.enabled = True
        self.requests = 0
        #: Whether each act takes one of the requests.
        self.spends = True

    def take(self, exchange: Exchange, key: bytes | None, now: float) -> Turn | str:
        """Count one match; give its turn, or why it is left alone.

        Reasons: disabled, not_armed, window, skip, nth, first, every, chance, limit, manual; in a replay not_recorded.
        """
        when = self._when
        per = self._scope(exchange, key) if self._divided else ""
        seen = self._seen
        ordinal = seen[per] = seen.pop(per, 0) + 1
        if len(seen) > MOST_SCOPES:
            self._forget(next(iter(seen)))
        if self._recording is not None:
            return self._replayed(self._recording, exchange, per, ordinal)
        asleep = self._timed or not (self.enabled and self.armed)
        reason = self._sleeps(now) if asleep else ""
        if reason:
            return reason
        number = self._counts[per] = self._counts.get(per, 0) + 1
        reason = self._refuses(number - when.skip) if self._numbered else ""
        if reason:
            return reason
        if when.trigger is not None and self.requests == 0:
            return "manual"
        draw = None
        if when.chance is not None:
            draw = self._roll(per, number)
            if draw >= when.chance:
                return "chance"
        selected = self._selected.get(per, 0)
        if when.limit is not None and selected >= when.limit:
            return "limit"
        self._selected[per] = selected + 1
        if when.trigger is not None and self.spends:
            self.requests -= 1
        return Turn(number, f"{self._prefix}{per}/{number}", draw, per, ordinal)

    @property
    def counts_all_alike(self) -> bool:
        """Whether `ahead` can tell anything: it counts over the whole fault, and nothing is replayed."""
        return not self._divided and self._recording is None

    def ahead(self, now: float) -> tuple[int, str]:
        """How many of the next matches will be left alone for one and the same reason, and which; 0 if that is not known."""
        when = self._when
        if reason := self._sleeps(now):
            return ALL, reason
        number = self._counts.get("", 0) + 1
        bound = ALL
        if self._numbered:
            bound, reason = self._refused(number - when.skip)
            if reason or not bound:
                return bound, reason
        if when.trigger is not None and self.requests == 0:
            return bound, "manual"
        if when.chance is not None:
            return min(bound, self._quiet(number, when.chance)), "chance"
        spent = when.limit is not None and self._selected.get("", 0) >= when.limit
        return (bound, "limit") if spent else (0, "")

    def leave(self, times: int, reason: str) -> None:
        """Count so many matches that `ahead` has told of."""
        self._seen[""] = self._seen.get("", 0) + times
        if reason not in _UNCOUNTED:
            self._counts[""] = self._counts.get("", 0) + times

    def _refused(self, ordinal: int) -> tuple[int, str]:
        """How many matches from this one on are refused, and why; without a reason: how many are not; 0 if that is not known."""
        when = self._when
        if ordinal <= 0:
            return 1 - ordinal, "skip"
        if when.nth is not None:
            coming = min((each for each in when.nth if each >= ordinal), default=ALL)
            return coming - ordinal, "nth"
        left = ALL if when.first is None else when.first - ordinal + 1
        if left <= 0:
            return ALL, "first"
        if when.every is not None:
            return min(left, -ordinal % when.every), "every"
        return left, ""

    def _quiet(self, number: int, chance: float) -> int:
        """How many rolls from this match's on are too high, as far as is looked."""
        if not self._low <= number <= self._high:
            self._low = self._high = number
            self._hit = False
        enough = chance / _BITS
        while not self._hit and self._high - number < _FAR:
            block, index = divmod(self._high, _A_HASH)
            rolls = self._hash("", block)[index:]
            low = next((at for at, roll in enumerate(rolls) if roll >> 11 < enough), None)
            self._high += len(rolls) if low is None else low
            self._hit = low is not None
        return self._high - number

    def _roll(self, per: str, number: int) -> float:
        """The roll of a match, in [0, 1): it depends on the seed, the rule's name, what it counts over and the number."""
        block, index = divmod(number, _A_HASH)
        return (self._hash(per, block)[index] >> 11) * _BITS

    def _hash(self, per: str, block: int) -> tuple[int, ...]:
        """The rolls of one hash; the last ones are kept."""
        if self._block != (per, block):
            self._block = per, block
            words = f"{self._prefix}{per}/{block}".encode()
            self._rolls = _ROLLS.unpack(blake2b(words).digest())
        return self._rolls

    def give_back(self, turn: Turn) -> None:
        """It could not act on this match after all: that spends neither its limit nor a request."""
        if self._recording is None and turn.ordinal:
            if turn.per in self._selected:
                self._selected[turn.per] -= 1
            self.requests += self._when.trigger is not None and self.spends

    def _scope(self, exchange: Exchange, key: bytes | None) -> str:
        """What this match counts in, where that is not the whole fault: its key, or its connection."""
        if self._when.per == "connection":
            return str(exchange.connection)
        if key is not None and len(key) > LONGEST_KEY:
            return f"blake2b:{blake2b(key).hexdigest()}"
        return "" if key is None else key.decode("latin-1")

    def _forget(self, per: str) -> None:
        """There are too many: what was counted there is counted no more."""
        for counts in (self._seen, self._counts, self._selected):
            counts.pop(per, None)

    def _replayed(
        self, recording: Recording, exchange: Exchange, per: str, ordinal: int
    ) -> Turn | str:
        command = exchange.command
        found = recording.find(self._name, per, ordinal, command.name, command.digest())
        if found is None:
            return "not_recorded"
        stream = f"{self._prefix}{per}/{found.match}"
        return Turn(found.match, stream, found.draw, per, ordinal, found.delay)

    def awake(self, now: float) -> bool:
        """Whether matches count now."""
        return not self._sleeps(now)

    def _sleeps(self, now: float) -> str:
        """Why matches do not even count now."""
        when = self._when
        if not self.enabled:
            return "disabled"
        if not self.armed:
            return "not_armed"
        age = now - self._since
        early = when.from_ is not None and age < when.from_
        late = when.until is not None and age >= when.until
        return "window" if early or late else ""

    def _refuses(self, ordinal: int) -> str:
        when = self._when
        if ordinal <= 0:
            return "skip"
        if when.nth is not None and ordinal not in when.nth:
            return "nth"
        if when.first is not None and ordinal > when.first:
            return "first"
        if when.every is not None and ordinal % when.every:
            return "every"
        return ""
