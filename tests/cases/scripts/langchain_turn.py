"""Stores a turn in a history that lives for a minute, again if that fails; says how often it failed.

Takes ports, and how: library, or transaction, which writes both in one.
"""

import json
import sys

import redis
from langchain_community.chat_message_histories import RedisChatMessageHistory
from langchain_core.messages import HumanMessage, message_to_dict

port, _, how = sys.argv[1:]
history = RedisChatMessageHistory("s", url=f"redis://127.0.0.1:{port}", key_prefix="", ttl=60)


def store() -> None:
    if how == "library":
        history.add_user_message("hello")
    else:
        turn = json.dumps(message_to_dict(HumanMessage("hello")))
        history.redis_client.pipeline().lpush("s", turn).expire("s", 60).execute()


failed = 0
while failed < 3:
    try:
        store()
        break
    except redis.RedisError:
        failed += 1
print(json.dumps(failed))
