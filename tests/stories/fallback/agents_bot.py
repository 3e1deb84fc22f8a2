"""The same bot on the OpenAI Agents SDK: its RedisSession as it is, with nothing around it.

Takes and gives what bot.py does. It needs openai-agents with redis.
"""

import asyncio
import json
import sys
import time
from collections import Counter

from agents.extensions.memory import RedisSession

CALLS: Counter[str] = Counter()
RAISED: Counter[str] = Counter()


async def counted(name: str, call):
    """Count a call of the session and what it raises."""
    CALLS[name] += 1
    try:
        return await call
    except Exception as error:
        RAISED[f"{name}: {type(error).__name__}"] += 1
        raise


async def turn(app: str, url: str, session: str, id: str, text: str, knows: int) -> dict:  # noqa: A002
    memory = RedisSession.from_url(session, url=url)
    try:
        before = await counted("read", memory.get_items())
        await asyncio.sleep(0.02)
        said = f"Zu „{text}“: gern geschehen 🙂"
        items = [{"role": "user", "content": text}, {"role": "assistant", "content": said}]
        await counted("add", memory.add_items(items))
    finally:
        await memory.close()
    return {"held": len(before), "answer": said}


async def reload(app: str, url: str, session: str) -> dict:
    memory = RedisSession.from_url(session, url=url)
    try:
        return {"texts": [item["content"] for item in await memory.get_items()]}
    finally:
        await memory.close()


def serve() -> None:
    does = {"turn": turn, "reload": reload}
    for line in sys.stdin:
        asked = json.loads(line)
        late = time.time() - asked.pop("sent")
        for counter in (CALLS, RAISED):
            counter.clear()
        began = time.monotonic()
        try:
            said = asyncio.run(does[asked.pop("do")](**asked))
        except Exception as error:  # noqa: BLE001 - what the customer sees, as an error page
            said = {"error": f"{type(error).__name__}: {error}"}
        said |= {
            "late": late,
            "calls": CALLS,
            "raised": RAISED,
            "slowest": time.monotonic() - began,
        }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    print("ready", flush=True)
    serve()
