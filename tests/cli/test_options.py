"""The options as declared: all of them, each with its help, default and variable."""

import dataclasses

import click
import pytest
from click.testing import CliRunner

from chaosproxy.cli import main, use
from chaosproxy.cli.options import ByteSize
from chaosproxy.cli.run import command
from chaosproxy.cli.settings import RunOptions
from chaosproxy.core.setting import Invalid
from chaosproxy.core.units import SEED

FIELDS = [field.name for field in dataclasses.fields(RunOptions)]


@pytest.mark.parametrize("run", [command, use.command])
def test_a_seed_that_is_read_otherwise(run):
    """It is no larger than a profile's and the control API's, which every reader of JSON keeps as it is."""
    done = CliRunner().invoke(run, ["--seed", str(10**15 + 1), "calm"])
    assert done.exit_code == 2
    assert f"{10**15 + 1} is not in the range 0<=x<={10**15}." in done.output
    assert SEED.parse(10**15) == 10**15
    with pytest.raises(Invalid, match=f"expected a whole number from 0 to {10**15}"):
        SEED.parse(10**15 + 1)


def test_all_are_declared():
    """Every field is an option and every option a field."""
    assert [parameter.name for parameter in command.params] == FIELDS


def test_help_shows_defaults_units_and_variables():
    """`run --help` names each option's variable and every default."""
    said = " ".join(CliRunner().invoke(main, ["run", "--help"]).output.split())
    for parameter in command.params:
        assert parameter.opts[0] in said
        if parameter.name != "set_":
            variable = parameter.opts[0].removeprefix("--").replace("-", "_").upper()
            assert f"CHAOSPROXY_{variable}" in said
    for default in ("127.0.0.1:6380", "redis://127.0.0.1:6379", "calm", "8192", "16MiB", "info"):
        assert f"default: {default}" in said


def test_a_default_is_told_once():
    """No help has words of its own for what stands behind them in brackets anyway."""
    for parameter in command.params:
        record = parameter.get_help_record(click.Context(command, show_default=True))
        assert record[1].count("default: ") <= 1, record


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1024", 1024), ("64KiB", 65536), ("1MB", 10**6), ("512B", 512)]
)
def test_sizes(text, size):
    """Sizes are read as in profiles, and plain numbers are bytes."""
    assert ByteSize()(text) == size


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "12 parsecs", ""])
def test_wrong_sizes(text):
    """What is no size is refused."""
    with pytest.raises(click.BadParameter):
        ByteSize()(text)


def test_completion_of_profiles():
    """A shell completes the names of shipped profiles."""
    (profile,) = [parameter for parameter in command.params if parameter.name == "profile"]
    found = profile.shell_complete(click.Context(command), "lost")
    assert [item.value for item in found] == ["lost-ack", "lost-writes"]
