"""Waits for a job on an empty list, and gives up when no answer comes.

Takes ports, and when the job comes: soon, when somebody waits, or later, when nobody does any more. Says how the wait ended.
"""

import json
import sys
import threading

import redis

port, direct, when = sys.argv[1:]
client = redis.Redis.from_url(f"redis://127.0.0.1:{port}", socket_timeout=1)
world = redis.Redis(host="127.0.0.1", port=int(direct))


def wait_for(waiting: int) -> None:
    while world.info("clients")["blocked_clients"] != waiting:
        pass


def push() -> None:
    wait_for(1)
    if when == "later":
        wait_for(0)
    world.rpush("q", "job")


pushing = threading.Thread(target=push)
pushing.start()
try:
    ended = client.brpoplpush("q", "work", 0)
except redis.RedisError as error:
    ended = type(error).__name__
pushing.join()
print(json.dumps(ended))
