"""Queues a job, and another once the first was asked for; a worker does what it gets. Takes ports and queue names.

Says each job's status, and in which lists it stands.
"""

import json
import sys
import threading

import redis
import rq

port, direct, *names = sys.argv[1:]
world = redis.Redis(host="127.0.0.1", port=int(direct))


def queue_another() -> None:
    """As soon as nobody has the first one."""
    while world.llen(f"rq:queue:{names[0]}"):
        pass
    rq.Queue(names[0], connection=world).enqueue("os.getpid", job_id="second")


rq.Queue(names[0], connection=world).enqueue("os.getpid", job_id="first")
threading.Thread(target=queue_another).start()
connection = redis.Redis(host="127.0.0.1", port=int(port))
worker = rq.SimpleWorker(
    [rq.Queue(name, connection=connection) for name in names], connection=connection
)
worker.work(max_jobs=1, logging_level="CRITICAL")
said = {}
for name in ("first", "second"):
    lists = world.scan_iter("rq:queue:*", _type="list")
    kept = [key.decode() for key in lists if name.encode() in world.lrange(key, 0, -1)]
    said[name] = [rq.job.Job.fetch(name, connection=world).get_status(), kept]
print(json.dumps(said))
