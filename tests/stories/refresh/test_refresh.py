"""A chat of 5 and of 15 rounds and then a refresh, in a browser: the conversation is still there, or it is not.

Takes both apps, under the profiles slow-writes and ttl-lapse and under none; gives the counts of runs after
which the page lacked something that it had shown.
"""

import asyncio
import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request

from tests.stories.browsing import visit
from tests.stories.counting import Broken, Tally, Void
from tests.stories.stage import RunningApp, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: How long after the last answer the person refreshes.
PACE = 0.2
#: How long the person takes for the next message, by rounds: either way the conversation takes longer
#: than the two seconds that ttl-lapse leaves of its seven days.
THINK = {5: 0.5, 15: 0.2}

#: What the machine may take from one answer to the next, so that a key that is renewed with each lives
#: on, and from the last answer to the history, so that a turn's two writes, which are held for 0.6 s
#: at least, cannot be over if nobody waits for them.
BETWEEN = {"ttl-lapse": 1.8}
TO_REFRESH = {"ttl-lapse": 1.8, "slow-writes": 0.55}


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table."""

    app: str
    profile: str
    rounds: int

    @property
    def breaks(self) -> bool:
        return self.app == "buggy" and self.profile != "calm"

    def __str__(self) -> str:
        return f"{self.app}-{self.profile}-{self.rounds}"


def cells(rounds: int) -> list[Cell]:
    """Give the rows of the table for so many rounds."""
    profiles = ("slow-writes", "ttl-lapse", "calm")
    return [Cell(app, profile, rounds) for app in ("buggy", "repaired") for profile in profiles]


def conversation(rounds: int) -> list[str]:
    """Give what the page shows after so many rounds."""
    texts = [f"message {number}" for number in range(1, rounds + 1)]
    return [line for text in texts for line in (text, f"You said: {text}")]


async def shown(page: Page) -> list[str]:
    await page.locator("body[data-ready]").wait_for()
    return await page.locator("#messages li").all_text_contents()


async def chat(page: Page, rounds: int) -> None:
    """Send so many messages, each a while after the answer to the one before."""
    for number in range(1, rounds + 1):
        if number > 1:
            await asyncio.sleep(THINK[rounds])
        await page.get_by_label("Message").fill(f"message {number}")
        await page.keyboard.press("Enter")
        await page.get_by_text(f"You said: message {number}", exact=True).wait_for()


async def play(app: RunningApp, browser: Browser, folder: Path, cell: Cell) -> None:
    """Chat, refresh, and check that the page shows what it has shown."""
    async with visit(browser, app.proxy, folder) as context:
        answers: list[Request] = []
        context.on("requestfinished", lambda request: answers.append(request))  # noqa: PLW0108
        page = await context.new_page()
        await page.goto(app.url)
        assert await shown(page) == []
        await chat(page, cell.rounds)
        before = await page.locator("#messages li").all_text_contents()
        assert before == conversation(cell.rounds)
        await asyncio.sleep(PACE)
        async with page.expect_request_finished(lambda request: "history" in request.url) as read:
            await page.reload(wait_until="commit")
        after = await shown(page)
        in_time([*answers, await read.value], cell)
        if after != before:
            missing = [line for line in before if line not in after]
            raise Broken(
                f"after the refresh {missing or 'nothing'} of {len(before)} was missing: {after}"
            )


def in_time(answers: list[Request], cell: Cell) -> None:
    """Raise Void if the browser, by its own clock, was slower than the person that it plays."""
    ends: dict[str, list[float]] = {"chat": [], "history": []}
    for request in answers:
        name = request.url.rpartition("/")[2]
        if name in ends:
            timing = request.timing
            ends[name].append((timing["startTime"] + timing["responseEnd"]) / 1000)
    turns = ends["chat"]
    between = max(after - before for before, after in itertools.pairwise(turns))
    refresh = ends["history"][-1] - turns[-1]
    # Whoever waits for the writes may be asked as late as one likes.
    free = cell.app == "repaired" and cell.profile == "slow-writes"
    late = refresh > TO_REFRESH.get(cell.profile, math.inf) and not free
    if late or between > BETWEEN.get(cell.profile, math.inf):
        raise Void(f"{between:.2f} s between two answers, {refresh:.2f} s to the refreshed history")


def started(stage: Stage, cell: Cell) -> RunningApp:
    return stage.app("refresh", cell.app, stage.proxy(cell.profile))


async def count(
    stage: Stage, browser: Browser, tally: Tally, artifacts: Path, cell: Cell, at_once: int
) -> None:
    """Count the runs of a row of the table."""
    app = stage.app("refresh", cell.app, stage.proxy(cell.profile))

    async def run(number: int) -> None:
        await play(app, browser, artifacts / str(number), cell)

    story = f"refresh, {cell.rounds} rounds"
    await tally.many(story, cell.app, cell.profile, run, breaks=cell.breaks, at_once=at_once)


@pytest.mark.parametrize("cell", cells(5), ids=str)
async def test_five_rounds(stage, browser, tally: Tally, artifacts, cell):
    """Under both profiles the buggy app forgets every time, at the same pace under calm never; the repaired never does."""
    await count(stage, browser, tally, artifacts, cell, at_once=2)


@pytest.mark.stories
@pytest.mark.parametrize("cell", cells(15), ids=str)
async def test_fifteen_rounds(stage, browser, tally: Tally, artifacts, cell):
    """As above, with conversations that have more turns under way and outlive their time to live by more."""
    await count(stage, browser, tally, artifacts, cell, at_once=4)
