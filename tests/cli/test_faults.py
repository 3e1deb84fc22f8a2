"""`chaosproxy faults`: the catalogue, as the code has it."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from chaosproxy import catalogue
from chaosproxy.cli import main
from chaosproxy.core.fault import FAULTS


def faults(*args):
    return CliRunner().invoke(main, ["faults", *args])


def test_overview():
    """A line for each fault, and what to ask next."""
    done = faults()
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(FAULTS)]] == sorted(FAULTS)
    assert lines[-1] == (
        "`chaosproxy faults NAME` tells its settings; NAME may be match or when, too."
    )


@pytest.mark.parametrize("name", [*sorted(FAULTS), "match", "when"])
def test_one(name):
    """Everything about one."""
    done = faults(name)
    assert (done.exit_code, done.stderr) == (0, "")
    described = {one.type: one for one in catalogue.entries()} | {
        part.name: part for part in catalogue.parts()
    }
    assert done.stdout == catalogue.describe(described[name]) + "\n"


def test_markdown():
    """The tables for README."""
    assert faults("--markdown").stdout == catalogue.markdown()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("lateny", "did you mean 'latency'?"), ("xyzzy", "expected one of ")],
)
def test_unknown(name, meant):
    """A misspelt name is bad usage, and told with what was meant."""
    done = faults(name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Error: no fault is called '{name}'; {meant}" in done.stderr


def test_completion():
    """A shell completes the names."""
    complete = ShellComplete(main, {}, "chaosproxy", "_CHAOSPROXY_COMPLETE")
    assert "drop_write" in [item.value for item in complete.get_completions(["faults"], "dr")]
