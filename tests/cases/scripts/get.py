"""Reads a key once there is something to wait for; says what it got. Takes ports."""

import json
import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True)
client.ping()
print("ready", flush=True)
input()
try:
    got = client.get("k")
except redis.RedisError as error:
    got = type(error).__name__
print(json.dumps(got))
