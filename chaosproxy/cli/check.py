"""`chaosproxy check`: everything that is wrong with profiles, before anything starts.

Takes files or shipped names; gives a line for each good one, all problems on stderr, and status 2 if there is any.
"""

import click

from chaosproxy.cli.problems import leave
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.profile import Problem, ProfileError, find, load


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def command(files: tuple[str, ...]) -> None:
    """Check profiles and name all their problems.

    FILE is a profile's path or the name of one that ships. Commands are checked against what Redis 6.2 to 8.2 and
    Valkey 9 know; those of modules it cannot know pass.
    """
    problems: list[Problem] = []
    for file in files:
        try:
            profile = load([find(file)], table=CommandTable.bundled())
        except ProfileError as error:
            problems += error.problems
        else:
            click.echo(f"{file}: ok, {_faults(profile)}")
    if problems:
        leave(problems)


def _faults(profile: Profile) -> str:
    names = [rule.name for rule in profile.rules]
    if not names:
        return "no faults"
    return f"{len(names)} fault{'s' * (len(names) > 1)} ({', '.join(names)})"
