"""Reads three keys, with a time limit for each try. Takes ports, and how: host (tries again) or url (does not).

Says which could not be read.
"""

import json
import sys

import redis

port, _, how = sys.argv[1:]
if how == "host":
    client = redis.Redis(host="127.0.0.1", port=int(port), socket_timeout=0.5)
else:
    client = redis.Redis.from_url(f"redis://127.0.0.1:{port}", socket_timeout=0.5)
failed = []
for key in "abc":
    try:
        client.get(key)
    except redis.TimeoutError:
        failed.append(key)
print(json.dumps(failed))
