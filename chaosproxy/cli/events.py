"""`chaosproxy events`: what has fired in a proxy that runs, and what fires from now on.

Takes the number after which to begin; gives a line an event, for people or as JSON.
"""

import os
import signal
from types import FrameType

import click

from chaosproxy.cli.control import asking, control_options
from chaosproxy.remote import Remote
from chaosproxy.telling import event_line, json_text


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on as they happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(0), default=0, help="Only those after this number.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, as `run --events` writes them.")
@control_options
def command(remote: Remote, follow: bool, after: int, as_json: bool) -> None:
    """Tell what has fired in a proxy that runs."""
    if follow:
        signal.signal(signal.SIGINT, _leave)
    with asking():
        for event in remote.follow(after) if follow else remote.events(after):
            click.echo(json_text(event) if as_json else event_line(event))


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: an exception is lost where Python is just in a destructor, and each line is out already."""
    os._exit(0)
