"""The story with redis-py's defaults: takes a port, `sync` or `asyncio`, `plain` or `multi`; prints what the caller sees."""

import asyncio
import json
import sys

import redis
import redis.asyncio

port, kind, form = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def sync() -> object:
    client = redis.Redis(host="127.0.0.1", port=port)
    if form == "plain":
        return client.rpush("chat", "m1")
    with client.pipeline() as pipe:
        return pipe.rpush("chat", "m1").expire("chat", 100).execute()


async def asynchronous() -> object:
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    try:
        if form == "plain":
            return await client.rpush("chat", "m1")
        async with client.pipeline() as pipe:
            return await pipe.rpush("chat", "m1").expire("chat", 100).execute()
    finally:
        await client.aclose()


returned, raised = None, None
try:
    returned = sync() if kind == "sync" else asyncio.run(asynchronous())
except redis.RedisError as error:
    raised = type(error).__name__
print(json.dumps({"version": redis.__version__, "returned": returned, "raised": raised}))
