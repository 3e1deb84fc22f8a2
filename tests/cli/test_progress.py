"""How far it is: a line at the margin of a terminal that leaves the cursor alone, plain lines otherwise."""

import io
import re

from chaosproxy.cli import progress as progress_module
from chaosproxy.cli.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self):
        return True


def told(stream, counts, *, times=1):
    """Tick so many times with these counts, and give what is written."""
    progress = Progress(stream, lambda: counts)
    for _ in range(times):
        progress.tick()
    return progress


def test_on_a_terminal(monkeypatch):
    """At the right margin, and the cursor goes back to where the command left it."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    progress = told(stream, (12, {"a": 2, "b": 0, "c\x1b": 1}))
    text = stream.getvalue()
    assert re.fullmatch(
        r"\x1b7\x1b\[\d+G\x1b\[K\x1b\[2m0 s, 12 commands, fired: a 2, c\? 1\x1b\[0m\x1b8", text
    )
    assert "\n" not in text
    progress.end()
    assert stream.getvalue()[len(text) :] == "\x1b7\x1b[80G\x1b[K\x1b[2m\x1b[0m\x1b8"


def test_on_a_narrow_terminal(monkeypatch):
    """It never wraps."""
    monkeypatch.setenv("COLUMNS", "10")
    stream = Terminal()
    told(stream, (12, {}))
    assert "0 s, 12 c\x1b" in stream.getvalue()


def test_nothing_drawn_nothing_cleared():
    """A run without a tick leaves a terminal as it was."""
    stream = Terminal()
    told(stream, (0, {}), times=0).end()
    assert stream.getvalue() == ""


def test_elsewhere(monkeypatch):
    """A line when something new has fired, not more often than every few seconds, and else now and then."""
    clock = [0.0]
    monkeypatch.setattr(progress_module, "monotonic", lambda: clock[0])
    stream = io.StringIO()
    counts = {"a": 0, "b": 0}
    progress = Progress(stream, lambda: (5, counts))
    for second in range(1, 70):
        clock[0] = second
        counts |= {"a": int(second >= 2), "b": int(second >= 6)}
        progress.tick()
    progress.end()
    assert stream.getvalue().splitlines() == [
        "chaosproxy: 5 s, 5 commands, fired: a 1",
        "chaosproxy: 10 s, 5 commands, fired: a 1, b 1",
        "chaosproxy: 40 s, 5 commands, fired: a 1, b 1",
    ]
