"""Stores one message; says what the call gave. Takes ports, and how: host, url, pool or pipeline."""

import json
import sys

import redis

port, _, how = sys.argv[1:]
if how == "url":
    client = redis.Redis.from_url(f"redis://127.0.0.1:{port}")
elif how == "pool":
    client = redis.Redis(connection_pool=redis.ConnectionPool(host="127.0.0.1", port=int(port)))
else:
    client = redis.Redis(host="127.0.0.1", port=int(port))
try:
    if how == "pipeline":
        gave = client.pipeline().rpush("l", "m1").expire("l", 60).execute()
    else:
        gave = client.rpush("l", "m1")
except redis.ConnectionError:
    gave = "ConnectionError"
print(json.dumps(gave))
