"""A story's app on a port: the options, the model, the address to point the browser at.

Takes the app as a function of Redis and the model; gives `python -m tests.stories.STORY`.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from redis.asyncio import Redis

#: Text in, its answer out, some time later.
Model = Callable[[str], Awaitable[str]]


def main(story: str, apps: Mapping[str, Callable[[Redis, Model], web.Application]]) -> None:
    """Read the command line and serve the app that it names until Ctrl-C."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.stories.{story}")
    parser.add_argument(
        "--redis-url", default="redis://127.0.0.1:6380", help="chaosproxy's (%(default)s)"
    )
    parser.add_argument("--app", choices=apps, default="buggy", help="%(default)s")
    parser.add_argument("--port", type=int, default=8000, help="%(default)s; 0 is any that is free")
    parser.add_argument(
        "--model",
        type=float,
        default=0.02,
        metavar="SECONDS",
        help="how long it thinks (%(default)s)",
    )
    asked = parser.parse_args()

    async def model(text: str) -> str:
        await asyncio.sleep(asked.model)
        return f"You said: {text}"

    async def serve() -> None:
        async with Redis.from_url(asked.redis_url, decode_responses=True) as redis:
            runner = web.AppRunner(apps[asked.app](redis, model))
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", asked.port).start()
            _, port = runner.addresses[0]
            print(f"{story}, {asked.app}: open http://127.0.0.1:{port}/", flush=True)
            try:
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        print()
