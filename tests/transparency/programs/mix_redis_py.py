"""A seeded mix of redis-py's calls by several workers at once, each with a client of its own, in threads or as tasks.

Takes a port, a seed, how many workers and rounds, the protocol, and `sync` or `asyncio`. Gives as JSON what every call of every
worker gave. What one worker does depends on the seed alone: it does one thing after the other, on keys of its own.
"""

import asyncio
import json
import sys
import threading
from random import Random

import redis
import redis.asyncio

port, seed, workers, rounds, protocol, way = (*map(int, sys.argv[1:6]), sys.argv[6])
# Each worker's ends in its name: who is first to load one that all have is chance.
ADD = "redis.call('RPUSH', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('LLEN', KEYS[1])}"


class Plain:
    """Makes a call of the asyncio client, or of the other one, look the same."""

    def __init__(self, number):
        self.name = f"w{number}"
        self.random = Random(f"{seed}/{number}")
        self.got = []

    def key(self, kind):
        return f"{self.name}:{kind}:{self.random.randint(1, 3)}"

    def text(self):
        size = self.random.choice([0, 3, 40, 40, 700, 9000])
        return self.random.choice(["", "héllo 🎉", "\r\n"]) + "xyz"[self.random.randrange(3)] * size

    def note(self, what, value):
        # A set's order is each process's own.
        self.got.append([what, repr(sorted(value) if isinstance(value, set) else value)])

    async def call(self, what, function, *args, **options):
        """Make one call and take down what it gave."""
        try:
            value = function(*args, **options)
            if asyncio.iscoroutine(value) or hasattr(value, "__await__"):
                value = await value
        except redis.RedisError as error:
            value = f"{type(error).__name__}: {error}"
        self.note(what, value)
        return value

    async def run(self):
        for _ in range(rounds):
            kind = self.random.choice(self.kinds)
            await kind(self)

    async def strings(self):
        client, key = self.client, self.key("s")
        await self.call("set", client.set, key, self.text())
        await self.call("get", client.get, key)
        await self.call("incr", client.incr, self.key("n"))
        await self.call("mget", client.mget, key, self.key("s"), self.key("none"))
        await self.call("wrong", client.lpush, key, "x")
        await self.call("expireat", client.expireat, key, 4_000_000_000)
        await self.call("ttl", client.expiretime, key)

    async def structures(self):
        client = self.client
        await self.call("rpush", client.rpush, self.key("l"), self.text(), "b")
        await self.call("lrange", client.lrange, self.key("l"), 0, 5)
        await self.call("lpop", client.lpop, self.key("l"), 2)
        await self.call("hset", client.hset, self.key("h"), mapping={"f": self.text(), "g": 1})
        await self.call("hgetall", client.hgetall, self.key("h"))
        await self.call("zadd", client.zadd, self.key("z"), {"a": 1.5, "b": -2})
        await self.call("zrange", client.zrange, self.key("z"), 0, -1, withscores=True)
        await self.call("sadd", client.sadd, self.key("i"), self.random.randrange(9))
        await self.call("smembers", client.smembers, self.key("i"))

    async def pipeline(self):
        pipe = self.client.pipeline(transaction=False)
        for _ in range(self.random.randint(1, 20)):
            pipe.set(self.key("s"), self.text()).get(self.key("s")).incr(self.key("n"))
        pipe.lpush(self.key("s"), "wrong")
        await self.call("pipeline", pipe.execute, raise_on_error=False)

    async def transaction(self):
        key, conflict = self.key("n"), self.random.random() < 0.3
        async with entered(self.client.pipeline()) as pipe:
            await self.call("watch", pipe.watch, key)
            before = await self.call("get", pipe.get, key)
            if conflict:
                await self.call("other", self.other.incr, key)
            pipe.multi()
            pipe.set(key, int(before or 0) + 1)
            pipe.rpush(self.key("l"), self.text())
            pipe.incr(self.key("n"))
            await self.call("exec", pipe.execute)

    async def script(self):
        await self.call("script", self.script_add, keys=[self.key("q")], args=[self.text()])
        await self.call("eval", self.client.eval, "return {1, 'two', {3}}", 0)
        await self.call("missing", self.client.evalsha, "f" * 40, 0)
        await self.call("trim", self.client.ltrim, self.key("q"), 0, 3)

    async def publishing(self):
        channel = f"{self.name}:ch"
        async with entered(self.client.pubsub()) as pubsub:
            await self.call("subscribe", pubsub.subscribe, channel)
            await self.call("psubscribe", pubsub.psubscribe, channel + "*")
            for _ in range(2):
                await self.call("subscribed", pubsub.get_message, timeout=20)
            for _ in range(self.random.randint(1, 4)):
                await self.call("publish", self.other.publish, channel, self.text())
                for _ in range(2):
                    await self.call("message", pubsub.get_message, timeout=20)
            await self.call("unsubscribe", pubsub.unsubscribe)
            await self.call("unsubscribed", pubsub.get_message, timeout=20)

    async def blocking(self):
        key = f"{self.name}:b"
        for how in (self.client.blpop, self.client.brpop):
            waiting = started(lambda how=how: self.call("popped", how, key, timeout=20))
            await self.call("push", self.other.rpush, key, self.text())
            await joined(waiting)
        await self.call("in vain", self.client.blpop, [key, self.key("none")], timeout=0.02)

    async def stream(self):
        client, key = self.client, f"{self.name}:x"
        await self.call("del", client.delete, key)
        await self.call("group", client.xgroup_create, key, "g", id="0", mkstream=True)
        for number in range(1, self.random.randint(2, 4)):
            await self.call("xadd", client.xadd, key, {"f": self.text()}, id=f"{number}-1")
        await self.call("xread", client.xread, {key: "0"}, count=2)
        await self.call("xreadgroup", client.xreadgroup, "g", "me", {key: ">"}, count=1)
        waiting = started(lambda: self.call("blocked", client.xread, {key: "5-0"}, block=20_000))
        await self.call("xadd", self.other.xadd, key, {"f": "late"}, id="9-1")
        await joined(waiting)
        await self.call("xack", client.xack, key, "g", "1-1")
        await self.call("xrange", client.xrange, key)

    kinds = (
        strings, structures, pipeline, transaction, script, publishing, blocking, stream,
    )  # fmt: skip


class entered:  # noqa: N801 - used as a statement
    """`async with` for what may only know `with`."""

    def __init__(self, thing):
        self.thing = thing

    async def __aenter__(self):
        return self.thing

    async def __aexit__(self, *_):
        end = getattr(self.thing, "aclose", None) or getattr(self.thing, "close", None)
        closing = (end or self.thing.reset)()
        if hasattr(closing, "__await__"):
            await closing


def started(call):
    """Begin a call that will wait: as a task, or in a thread."""
    if way == "asyncio":
        return asyncio.ensure_future(call())
    thread = threading.Thread(target=lambda: asyncio.run(call()))
    thread.start()
    return thread


async def joined(waiting):
    if way == "asyncio":
        await waiting
    else:
        waiting.join()


def make(module, name):
    return module.Redis(
        host="127.0.0.1", port=port, protocol=protocol, client_name=name, decode_responses=True
    )


def threads():
    found = []
    running = []
    for number in range(workers):
        worker = Plain(number)
        worker.client, worker.other = (make(redis, f"w{number}{side}") for side in "ab")
        worker.script_add = worker.client.register_script(f"{ADD} -- {worker.name}")
        found.append(worker)
        running.append(threading.Thread(target=lambda worker=worker: asyncio.run(worker.run())))
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for worker in found:
        worker.client.close()
        worker.other.close()
    return found


async def tasks():
    found = []
    for number in range(workers):
        worker = Plain(number)
        worker.client, worker.other = (make(redis.asyncio, f"w{number}{side}") for side in "ab")
        worker.script_add = worker.client.register_script(f"{ADD} -- {worker.name}")
        found.append(worker)
    await asyncio.gather(*(worker.run() for worker in found))
    for worker in found:
        await worker.client.aclose()
        await worker.other.aclose()
    return found


done = asyncio.run(tasks()) if way == "asyncio" else threads()
said = {worker.name: sorted(worker.got) for worker in done}
print(json.dumps({"version": redis.__version__, "got": said}))
