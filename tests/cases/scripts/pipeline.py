"""Stores a message and its time to live in a pipeline that is no transaction. Takes ports and how the client is made.

Says what came of it.
"""

import json
import sys

import redis

port, _direct, how = sys.argv[1:]
client = (
    redis.Redis(host="127.0.0.1", port=int(port))
    if how == "host"
    else redis.from_url(f"redis://127.0.0.1:{port}")
)
pipe = client.pipeline(transaction=False)
pipe.rpush("l", "m1")
pipe.expire("l", 60)
try:
    said = pipe.execute()
except redis.RedisError as error:
    said = type(error).__name__
print(json.dumps(said))
