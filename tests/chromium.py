"""A browser for tests that need one: Debian's Chromium, driven by Playwright.

Takes nothing; gives the fixture `browser`, one for all tests of a module. A conftest.py imports it.
"""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Lend one Chromium to all tests of a module; each takes a context of its own."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    # Root has no sandbox to offer, and a container's /dev/shm is small.
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        await browser.close()
