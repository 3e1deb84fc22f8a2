"""A chat that is refreshed, with either memory: `python -m tests.stories.refresh --redis-url URL`.

Takes a message by POST; gives its answer. The session is a cookie, which the page brings.
"""

import secrets
from pathlib import Path

from aiohttp import web
from redis.asyncio import Redis

from tests.stories.refresh.memory import Forgetful, Reliable, history
from tests.stories.serving import Model, main

PAGE = Path(__file__).with_name("page.html").read_text()
COOKIE = "session"


def app(redis: Redis, memory: Forgetful | Reliable) -> web.Application:
    """Put the memory behind HTTP."""
    routes = web.RouteTableDef()

    @routes.get("/")
    async def page(request: web.Request) -> web.Response:
        answer = web.Response(text=PAGE, content_type="text/html")
        if COOKIE not in request.cookies:
            answer.set_cookie(COOKIE, secrets.token_hex(8), httponly=True, samesite="Strict")
        return answer

    @routes.get("/history")
    async def read(request: web.Request) -> web.Response:
        return web.json_response(await history(redis, request.cookies[COOKIE]))

    @routes.post("/chat")
    async def chat(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        return web.json_response({"answer": await memory.turn(request.cookies[COOKIE], text)})

    served = web.Application()
    served.add_routes(routes)
    return served


def buggy(redis: Redis, model: Model) -> web.Application:
    return app(redis, Forgetful(redis, model))


def repaired(redis: Redis, model: Model) -> web.Application:
    return app(redis, Reliable(redis, model))


if __name__ == "__main__":
    main("refresh", {"buggy": buggy, "repaired": repaired})
