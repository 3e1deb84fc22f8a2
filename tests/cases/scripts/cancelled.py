"""One caller gives up on `GET foo` after 100 ms; others then read `bar`, `foo`, `bar` on the same connection.

Takes ports, and how: pooled or single. Says what each of the others got.
"""

import asyncio
import json
import sys

import redis.asyncio


async def main() -> list[str]:
    client = redis.asyncio.Redis(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        max_connections=1,
        single_connection_client=sys.argv[3] == "single",
        decode_responses=True,
    )
    await client.ping()
    try:
        await asyncio.wait_for(client.get("foo"), 0.1)
    except TimeoutError:
        return [await client.get(key) for key in ("bar", "foo", "bar")]
    return ["in time"]


print(json.dumps(asyncio.run(main())))
