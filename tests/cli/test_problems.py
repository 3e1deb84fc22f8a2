"""A bad profile on the command line: every problem and their number on stderr, status 2."""

import click
import pytest
from click.testing import CliRunner

from chaosproxy.cli.problems import leave
from chaosproxy.profile import Problem, ProfileError

ONE = Problem("a.yaml", 1, 2, "no", "yes", "x y")
TWO = Problem("b.yaml", 3, 4, "neither")


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        ([ONE], "a.yaml:1:2: no; did you mean 'yes'?\n    x y\n     ^\n1 problem\n"),
        (
            ProfileError([ONE, TWO]),
            (
                "a.yaml:1:2: no; did you mean 'yes'?\n    x y\n     ^\n"
                "b.yaml:3:4: neither\n2 problems\n"
            ),
        ),
    ],
)
def test_leave(problems, told):
    """Each is rendered whole."""

    @click.command()
    def command():
        leave(problems)

    done = CliRunner().invoke(command)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", told)
