"""Looking at the page of a running proxy, and keeping what was seen when a test fails.

Takes a browser and a proxy with a control address; gives a View: the page, and short words for what tests do with it.
"""

import asyncio
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import APIResponse, Browser, Locator, Page, Request, Route, expect

from tests.proxying import BUSY, RunningProxy
from tests.wire import encode

#: For what always comes, however busy the machine; in milliseconds.
PATIENCE = 45_000


@dataclass
class View:
    """The page in a browser.

    `asked` are the addresses of all requests, `open` those that are not answered yet, `said` the console's errors.
    """

    page: Page
    proxy: RunningProxy
    asked: list[str] = field(default_factory=list)
    open: set[Request] = field(default_factory=set)
    said: list[str] = field(default_factory=list)

    def asks(self, request: Request) -> None:
        """Note a request."""
        self.asked.append(request.url)
        self.open.add(request)

    def is_answered(self, request: Request) -> None:
        """Note the end of one."""
        self.open.discard(request)

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

    async def pause(self) -> None:
        """Have updates paused, and wait until what was asked by then is answered; only events may be long in coming."""
        await self.page.get_by_role("button", name="Pause updates").click()
        await expect(self.page.locator("#health")).to_have_text("Paused")
        await until(lambda: all("wait=" in each.url for each in self.open), "all to be answered")

    async def hold(self, path: str) -> "Held":
        """Keep the answer to the next GET of a path from the page."""
        held = Held()
        await self.page.route(f"{self.proxy.control}{path}", held.keep)
        return held

    async def see(self, yaml: str) -> None:
        """Have a profile in force, and wait until the page shows it."""
        put(self.proxy, yaml=yaml)
        generation = str(json.loads(self.proxy.get("/profile")[1])["generation"])
        await expect(self.fact("Generation")).to_have_text(generation)


class Held:
    """The answer to one request, as it was when that was asked: it comes once it is let go. `taken`: the request was made."""

    def __init__(self) -> None:
        self._kept: asyncio.Future[tuple[Route, APIResponse]] = asyncio.Future()
        self.taken = False

    async def keep(self, route: Route) -> None:
        """Have a request answered, and keep that if it is the first one."""
        if self.taken or route.request.method != "GET":
            await route.continue_()
        else:
            self.taken = True
            self._kept.set_result((route, await route.fetch(max_retries=5)))

    async def wait(self) -> None:
        """Wait until it is kept."""
        await asyncio.wait_for(asyncio.shield(self._kept), PATIENCE / 1000)

    async def let_go(self) -> None:
        """Let the page have it."""
        await self.wait()
        route, answer = self._kept.result()
        await route.fulfill(response=answer)


async def until(done: Callable[[], bool], what: str) -> None:
    """Wait until something holds, while the browser goes on."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not done():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.01)


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
    and those of a proxy that was busy: on a busy machine that is an answer like any other.
    """
    expect.set_options(timeout=PATIENCE)
    assert proxy.control is not None
    visit = await browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
    visit.set_default_timeout(PATIENCE)
    page = await visit.new_page()
    view = View(page, proxy)
    visit.on("request", view.asks)
    for over in ("requestfinished", "requestfailed"):
        visit.on(over, view.is_answered)
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
    # Who is slow comes back to a connection that is closed by then; a browser would ask again as well.
    answer = await route.fetch(url=route.request.url.replace(below, "", 1), max_retries=5)
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
