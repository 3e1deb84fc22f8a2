"""A leader renews its lease; the renewal is silent for longer than the lease, and another takes over.

Takes ports, and how: plain, where a leader writes when it hears again, or fenced, where it does so with the number of its
term, which must not be an old one. Says whose writes were taken.
"""

import json
import sys
import threading

import redis

port, direct, how = sys.argv[1:]
FENCED = """
if tonumber(ARGV[2]) < tonumber(redis.call('GET', 'term')) then return 0 end
return redis.call('RPUSH', 'beats', ARGV[1])
"""


def lead(client: redis.Redis) -> int | None:
    """Take the lease, if it is free; gives the number of the term."""
    return client.incr("term") if client.set("lease", "x", nx=True, px=300) else None


def beat(client: redis.Redis, name: str, term: int) -> None:
    if how == "fenced":
        client.eval(FENCED, 0, name, term)
    else:
        client.rpush("beats", name)


first = redis.Redis(host="127.0.0.1", port=int(port), client_name="first")
second = redis.Redis(host="127.0.0.1", port=int(direct))
term = lead(first)


def renew_and_beat() -> None:
    first.pexpire("lease", 300)
    beat(first, "first", term)


slow = threading.Thread(target=renew_and_beat)
slow.start()
while not (next_term := lead(second)):
    pass
beat(second, "second", next_term)
slow.join()
print(json.dumps([name.decode() for name in second.lrange("beats", 0, -1)]))
