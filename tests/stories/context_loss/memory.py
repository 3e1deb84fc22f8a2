"""A memory with a window: the last turns in a cache, all of them in PostgreSQL; as it was found, and repaired.

Takes a redis-py client, a psycopg connection and how many turns the window has; gives `remember`, which is the
acknowledgement, and `recall`, which answers a question about something said earlier.
"""

import json
import threading
from dataclasses import dataclass

import psycopg
import redis

#: How many turns the queue gathers before it writes them to the database.
BATCH = 5
#: How long the cache keeps a window, in seconds.
DAY = 24 * 3600

TABLE = """
    CREATE TABLE IF NOT EXISTS turns (
        session text, number integer, text text, PRIMARY KEY (session, number)
    )
"""
#: A turn that is sent again after an error is the same turn.
INSERT = "INSERT INTO turns VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
SELECT = "SELECT number, text FROM turns WHERE session = %s ORDER BY number"
BETWEEN = (
    "SELECT number, text FROM turns WHERE session = %s AND number BETWEEN %s AND %s ORDER BY number"
)
NEWEST = "SELECT coalesce(max(number), 0) FROM turns WHERE session = %s"
#: One write a turn, so that no window is half written.
PUSH = """
    redis.call('RPUSH', KEYS[1], ARGV[1])
    redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
    redis.call('EXPIRE', KEYS[1], ARGV[3])
"""


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """What was said, and as which turn of its session (1, 2, …)."""

    number: int
    text: str


class Cache:
    """The last turns of each session, in Redis."""

    def __init__(self, client: redis.Redis, window: int) -> None:
        self.redis, self.window = client, window

    def push(self, session: str, turn: Turn) -> None:
        text = json.dumps([turn.number, turn.text])
        self.redis.eval(PUSH, 1, f"window:{session}", text, self.window, DAY)

    def last(self, session: str) -> list[Turn]:
        found = self.redis.lrange(f"window:{session}", 0, -1)
        return [Turn(*json.loads(text)) for text in found]

    def forget(self, session: str) -> None:
        self.redis.delete(f"window:{session}")


def find(turns: list[Turn], about: str) -> str | None:
    """Answer from these turns, the newest first."""
    return next((turn.text for turn in reversed(turns) if about in turn.text), None)


class Buggy:
    """The memory as it was found: fast, because the database is written later."""

    def __init__(self, client: redis.Redis, database: psycopg.Connection, window: int) -> None:
        self.cache, self.database, self.window = Cache(client, window), database, window
        self._queue: list[tuple[str, Turn]] = []
        self._changed = threading.Condition()
        self._due = False
        threading.Thread(target=self._write, daemon=True).start()

    def remember(self, session: str, turn: Turn) -> None:
        self.cache.push(session, turn)
        with self._changed:
            self._queue.append((session, turn))
            self._due = self._due or len(self._queue) >= BATCH
            self._changed.notify_all()

    def recall(self, session: str, about: str) -> str | None:
        # Whatever is in the cache is taken for the whole window ...
        window = self.cache.last(session)
        written = [Turn(*row) for row in self.database.execute(SELECT, [session])]
        # ... so of what is written everything before it is looked at.
        return find(written[: -self.window] + window, about)

    def idle(self) -> None:
        """Nobody has said anything for a while: the queue is written though it is not full."""
        with self._changed:
            self._due = bool(self._queue)
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until what is due is written: people are slower than that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._due)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due)
                rows = [(session, turn.number, turn.text) for session, turn in self._queue]
            with self.database.transaction(), self.database.cursor() as cursor:
                cursor.executemany(INSERT, rows)
            with self._changed:
                del self._queue[: len(rows)]
                self._due = len(self._queue) >= BATCH
                self._changed.notify_all()


class Repaired:
    """What is acknowledged is in the database, and the cache is believed only where it agrees with it."""

    def __init__(self, client: redis.Redis, database: psycopg.Connection, window: int) -> None:
        self.cache, self.database, self.window = Cache(client, window), database, window

    def remember(self, session: str, turn: Turn) -> None:
        self.database.execute(INSERT, [session, turn.number, turn.text])
        try:
            self.cache.push(session, turn)
        except redis.RedisError:
            # The turn is safe. What the cache lacks now is seen when it is read.
            return

    def recall(self, session: str, about: str) -> str | None:
        (newest,) = self.database.execute(NEWEST, [session]).fetchone()
        first = max(1, newest - self.window + 1)
        window = self._cached(session)
        # A slice with holes, or an old one, is no window.
        if [turn.number for turn in window] != [*range(first, newest + 1)]:
            window = self._written(session, first, newest)
            self._refill(session, window)
        return find(window, about) or find(self._written(session, 1, first - 1), about)

    def _cached(self, session: str) -> list[Turn]:
        try:
            return self.cache.last(session)
        except redis.RedisError:
            # The database has it all.
            return []

    def _written(self, session: str, first: int, last: int) -> list[Turn]:
        return [Turn(*row) for row in self.database.execute(BETWEEN, [session, first, last])]

    def _refill(self, session: str, window: list[Turn]) -> None:
        try:
            self.cache.forget(session)
            for turn in window:
                self.cache.push(session, turn)
        except redis.RedisError:
            # Half a window is seen as such by whoever reads it next.
            return

    def idle(self) -> None:
        """Nothing is left to do."""

    def settle(self) -> None:
        """Nothing is under way."""


APPS = {"buggy": Buggy, "repaired": Repaired}
