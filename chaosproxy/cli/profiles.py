"""`chaosproxy profiles`: the profiles that ship.

Takes nothing, or a name; gives a line for each, or one's YAML as it ships.
"""

import click

from chaosproxy import profile
from chaosproxy.cli.completing import names_from
from chaosproxy.cli.problems import leave


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the profiles that ship, or show one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_profiles)


@command.command("list")
def list_profiles() -> None:
    """List them, each with its first line."""
    names = profile.names()
    wide = max(map(len, names))
    for name in names:
        click.echo(f"{name:<{wide}}  {profile.first_line(name)}")


@command.command()
@click.argument("name", shell_complete=names_from(profile.names))
def show(name: str) -> None:
    """Print one profile's YAML."""
    try:
        source = profile.shipped(name)
    except profile.ProfileError as error:
        leave(error)
    click.echo(source.raw, nl=False)
