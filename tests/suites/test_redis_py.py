"""redis-py's own test suite, through the proxy and directly: each test ends the same way.

The suite comes with redis-py's source. It runs against two fresh servers at a time, or two clusters of six, one of them behind the
proxy, in RESP2 and RESP3; what is compared is each test's outcome.
"""

import subprocess
import sys
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests import clusters, servers
from tests.clients import installs
from tests.proxying import start_proxy

pytestmark = [pytest.mark.suites, pytest.mark.timeout(5400)]

VERSION = "8.1.0"
NEEDS = (
    f"redis=={VERSION}", "hiredis", "pytest", "pytest-asyncio", "pytest-timeout", "ujson", "numpy", "pybreaker",
    "aiohttp", "xxhash", "opentelemetry-sdk", "redis-entraid", "cachetools", "packaging", "requests",
)  # fmt: skip
FILES = (
    "test_commands.py", "test_pipeline.py", "test_pubsub.py", "test_lock.py", "test_scripting.py", "test_monitor.py",
    "test_encoding.py", "test_connection_pool.py", "test_asyncio/test_commands.py", "test_asyncio/test_pipeline.py",
    "test_asyncio/test_pubsub.py", "test_asyncio/test_lock.py", "test_asyncio/test_monitor.py",
    "test_asyncio/test_scripting.py", "test_cache.py", "test_client.py", "test_connection.py", "test_connect.py",
    "test_function.py", "test_hash.py", "test_keyspace_notifications.py", "test_max_connections_error.py", "test_multiprocessing.py",
    "test_retry.py", "test_vsets.py", "test_asyncio/test_client.py", "test_asyncio/test_connection.py",
    "test_asyncio/test_connection_pool.py", "test_asyncio/test_encoding.py", "test_asyncio/test_hash.py",
    "test_asyncio/test_keyspace_notifications.py", "test_asyncio/test_retry.py", "test_asyncio/test_usage_counter.py",
    "test_asyncio/test_vsets.py",
)  # fmt: skip
CLUSTER_FILES = (
    "test_cluster.py", "test_cluster_transaction.py", "test_commands.py", "test_pubsub.py", "test_pipeline.py", "test_scripting.py",
    "test_lock.py", "test_cache.py", "test_encoding.py", "test_function.py", "test_keyspace_notifications.py",
    "test_multiprocessing.py", "test_asyncio/test_cluster.py", "test_asyncio/test_cluster_transaction.py",
    "test_asyncio/test_commands.py", "test_asyncio/test_pipeline.py", "test_asyncio/test_pubsub.py", "test_asyncio/test_lock.py",
    "test_asyncio/test_encoding.py", "test_asyncio/test_keyspace_notifications.py", "test_asyncio/test_scripting.py",
)  # fmt: skip
#: Tests that need what is not here, modules, TLS, another Redis. Some more fail both ways: they name no mark, and ask for a
#: server at port 6379, Sentinels, certificates, or a fixture that the suite lacks.
_LEFT_OUT = "not fixed_client and not multidb_integration and not redismod and not ssl and not cp_integration"
LEFT_OUT = f"not onlycluster and not replica and {_LEFT_OUT}"
CLUSTER_LEFT_OUT = f"not onlynoncluster and {_LEFT_OUT}"


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


def outcomes(
    suite: Path, port: int, protocol: int, report: Path, tests: tuple[str, ...], marks: str
) -> dict[str, str]:
    """Run files or single tests of the suite against a port; give each test's outcome by its name."""
    try:
        environment = installs.python(*NEEDS)
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    # Without tracebacks, which nobody reads: pytest asks Python's parser for their lines, and that has ended a run with a SystemError.
    command = [
        *environment.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--redis-url=redis://127.0.0.1:{port}/0",
        f"--protocol={protocol}", "-m", marks, f"--junitxml={report}", "--timeout=60", "--tb=no", *tests,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False)
    said = f"it ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    # 0 and 1: all were run, and passed or not.
    assert done.returncode in {0, 1}, said
    found = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        file, owner = _place(suite, str(case.get("classname")).split("."))
        found["::".join((file, *owner, str(case.get("name"))))] = kinds[0] if kinds else "passed"
    return found


def _place(suite: Path, words: list[str]) -> tuple[str, list[str]]:
    """The file and the classes that a report's dotted name stands for."""
    for count in range(len(words), 0, -1):
        path = "/".join(words[:count]) + ".py"
        if (suite / path).is_file():
            return path, words[count:]
    raise LookupError(words)


def compare(
    suite: Path,
    ports: tuple[int, int],
    protocol: int,
    folder: Path,
    files: tuple[str, ...],
    marks: str,
) -> Counter[str]:
    """Run the suite against a port without the proxy and one of the proxy, and compare; give how often each outcome came.

    What differs is run once more by itself: a machine that was busy for five seconds, which is how long redis-py waits, has
    then said something of itself alone.
    """

    def both(tests: tuple[str, ...], name: str) -> tuple[dict[str, str], dict[str, str]]:
        reports = [folder / f"{name}-{side}.xml" for side in ("direct", "proxy")]
        with ThreadPoolExecutor(2) as pool:
            runs = [
                pool.submit(outcomes, suite, port, protocol, report, tests, marks)
                for port, report in zip(ports, reports, strict=True)
            ]
            return runs[0].result(), runs[1].result()

    def differing(
        direct: dict[str, str], through: dict[str, str]
    ) -> dict[str, tuple[str | None, str | None]]:
        return {
            name: (direct.get(name), through.get(name))
            for name in direct.keys() | through.keys()
            if direct.get(name) != through.get(name)
        }

    direct, through = both(tuple(f"tests/{name}" for name in files), "first")
    found = differing(direct, through)
    assert len(found) < 20, found
    if found:
        found = differing(*both(tuple(sorted(found)), "second"))
    assert found == {}
    count = Counter(direct.values())
    print(dict(count))
    return count


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_test_ends_the_same_way(suite: Path, tmp_path: Path, protocol: int):
    """Test by test the outcome through the proxy is the one without it."""
    alone, behind = servers.start("redis82"), servers.start("redis82")
    try:
        with start_proxy(behind.url, "calm") as proxy:
            found = compare(suite, (alone.port, proxy.port), protocol, tmp_path, FILES, LEFT_OUT)
    finally:
        alone.stop()
        behind.stop()
    assert found["passed"] > 2000


@pytest.mark.parametrize("protocol", [2, 3])
def test_every_test_ends_the_same_way_on_a_cluster(suite: Path, tmp_path: Path, protocol: int):
    """The same on three primaries with a replica each: the cluster client's own tests, and all others that a cluster has.

    One of them asks for nodes whose ports stand in a row, as the servers' own do.
    """
    port, *_ = (servers.free_port() for _ in range(6))
    with (
        clusters.running(3, 3, "redis82") as alone,
        clusters.running(3, 3, "redis82") as behind,
        start_proxy(behind.url, "calm", "--listen", f"127.0.0.1:{port}") as proxy,
    ):
        ports = (alone.nodes[0].port, proxy.port)
        found = compare(suite, ports, protocol, tmp_path, CLUSTER_FILES, CLUSTER_LEFT_OUT)
    assert found["passed"] > 900
