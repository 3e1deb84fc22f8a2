"""A person's visit in a browser: pages of one context of its own, and what is kept when the visit goes wrong.

Takes a browser; gives a context. After a failure there are a screenshot of each page, the network log
with the bodies of the answers, and the events of the proxy.
"""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Error, Page, Request

from tests.proxying import RunningProxy
from tests.stories.counting import Void

#: For what always comes, however busy the machine; in milliseconds.
PATIENCE = 60_000


@asynccontextmanager
async def visit(
    browser: Browser, proxy: RunningProxy, folder: Path
) -> AsyncIterator[BrowserContext]:
    """Give a context; if the visit fails, keep in `folder` what the pages, the network and the proxy saw."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    began = time.monotonic()
    requests: list[tuple[float, Request]] = []
    context.on("request", lambda request: requests.append((time.monotonic() - began, request)))
    try:
        yield context
    except Void:
        raise
    except Exception:
        folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - the visit is over
        await _keep(folder, context.pages, requests, proxy)
        raise
    finally:
        await context.close()


async def _keep(
    folder: Path, pages: list[Page], requests: list[tuple[float, Request]], proxy: RunningProxy
) -> None:
    for number, page in enumerate(pages, 1):
        await page.screenshot(path=folder / f"page-{number}.png", full_page=True)
    network = [{"at": round(at, 3)} | await _told(request) for at, request in requests]
    _write_lines(folder / "network.jsonl", network)
    _write_lines(folder / "events.jsonl", proxy.events())


async def _told(request: Request) -> dict[str, object]:
    """Give one line of the network log."""
    said = {"method": request.method, "url": request.url, "sent": request.post_data}
    # One that nobody has answered by now is as telling as an answer: it is not waited for.
    over = request.timing["responseEnd"] >= 0
    response = await request.response() if over else None
    if response is None:
        return said | {"status": None, "failure": request.failure}
    try:
        body = await response.text()
    except Error:
        body = None  # the browser has forgotten it: a redirect, or a page that has gone
    return said | {"status": response.status, "body": body}


def _write_lines(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
