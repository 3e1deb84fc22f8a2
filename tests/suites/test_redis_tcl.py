"""Redis's own test suite, in external mode, through the proxy: the tests that pass without it pass with it.

It is Debian's source package of the very server that Debian ships, so that tests and server are of one version. The part that
takes a minute and a half: protocol, transactions, pub/sub, tracking, lists, streams, scripts, ACLs, expiry and what is near them.
"""

import os
import re
import shutil
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import start_proxy

pytestmark = [pytest.mark.suites, pytest.mark.timeout(900)]

ARMED = Path(__file__).parent.parent / "transparency" / "armed.yaml"
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
BINARIES = ("redis-cli", "redis-benchmark", "redis-server", "redis-check-aof", "redis-check-rdb")
UNITS = (
    "unit/protocol", "unit/multi", "unit/pubsub", "unit/pubsubshard", "unit/tracking", "unit/type/list",
    "unit/type/stream", "unit/scripting", "unit/introspection", "unit/introspection-2", "unit/acl", "unit/auth",
    "unit/networking", "unit/expire", "unit/functions", "unit/info", "unit/quit", "unit/other",
)  # fmt: skip
#: How many tests these units have on Redis 7.0.15 outside.
TESTS = 1002
#: It reads what MONITOR says of a MULTI; before one in which a write may be swallowed the proxy looks at the scratch
#: database, and MONITOR says that too.
SEES_THE_PROXY = "MONITOR correctly handles multi-exec cases"


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Path:
    """Give the unpacked source of Debian's Redis, its programs those that are installed."""
    for program in ("tclsh", "apt-get", *BINARIES):
        if shutil.which(program) is None:
            pytest.skip(
                f"needs Debian 12 and: apt-get install tcl redis-server redis-tools ({program} is missing)"
            )
    if not SOURCES.exists():
        pytest.skip(f"needs Debian 12: {SOURCES} says where source packages are")
    folder = tmp_path_factory.mktemp("redis")
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "parts").mkdir()
    wanted = re.sub(r"(?m)^Types:.*", "Types: deb-src", SOURCES.read_text())
    (folder / "parts" / "source.sources").write_text(wanted)
    options = [
        *("-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={folder}/parts"),
        *("-o", f"Dir::State::Lists={folder}/lists", "-qq"),
    ]
    for words in (("update",), ("source", "--download-only", "redis")):
        subprocess.run(["apt-get", *options, *words], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob("redis_7.0.*.orig.tar.gz")
    subprocess.run(["tar", "xzf", str(archive)], cwd=folder, check=True)
    (source,) = (path for path in folder.glob("redis-7.0.*") if path.is_dir())
    for name in BINARIES:
        link = source / "src" / name
        link.unlink(missing_ok=True)
        link.symlink_to(str(shutil.which(name)))
    return source


def free_range(width: int = 40) -> int:
    """Give the first of so many ports in a row that are free now, below those that the kernel hands out by itself."""
    for start in range(20000, 32000, width):
        with ExitStack() as stack:
            try:
                for port in range(start, start + width):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return start
    raise RuntimeError("no range of ports is free")


def run(suite: Path, port: int, *options: str) -> list[tuple[str, str]]:
    """Run the units against a port; give each test's outcome (`ok`, `err` …) and name, in order."""
    command = ["./runtest", "--host", "127.0.0.1", "--port", str(port), "--tags", "-slow"]
    command += ["--baseport", str(free_range() + 32), "--portcount", "7", *options]
    for unit in UNITS:
        command += ["--single", unit]
    done = subprocess.run(
        command,
        cwd=suite,
        capture_output=True,
        text=True,
        env=os.environ | {"TERM": "dumb"},
        check=False,
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    found = re.findall(r"(?m)^\[(ok|err|exception)\]: (.*?)(?: \(\d+ ms\))?$", text)
    assert "All tests passed without errors!" in text, "\n".join(text.splitlines()[-60:])
    return found


@pytest.mark.parametrize("profile", ["calm", "armed"])
def test_same_tests_pass(suite: Path, profile: str):
    """All of them pass through the proxy: one that does nothing, and one whose faults look at everything and do nothing.

    A server of its own: the suite changes settings that a second run trips over.
    """
    server = servers.start("redis70")
    try:
        if profile == "calm":
            with start_proxy(server.url) as proxy:
                outcomes, wanted = run(suite, proxy.port), TESTS
        else:
            with start_proxy(server.url, str(ARMED)) as proxy:
                outcomes = run(suite, proxy.port, "--skiptest", SEES_THE_PROXY)
                wanted = TESTS - 1
    finally:
        server.stop()
    assert [name for outcome, name in outcomes if outcome != "ok"] == []
    assert len(outcomes) == wanted
