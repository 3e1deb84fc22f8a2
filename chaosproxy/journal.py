"""What the faults did: every event numbered, kept in memory and written as a JSON line at once.

Takes Fired effects; gives events in the shape that README shows, and never a password.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Condition
from typing import Any, Final, NamedTuple

from chaosproxy.core.effect import Fired
from chaosproxy.lines import Lines
from chaosproxy.telling import json_text

Event = dict[str, Any]

#: So many events are kept in memory.
KEPT: Final = 10_000
#: All of them together take so many bytes at most, but for a single one that is larger.
MOST_BYTES: Final = 32 << 20
#: What one takes without keys, and what each key takes beside its own bytes.
_LEAST: Final = 1000
_EACH: Final = 60


class _Kept(NamedTuple):
    """An event as it was written down. `at`: seconds since 1970. `size`: what a command of millions of keys says is no small thing."""

    number: int
    now: float
    at: float
    fired: Fired
    size: int


class Journal:
    """The events of one run.

    `now` is the monotonic time of the start. With `redact` keys appear as a hash under a secret of this run: equal keys
    look equal, and nobody can find out which they are by trying. Reading is safe from any thread.
    """

    def __init__(self, now: float, *, redact: bool = False, kept: int = KEPT) -> None:
        self._start = now
        #: Tells this run's events from another's, whose numbers are the same.
        self.run = secrets.token_hex(8)
        self._secret = secrets.token_bytes(32) if redact else None
        self._kept = kept
        self._events: deque[_Kept] = deque()
        self._size = 0
        self._changed = Condition()
        self._file: Lines | None = None
        self._lost = 0
        #: The number of the last event, 0: none yet.
        self.last = 0
        #: The latest generation of which there is one.
        self.generation = 0
        #: Events that `events` no longer has, because there were too many or they were cleared.
        self.dropped = 0

    @property
    def lost(self) -> int:
        """How many events could not be written to the file."""
        return self._lost if self._file is None else self._file.lost

    def open(self, path: str, header: Mapping[str, object]) -> None:
        """Write events to this file too, over what it held, or to stdout (`-`); `header` is its first line.

        Raises OSError if the file cannot be written to.
        """
        self._file = Lines(path, _line(header))

    def close(self) -> None:
        """Close the file; what it lacks can be asked for afterwards."""
        if self._file is not None:
            self._file.close()
            self._lost, self._file = self._file.lost, None

    def record(self, fired: Fired, now: float) -> None:
        """Write an event down. What it says is put together when somebody asks, or at once where there is a file."""
        size = _LEAST + len(fired.detail) + _size_of(fired)
        with self._changed:
            self.last += 1
            self.generation = max(self.generation, fired.generation)
            kept = _Kept(self.last, now, time.time(), fired, size)
            self._events.append(kept)
            self._size += size
            while len(self._events) > self._kept or (self._size > MOST_BYTES and self._size > size):
                self._size -= self._events.popleft().size
                self.dropped += 1
            self._changed.notify_all()
        if self._file is not None:
            self._file.write(_line(self._told(kept)))

    def _told(self, kept: "_Kept") -> Event:
        """What an event says."""
        fired = kept.fired
        event: Event = {
            "n": kept.number,
            "t": round(kept.now - self._start, 6),
            "at": datetime.fromtimestamp(kept.at, UTC).isoformat(timespec="milliseconds"),
            "generation": fired.generation,
            "connection": fired.connection,
            "client": fired.client,
            "db": fired.db,
            "command": fired.command,
            **self._keys(fired.keys),
            "fault": fired.fault,
            "type": fired.type,
            "position": fired.position,
            "match": fired.match,
            "ordinal": fired.ordinal,
            "applied": fired.applied,
            "told": fired.told,
            "outcome": fired.outcome,
        }
        if fired.per:
            event["per"] = self._hidden(fired.per.encode()) if self._secret else fired.per
        if fired.delay is not None:
            event["delay"] = fired.delay
        if fired.draw is not None:
            event["draw"] = fired.draw
        event["digest"] = self._hidden(fired.digest.encode()) if self._secret else fired.digest
        if fired.detail:
            event["detail"] = self._without_keys(fired.detail, () if fired.writes else fired.keys)
        if fired.writes:
            event["writes"] = [
                {"command": command, **self._keys(keys), "count": count}
                for command, keys, count in fired.writes
            ]
        return event

    def events(self, after: int = 0, wait: float = 0.0) -> list[Event]:
        """Give the kept events with a number above `after`, waiting so many seconds for the first of them."""
        return self.since(after, wait)[0]

    def since(self, after: int = 0, wait: float = 0.0) -> tuple[list[Event], int, int]:
        """Give the same, and what at that moment `last` and `dropped` were: who goes on from there misses nothing."""
        with self._changed:
            if wait > 0:
                self._changed.wait_for(lambda: self.last > after, wait)
            found = [kept for kept in self._events if kept.number > after]
            last, dropped = self.last, self.dropped
        return [self._told(kept) for kept in found], last, dropped

    def clear(self) -> int:
        """Forget the kept events; numbers go on, and the file stays as it is. Gives the last one's number."""
        with self._changed:
            self.dropped += len(self._events)
            self._events.clear()
            self._size = 0
            return self.last

    def _keys(self, keys: tuple[bytes, ...]) -> Event:
        if self._secret:
            return {"keys": [self._hidden(key) for key in keys]}
        try:
            return {"keys": [key.decode() for key in keys]}
        except UnicodeDecodeError:
            # All of them, so that their order stays to be seen.
            return {"keys_b64": [base64.b64encode(key).decode() for key in keys]}

    def _without_keys(self, detail: str, keys: tuple[bytes, ...]) -> str:
        if self._secret:
            for key in sorted(filter(None, keys), key=len, reverse=True):
                detail = detail.replace(key.decode("utf-8", "backslashreplace"), self._hidden(key))
        return detail

    def _hidden(self, value: bytes) -> str:
        return hmac.new(self._secret or b"", value, hashlib.sha256).hexdigest()[:16]


def _size_of(fired: Fired) -> int:
    """About how many bytes an event's keys take."""
    keys = [*fired.keys, *(key for _, keys, _ in fired.writes for key in keys)]
    return sum(map(len, keys)) + _EACH * len(keys)


def _line(value: Mapping[str, object]) -> bytes:
    return json_text(value).encode() + b"\n"
