"""How the command line tells what is wrong with a profile.

Takes `ProfileError`s; gives lines on stderr and exit status 2.
"""

from typing import NoReturn

import click

from chaosproxy.profile import Problem, ProfileError


def leave(problems: list[Problem] | ProfileError) -> NoReturn:
    """Print every problem, and how many there are; end with status 2."""
    if isinstance(problems, ProfileError):
        problems = problems.problems
    for problem in problems:
        click.echo(problem.render(), err=True)
    click.echo("1 problem" if len(problems) == 1 else f"{len(problems)} problems", err=True)
    raise click.exceptions.Exit(2)
