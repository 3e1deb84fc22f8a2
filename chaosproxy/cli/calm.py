"""`chaosproxy calm`: no faults any more.

Takes nothing; gives a line once everything that was held has been let go.
"""

import click

from chaosproxy.cli.control import asking, control_options
from chaosproxy.remote import Remote
from chaosproxy.telling import in_force_line


@click.command()
@control_options
def command(remote: Remote) -> None:
    """Put no fault in force in a proxy that runs.

    What is held is let go, at once.
    """
    with asking():
        now = remote.calm()
    click.echo(in_force_line(now))
