"""The files of a report.

Takes a folder and a Run; gives report.json, junit.xml and report.html in it, and the job's summary where CI asks for one.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from chaosproxy.report import html, junit, summary
from chaosproxy.telling import json_text
from chaosproxy.verdict import Run

EVENTS: Final = "events.jsonl"


def write(folder: Path, run: Run) -> None:
    """Write them, over what was there, each whole or not at all. Raises OSError, which says which."""
    _write_whole(folder / "report.json", f"{json_text(run.as_dict(), indent=2)}\n".encode())
    _write_whole(folder / "junit.xml", junit.render(run))
    _write_whole(folder / "report.html", html.render(run).encode())


def add_summary(path: Path, run: Run) -> None:
    """Add to a job's summary, as GitHub reads it. Raises OSError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(summary.render(run))
    except OSError as error:
        raise _named(error, path) from None


def _write_whole(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_bytes(data)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise _named(error, path) from None


def _named(error: OSError, path: Path) -> OSError:
    """What a full disk says names no file."""
    return OSError(error.errno, error.strerror, str(path))
