"""`chaosproxy profiles`: the list with first lines, and one as it ships."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from chaosproxy.cli import main
from chaosproxy.profile import first_line, names, shipped


def profiles(*args):
    return CliRunner().invoke(main, ["profiles", *args])


@pytest.mark.parametrize("args", [(), ("list",)])
def test_list(args):
    """Every shipped profile, with its first line; the word `list` may be left out."""
    done = profiles(*args)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert lines == [[name, first_line(name)] for name in names()]


def test_show():
    """One is printed byte for byte, so that it can be written to a file and changed."""
    done = profiles("show", "lost-ack")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout_bytes == shipped("lost-ack").raw


def test_show_unknown():
    """A misspelt name is told with what was meant, status 2."""
    done = profiles("show", "lost-akc")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "lost-akc: no shipped profile is called 'lost-akc'; did you mean 'lost-ack'?\n1 problem\n"
    )


def test_completion():
    """A shell completes the names."""
    complete = ShellComplete(main, {}, "chaosproxy", "_CHAOSPROXY_COMPLETE")
    found = complete.get_completions(["profiles", "show"], "lost-")
    assert [item.value for item in found] == [n for n in names() if n.startswith("lost-")]
