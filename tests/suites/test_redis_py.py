"""redis-py's own test suite, through the proxy and directly: each test ends the same way.

The suite comes with redis-py's source. It runs against two fresh servers at a time, one of them behind the proxy, in RESP2 and
RESP3; what is compared is each test's outcome.
"""

import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests import servers
from tests.clients import installs
from tests.proxying import start_proxy

pytestmark = [pytest.mark.suites, pytest.mark.timeout(1800)]

VERSION = "8.1.0"
NEEDS = (
    f"redis=={VERSION}", "hiredis", "pytest", "pytest-asyncio", "pytest-timeout", "ujson", "numpy", "pybreaker",
    "aiohttp", "xxhash", "opentelemetry-sdk", "redis-entraid", "cachetools", "packaging", "requests",
)  # fmt: skip
FILES = (
    "test_commands.py", "test_pipeline.py", "test_pubsub.py", "test_lock.py", "test_scripting.py", "test_monitor.py",
    "test_encoding.py", "test_connection_pool.py", "test_asyncio/test_commands.py", "test_asyncio/test_pipeline.py",
    "test_asyncio/test_pubsub.py", "test_asyncio/test_lock.py", "test_asyncio/test_monitor.py",
    "test_asyncio/test_scripting.py",
)  # fmt: skip
#: Tests that need what is not here, a cluster, modules, TLS, a replica, another Redis.
LEFT_OUT = (
    "not onlycluster and not fixed_client and not multidb_integration and not redismod and not ssl and not replica "
    "and not cp_integration"
)
#: What may differ, and why: nothing does.
DIFFERENCES: dict[str, str] = {}


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Path:
    """Give the unpacked source of redis-py."""
    folder = tmp_path_factory.mktemp("redis-py")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "redis"]
    done = subprocess.run(
        [*command, f"redis=={VERSION}"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(
            f"needs the source of redis-py {VERSION}: {done.stderr.strip().splitlines()[-1]}"
        )
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / f"redis-{VERSION}"


def outcomes(suite: Path, url: str, protocol: int, report: Path) -> dict[str, str]:
    """Run the suite against a URL; give each test's outcome by its name."""
    try:
        environment = installs.python(*NEEDS)
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    files = [f"tests/{name}" for name in FILES]
    command = [
        *environment.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--redis-url={url}/0",
        f"--protocol={protocol}", "-m", LEFT_OUT, f"--junitxml={report}", "--timeout=60", *files,
    ]  # fmt: skip
    # -I keeps the current folder off the path, which redis-py's tests need on it.
    command.remove("-I")
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False)
    said = f"it ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert report.exists(), said
    found = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[f"{case.get('classname')}.{case.get('name')}"] = kinds[0] if kinds else "passed"
    return found


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_test_ends_the_same_way(suite: Path, tmp_path: Path, protocol: int):
    """Test by test the outcome through the proxy is the one without it."""
    alone, behind = servers.start("redis82"), servers.start("redis82")
    try:
        with start_proxy(behind.url, "calm") as proxy, ThreadPoolExecutor(2) as pool:
            urls = {"direct": alone.url, "proxy": f"redis://127.0.0.1:{proxy.port}"}
            runs = {
                name: pool.submit(outcomes, suite, url, protocol, tmp_path / f"{name}.xml")
                for name, url in urls.items()
            }
            direct, through = runs["direct"].result(), runs["proxy"].result()
    finally:
        alone.stop()
        behind.stop()
    assert len(direct) > 1500
    assert sum(outcome == "passed" for outcome in direct.values()) > 1200
    differing = {
        name: (direct.get(name), through.get(name))
        for name in direct.keys() | through.keys()
        if direct.get(name) != through.get(name) and name not in DIFFERENCES
    }
    assert differing == {}
