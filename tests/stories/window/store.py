"""A memory that keeps the newest messages of a session below a size: as it was found, and repaired.

Takes a redis-py client and a budget in bytes; gives `append` and `read`. What is the same in both stands once,
so whatever differs below is the repair.
"""

import redis

#: How long a session that nobody uses is kept, in seconds.
WEEK = 7 * 24 * 3600
#: What the ids of sessions that matter (an open order, a complaint) begin with.
CRITICAL = "critical-"


def surplus(messages: list[bytes], budget: int) -> int:
    """How many of the oldest messages have to go so that the rest fits."""
    size, number = sum(map(len, messages)), 0
    while size > budget:
        size -= len(messages[number])
        number += 1
    return number


class Buggy:
    """RedisMemoryStore as it was found."""

    def __init__(self, client: redis.Redis, budget: int) -> None:
        self.redis, self.budget = client, budget

    def key(self, session: str) -> str:
        return f"memory:{session}"

    def append(self, session: str, message: bytes) -> None:
        key = self.key(session)
        pipe = self.redis.pipeline(transaction=False)
        pipe.rpush(key, message)
        pipe.lrange(key, 0, -1)
        pipe.expire(key, WEEK)
        # An error of one of them "should not fail the turn".
        _, seen, _ = pipe.execute(raise_on_error=False)
        number = surplus(seen, self.budget)
        if number:
            # As many as were too many then. By now somebody else may have trimmed them.
            self.redis.ltrim(key, number, -1)

    def read(self, session: str) -> list[bytes]:
        return self.redis.lrange(self.key(session), 0, -1)


class Repaired:
    """Appends and trims in one step, renews the time to live with every use, and keeps what matters where it cannot go."""

    APPEND = """
        redis.call('RPUSH', KEYS[1], ARGV[1])
        local size = 0
        for _, message in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
            size = size + #message
        end
        while size > tonumber(ARGV[2]) do
            size = size - #redis.call('LPOP', KEYS[1])
        end
    """

    def __init__(self, client: redis.Redis, budget: int) -> None:
        self.redis, self.budget = client, budget

    def key(self, session: str) -> str:
        return f"protected:{session}" if session.startswith(CRITICAL) else f"memory:{session}"

    def append(self, session: str, message: bytes) -> None:
        key = self.key(session)
        pipe = self.redis.pipeline(transaction=True)
        pipe.eval(self.APPEND, 1, key, message, self.budget)
        self._renew(pipe, key)
        # Raises what Redis refuses. Then nothing of it was done, and it can be done again.
        pipe.execute()

    def read(self, session: str) -> list[bytes]:
        key = self.key(session)
        pipe = self.redis.pipeline(transaction=True)
        pipe.lrange(key, 0, -1)
        self._renew(pipe, key)
        return pipe.execute()[0]

    def _renew(self, pipe: redis.client.Pipeline, key: str) -> None:
        # Without a time to live a key neither runs out nor goes under `maxmemory-policy volatile-*`.
        if not key.startswith("protected:"):
            pipe.expire(key, WEEK)


APPS = {"buggy": Buggy, "repaired": Repaired}
