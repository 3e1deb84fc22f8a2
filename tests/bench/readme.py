"""What README says of speed: `python -m tests.bench.readme [bench.json]` writes it anew, from the run that is kept, or this one.

Takes a run; gives the section's tables as Markdown, each target with its verdict, kept or not.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench import plot, report, stored
from tests.bench.process import ROOT
from tests.bench.stored import Run
from tests.bench.target import Verdict, verdicts

README = ROOT / "README.md"
_SECTION = re.compile(r"(?<=<!-- bench:begin -->\n).*(?=<!-- bench:end -->)", re.DOTALL)


def _grouped(found: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """Those of one promise together: they differ in the scenario, and perhaps in the limit."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in found:
        groups.setdefault(verdict.target.title, []).append(verdict)
    yield from groups.values()


def _measured(verdict: Verdict) -> str:
    """What was measured in one scenario: the worse of SET and GET."""
    if not verdict.values:
        return report.NONE
    worst = min if verdict.target.at_least else max
    value = worst(verdict.values.values())
    return report.show(value, 2 if value < 10 else 0)


def _sentence(group: Sequence[Verdict]) -> str:
    """The verdict on one promise."""
    missed = [each.target.scenario for each in group if each.word == "FAIL"]
    unknown = [each for each in group if each.word == "not measured"]
    several = len(group) > 1
    words = []
    if missed:
        words.append("**missed**" + (f" in {', '.join(missed)}" if several else ""))
    if unknown:
        where = ", ".join(each.target.scenario for each in unknown)
        words.append("not measured" + (f" in {where}" if several else f": {unknown[0].reason}"))
    return "; ".join(words) or "met"


def targets(run: Run) -> str:
    """A line for each promise."""
    rows = []
    for group in _grouped(verdicts(run.record)):
        limits = list(dict.fromkeys(f"{each.target.limit:g}" for each in group))
        sign = "≥" if group[0].target.at_least else "≤"
        rows.append(
            [
                group[0].target.title,
                " · ".join(f"{_measured(each)} {each.target.scenario}" for each in group),
                f"{sign} {' · '.join(limits)}",
                _sentence(group),
            ]
        )
    return report.table(["target", "measured", "limit", ""], rows)


def section(run: Run | None) -> str:
    """What stands between README's marks; nothing as long as nothing was measured."""
    if run is None:
        return ""
    found = verdicts(run.record)
    count = {word: sum(each.word == word for each in found) for word in ("pass", "FAIL")}
    parts = [
        report.summary(run.record),
        f"![The same as bars]({stored.PLOT.relative_to(ROOT)})",
        f"Of {len(found)} targets {count['pass']} are met and {count['FAIL']} are missed; of SET and GET the worse one counts:",
        targets(run),
        run.about,
        "Peers: "
        + "; ".join(
            f"{peer.name} {peer.version}".rstrip() + f" ({peer.note})" for peer in run.record.peers
        )
        + ".",
        "Not measured, and why:\n\n" + report.absent(run.record)
        if run.record.missing or run.record.failures
        else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def with_section(text: str, run: Run | None) -> str:
    """Give README with this run's figures. Raises ValueError if it has no place for them."""
    text, times = _SECTION.subn(lambda _: section(run), text)
    if times != 1:
        raise ValueError(f"README has {times} places for what the bench has measured")
    return text


def write(run: Run | None) -> None:
    """Write README's section and its plot."""
    README.write_text(with_section(README.read_text(), run))
    if run is not None:
        stored.PLOT.write_text(plot.plot(run.record))


def keep(run: Run, result: Path = stored.RESULT) -> None:
    """From now on this run's figures are README's."""
    result.write_text(stored.dump(run))
    # Read again: README says what anybody can make of the file.
    write(stored.load(result.read_text()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(stored.load(Path(sys.argv[1]).read_text()))
    else:
        write(stored.stored())
