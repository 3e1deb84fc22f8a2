"""A job's summary in Markdown, as GitHub Actions shows it.

Takes a Run; gives a table of what fired, the seed, and how to have it again.
"""

from chaosproxy.telling import printable, seconds
from chaosproxy.verdict import Run


def render(run: Run) -> str:
    """Give the text."""
    missing = run.missing
    result = "passed" if run.exit_status == 0 else f"failed (exit status {run.exit_status})"
    lines = [
        f"### chaosproxy: {_cell(run.profile)}, {result}",
        "",
        f"Seed {run.seed}, {run.commands} commands in {seconds(run.seconds)}.",
        "",
    ]
    if run.faults:
        lines += [
            "| fault | type | matched | fired | skipped | |",
            "| --- | --- | ---: | ---: | --- | --- |",
        ]
    for fault in run.faults:
        why = ", ".join(f"{reason} {count}" for reason, count in fault["skipped"].items())
        never = fault["profile"] == run.profile and fault["name"] in missing
        cells = (fault["name"], fault["type"], fault["matched"], fault["fired"], why)
        lines.append(
            f"| {' | '.join(_cell(str(cell)) for cell in cells)} | {'**never fired**' if never else ''} |"
        )
    lines += [
        "",
        *(f"**{_cell(name)} never fired**: {_cell(run.why_missing(name))}." for name in missing),
    ]
    if run.divergence:
        lines.append(f"The replay {_cell(run.divergence)}.")
    if run.lost:
        lines.append(f"{run.incomplete}.")
    lines += ["", "Again:", "", "```sh", printable(run.again).replace("```", "'''")]
    if run.replay:
        lines.append(printable(run.replay).replace("```", "'''"))
    return "\n".join([*lines, "```", "", ""])


def _cell(text: str) -> str:
    """Nothing in a name makes it something else in Markdown."""
    return "".join(
        f"\\{char}" if char in "\\`*_{}[]<>()#+!|~" else char for char in printable(text)
    )
