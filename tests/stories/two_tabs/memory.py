"""What the chat of two tabs remembers, twice: as it was, and as it should have been.

Takes Redis and a model; gives a conversation as a list of {role, text}. Read `turn` of both.
"""

import json

from redis.asyncio import Redis

from tests.stories.serving import Model

Message = dict[str, str]


def key_of(user: str, session: str) -> str:
    """Name the key of a session's messages."""
    return f"user:{user}:session:{session}:messages"


class Overwriting:
    """The bug: what was read before the model thought is what is stored after it, and all of it."""

    def __init__(self, redis: Redis, model: Model) -> None:
        self._redis, self._model = redis, model

    async def history(self, key: str) -> list[Message]:
        """Give all messages of a session."""
        return json.loads(await self._redis.get(key) or "[]")

    async def turn(self, key: str, text: str) -> list[Message]:
        """Take a message, give the conversation with its answer."""
        messages = await self.history(key)
        messages.append({"role": "user", "text": text})
        messages.append({"role": "assistant", "text": await self._model(text)})
        await self._redis.set(key, json.dumps(messages))  # and with it whatever came meanwhile
        return messages


class Appending:
    """The repair: each message is added to what is there by then; nothing is ever written over."""

    def __init__(self, redis: Redis, model: Model) -> None:
        self._redis, self._model = redis, model

    async def history(self, key: str) -> list[Message]:
        """Give all messages of a session."""
        return [json.loads(message) for message in await self._redis.lrange(key, 0, -1)]

    async def turn(self, key: str, text: str) -> list[Message]:
        """Take a message, give the conversation with its answer."""
        await self._append(key, {"role": "user", "text": text})
        await self._append(key, {"role": "assistant", "text": await self._model(text)})
        return await self.history(key)

    async def _append(self, key: str, message: Message) -> None:
        await self._redis.rpush(key, json.dumps(message))
