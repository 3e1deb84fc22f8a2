"""Takes a lock; says what it was told, and whether its own token holds it. Takes ports, and how: plain or checked."""

import json
import sys

import redis

port, direct, how = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port), decode_responses=True)
token = "ours"
lock = client.lock("lk", timeout=30)
try:
    told = lock.acquire(blocking=False, token=token)
    if not told and how == "checked":
        # The repair: whose lock it is can be asked.
        told = client.get("lk") == token
except redis.ConnectionError:
    told = "ConnectionError"
holder = redis.Redis(port=int(direct), decode_responses=True).get("lk")
print(json.dumps({"told": told, "ours": holder == token}))
