"""report.html: one file that opens anywhere, without a script or a request.

Takes a Run; gives a page: the verdict, how to have it again, the timeline, each fault, the commands that were hit, the events.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

from chaosproxy.report import chart
from chaosproxy.telling import command_of, printable, seconds
from chaosproxy.verdict import Run

#: So many events are listed, and so many commands; events.jsonl has all.
MOST_EVENTS: Final = 1000
MOST_COMMANDS: Final = 50
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(run: Run) -> str:
    """Give the page."""
    style = Path(__file__).with_name("report.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>chaosproxy: {_text(run.profile)}, seed {run.seed}</title>
<style>
{style}</style>
</head>
<body>
<main>
{_head(run)}
<section aria-labelledby="again">
<h2 id="again">Once more</h2>
<p>The same seed and the same commands give the same faults:</p>
<pre tabindex="0">{_text(run.again)}</pre>
{_replay(run)}
</section>
<section aria-labelledby="timeline">
<h2 id="timeline">What fired when</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="timeline">
{chart.render(run)}
</div>
{chart.legend()}
</section>
{_faults(run)}
{_commands(run)}
{_events(run)}
</main>
</body>
</html>
"""


def _head(run: Run) -> str:
    good = run.exit_status == 0
    said = "Passed" if good else f"Failed, exit status {run.exit_status}"
    wrong = [f"{name} never fired: {run.why_missing(name)}." for name in run.missing]
    if run.status:
        wrong.insert(0, f"The command ended with status {run.status}.")
    if run.divergence:
        wrong.append(f"The replay {run.divergence}.")
    if run.lost:
        wrong.append(f"{run.incomplete}.")
    facts = {
        "command": " ".join(run.command),
        "profile": run.profile,
        "what it does": run.description,
        "healthy is": run.healthy,
        "seed": run.seed,
        "server": run.upstream,
        "started": run.started,
        "took": f"{seconds(run.seconds)}, {run.commands} commands",
        "fired": f"{run.recorded} times",
        "chaosproxy": run.version,
    }
    listed = "\n".join(
        f"<dt>{name}</dt><dd>{_text(str(value))}</dd>"
        for name, value in facts.items()
        if value != ""
    )
    problems = "\n".join(f"<p>{_text(each)}</p>" for each in wrong)
    return f"""<header>
<h1>{_text(run.profile)}</h1>
<p class="verdict {"good" if good else "bad"}">{said}</p>
{problems}
<dl>
{listed}
</dl>
</header>"""


def _replay(run: Run) -> str:
    if not run.replay:
        return ""
    return (
        "<p>Exactly what fired this time, whatever the timing, from the events beside this file:</p>\n"
        f'<pre tabindex="0">{_text(run.replay)}</pre>'
    )


def _faults(run: Run) -> str:
    rows = []
    for fault in run.faults:
        own = fault["profile"] == run.profile
        must = own and fault["name"] in run.required
        verdict = "" if not must else "yes" if fault["fired"] else "never fired"
        why = ", ".join(f"{reason} {count}" for reason, count in fault["skipped"].items())
        name = fault["name"] if own else f"{fault['name']} ({fault['profile']})"
        rows.append(
            [name, fault["type"], fault["matched"], fault["fired"], why, verdict],
        )
    if not rows:
        return ""
    return _table(
        "faults",
        "Each fault",
        "How often it matched, fired, and was skipped, by reason; and whether it had to fire.",
        ("fault", "type", "matched", "fired", "skipped", "required"),
        rows,
    )


def _commands(run: Run) -> str:
    hit = Counter((str(event["fault"]), command_of(event)) for event in run.events)
    if not hit:
        return ""
    rows = [[command, fault, count] for (fault, command), count in hit.most_common(MOST_COMMANDS)]
    more = f" The {MOST_COMMANDS} most frequent of {len(hit)}." if len(hit) > MOST_COMMANDS else ""
    return _table(
        "commands",
        "The commands it hit",
        f"With their keys, the most frequent first.{more}",
        ("command", "fault", "times"),
        rows,
    )


def _events(run: Run) -> str:
    if not run.events:
        return ""
    listed = run.events[:MOST_EVENTS]
    rows = [
        [
            event["n"],
            f"{event['t']:.3f}",
            event["fault"],
            command_of(event),
            event["position"],
            event["applied"],
            event["told"],
            str(event["outcome"]).replace("_", " "),
            "" if event.get("delay") is None else seconds(event["delay"]),
            event.get("detail", ""),
        ]
        for event in listed
    ]
    more = f" The first {MOST_EVENTS} of {run.recorded}." if run.recorded > len(listed) else ""
    return _table(
        "events",
        "Every event",
        f"In the order in which they happened.{more}",
        (
            "n",
            "seconds",
            "fault",
            "command",
            "position",
            "applied",
            "told",
            "outcome",
            "delay",
            "detail",
        ),
        rows,
    )


_NUMBERS: Final = frozenset({"n", "seconds", "matched", "fired", "times"})
_MONO: Final = frozenset({"command", "detail"})


def _table(
    name: str, title: str, caption: str, columns: tuple[str, ...], rows: Iterable[list[object]]
) -> str:
    heads = "".join(f'<th scope="col"{_class(column)}>{column}</th>' for column in columns)
    lines = "\n".join(
        "<tr>"
        + "".join(
            f"<td{_class(column)}>{_text(str(value))}</td>"
            for column, value in zip(columns, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f"""<section aria-labelledby="{name}">
<h2 id="{name}">{title}</h2>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}">
<table>
<caption>{escape(caption)}</caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{lines}
</tbody>
</table>
</div>
</section>"""


def _class(column: str) -> str:
    if column in _NUMBERS:
        return ' class="number"'
    return ' class="mono"' if column in _MONO else ""


def _text(text: str) -> str:
    return escape("\n".join(printable(line) for line in text.splitlines()))
