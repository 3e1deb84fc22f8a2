"""A person's visit in a browser: pages of one context of its own, and what is kept when the visit goes wrong.

Takes a browser; gives a context. After a failure there are a screenshot of each page, the network log
with the bodies of the answers (HAR, which any browser's tools open), and the events of the proxy.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Browser, BrowserContext

from tests.proxying import RunningProxy
from tests.stories.counting import Void

#: For what always comes, however busy the machine; in milliseconds.
PATIENCE = 60_000


@asynccontextmanager
async def visit(
    browser: Browser, proxy: RunningProxy, folder: Path
) -> AsyncIterator[BrowserContext]:
    """Give a context; if the visit fails, keep in `folder` what the pages, the network and the proxy saw."""
    began = datetime.now(UTC).isoformat(timespec="milliseconds")
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else goes on in that moment
    context = await browser.new_context(record_har_path=folder / "network.har")
    context.set_default_timeout(PATIENCE)
    wrong = False
    try:
        yield context
    except Exception as found:
        wrong = not isinstance(found, Void)
        if wrong:
            for number, page in enumerate(context.pages, 1):
                await page.screenshot(path=folder / f"page-{number}.png", full_page=True)
            await _settled(proxy)
            # What it did to others meanwhile is in it as well.
            events = [json.dumps(event) for event in proxy.events() if event["at"] >= began]
            (folder / "events.jsonl").write_text("".join(event + "\n" for event in events))
        raise
    finally:
        await context.close()
        if not wrong:
            shutil.rmtree(folder)


async def _settled(proxy: RunningProxy) -> None:
    """Wait a while for what the proxy still holds: an event is written when its command's fate is known."""
    for _ in range(100):
        if not proxy.metric("held_commands"):
            return
        await asyncio.sleep(0.05)
