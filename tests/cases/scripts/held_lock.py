"""A worker renews its lock while it works; another asks for the same lock. Takes ports, and whether the first looks.

Says what the renewal gave, and whether the other got the lock as well while the first goes on.
"""

import json
import sys

import redis
from redis.exceptions import LockError

port, direct, how = sys.argv[1:]
client = redis.Redis(host="127.0.0.1", port=int(port))
world = redis.Redis(host="127.0.0.1", port=int(direct))
lock = client.lock("job", timeout=30)
lock.acquire()
works = True
try:
    lock.extend(30)
    renewed = True
except LockError as error:
    renewed = type(error).__name__
    works = how == "carefree"
other = world.lock("job", timeout=30).acquire(blocking=False)
print(json.dumps({"renewed": renewed, "twice": works and other}))
