"""Adds one to a number that it watches, and that somebody else has set meanwhile. Takes ports.

Says what EXEC gave, and what the number is then.
"""

import json
import sys
import time

import redis

port, direct = map(int, sys.argv[1:])
world = redis.Redis(port=direct)
pipe = redis.Redis(host="127.0.0.1", port=port).pipeline()
world.set("n", 1)
pipe.watch("n")
seen = int(pipe.get("n"))
world.set("n", 10)
time.sleep(0.5)
pipe.multi()
pipe.set("n", seen + 1)
try:
    said = pipe.execute()
except redis.RedisError as error:
    said = type(error).__name__
print(json.dumps({"said": said, "n": int(world.get("n"))}))
