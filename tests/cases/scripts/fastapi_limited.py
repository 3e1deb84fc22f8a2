"""An app whose one page is limited by fastapi-limiter; says the status of each of four requests. Takes ports."""

import asyncio
import json
import sys

import httpx
import redis.asyncio
from fastapi import Depends, FastAPI
from fastapi_limiter import FastAPILimiter
from fastapi_limiter.depends import RateLimiter

app = FastAPI()


async def everybody(_) -> str:
    return "everybody"


@app.get("/", dependencies=[Depends(RateLimiter(times=100, seconds=60))])
async def page() -> str:
    return "hello"


async def main() -> list[int]:
    client = redis.asyncio.Redis(host="127.0.0.1", port=int(sys.argv[1]))
    await FastAPILimiter.init(client, identifier=everybody)
    server = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=server, base_url="http://test") as browser:
        return [(await browser.get("/")).status_code for _ in range(4)]


print(json.dumps(asyncio.run(main())))
