"""A browser for tests that need one: Debian's Chromium, driven by Playwright.

Takes what names mean to it; gives the fixture `browser`, one for all tests of a module. A conftest.py imports it.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

#: Root has no sandbox to offer, and a container's /dev/shm is small.
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
#: It looks for news of its maker otherwise, and waits for name servers that may be slow or not there.
NOBODY_ELSE = "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"


@asynccontextmanager
async def launched(*names: str) -> AsyncIterator[Browser]:
    """Run a Chromium that knows nobody but this machine; `names` stand for it too."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    known = "".join(f"MAP {name} 127.0.0.1, " for name in names)
    flags = [*FLAGS, f"--host-resolver-rules={known}{NOBODY_ELSE}"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags, timeout=90_000)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Lend one Chromium to all tests of a module; each takes a context of its own."""
    async with launched() as browser:
        yield browser
