"""The files of a report.

Takes a folder and a Run; gives report.json, junit.xml and report.html in it, and the job's summary where CI asks for one.
"""

from pathlib import Path
from typing import Final

from chaosproxy.report import html, junit, summary
from chaosproxy.telling import json_text
from chaosproxy.verdict import Run

EVENTS: Final = "events.jsonl"


def write(folder: Path, run: Run) -> None:
    """Write them, over what was there. Raises OSError."""
    (folder / "report.json").write_text(json_text(run.as_dict(), indent=2) + "\n", "utf-8")
    (folder / "junit.xml").write_bytes(junit.render(run))
    (folder / "report.html").write_text(html.render(run), "utf-8")


def add_summary(path: Path, run: Run) -> None:
    """Add to a job's summary, as GitHub reads it. Raises OSError."""
    with path.open("a", encoding="utf-8") as file:
        file.write(summary.render(run))
