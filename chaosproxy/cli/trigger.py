"""`chaosproxy trigger`: a fault acts now.

Takes the name of a `trigger: manual` fault of the profile in force; gives a line, or why that cannot be.
"""

import click

from chaosproxy.cli.control import asking, control_options
from chaosproxy.remote import Remote
from chaosproxy.telling import printable


@click.command()
@click.argument("fault", metavar="FAULT")
@control_options
def command(remote: Remote, fault: str) -> None:
    """Have a fault with `when: {trigger: manual}` act.

    It acts on the next exchange that it matches, once; a fault that lasts for a time begins now.
    """
    with asking():
        now = remote.trigger(fault)
    waits = now["requested"]
    how = (
        f"acts on its next {'match' if waits == 1 else f'{waits} matches'}"
        if waits
        else "has begun"
    )
    click.echo(printable(f"{now['name']} {how}"))
