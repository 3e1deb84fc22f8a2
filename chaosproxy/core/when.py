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
_BITS: Final = 2.0**-53


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
        "_block", "_counts", "_divided", "_name", "_numbered", "_prefix", "_recording", "_rolls", "_seen", "_selected",
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
        ordinal = self._seen[per] = self._seen.get(per, 0) + 1
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

    def _roll(self, per: str, number: int) -> float:
        """The roll of a match, in [0, 1): it depends on the seed, the rule's name, what it counts over and the number."""
        block, index = divmod(number, 8)
        if self._block != (per, block):
            self._block = per, block
            words = f"{self._prefix}{per}/{block}".encode()
            self._rolls = _ROLLS.unpack(blake2b(words).digest())
        return (self._rolls[index] >> 11) * _BITS

    def give_back(self, turn: Turn) -> None:
        """It could not act on this match after all: that spends neither its limit nor a request."""
        if self._recording is None and turn.ordinal:
            self._selected[turn.per] -= 1
            self.requests += self._when.trigger is not None and self.spends

    def _scope(self, exchange: Exchange, key: bytes | None) -> str:
        """What this match counts in, where that is not the whole fault: its key, or its connection."""
        if self._when.per == "connection":
            return str(exchange.connection)
        return "" if key is None else key.decode("latin-1")

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
