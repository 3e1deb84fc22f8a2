"""junit.xml: a test case for each fault that must fire, failed if it never did.

Takes a Run; gives XML as CI systems read it.
"""

import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from chaosproxy.verdict import Run

#: What XML 1.0 cannot say, however it is written.
_UNSAYABLE: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> bytes:
    """Give the file."""
    missing = run.missing
    counts = f'tests="{len(run.required)}" failures="{len(missing)}" errors="0" skipped="0"'
    when = f'time="{run.seconds:.3f}" timestamp={_attr(run.started)}'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f"<testsuite name={_attr('chaosproxy ' + run.profile)} {counts} {when}>",
        "<properties>",
    ]
    for name, value in (("seed", run.seed), ("profile", run.profile), ("again", run.again), ("replay", run.replay), ("events_lost", run.lost)):  # fmt: skip
        lines.append(f'<property name="{name}" value={_attr(str(value))}/>')
    lines.append("</properties>")
    for name in run.required:
        fired = run.of(name)["fired"]
        case = f'<testcase classname="chaosproxy" name={_attr(f"{name} fires")} time="0"'
        if name in missing:
            why = run.why_missing(name)
            lines += [
                f"{case}>",
                f"<failure message={_attr(f'{name} never fired')}>{_text(why)}</failure>",
                "</testcase>",
            ]
        else:
            lines += [f"{case}>", f"<system-out>fired {fired}</system-out>", "</testcase>"]
    lines += ["</testsuite>", "</testsuites>", ""]
    return "\n".join(lines).encode()


def _attr(text: str) -> str:
    return quoteattr(_UNSAYABLE.sub("?", text))


def _text(text: str) -> str:
    return escape(_UNSAYABLE.sub("?", text))
