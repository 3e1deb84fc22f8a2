"""A chat that two tabs have open, with either memory: `python -m tests.stories.two_tabs --redis-url URL`.

Takes a message by POST; gives the conversation with its answer. `/` begins a session of its own.
"""

import secrets
from pathlib import Path

from aiohttp import web
from redis.asyncio import Redis

from tests.stories.serving import Model, main
from tests.stories.two_tabs.memory import Appending, Overwriting, key_of

PAGE = Path(__file__).with_name("page.html").read_text()


def app(memory: Overwriting | Appending) -> web.Application:
    """Put the memory behind HTTP."""
    routes = web.RouteTableDef()

    @routes.get("/")
    async def begin(_: web.Request) -> web.Response:
        raise web.HTTPFound(f"/ada/{secrets.token_hex(4)}/")

    @routes.get("/{user}/{session}/")
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    @routes.get("/{user}/{session}/messages")
    async def history(request: web.Request) -> web.Response:
        return web.json_response(await memory.history(key_of(**request.match_info)))

    @routes.post("/{user}/{session}/messages")
    async def say(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        return web.json_response(await memory.turn(key_of(**request.match_info), text))

    served = web.Application()
    served.add_routes(routes)
    return served


def buggy(redis: Redis, model: Model) -> web.Application:
    return app(Overwriting(redis, model))


def repaired(redis: Redis, model: Model) -> web.Application:
    return app(Appending(redis, model))


if __name__ == "__main__":
    main("two_tabs", {"buggy": buggy, "repaired": repaired})
