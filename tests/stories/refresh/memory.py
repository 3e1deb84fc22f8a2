"""What a chat remembers across a refresh, twice: as it was, and as it should have been.

Takes Redis and a model; gives a conversation as a list of {role, text}. Read `turn` of both.
"""

import asyncio

from redis.asyncio import Redis

from tests.stories.serving import Model

Message = dict[str, str]

SEVEN_DAYS = 7 * 24 * 3600


def key_of(session: str) -> str:
    """Name the key of a session's messages."""
    return f"chat:{session}"


async def history(redis: Redis, session: str) -> list[Message]:
    """Give all messages of a session, as either memory stores them."""
    lines = [line.partition(":") for line in await redis.lrange(key_of(session), 0, -1)]
    return [{"role": role, "text": text} for role, _, text in lines]


class Forgetful:
    """The bugs: it answers before it has stored, and a conversation's time begins with its first turn only."""

    def __init__(self, redis: Redis, model: Model) -> None:
        self._redis, self._model = redis, model
        self._background: set[asyncio.Task[None]] = set()

    async def turn(self, session: str, text: str) -> str:
        """Take a message, give its answer."""
        answer = await self._model(text)
        task = asyncio.create_task(self._store(session, text, answer))  # nobody waits for it
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return answer

    async def _store(self, session: str, text: str, answer: str) -> None:
        for line in (f"user:{text}", f"assistant:{answer}"):
            length = await self._redis.rpush(key_of(session), line)
            if length == 1:  # a new list; nobody ever renews it
                await self._redis.expire(key_of(session), SEVEN_DAYS)


class Reliable:
    """The repair: what is answered is stored, a turn is stored as a whole, and its time begins anew with each turn."""

    def __init__(self, redis: Redis, model: Model) -> None:
        self._redis, self._model = redis, model

    async def turn(self, session: str, text: str) -> str:
        """Take a message, give its answer."""
        answer = await self._model(text)
        async with self._redis.pipeline(transaction=True) as turn:
            turn.rpush(key_of(session), f"user:{text}", f"assistant:{answer}")
            turn.expire(key_of(session), SEVEN_DAYS)
            await turn.execute()
        return answer
