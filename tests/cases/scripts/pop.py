"""Takes a job from a queue of two; says which. Takes ports, and how: BLPOP, or BLMOVE to a list of jobs in work."""

import json
import sys

import redis

port, _, how = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port), socket_timeout=1, decode_responses=True)
try:
    if how == "BLPOP":
        _, job = client.blpop("q", 0.5)
    else:
        # The repair: what is taken and not finished stands in a list of its own.
        job = client.blmove("q", "work", 0.5, "LEFT", "RIGHT")
        job = {"job": job, "unfinished": client.lrange("work", 0, -1)}
except redis.RedisError as error:
    job = type(error).__name__
print(json.dumps(job))
