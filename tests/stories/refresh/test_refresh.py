"""A chat of 5 and of 15 rounds and then a refresh, in a browser: the conversation is still there, or it is not.

Takes both apps, under the profiles slow-writes and ttl-lapse and under none; gives the counts of runs after
which the page lacked something that it had shown.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, Request

from tests.stories.browsing import visit
from tests.stories.counting import VOID_FOR_EACH, Broken, Tally, Void
from tests.stories.stage import RunningApp, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: How long after the last answer the person refreshes.
PACE = 0.2
#: How long the person takes for the next message, by rounds: either way the conversation takes longer
#: than the two seconds that ttl-lapse leaves of its seven days.
THINK = {1: 0.0, 5: 0.5, 15: 0.2}

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
    between = max((after - before for before, after in itertools.pairwise(turns)), default=0.0)
    refresh = ends["history"][-1] - turns[-1]
    # Whoever waits for the writes may be asked as late as one likes.
    free = cell.app == "repaired" and cell.profile == "slow-writes"
    late = refresh > TO_REFRESH.get(cell.profile, math.inf) and not free
    if late or between > BETWEEN.get(cell.profile, math.inf):
        raise Void(f"{between:.2f} s between two answers, {refresh:.2f} s to the refreshed history")


async def count(
    stage: Stage, browser: Browser, tally: Tally, artifacts: Path, cell: Cell, at_once: int
) -> None:
    """Count the runs of a row of the table: one app, one browser, a person with a cookie for each."""
    app = stage.app("refresh", cell.app, stage.proxy(cell.profile))

    async def run(number: int) -> None:
        await play(app, browser, artifacts / str(number), cell)

    story = f"refresh, {cell.rounds} rounds"
    await tally.many(story, cell.app, cell.profile, run, breaks=cell.breaks, at_once=at_once)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def until_in_time(play: Callable[[], Awaitable[None]]) -> None:
    """Play until the machine keeps the pace."""
    for _ in range(2 * VOID_FOR_EACH):
        with contextlib.suppress(Void):
            return await play()
    raise AssertionError("this machine is too busy")


async def test_what_a_broken_run_leaves(stage, browser, tmp_path):
    """A screenshot, the network log with the history that lacks the turn, and the events of the writes that came late."""
    cell = Cell("buggy", "slow-writes", 1)
    app = stage.app("refresh", cell.app, stage.proxy(cell.profile))
    with pytest.raises(Broken, match="after the refresh"):
        await until_in_time(lambda: play(app, browser, tmp_path / "run", cell))
    left = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert left == ["events.jsonl", "network.har", "page-1.png"]
    assert (tmp_path / "run" / "page-1.png").read_bytes().startswith(b"\x89PNG")
    network = json.loads((tmp_path / "run" / "network.har").read_text())["log"]["entries"]
    paths = [urlsplit(each["request"]["url"]).path for each in network]
    assert paths == ["/", "/history", "/chat", "/", "/history"]
    assert json.loads(network[2]["request"]["postData"]["text"]) == {"text": "message 1"}
    said = [json.loads(network[number]["response"]["content"]["text"]) for number in (2, 4)]
    assert said[0] == {"answer": "You said: message 1"}
    assert len(said[1]) < 2
    events = lines(tmp_path / "run" / "events.jsonl")
    assert {"slow-writes"} == {event["fault"] for event in events}
    assert "RPUSH" in {event["command"] for event in events}


async def test_what_is_left_before_there_is_a_page(stage, browser, tmp_path):
    """A visit that goes wrong at once still leaves the network log and the events, and raises what it raised."""
    with pytest.raises(ValueError, match="at once"):
        async with visit(browser, stage.proxy("calm"), tmp_path / "run"):
            raise ValueError("at once")
    left = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert left == ["events.jsonl", "network.har"]


async def test_what_a_good_run_leaves(stage, browser, tmp_path):
    """Nothing."""
    cell = Cell("repaired", "slow-writes", 1)
    app = stage.app("refresh", cell.app, stage.proxy(cell.profile))
    await until_in_time(lambda: play(app, browser, tmp_path / "run", cell))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("cell", cells(5), ids=str)
async def test_five_rounds(stage, browser, tally: Tally, artifacts, cell):
    """Under both profiles the buggy app forgets every time, at the same pace under calm never; the repaired never does."""
    await count(stage, browser, tally, artifacts, cell, at_once=2)


@pytest.mark.stories
@pytest.mark.parametrize("cell", cells(15), ids=str)
async def test_fifteen_rounds(stage, browser, tally: Tally, artifacts, cell):
    """As above, with conversations that have more turns under way and outlive their time to live by more."""
    await count(stage, browser, tally, artifacts, cell, at_once=4)


@pytest.mark.stories
@pytest.mark.parametrize("rounds", [5, 15])
@pytest.mark.parametrize("profile", ["slow-writes", "ttl-lapse"])
async def test_three_hundred_runs(stage, browser, tally: Tally, artifacts, profile, rounds):
    """The repair holds 300 times, which takes minutes: most of a run is waiting, and twelve wait at once."""
    three_hundred = dataclasses.replace(tally, runs=max(tally.runs, 300))
    cell = Cell("repaired", profile, rounds)
    await count(stage, browser, three_hundred, artifacts, cell, at_once=12)
