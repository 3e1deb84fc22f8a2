"""The command itself: help, version, status codes, and that it starts without delay."""

import resource
import subprocess
import sys
from importlib import import_module

import pytest
from click.testing import CliRunner

from chaosproxy import __version__, cli

RUN = (sys.executable, "-m", "chaosproxy")


def run(*args, **how):
    return subprocess.run(
        (*RUN, *args), check=False, capture_output=True, text=True, timeout=100, **how
    )


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag):
    """Both spellings show every command with its short help, on stdout."""
    done = run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: chaosproxy [OPTIONS] COMMAND [ARGS]...")
    for name, help_text in cli.COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert help_text in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_there(name):
    """Each has a file with a `command`, whose own help begins as the group's list says."""
    command = import_module(f"chaosproxy.cli.{name}").command
    assert command.get_short_help_str(limit=200) == cli.COMMANDS[name]
    shown = CliRunner().invoke(cli.main, [name, "-h"])
    assert shown.exit_code == 0
    assert f"Usage: main {name}" in shown.stdout


def test_version():
    """--version says the name and the version."""
    assert run("--version").stdout == f"chaosproxy {__version__}\n"


def test_unknown_command():
    """What is no command is bad usage: status 2, on stderr."""
    done = run("chekc")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'chekc'" in done.stderr


def test_help_starts_at_once():
    """--help needs none of what the commands need, and is there within 150 ms."""
    heavy = ("yaml", "asyncio", "prometheus_client", "hiredis", "chaosproxy.core")
    code = f"""
import sys
from chaosproxy.cli import main
main(["--help"], standalone_mode=False)
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=100
    )
    assert done.stderr == "[]\n"

    def took():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Its own time on the processor: that of the clock would be the other tests' too. Who shares a core with others takes longer.
    assert any(took() < 0.15 for _ in range(60))
