"""A pod: a process with the memory in it, which ends at the first error that nobody expected; the next one takes its place.

Takes an app's class and where Redis and PostgreSQL are; gives calls into whichever process serves now.
"""

import multiprocessing
import os
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Self

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.stories.context_loss.memory import TABLE, Buggy, Repaired

# A process that starts in a millisecond: the imports are done.
_FORK = multiprocessing.get_context("fork")
DIED = 70


class Died(Exception):  # noqa: N818 - what a caller sees: the connection to the pod broke
    """The pod ended before it had answered."""


@dataclass(slots=True)
class Pods:
    """One pod at a time, as a supervisor keeps it: who calls when none runs starts one."""

    app: type[Buggy] | type[Repaired]
    redis_url: str
    database: str
    window: int
    #: How many ended by themselves.
    died: int = 0
    _pod: tuple[Any, Connection] | None = field(default=None, repr=False)

    def call(self, method: str, *args: object) -> Any:
        """Call a method of the memory in the pod. Raises Died."""
        if self._pod is None:
            self._pod = self._start()
        process, pipe = self._pod
        try:
            pipe.send((method, args))
            return pipe.recv()
        except (EOFError, ConnectionError):
            self.stop()
            assert process.exitcode == DIED, f"the pod ended with {process.exitcode}"
            self.died += 1
            raise Died(method) from None

    def stop(self) -> None:
        """End the pod that runs, if one does; what it has queued is lost with it."""
        if self._pod is not None:
            process, pipe = self._pod
            pipe.close()
            process.join()
            self._pod = None

    def _start(self) -> tuple[Any, Connection]:
        ours, its = _FORK.Pipe()
        process = _FORK.Process(target=self._serve, args=(its, ours))
        process.start()
        its.close()
        return process, ours

    def _serve(self, pipe: Connection, other: Connection) -> None:
        # Its end is the supervisor's alone: when that closes, this pod is told.
        other.close()
        client = redis.Redis.from_url(self.redis_url, retry=Retry(NoBackoff(), 0))
        with client, psycopg.connect(self.database, autocommit=True) as database:
            memory = self.app(client, database, self.window)
            while True:
                try:
                    method, args = pipe.recv()
                except EOFError:
                    return
                try:
                    pipe.send(getattr(memory, method)(*args))
                except redis.RedisError:
                    # Nobody has expected it. The process ends at once: nothing is written any more.
                    os._exit(DIED)
                memory.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def prepare(database: str) -> None:
    """Make the table, if it is not there."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TABLE)
