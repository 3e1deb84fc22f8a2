"""An everyday conversation with redis-py's defaults: takes a port, prints what it got, as JSON."""

import asyncio
import json
import sys
import threading

import redis
import redis.asyncio

port = int(sys.argv[1])


def everyday() -> dict[str, object]:
    client = redis.Redis(host="127.0.0.1", port=port, decode_responses=True)
    got: dict[str, object] = {"ping": client.ping()}
    client.set("greeting", "héllo 🎉")
    got["get"] = client.get("greeting")
    got["missing"] = client.get("missing")
    got["push"] = client.rpush("list", "a", "b", "c")
    got["range"] = client.lrange("list", 0, -1)
    client.hset("hash", mapping={"f": "1", "g": "2"})
    got["hash"] = client.hgetall("hash")
    client.zadd("scores", {"m": 1.5})
    got["scores"] = client.zrange("scores", 0, -1, withscores=True)
    with client.pipeline(transaction=False) as pipe:
        got["pipeline"] = pipe.incr("n").incr("n").get("n").execute()
    with client.pipeline() as pipe:
        pipe.watch("n")
        pipe.multi()
        got["transaction"] = pipe.incr("n").rpush("list", "d").llen("list").execute()
    got["script"] = client.register_script("return {KEYS[1], ARGV[1]}")(keys=["k"], args=["v"])
    got["error"] = error_of(lambda: client.incr("greeting"))
    with client.pubsub() as pubsub:
        pubsub.subscribe("channel")
        got["subscribed"] = pubsub.get_message(timeout=30)["type"]
        client.publish("channel", "hello")
        message = pubsub.get_message(timeout=30)
        got["message"] = [message["type"], message["channel"], message["data"]]
    pusher = redis.Redis(host="127.0.0.1", port=port)
    timer = threading.Timer(0.05, lambda: pusher.rpush("queue", "job"))
    timer.start()
    got["blocking"] = client.blpop("queue", timeout=30)
    timer.join()
    got["timed out"] = client.blpop("queue", timeout=0.05)
    return got


def error_of(call: object) -> str:
    try:
        call()
    except redis.RedisError as error:
        return str(error)
    return ""


async def asynchronous() -> dict[str, object]:
    client = redis.asyncio.Redis(host="127.0.0.1", port=port, decode_responses=True)
    got: dict[str, object] = {"ping": await client.ping()}
    await client.set("greeting", "héllo 🎉")
    got["get"] = await client.get("greeting")
    got["gathered"] = sorted(await asyncio.gather(*(client.incr("m") for _ in range(20))))
    async with client.pipeline() as pipe:
        got["transaction"] = await pipe.incr("m").get("m").execute()
    async with client.pubsub() as pubsub:
        await pubsub.subscribe("channel")
        got["subscribed"] = (await pubsub.get_message(timeout=30))["type"]
        await client.publish("channel", "hello")
        got["message"] = (await pubsub.get_message(timeout=30))["data"]
    await client.aclose()
    return got


print(
    json.dumps(
        {
            "version": redis.__version__,
            "everyday": everyday(),
            "asyncio": asyncio.run(asynchronous()),
        }
    )
)
