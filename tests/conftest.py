"""Fixtures that every test may ask for.

Takes nothing; gives running servers, and turns skips into failures where everything must be there.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import servers

# Options are known to every run only if they are this file's.
from tests.stories import counting
from tests.stories.counting import pytest_terminal_summary  # noqa: F401

# Hundreds of programs are started: compiled anew each time, they would take longer to be read in than to do what they are for.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long one example takes, or is made, says how busy the machine is, not whether it holds. Examples are the same in each run, so
# that one which fails is of what has changed; `--hypothesis-profile=anew` looks for others.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("chaosproxy", PATIENT, derandomize=True)
settings.register_profile("anew", PATIENT, derandomize=False, print_blob=True)
settings.load_profile("chaosproxy")


def pytest_addoption(parser: pytest.Parser) -> None:
    counting.pytest_addoption(parser)
    parser.getgroup("fuzz").addoption(
        "--fuzz-minutes",
        type=float,
        default=5.0,
        metavar="N",
        help="how long each -m fuzz test goes on (5)",
    )
    parser.getgroup("mix").addoption(
        "--mix-minutes",
        type=float,
        default=10.0,
        metavar="N",
        help="how long each -m soak test of tests/transparency goes on (10)",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`: two workers a core, since most tests wait for a server, a client or a time more than they compute.

    No more than have ports of their own.
    """
    return min(2 * cores(), servers.WORKERS)


def cores(share: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """How many cores this run may use: a container on a large machine may have a small share of it."""
    count = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = map(int, share.read_text().split())
        count = min(count, max(1, quota // period))
    return count


# --- servers: `server` (see the marker), `any_server`, and one fixture for each kind -------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "servers(*names): what `server` runs on, of tests/servers.py NAMES; default all"
    )
    # It draws what stands in modules of ours, and which are read in by then differs with what else a worker runs: examples would.
    if config.getoption("--hypothesis-profile", None) != "anew":
        providers._get_local_constants = lambda: providers._local_constants


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `server` on each server its marker names."""
    if "server" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("servers")
        metafunc.parametrize("server", marker.args if marker else servers.NAMES, indirect=True)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[str], servers.Server]]:
    """Give a function that lends this session's server of a name, as if just started."""
    running: dict[str, servers.Server] = {}

    def lend(name: str) -> servers.Server:
        reason = servers.available(name)
        if reason is not None:
            pytest.skip(reason)
        if name not in running or running[name].process.poll() is not None:
            running[name] = servers.start(name)
        else:
            running[name].reset()
        return running[name]

    yield lend
    for server in running.values():
        server.stop()


@pytest.fixture
def server(request: pytest.FixtureRequest, serve) -> servers.Server:
    """Give each server that the marker `servers` names, in turn."""
    return serve(request.param)


@pytest.fixture(params=servers.NAMES)
def any_server(request: pytest.FixtureRequest, serve) -> servers.Server:
    """Give each kind of server in turn."""
    return serve(request.param)


@pytest.fixture
def redis62(serve) -> servers.Server:
    return serve("redis62")


@pytest.fixture
def redis70(serve) -> servers.Server:
    return serve("redis70")


@pytest.fixture
def redis82(serve) -> servers.Server:
    return serve("redis82")


@pytest.fixture
def valkey9(serve) -> servers.Server:
    return serve("valkey9")


@pytest.fixture
def namespace() -> list[str]:
    """Words before a command that make it the first process of a container."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid():
        words += ["--user", "--map-root-user"]
    try:
        tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs unshare; on Debian: apt-get install util-linux")
    if tried.returncode:
        pytest.skip(f"needs root, or to be allowed namespaces of users: {tried.stderr.strip()}")
    return words


# --- skips: on a machine that was set up for everything, a skip is a failure ----------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    return _no_skip((yield))


def _no_skip(report):
    """With CHAOSPROXY_NO_SKIP=1 make a skip the failure it hides; expected failures stay."""
    wanted = os.environ.get("CHAOSPROXY_NO_SKIP") == "1"
    if wanted and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {reason}"
    return report
