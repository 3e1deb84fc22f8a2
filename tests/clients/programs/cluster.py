"""A cluster client that writes each key and reads it again; what it reads is looked at.

Takes a port, how many keys, the protocol and how many keys lie between two lines of progress.
Gives as JSON: how many keys were written and read, the wrong values, how many calls failed.
"""

import json
import sys

from redis import RedisCluster
from redis.exceptions import RedisClusterException, RedisError

port, count, protocol, step = map(int, sys.argv[1:5])
client = RedisCluster(host="127.0.0.1", port=port, protocol=protocol, decode_responses=True)
wrong, failed = [], []


def insist(call, *args):
    """Call until it works: a failover may take longer than the client is patient."""
    while True:
        try:
            return call(*args)
        except (RedisError, RedisClusterException) as error:
            failed.append(str(error))


for number in range(count):
    insist(client.set, f"key:{number}", f"value {number}")
    for earlier in {number, number // 2}:
        value = insist(client.get, f"key:{earlier}")
        if value != f"value {earlier}":
            wrong.append([earlier, value])
    if number % step == 0:
        print("at", number, flush=True)
print("all", flush=True)
for number in range(count):
    value = insist(client.get, f"key:{number}")
    if value != f"value {number}":
        wrong.append([number, value])
client.close()
print(json.dumps({"keys": count, "wrong": wrong, "failed": len(failed)}))
