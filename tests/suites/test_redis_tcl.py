"""Redis's own test suite, in external mode, through the proxy: the tests that pass without it pass with it.

It is Debian's source package of the very server that Debian ships, so that tests and server are of one version.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import start_proxy
from tests.suites import debian, tcl

pytestmark = [pytest.mark.suites, pytest.mark.timeout(3600)]

ARMED = Path(__file__).parent.parent / "transparency" / "armed.yaml"
#: How many tests there are on Redis 7.0.15 outside, in the whole suite and in UNITS.
ALL, IN_UNITS = 1959, 1002
#: It reads what MONITOR says of a MULTI; before one in which a write may be swallowed the proxy looks at the scratch
#: database, and MONITOR says that too.
SEES_THE_PROXY = "MONITOR correctly handles multi-exec cases"


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Path:
    """Give the unpacked source of Debian's Redis, its programs those that are installed."""
    debian.needs("tclsh", "apt-get", *(f"redis-{name}" for name in tcl.PROGRAMS))
    source = debian.source("redis", tmp_path_factory.mktemp("redis"))
    tcl.equip(source, "redis")
    return source


@pytest.fixture(scope="session")
def direct(suite: Path) -> Counter[str]:
    """Give the names of the tests that pass without the proxy."""
    server = servers.start("redis70")
    try:
        return tcl.passed(suite, server.port)
    finally:
        server.stop()


def test_same_tests_pass(suite: Path, direct: Counter[str]):
    """All of them, through a proxy that does nothing."""
    server = servers.start("redis70")
    try:
        with start_proxy(server.url) as proxy:
            assert tcl.passed(suite, proxy.port) == direct
    finally:
        server.stop()
    assert direct.total() == ALL


def test_same_tests_pass_while_all_is_looked_at(suite: Path, direct: Counter[str]):
    """The most telling part of them, through a proxy whose faults look at everything and act on nothing."""
    server = servers.start("redis70")
    try:
        with start_proxy(server.url, str(ARMED)) as proxy:
            only = tcl.single(tcl.UNITS)
            found = tcl.passed(suite, proxy.port, "--skiptest", SEES_THE_PROXY, *only)
    finally:
        server.stop()
    assert found <= direct
    assert found.total() == IN_UNITS - 1
