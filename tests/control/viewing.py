"""Looking at the page of a running proxy, and keeping what was seen when a test fails.

Takes a browser and a proxy with a control address; gives a View: the page, and short words for what tests do with it.
"""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.proxying import RunningProxy
from tests.wire import encode

#: For what always comes, however busy the machine; in milliseconds.
PATIENCE = 45_000
#: What a proxy says that has no time for a question, and a browser of it: on a busy machine that is an answer like any other.
BUSY = 503


@dataclass
class View:
    """The page in a browser. `asked` are the addresses of all requests, `said` the console's errors."""

    page: Page
    proxy: RunningProxy
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def status(self) -> Locator:
        """The line that says what became of what was asked for."""
        return self.page.locator("#said")

    def fact(self, name: str) -> Locator:
        """A number of what is in force."""
        term = self.page.locator("dt", has_text=exactly(name))
        return self.page.locator(".facts > div").filter(has=term).locator("dd")

    def fault(self, name: str) -> Locator:
        """A fault's row."""
        cell = self.page.locator(".fault-name", has_text=exactly(name))
        return self.page.locator("#faults tr").filter(has=cell)

    async def choose(self, name: str) -> None:
        """Look at a profile that ships."""
        await self.page.get_by_label("Profile to look at").select_option(name)
        await expect(self.yaml).to_have_value(self.proxy.get(f"/profiles/{name}")[1])

    async def scroll_to(self, heading: str) -> None:
        """Look at a section of the page."""
        name = self.page.get_by_role("heading", name=heading, exact=True)
        await name.evaluate("heading => heading.closest('section').scrollIntoView()")

    @property
    def yaml(self) -> Locator:
        return self.page.get_by_label("YAML", exact=True)

    async def apply(self) -> None:
        await self.page.get_by_role("button", name="Put in force").click()

    async def see(self, yaml: str) -> None:
        """Have a profile in force, and wait until the page shows it."""
        put(self.proxy, yaml=yaml)
        generation = str(json.loads(self.proxy.get("/profile")[1])["generation"])
        await expect(self.fact("Generation")).to_have_text(generation)


@asynccontextmanager
async def viewing(
    browser: Browser,
    proxy: RunningProxy,
    folder: Path,
    *,
    below: str = "",
    errors: tuple[str, ...] = (),
    **context: Any,
) -> AsyncIterator[View]:
    """Open the page, `below` a path as a gateway would serve it. When the test fails, a picture is kept in `folder`.

    In the end no request has left the control address, and the console has no error but those that contain one of `errors`
    and those of a proxy that was busy.
    """
    expect.set_options(timeout=PATIENCE)
    assert proxy.control is not None
    visit = await browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
    visit.set_default_timeout(PATIENCE)
    page = await visit.new_page()
    view = View(page, proxy)
    visit.on("request", lambda request: view.asked.append(request.url))
    page.on("pageerror", lambda error: view.said.append(str(error)))
    page.on("console", lambda line: line.type == "error" and view.said.append(line.text))
    try:
        if below:
            await page.route(f"**{below}/**", partial(_forward, below))
        await page.goto(f"{proxy.control}{below}/")
        yield view
        assert [url for url in view.asked if not url.startswith(f"{proxy.control}{below}/")] == []
        expected = (*errors, f"status of {BUSY}")
        assert [line for line in view.said if not any(each in line for each in expected)] == []
    except BaseException as error:
        picture = folder / "page.png"
        await page.screenshot(path=picture, full_page=True)
        error.add_note(f"what the page showed: {picture}")
        raise
    finally:
        # Polls are always under way.
        await page.unroute_all(behavior="ignoreErrors")
        await visit.close()


async def _forward(below: str, route: Route) -> None:
    answer = await route.fetch(url=route.request.url.replace(below, "", 1))
    await route.fulfill(response=answer)


def exactly(text: str) -> re.Pattern[str]:
    """This text and no more."""
    return re.compile(f"^{re.escape(text)}$")


def put(proxy: RunningProxy, **body: Any) -> dict[str, Any]:
    """Put a profile in force."""
    return call(proxy, "PUT", "/profile", body)


def call(proxy: RunningProxy, method: str, path: str, body: Any = None) -> Any:
    """Ask the control API, again where it is too busy to answer; gives its JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{proxy.control}{path}", data, {"Content-Type": "application/json"}, method=method
    )
    deadline = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != BUSY or time.monotonic() > deadline:
                    raise


def pipeline(proxy: RunningProxy, count: int, *command: Any) -> None:
    """Have a command done so often, on one connection."""
    with proxy.connect() as wire:
        left = count
        while left:
            some = min(left, 500)
            wire.send_bytes(encode(*command) * some)
            wire.read(some)
            left -= some
