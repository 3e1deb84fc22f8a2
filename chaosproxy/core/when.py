"""Which of the matching exchanges a rule acts on: `when`, with its counts and its keyed streams.

Takes one match after another (its key, its connection, the time); gives a match number and a roll, or the reason why not.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from chaosproxy.core.match import Exchange
from chaosproxy.core.replay import Recording
from chaosproxy.core.rolls import Rolls
from chaosproxy.core.rule import When

#: Of how many keys or connections is counted; the longest untouched is forgotten first, and begins anew.
MOST_SCOPES: Final = 65536
#: A longer key is counted by its digest, in bytes.
LONGEST_KEY: Final = 256
#: Reasons for which a match is not even counted.
UNCOUNTED: Final = ("disabled", "not_armed", "window")
#: All matches that are still to come.
ALL: Final = 1 << 62


@dataclass(slots=True)
class Turn:
    """A match that is to be acted on.

    `match` is its number, `stream` the key of its random stream, `draw` the roll of `chance` if there was one. `per` is what
    the rule counts over ('' for the whole fault), `ordinal` how many matches came there since the profile came into force,
    counted or not. `delay` is set in a replay: the seconds that were recorded. `spent`: it counts for `limit`.
    """

    match: int
    stream: str
    draw: float | None
    per: str
    ordinal: int
    delay: float | None = None
    spent: bool = True


@dataclass(slots=True)
class Allowance:
    """Matches that are left alone for one reason without a word: how many so far, and up to how many there may be unasked.

    Who finds that a match is left alone counts it in `passed`, which only ever grows, up to `most`.
    """

    passed: int = 0
    most: int = 0


class Counter:
    """One rule's `when`. `since` is the time the profile came into force; `recording` is what to fire in a replay.

    `first` is the number of the first connection that comes after that: it counts as 1, and whoever was there before as 0 and less.
    """

    __slots__ = (
        "_allowances", "_armed", "_before", "_counted", "_counts", "_divided", "_enabled", "_name", "_numbered", "_prefix", "_reason",
        "_recording", "_requests", "_rolls", "_seen", "_selected", "_since", "_timed", "_when", "allowance", "late", "spends",
    )  # fmt: skip

    def __init__(  # noqa: PLR0917 - what a rule is made with
        self,
        when: When,
        seed: int,
        name: str,
        since: float,
        recording: Recording | None = None,
        first: int = 1,
    ) -> None:
        self._when = when
        self._before = first - 1
        self._name = name
        self._prefix = f"{seed}/{name}/"
        self._rolls = Rolls(self._prefix)
        self._since = since
        self._recording = recording
        # Which of what `when` says there is to ask at all: this is done for every match.
        self._divided = when.per in {"key", "connection"}
        self._timed = (when.from_, when.until) != (None, None)
        self._numbered = (when.skip, when.nth, when.first, when.every) != (0, None, None, None)
        self._seen: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._selected: dict[str, int] = {}
        self._armed = when.armed_by is None
        self._enabled = True
        self._requests = 0
        #: Whether each act takes one of the requests.
        self.spends = True
        #: Whether it is known only later if a match can be acted on: what `limit` says is asked then (`spend`).
        self.late = False
        # By reason. Of the one in use: which, and how much of it is counted here.
        self._allowances: dict[str, Allowance] = {}
        self._reason, self._counted = "", 0
        #: The next matches, as long as it has any left; who would know of more asks `look_ahead`.
        self.allowance = Allowance()

    @property
    def enabled(self) -> bool:
        """Whether it is switched on."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._settle()
        self._enabled = enabled

    @property
    def armed(self) -> bool:
        """Whether that which it waits for has happened."""
        return self._armed

    @armed.setter
    def armed(self, armed: bool) -> None:
        self._settle()
        self._armed = armed

    @property
    def requests(self) -> int:
        """How often it is asked to act."""
        return self._requests

    @requests.setter
    def requests(self, requests: int) -> None:
        self._settle()
        self._requests = requests

    def take(self, exchange: Exchange, key: bytes | None, now: float) -> Turn | str:
        """Count one match; give its turn, or why it is left alone.

        Reasons: disabled, not_armed, window, skip, nth, first, every, chance, limit, manual; in a replay not_recorded.
        """
        self._settle()
        when = self._when
        per = self._scope(exchange, key) if self._divided else ""
        seen = self._seen
        ordinal = seen[per] = seen.pop(per, 0) + 1
        if len(seen) > MOST_SCOPES:
            self._forget(next(iter(seen)))
        if self._recording is not None:
            return self._replayed(self._recording, exchange, per, ordinal)
        asleep = self._timed or not (self._enabled and self._armed)
        reason = self._sleeps(now) if asleep else ""
        if reason:
            return reason
        number = self._counts[per] = self._counts.get(per, 0) + 1
        reason = self._refuses(number - when.skip) if self._numbered else ""
        if reason:
            return reason
        if when.trigger is not None and self._requests == 0:
            return "manual"
        draw = None
        if when.chance is not None:
            draw = self._rolls.roll(per, number)
            if draw >= when.chance:
                return "chance"
        selected = self._selected.get(per, 0)
        if when.limit is not None and selected >= when.limit:
            return "limit"
        self._selected[per] = selected + (not self.late)
        if when.trigger is not None and self.spends:
            self._requests -= 1
        stream = f"{self._prefix}{per}/{number}"
        return Turn(number, stream, draw, per, ordinal, spent=not self.late)

    def spend(self, turn: Turn) -> bool:
        """A match is about to be acted on: whether it may, for others may have been meanwhile; if it cannot, `give_back`.

        So a match that comes while it is open whether those before it can be acted on is not refused for their sake.
        """
        selected, limit = self._selected.get(turn.per), self._when.limit
        if turn.spent or selected is None:
            return True
        if limit is not None and selected >= limit:
            return False
        self._settle()
        self._selected[turn.per] = selected + 1
        turn.spent = True
        return True

    @property
    def counts_all_alike(self) -> bool:
        """Whether `look_ahead` can tell anything: it counts over the whole fault, and nothing is replayed."""
        return not self._divided and self._recording is None

    def look_ahead(self, now: float) -> Allowance:
        """See how many of the next matches are left alone for one and the same reason; none if that is not known.

        It holds until something else happens to the counter; where it is a matter of time, for this moment: see `expire`.
        """
        self._settle()
        ahead, reason = self._ahead(now)
        if not ahead:
            return self.allowance
        self.allowance = found = self._allowances.setdefault(reason, Allowance())
        self._reason, self._counted = reason, found.passed
        found.most = found.passed + ahead
        return found

    def expire(self) -> None:
        """Time goes on: what depends on it is not so any more."""
        if self._timed:
            self._settle()

    def leave_alone(self, reason: str) -> None:
        """Note that a match that `take` has refused for this reason is told of nowhere else."""
        found = self._allowances.setdefault(reason, Allowance())
        found.passed = found.most = found.passed + 1
        self._counted = self.allowance.passed

    def left_alone(self) -> dict[str, int]:
        """How many matches were left alone without a word, by reason. Safe from any thread; none ever grows less."""
        found = self._allowances.copy().items()
        return {reason: each.passed for reason, each in found if each.passed}

    def _settle(self) -> None:
        """Count what has passed; from here on no more may."""
        allowance = self.allowance
        if times := allowance.passed - self._counted:
            self._seen[""] = self._seen.get("", 0) + times
            if self._reason not in UNCOUNTED:
                self._counts[""] = self._counts.get("", 0) + times
        allowance.most = self._counted = allowance.passed

    def _ahead(self, now: float) -> tuple[int, str]:
        when = self._when
        if reason := self._sleeps(now):
            return ALL, reason
        number = self._counts.get("", 0) + 1
        bound = ALL
        if self._numbered:
            bound, reason = self._refused(number - when.skip)
            if reason or not bound:
                return bound, reason
        if when.trigger is not None and self._requests == 0:
            return bound, "manual"
        if when.chance is not None:
            return min(bound, self._rolls.too_high(number, when.chance)), "chance"
        spent = when.limit is not None and self._selected.get("", 0) >= when.limit
        return (bound, "limit") if spent else (0, "")

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

    def give_back(self, turn: Turn) -> None:
        """It could not act on this match after all: that spends neither its limit nor a request."""
        if self._recording is None and turn.ordinal:
            self._settle()
            if turn.per in self._selected:
                self._selected[turn.per] -= turn.spent
            self._requests += self._when.trigger is not None and self.spends

    def _scope(self, exchange: Exchange, key: bytes | None) -> str:
        """What this match counts in, where that is not the whole fault: its key, or its connection."""
        if self._when.per == "connection":
            # As the profile has met them: what came before it, on however many connections, is not its own.
            return str(exchange.connection - self._before)
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
        if not self._enabled:
            return "disabled"
        if not self._armed:
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
