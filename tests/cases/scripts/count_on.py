"""Counts to twelve across a failover; says how many counts were acknowledged and what is stored. Takes ports, and how.

blind: each acknowledgement is one more. checks: after an error it reads back and adds what is missing.
"""

import json
import sys
import time

import redis

client = redis.Redis.from_url(f"redis://127.0.0.1:{sys.argv[1]}")
checks = sys.argv[3] == "checks"
acknowledged, failed = 0, False
while acknowledged < 12:
    try:
        if failed and checks:
            missing = acknowledged - int(client.get("n") or 0)
            if missing:
                client.incrby("n", missing)
            failed = False
        client.incr("n")
        acknowledged += 1
    except redis.RedisError:
        failed = True
        time.sleep(0.02)
print(json.dumps({"acknowledged": acknowledged, "stored": int(client.get("n"))}))
