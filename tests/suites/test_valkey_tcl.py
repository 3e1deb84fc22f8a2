"""Valkey's own test suite, in external mode, through the proxy: the tests that pass without it pass with it.

The server is the wheel's, the suite comes with Debian's source package, in the release that has this version of Valkey.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import start_proxy
from tests.servers import Server
from tests.suites import debian, tcl

pytestmark = [pytest.mark.suites, pytest.mark.timeout(3600)]

ARMED = Path(__file__).parent.parent / "transparency" / "armed.yaml"
#: Where Debian has the newest.
RELEASE = "sid"
#: How many tests there are outside at least: a later patch may bring more of them.
ALL, IN_UNITS = 2800, 1400
#: It tests the command line tool, which here is that of Debian's Redis.
OF_A_TOOL = ("--skipunit", "integration/valkey-cli")
#: See test_redis_tcl.py; the second as well.
SEES_THE_PROXY = (
    *("--skiptest", "MONITOR correctly handles multi-exec cases"),
    *("--skiptest", "MONITOR correctly records SET EX in MULTI-EXEC"),
)


@pytest.fixture
def behind() -> Server:
    """Give a fresh server, under a name of its own: whoever asks for `server` runs once for each kind of server."""
    server = servers.start("valkey9")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Path:
    """Give the unpacked source of Debian's Valkey, its server the wheel's."""
    debian.needs("tclsh", "apt-get", *(f"redis-{name}" for name in tcl.PROGRAMS))
    source = debian.source("valkey", tmp_path_factory.mktemp("valkey"), RELEASE)
    found = re.search(r'VALKEY_VERSION "(\d+)\.(\d+)', (source / "src" / "version.h").read_text())
    with_server = servers.start("valkey9")
    with_server.stop()
    wanted = with_server.version[:2]
    if tuple(map(int, found.groups())) != wanted:
        pytest.skip(f"needs the tests of Valkey {wanted}; Debian's {RELEASE} has {found.groups()}")
    tcl.equip(source, "valkey", server=Path(with_server.process.args[0]))
    return source


@pytest.fixture(scope="session")
def direct(suite: Path) -> Counter[str]:
    """Give the names of the tests that pass without the proxy."""
    server = servers.start("valkey9")
    try:
        return tcl.passed(suite, server.port, *OF_A_TOOL)
    finally:
        server.stop()


def test_same_tests_pass(suite: Path, direct: Counter[str], behind: Server):
    """All of them, through a proxy that does nothing."""
    with start_proxy(behind.url) as proxy:
        assert tcl.passed(suite, proxy.port, *OF_A_TOOL) == direct
    print(f"{direct.total()} tests pass both ways")
    assert direct.total() >= ALL


def test_same_tests_pass_while_all_is_looked_at(suite: Path, direct: Counter[str], behind: Server):
    """The most telling part of them, through a proxy whose faults look at everything and act on nothing."""
    with start_proxy(behind.url, str(ARMED)) as proxy:
        found = tcl.passed(suite, proxy.port, *SEES_THE_PROXY, *tcl.single(tcl.UNITS))
    assert found <= direct
    print(f"{found.total()} tests pass both ways")
    assert found.total() >= IN_UNITS
