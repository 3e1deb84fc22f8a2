"""A dramatiq worker does a task; five seconds after it was cut off another is queued. Takes ports.

Says which tasks it did within ten seconds more.
"""

import json
import logging
import os
import sys
import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

port, direct = sys.argv[1:]
logging.disable()
world = redis.Redis(port=int(direct), decode_responses=True)


@dramatiq.actor(broker=RedisBroker(port=int(direct)))
def do(name: str) -> None:
    world.rpush("done", name)


def wait_for(count: int) -> None:
    end = time.monotonic() + 10
    while world.llen("done") < count and time.monotonic() < end:
        time.sleep(0.05)


broker = RedisBroker(port=int(port))
broker.declare_actor(do)
dramatiq.Worker(broker, worker_threads=1).start()
do.send("first")
wait_for(1)
time.sleep(5)
do.send("second")
wait_for(2)
print(json.dumps(world.lrange("done", 0, -1)), flush=True)
# Its threads may wait for ever.
os._exit(0)
