"""Connects with the defaults and asks for an answer; says it, or the error. Takes ports."""

import json
import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
try:
    answer = client.ping()
except redis.RedisError as error:
    answer = type(error).__name__
print(json.dumps(answer))
