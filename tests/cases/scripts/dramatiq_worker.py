"""A dramatiq worker does a task; once it was cut off, and Redis is back, another is queued. Takes ports.

Says which tasks it did within ten seconds more.
"""

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

port, direct = sys.argv[1:]
logging.disable()
world = redis.Redis(port=int(direct), decode_responses=True)


@dramatiq.actor(broker=RedisBroker(port=int(direct)))
def do(name: str) -> None:
    world.rpush("done", name)


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def accepted() -> bool:
    """Whether anybody is let in."""
    try:
        socket.create_connection(("127.0.0.1", int(port)), 10).close()
    except OSError:
        return False
    return True


broker = RedisBroker(port=int(port))
broker.declare_actor(do)
dramatiq.Worker(broker, worker_threads=1).start()
do.send("first")
wait_for(lambda: world.llen("done") >= 1)
wait_for(lambda: not accepted())
wait_for(accepted)
do.send("second")
wait_for(lambda: world.llen("done") >= 2)
print(json.dumps(world.lrange("done", 0, -1)), flush=True)
# Its threads may wait for ever.
os._exit(0)
