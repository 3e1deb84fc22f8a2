"""The counting of runs: what is broken, what is void, what is a mistake, and what is written down."""

import asyncio
import json

import pytest

from tests.stories.counting import (
    COUNTS,
    MANY,
    README_TABLE,
    ROOT,
    Broken,
    Count,
    Tally,
    Void,
    merge,
    read,
    readme_table,
    table,
)

ROW = Count("tabs", "buggy", "late-writer", 20, 20, 1, 3.21, "m2 is gone")


@pytest.fixture
def recorded() -> list[Count]:
    return []


@pytest.fixture
def few(recorded) -> Tally:
    return Tally(5, recorded.append)


def broken(number: int) -> None:
    raise Broken(f"turn {number} is gone")


def whole(number: int) -> None:
    """Find nothing."""


def test_every_run_breaks(few, recorded):
    """A bug that shows on all runs is what was asked for; the first run tells how."""
    count = few("tabs", "buggy", "late-writer", broken, breaks=True)
    assert (count.broken, count.runs, count.example) == (5, 5, "turn 0 is gone")
    assert recorded == [count]


def test_no_run_breaks(few):
    """An app that holds on all runs is what was asked for."""
    assert few("tabs", "repaired", "late-writer", whole, breaks=False).broken == 0


def test_nearly_all_is_not_all(few, recorded):
    """One run that holds among those that must break, and one that breaks among those that must hold, fail."""

    def once(number: int) -> None:
        if number == 3:
            raise Broken("once")

    def but_once(number: int) -> None:
        if number != 3:
            raise Broken("but once")

    with pytest.raises(AssertionError, match="1 of 5 runs broken"):
        few("tabs", "repaired", "calm", once, breaks=False)
    with pytest.raises(AssertionError, match="4 of 5 runs broken"):
        few("tabs", "buggy", "late-writer", but_once, breaks=True)
    assert [count.broken for count in recorded] == [1, 4]


def test_void_runs_are_made_again(few):
    """A run that was too slow to tell counts neither way, and its number comes again."""
    seen: list[int] = []

    def run(number: int) -> None:
        seen.append(number)
        if seen.count(number) < 3:
            raise Void("0.9 s for 0.2")

    count = few("tabs", "buggy", "calm", run, breaks=False)
    assert (count.runs, count.broken, count.void) == (5, 0, 10)
    assert sorted(seen) == sorted([*range(5)] * 3)


def test_a_machine_that_is_too_busy_says_so(few):
    """Runs that stay void end in a failure, not in a loop."""

    def run(number: int) -> None:
        raise Void("9 s for 0.2")

    with pytest.raises(AssertionError, match=r"too busy to tell: 9 s for 0\.2"):
        few("tabs", "buggy", "calm", run, breaks=False)


def test_a_mistake_is_no_bug_found(few, recorded):
    """What a run raises by mistake fails the test, though every run was to break."""

    def run(number: int) -> None:
        raise ValueError("no such page")

    with pytest.raises(ValueError, match="no such page"):
        few("tabs", "buggy", "late-writer", run, breaks=True)
    assert recorded == []


def test_at_once(recorded):
    """Runs that await go so many at once, each number once."""
    seen: list[int] = []
    running = 0
    most = 0

    async def run(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        seen.append(number)

    tally = Tally(30, recorded.append)
    asyncio.run(tally.many("tabs", "repaired", "calm", run, breaks=False, at_once=4))
    assert most == 4
    assert sorted(seen) == [*range(30)]


def test_table():
    """A row says which story, app and profile, how many runs, how many of them broke, how many were void."""
    assert table([ROW]).splitlines()[-1] == "| tabs | buggy | late-writer | 20 | 20 | 1 | 3.2 |"


def test_readme_table():
    """Both apps stand beside each other, in the order in which their rows came; one that was not counted is left out."""
    calm = Count("tabs", "buggy", "calm", 20, 0, 2, 1.0)
    repaired = Count("tabs", "repaired", "late-writer", 30, 0, 0, 2.0)
    assert readme_table([ROW, calm, repaired]).splitlines()[2:] == [
        "| tabs | late-writer | 20 of 20 | 0 of 30 | 1 | 5 |",
        "| tabs | calm | 0 of 20 |  | 2 | 1 |",
    ]


def test_merge(tmp_path):
    """A new count takes the old one's place in the file; others stay as they are."""
    path = tmp_path / "counts.json"
    assert read(path) == []
    other = Count("tabs", "repaired", "late-writer", 20, 0, 0, 3.0)
    again = Count("tabs", "buggy", "late-writer", 300, 300, 0, 60.0)
    path.write_text(json.dumps([{**_row(ROW)}, {**_row(other)}]))
    assert merge(read(path), [again]) == [again, other]


def _row(count: Count) -> dict[str, object]:
    return {name: getattr(count, name) for name in Count.__slots__}


def test_readme_tells_what_was_counted():
    """README's table is that of the counts that are kept; in each of them all runs broke, or none did."""
    counts = read(COUNTS)
    (told,) = README_TABLE.findall((ROOT / "README.md").read_text())
    assert told == readme_table(counts), "python -m tests.stories.counting renews it"
    assert [str(each) for each in counts if each.broken not in (0, each.runs)] == []
    assert min(each.runs for each in counts) >= MANY
