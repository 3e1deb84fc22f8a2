"""`chaosproxy use`: another profile for a proxy that runs.

Takes a shipped name or a file, and a seed; gives a line once it is in force on every connection.
"""

from typing import Any

import click

from chaosproxy.cli.completing import names_from
from chaosproxy.cli.control import asking, control_options
from chaosproxy.cli.problems import leave
from chaosproxy.core.scalar import MOST
from chaosproxy.profile import ProfileError, find, names, split_override
from chaosproxy.remote import Remote
from chaosproxy.telling import in_force_line, printable


@click.command()
@click.argument("profile", metavar="PROFILE", shell_complete=names_from(names))
@click.option(
    "--seed",
    type=click.IntRange(0, MOST),
    help="Wins over the profile's; without either the one in force stays.",
)
@click.option(
    "--set",
    "set_",
    metavar="PATH=VALUE",
    multiple=True,
    help="Override one value, such as lost-ack.when.nth=3; may be given several times.",
)
@control_options
def command(remote: Remote, profile: str, seed: int | None, set_: tuple[str, ...]) -> None:
    """Put another profile in force in a proxy that runs.

    PROFILE is a shipped profile's name or a file's path. When this returns it is in force on every connection, and what
    the one before held has been let go. A profile with problems changes nothing.
    """
    body: dict[str, Any] = {"seed": seed, "name": profile}
    file = ""
    try:
        body["set"] = dict(map(split_override, set_)) or None
        if profile not in names():
            source = find(profile)
            file = source.file
            text = source.raw.decode("utf-8", "surrogateescape")
            body |= {"name": source.name[:100], "yaml": text}
    except ProfileError as error:
        leave(error)
    with asking(file):
        now = remote.use(**body)
    for warning in now["warnings"]:
        click.echo(printable(f"warning: {warning}"), err=True)
    click.echo(in_force_line(now))
