"""Pushes three messages in one transaction, then asks for something else. Takes ports. Says how the two ended."""

import json
import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), socket_timeout=5)
transaction = client.pipeline()
for text in ("one", "two", "three"):
    transaction.rpush("l", text)
try:
    ended = transaction.execute()
except redis.RedisError as error:
    ended = type(error).__name__
print(json.dumps([ended, client.ping()]))
