"""Which of the matching exchanges a rule acts on: `when`, with its counts and its keyed streams.

Takes one match after another (its key, its connection, the time); gives a match number and a roll, or the reason why not.
"""

from dataclasses import dataclass
from random import Random

from chaosproxy.core.rule import When


@dataclass(frozen=True, slots=True)
class Turn:
    """A match that is to be acted on: its number, the key of its random stream, and the roll of `chance` if there was one."""

    match: int
    stream: str
    draw: float | None


class Counter:
    """One rule's `when`. `since` is the time the profile came into force."""

    __slots__ = (
        "_counts",
        "_prefix",
        "_selected",
        "_since",
        "_when",
        "armed",
        "enabled",
        "requests",
    )

    def __init__(self, when: When, seed: int, name: str, since: float) -> None:
        self._when = when
        self._prefix = f"{seed}/{name}/"
        self._since = since
        self._counts: dict[object, int] = {}
        self._selected: dict[object, int] = {}
        self.armed = when.armed_by is None
        self.enabled = True
        self.requests = 0

    def take(self, key: bytes | None, connection: int, now: float) -> Turn | str:
        """Count one match; give its turn, or why it is left alone.

        Reasons: disabled, not_armed, window, skip, nth, first, every, chance, limit, manual.
        """
        when = self._when
        reason = self._sleeps(now)
        if reason:
            return reason
        match when.per:
            case "key":
                scope: object = key
                label = "" if key is None else key.decode("latin-1")
            case "connection":
                scope, label = connection, str(connection)
            case _:
                scope, label = None, ""
        number = self._counts.get(scope, 0) + 1
        self._counts[scope] = number
        reason = self._refuses(number - when.skip)
        if reason:
            return reason
        if when.trigger is not None and self.requests == 0:
            return "manual"
        stream = f"{self._prefix}{label}/{number}"
        draw = None
        if when.chance is not None:
            draw = Random(stream).random()  # noqa: S311 - reproducible on purpose
            if draw >= when.chance:
                return "chance"
        selected = self._selected.get(scope, 0)
        if when.limit is not None and selected >= when.limit:
            return "limit"
        self._selected[scope] = selected + 1
        if when.trigger is not None:
            self.requests -= 1
        return Turn(number, stream, draw)

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
