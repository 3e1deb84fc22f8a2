"""A recording of what fired, to be fired again: exactly those matches, with exactly those delays.

Takes the events of an earlier run; gives, for each rule, the matches that are to be acted on, and what came differently.

A match is found again by its fault, by what its rule counts `per`, and by its `ordinal` there: how many matches, acted on or not,
there had been since the profile came into force. That does not depend on time, so neither does a replay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of the recording: where it stands (`n`), what it was, and the request's digest."""

    n: int
    fault: str
    per: str
    ordinal: int
    match: int
    digest: str
    delay: float | None
    draw: float | None
    command: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a replay is not what was recorded: both sides, in words."""

    recorded: str
    now: str

    def __str__(self) -> str:
        return f"diverges: recorded was {self.recorded}; what came: {self.now}"


@dataclass(slots=True)
class Recording:
    """The events of one run, by fault. `divergence` is the first difference that was met."""

    by_fault: dict[str, dict[tuple[str, int], Recorded]] = field(default_factory=dict)
    divergence: Divergence | None = None
    _played: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, events: Iterable[Mapping[str, object]]) -> "Recording":
        """Read events as the journal writes them; raises ValueError for what is no event of its kind, or stands there twice."""
        recording = cls()
        numbers: set[int] = set()
        for event in events:
            try:
                recorded = _read(event)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"no event to replay: {event!r:.100}") from error
            if recorded.n in numbers:
                raise ValueError(f"event {recorded.n} stands in it twice")
            numbers.add(recorded.n)
            place = (recorded.per, recorded.ordinal)
            if not recorded.ordinal:  # it follows from another event
                continue
            recording.by_fault.setdefault(recorded.fault, {})[place] = recorded
        return recording

    def find(
        self, fault: str, per: str, ordinal: int, command: str, digest: str
    ) -> Recorded | None:
        """Whether this match was acted on; the first one that is another request is noted."""
        recorded = self.by_fault.get(fault, {}).get((per, ordinal))
        if recorded is None:
            return None
        self._played.add(recorded.n)
        if recorded.digest != digest and self.divergence is None:
            self.divergence = Divergence(
                f"event {recorded.n}: {fault}, match {ordinal}{_scope(per)}: "
                f"{recorded.command} with digest {recorded.digest}",
                f"{command} with digest {digest}",
            )
        return recorded

    def unplayed(self) -> list[Recorded]:
        """What was recorded and has not come again, in the order it was."""
        rest = [
            recorded
            for events in self.by_fault.values()
            for recorded in events.values()
            if recorded.n not in self._played
        ]
        return sorted(rest, key=lambda recorded: recorded.n)

    def verdict(self) -> Divergence | None:
        """The first difference between the recording and what came, None if there is none (so far)."""
        if self.divergence is not None:
            return self.divergence
        rest = self.unplayed()
        if not rest:
            return None
        first = rest[0]
        return Divergence(
            f"event {first.n}: {first.fault}, match {first.ordinal}{_scope(first.per)}: {first.command} with digest "
            f"{first.digest}",
            f"it never came ({len(rest)} of {sum(map(len, self.by_fault.values()))} recorded did not)",
        )


def _scope(per: str) -> str:
    return f" of {per}" if per else ""


def _read(event: Mapping[str, object]) -> Recorded:
    delay, draw, n = event.get("delay"), event.get("draw"), int(str(event["n"]))
    if n < 1:
        raise ValueError("events are numbered from 1")
    return Recorded(
        n=n,
        fault=str(event["fault"]),
        per=str(event.get("per", "")),
        ordinal=int(str(event["ordinal"])),
        match=int(str(event["match"])),
        digest=str(event["digest"]),
        delay=None if delay is None else _number(delay),
        draw=None if draw is None else _number(draw),
        command=str(event["command"]),
    )


def _number(value: object) -> float:
    number = float(str(value))
    if not 0 <= number < inf:  # nor is it no number at all
        raise ValueError("neither seconds nor a roll")
    return number
