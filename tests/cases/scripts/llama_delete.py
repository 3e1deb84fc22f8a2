"""Deletes the first of three messages of a history that lives for an hour; says how that ended.

Takes ports, and how: library, or transaction, which does the same in one.
"""

import json
import sys

import redis
from llama_index.core.llms import ChatMessage
from llama_index.storage.chat_store.redis import RedisChatStore

port, _, how = sys.argv[1:]
url = f"redis://127.0.0.1:{port}"
store = RedisChatStore(redis_url=url, ttl=3600)
for text in ("one", "two", "three"):
    store.add_message("k", ChatMessage(content=text))
try:
    if how == "library":
        store.delete_message("k", 0)
    else:
        client = redis.from_url(url)
        rest = client.lrange("k", 1, -1)
        client.pipeline().delete("k").rpush("k", *rest).expire("k", 3600).execute()
    ended = "deleted"
except redis.RedisError as error:
    ended = type(error).__name__
print(json.dumps(ended))
