"""Which commands are about the keys they name and nothing else, as far as anybody knows."""

import pytest

from chaosproxy.core import reach
from chaosproxy.core.command_table import CommandTable


@pytest.mark.parametrize("name", ["SET", "VADD", "JSON.SET", "BF.ADD", "CMS.MERGE", "TS.ADD", "FT.SUGADD", "NOSUCH"])  # fmt: skip
def test_stays(name):
    """Those of the server itself, and of modules that keep everything in keys."""
    assert reach.is_about_keys(name)
    assert reach.stays(name)


@pytest.mark.parametrize("name", ["FT.CREATE", "FT.DROPINDEX", "FT.ADD", "FT.SEARCH", "NOSUCH.SET"])
def test_modules_that_reach_further(name):
    """An index is in no database; what a module does that nobody knows, nobody knows."""
    assert not reach.is_about_keys(name)
    assert not reach.stays(name)


@pytest.mark.parametrize("name", ["FLUSHALL", "SWAPDB", "MOVE", "MIGRATE"])
def test_beyond(name):
    """What they do to keys is more than what they say."""
    assert reach.is_about_keys(name)
    assert not reach.stays(name)


def test_whose():
    """A dot is a module's: no server has one in a name of its own."""
    assert reach.is_a_modules("JSON.SET")
    assert not any(map(reach.is_a_modules, CommandTable.bundled().names))


def test_indexes():
    """A server that can make one has them."""
    assert reach.indexes({"GET", "FT.CREATE"})
    assert not reach.indexes(CommandTable.bundled().specs)
