"""A window of three messages: stores one more, and trims the list to the newest three.

Takes ports, and how: looking, which trims by what it saw, or script, where the server does both at once. Says nothing.
"""

import json
import sys

import redis

port, _, how = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port))
if how == "looking":
    client.rpush("l", "m4")
    seen = client.lrange("l", 0, -1)
    client.ltrim("l", len(seen) - 3, len(seen) - 1)
else:
    both = "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], -3, -1)"
    client.eval(both, 1, "l", "m4")
print(json.dumps(None))
