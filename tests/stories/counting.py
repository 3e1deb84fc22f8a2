"""How often a story's check holds: a bug shows on every run under its profile and on none under calm.

Takes one run of a story as a function, gives a Count. `--story-runs N` says how many runs; every count is
printed as a table at the end, and `--story-report FILE` writes it down as JSON: README's table is made of
`tests/stories/counts.json` by `python -m tests.stories.counting`.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
#: What README tells; written by `--story-report tests/stories/counts.json`.
COUNTS = Path(__file__).with_name("counts.json")
README_TABLE = re.compile(r"(?<=<!-- stories:begin -->\n).*(?=<!-- stories:end -->)", re.DOTALL)

#: Runs of the fast form, which is part of the normal tests, and of the long one (`-m stories`).
FEW, MANY = 2, 20
#: A run of which the machine was too slow to be the person's says nothing. So many for each that
#: counts, and the machine is too busy to say anything at all.
VOID_FOR_EACH = 30


class Broken(Exception):  # noqa: N818 - what a run finds, not a mistake of the program
    """The story's check does not hold: the memory is not whole. The text says what is missing."""


class Void(Exception):  # noqa: N818 - see above
    """The machine did not keep the person's pace, so this run proves neither: it is made again.

    It is to be raised for a measured time alone, never for what the memory holds.
    """


@dataclass(frozen=True, slots=True)
class Count:
    """What so many runs of one app under one profile came to."""

    story: str
    app: str
    profile: str
    runs: int
    broken: int
    void: int
    seconds: float
    #: How the first broken run was broken.
    example: str = ""

    def __str__(self) -> str:
        text = (
            f"{self.story}, {self.app}, {self.profile}: {self.broken} of {self.runs} runs broken"
            f" in {self.seconds:.1f} s"
        )
        return text + (f"; {self.void} void" if self.void else "")


@dataclass(slots=True)
class Tally:
    """Counts runs and asserts what the count must be; a test asks for it as `tally`.

    One run is a function of its number, from 0. It returns if the check holds, raises Broken if it
    does not and Void if it was too slow to tell; whatever else it raises is a mistake and goes on.
    """

    runs: int
    record: Callable[[Count], None] = field(repr=False)
    #: Whether this is the long form (`-m stories`).
    long: bool = False

    def __call__(
        self, story: str, app: str, profile: str, run: Callable[[int], None], *, breaks: bool
    ) -> Count:
        """Make the runs one after the other; every one must break, or none may."""
        notes = _Notes(self.runs)
        for number in range(self.runs):
            while not notes.take(_found(run, number)):
                pass
        return self._settle(notes, story, app, profile, breaks)

    async def many(
        self,
        story: str,
        app: str,
        profile: str,
        run: Callable[[int], Awaitable[None]],
        *,
        breaks: bool,
        at_once: int = 1,
    ) -> Count:
        """Make runs that await, so many at once; every one must break, or none may."""
        notes = _Notes(self.runs)
        left = iter(range(self.runs))

        async def work() -> None:
            for number in left:
                while not notes.take(await _found_later(run, number)):
                    pass

        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, self.runs)):
                group.create_task(work())
        return self._settle(notes, story, app, profile, breaks)

    def _settle(self, notes: "_Notes", story: str, app: str, profile: str, breaks: bool) -> Count:
        seconds = round(time.monotonic() - notes.began, 2)
        example = notes.reasons[0] if notes.reasons else ""
        broken = len(notes.reasons)
        count = Count(story, app, profile, self.runs, broken, notes.void, seconds, example)
        print(count)
        self.record(count)
        wanted = self.runs if breaks else 0
        assert broken == wanted, f"{count}, not {wanted}; {example or 'all were whole'}"
        return count


@dataclass(slots=True)
class _Notes:
    """What was found so far in runs of which so many are to count."""

    runs: int
    began: float = field(default_factory=time.monotonic)
    reasons: list[str] = field(default_factory=list)
    void: int = 0

    def take(self, found: Broken | Void | None) -> bool:
        """Note what a run found, None if the memory was whole; give whether the run counts."""
        match found:
            case None:
                return True
            case Broken():
                self.reasons.append(str(found))
                return True
            case Void():
                self.void += 1
                limit = VOID_FOR_EACH * self.runs
                assert self.void <= limit, f"this machine is too busy to tell: {found}"
                return False


def _found(run: Callable[[int], None], number: int) -> Broken | Void | None:
    try:
        run(number)
    except (Broken, Void) as found:
        return found
    return None


async def _found_later(run: Callable[[int], Awaitable[None]], number: int) -> Broken | Void | None:
    try:
        await run(number)
    except (Broken, Void) as found:
        return found
    return None


def table(counts: Iterable[Count]) -> str:
    """Render counts as a run shows them at its end: a row for each app and profile of a story."""
    lines = [
        "| story | app | profile | runs | broken | void | seconds |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.story} | {each.app} | {each.profile} | {each.runs} | {each.broken}"
        f" | {each.void} | {each.seconds:.1f} |"
        for each in counts
    ]
    return "\n".join(lines) + "\n"


def readme_table(counts: Iterable[Count]) -> str:
    """Render counts as README shows them: a row for each profile of a story, both apps beside each other."""
    rows: dict[tuple[str, str], dict[str, Count]] = {}
    for each in counts:
        rows.setdefault((each.story, each.profile), {})[each.app] = each
    lines = [
        "| story | profile | broken as it was | broken once repaired | void | seconds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (story, profile), apps in rows.items():
        both = [
            f"{apps[app].broken} of {apps[app].runs}" if app in apps else ""
            for app in ("buggy", "repaired")
        ]
        void = sum(each.void for each in apps.values())
        seconds = sum(each.seconds for each in apps.values())
        lines.append(f"| {story} | {profile} | {both[0]} | {both[1]} | {void} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[Count]:
    """Give the counts that a file holds; none if there is none."""
    return [Count(**each) for each in json.loads(path.read_text())] if path.exists() else []


def merge(old: Iterable[Count], new: Iterable[Count]) -> list[Count]:
    """Put new counts in the place of the old ones of the same story, app and profile."""
    by_row = {(each.story, each.app, each.profile): each for each in (*old, *new)}
    return list(by_row.values())


# --- pytest: tests/conftest.py takes these hooks over, as only its options are known everywhere ---


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stories")
    group.addoption(
        "--story-runs", type=int, metavar="N", help=f"runs to count ({FEW}; {MANY} with -m stories)"
    )
    group.addoption("--story-report", type=Path, metavar="FILE", help="JSON file to add counts to")
    group.addoption(
        "--story-artifacts", type=Path, metavar="DIR", help="where to keep what broken runs left"
    )


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the table and write it down; counts come with the reports, from whichever process."""
    counts = merge(
        (),
        (
            Count(**value)
            for reports in terminalreporter.stats.values()
            for report in reports
            if getattr(report, "when", None) == "call"
            for name, value in report.user_properties
            if name == "story"
        ),
    )
    if not counts:
        return
    terminalreporter.section("stories")
    terminalreporter.write(table(counts))
    path = config.getoption("--story-report")
    if path is not None:
        rows = [asdict(each) for each in merge(read(path), counts)]
        path.write_text(json.dumps(rows, indent=1) + "\n")


def keep(item: pytest.Item) -> Callable[[Count], None]:
    """Give what a tally records with: counts travel with the test's report."""
    return lambda count: item.user_properties.append(("story", asdict(count)))


if __name__ == "__main__":
    readme = ROOT / "README.md"
    text = readme.read_text()
    if not README_TABLE.search(text):
        sys.exit("README.md has no place for the table")
    readme.write_text(README_TABLE.sub(lambda _: readme_table(read(COUNTS)), text))
