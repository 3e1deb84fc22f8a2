"""`chaosproxy status`: what is in force in a proxy that runs, and what it has done.

Takes nothing; gives the profile, its seed, and a table of its faults; or all of it as JSON.
"""

import json

import click

from chaosproxy.cli.control import asking, control_options
from chaosproxy.remote import Remote
from chaosproxy.telling import fault_table, printable


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All that is known, for programs.")
@control_options
def command(remote: Remote, as_json: bool) -> None:
    """Tell what is in force in a proxy that runs, and what it has done."""
    with asking():
        now = remote.profile()
        now["connections"] = len(remote.connections())
    if as_json:
        click.echo(json.dumps(now))
        return
    for name, value in (
        ("profile", now["name"]),
        ("seed", now["seed"]),
        ("generation", f"{now['generation']}, since {now['since']}"),
        ("connections", now["connections"]),
    ):
        click.echo(f"{name:<11}  {printable(str(value))}")
    click.echo()
    for line in fault_table(now["faults"]):
        click.echo(line)
