"""A celery worker does a task; once it was cut off, and has connected and looked for other workers again, another is queued.

Takes ports. Says how often it has looked, and which tasks it did within eight seconds more. What is left of a failed
connection ends the worker's polling as the garbage collector comes to it: by itself that comes at any time, so it is told when.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

import celery
import redis

port, direct, *role = sys.argv[1:]
app = celery.Celery(broker=f"redis://127.0.0.1:{port if role else direct}/0")
world = redis.Redis(port=int(direct), decode_responses=True)


@app.task(name="do", ignore_result=True)
def do(name: str) -> None:
    world.rpush("done", name)


def wait_for(holds: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def looked_round(lines: Iterable[str]) -> None:
    alone.extend(line for line in lines if "mingle: all alone" in line)


if role:
    gc.disable()
    signal.signal(signal.SIGALRM, lambda *_: gc.collect())
    sys.exit(app.worker_main(["worker", "--concurrency=1", "--loglevel=INFO"]))

# In a group of its own, so that its children end with it.
worker = subprocess.Popen(
    [sys.executable, "-E", "-s", __file__, port, direct, "worker"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
    start_new_session=True,
)
alone: list[str] = []
threading.Thread(target=looked_round, args=(worker.stderr,), daemon=True).start()
try:
    do.delay("first")
    wait_for(lambda: world.llen("done") >= 1)
    wait_for(lambda: len(alone) >= 2)
    # It listens to other workers again: its loop runs.
    wait_for(world.pubsub_numpat)
    worker.send_signal(signal.SIGALRM)
    # What it has asked for by now, for a second, it would still get.
    time.sleep(2)
    do.delay("second")
    wait_for(lambda: world.llen("done") >= 2, 8)
    print(json.dumps({"connected": len(alone), "done": world.lrange("done", 0, -1)}), flush=True)
finally:
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
