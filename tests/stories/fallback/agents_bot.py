"""The same bot on the OpenAI Agents SDK: its RedisSession as it is, with nothing around it.

Takes and gives what bot.py does. It needs openai-agents with redis.
"""

import asyncio

import pod
from agents.extensions.memory import RedisSession


async def turn(app: str, url: str, session: str, id: str, text: str, knows: int) -> dict:  # noqa: A002
    memory = RedisSession.from_url(session, url=url)
    try:
        with pod.counted("read"):
            before = await memory.get_items()
        await asyncio.sleep(0.02)
        said = f"Zu „{text}“: gern geschehen 🙂"
        items = [{"role": "user", "content": text}, {"role": "assistant", "content": said}]
        with pod.counted("add"):
            await memory.add_items(items)
    finally:
        await memory.close()
    return {"held": len(before), "answer": said}


async def reload(app: str, url: str, session: str) -> dict:
    memory = RedisSession.from_url(session, url=url)
    try:
        return {"texts": [item["content"] for item in await memory.get_items()]}
    finally:
        await memory.close()


def at_once(what):
    """Run a coroutine function to its end."""
    return lambda **asked: asyncio.run(what(**asked))


if __name__ == "__main__":
    pod.serve({"turn": at_once(turn), "reload": at_once(reload)}, whole=True)
