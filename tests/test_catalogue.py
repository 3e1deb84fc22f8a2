"""The catalogue: complete and readable."""

import re
from dataclasses import dataclass

import pytest

from chaosproxy import catalogue
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import DURATION, FLAG, choice


@dataclass(frozen=True)
class Nap(Fault):
    """A command falls asleep.

    It dreams of nothing in particular, for as long as its owner has asked it to and no longer, then goes on.

    Nobody is told.
    """

    type = "nap"
    positions = (Position.BEFORE_FORWARD, Position.AFTER_REPLY)
    outcome = "ok"
    long: float = setting(DURATION, "How long.")
    deep: bool = setting(FLAG, "Whether | or not.", default=False)
    snore: str | None = setting(choice("snore", "soft", "loud"), "How it sounds.", default=None)


@pytest.fixture
def nap(monkeypatch):
    for name in tuple(FAULTS):
        monkeypatch.delitem(FAULTS, name)
    monkeypatch.setitem(FAULTS, "nap", Nap)
    (entry,) = catalogue.entries()
    return entry


def test_data(nap):
    """An entry is what the class declares."""
    assert nap == catalogue.Entry(
        "nap",
        "A command falls asleep.",
        "It dreams of nothing in particular, for as long as its owner has asked it to and no longer, "
        "then goes on.\n\nNobody is told.",
        ("before_forward", "after_reply"),
        "ok",
        (
            catalogue.Field("long", "duration", DURATION.unit, "required", "How long."),
            catalogue.Field("deep", "flag", "", "false", "Whether | or not."),
            catalogue.Field("snore", "soft | loud", "", "", "How it sounds."),
        ),
    )


def test_text(nap):
    """Text for a terminal: summary, help, outcome, positions, settings with units and defaults."""
    assert catalogue.overview() == "nap  A command falls asleep."
    assert (
        catalogue.describe(nap)
        == """\
nap: A command falls asleep.

It dreams of nothing in particular, for as long as its owner has asked it to and no longer, then
goes on.

Nobody is told.

outcome   ok
at        before_forward, after_reply (required)

  long: duration (us, ms, s, m, h; a bare number is seconds; required)
    How long.

  deep: flag (default false)
    Whether | or not.

  snore: soft | loud
    How it sounds."""
    )


def test_markdown(nap):
    """Markdown: faults, settings and shared fields; a bar in a cell is no column."""
    tables = catalogue.markdown().split("\n\n")
    assert tables[0] == (
        "| fault | what it does | `at` | outcome |\n"
        "| --- | --- | --- | --- |\n"
        "| `nap` | A command falls asleep. | before_forward, after_reply | ok |"
    )
    assert tables[1].splitlines()[2:] == [
        "| `nap.long` | duration (us, ms, s, m, h; a bare number is seconds) | required | How long. |",
        r"| `nap.deep` | flag | false | Whether \| or not. |",
        r"| `nap.snore` | soft \| loud |  | How it sounds. |",
    ]
    for table in tables:
        columns = {len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}
        assert len(columns) == 1


@pytest.mark.parametrize("entry", catalogue.entries(), ids=lambda entry: entry.type)
def test_every_fault_is_explained(entry):
    """Each has a summary of one sentence, an outcome, a position, and help for every setting."""
    assert entry.summary.endswith(".")
    assert entry.outcome
    assert entry.positions
    assert all(field.help and field.takes for field in entry.fields)
