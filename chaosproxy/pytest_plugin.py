"""The pytest plugin: a proxy for each test process, profiles for single tests, and what fired in the report of a failure.

Takes the options and markers of a test run; gives the fixture `chaosproxy`. Only pytest imports this module.
"""

import os
import secrets
import shlex
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from chaosproxy.testing import ChaosProxy

# Everything else is imported where it is used: whoever has chaosproxy installed loads this module in every test run.

_EMBEDDED: Final = "embedded"
_SEED: Final = "chaosproxy_seed"
#: What pytest is called by where it was run as a module.
_MODULE: Final = "__main__.py"

_seed_key = pytest.StashKey[int]()
_proxy_key = pytest.StashKey["ChaosProxy"]()
_within_key = pytest.StashKey[list[str]]()
#: Of a test that runs now, its fixtures apart.
_runs_key = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("chaosproxy")
    group.addoption(
        "--chaos-profile",
        metavar="NAME|FILE",
        action="append",
        help="In force in every test that uses the proxy and has no chaos marker; several are joined (default: calm)",
    )
    group.addoption(
        "--chaos-seed",
        metavar="N",
        type=_as_seed,
        help="Same seed, same commands: same faults (default: the profile's, else one that is drawn)",
    )
    group.addoption(
        "--chaos-default-seed",
        metavar="N",
        type=_as_seed,
        help="The same for profiles without a seed of their own only (default: one that is drawn)",
    )
    group.addoption(
        "--chaos-upstream",
        metavar="URL",
        default=_EMBEDDED,
        help="The real server (default: embedded, which starts one for each test process)",
    )


def _as_seed(text: str) -> int:
    from chaosproxy.core.scalar import MOST  # noqa: PLC0415

    if not (text.isascii() and text.isdigit() and int(text[:30]) <= MOST):
        raise ArgumentTypeError(f"{text} is no whole number from 0 to {MOST}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and draw the seed that all processes of this run have."""
    config.addinivalue_line(
        "markers",
        "chaos(*profiles, yaml=None, seed=None, set=None, require_fired=False): this profile is in force while the test "
        "runs, not in its fixtures; require_fired (True, names, 'all'): the test fails if a fault that must fire did not",
    )
    config.stash[_within_key] = []
    shared = getattr(config, "workerinput", {}).get(_SEED)
    known = (config.getoption("--chaos-seed"), config.getoption("--chaos-default-seed"), shared)
    given = [each for each in known if each is not None]
    config.stash[_seed_key] = given[0] if given else secrets.randbelow(1_000_000)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give an xdist worker the run's seed."""
    node.workerinput[_SEED] = node.config.stash[_seed_key]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with the marker has the proxy, whether it asks for it or not."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is not None and item.get_closest_marker("chaos") and "chaosproxy" not in names:
            names.insert(0, "chaosproxy")


@pytest.fixture(scope="session")
def chaosproxy(pytestconfig: pytest.Config) -> Generator["ChaosProxy"]:
    """Give a running proxy, one for each test process; calm between tests."""
    from chaosproxy.embedded import EmbeddedError  # noqa: PLC0415
    from chaosproxy.service import ServiceError  # noqa: PLC0415
    from chaosproxy.testing import running  # noqa: PLC0415

    seed = pytestconfig.getoption("--chaos-seed")
    with ExitStack() as stack:
        try:
            running_one = running(
                pytestconfig.getoption("--chaos-upstream"),
                seed=seed,
                drawn=pytestconfig.stash[_seed_key],
            )
            proxy = stack.enter_context(running_one)
        except (EmbeddedError, ServiceError, ValueError) as error:
            pytest.fail(f"chaosproxy cannot start: {error}", pytrace=False)
        proxy.within = pytestconfig.stash[_within_key]
        pytestconfig.stash[_proxy_key] = proxy
        yield proxy
        del pytestconfig.stash[_proxy_key]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note whose it is what comes into force now."""
    within = request.config.stash[_within_key]
    within.append(fixturedef.argname)
    try:
        return (yield)
    finally:
        within.pop()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is to be told of a test begins with its fixtures."""
    proxy = _running(item)
    if proxy is not None:
        proxy.begin(_names(item), fixtures=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Have the marker's profile in force while the test itself runs, and see to what must fire."""
    proxy = _running(item)
    if proxy is None:
        return (yield)
    item.stash[_runs_key] = True
    try:
        if (case := _case(item)) is not None:
            _wrap(item, case, proxy)
            return (yield)
        with _in_force(item, proxy):
            return (yield)
    finally:
        del item.stash[_runs_key]


@contextmanager
def _in_force(item: pytest.Item, proxy: "ChaosProxy") -> Generator[None]:
    """What is in force while the test itself runs; it fails at the end of that where something has not fired."""
    from chaosproxy.asked import check_marker  # noqa: PLC0415

    marker = item.get_closest_marker("chaos")
    given: dict[str, Any] = {} if marker is None else dict(marker.kwargs)
    required = given.pop("require_fired", False)
    names = marker.args if marker is not None else _of_the_run(item)
    proxy.begin(_names(item))
    _usable(lambda: check_marker(given, required))
    # What must fire may be of a profile that the test itself puts in force.
    if names or given or (marker is not None and required is False):
        _usable(lambda: proxy.use(*names, **given))
    yield
    missing = _usable(lambda: proxy.missing(required))
    if missing:
        pytest.fail(f"never fired, and had to: {', '.join(missing)}", pytrace=False)


def _case(item: pytest.Item) -> object | None:
    """The unittest.TestCase that a test is of, if it is of one."""
    from unittest import TestCase  # noqa: PLC0415

    case: object = getattr(item, "instance", None)
    return case if isinstance(case, TestCase) else None


def _wrap(item: Any, case: object, proxy: "ChaosProxy") -> None:
    """A TestCase calls its `setUp` and `tearDown`, which are fixtures, by itself: have the test alone run between begin and end."""
    test = item.obj

    @contextmanager
    def alone() -> Generator[None]:
        try:
            with _in_force(item, proxy):
                yield
        finally:
            proxy.end()

    @wraps(test)
    def run(*args: Any) -> Any:
        __tracebackhide__ = True
        with alone():
            return test(*args)

    @wraps(test)
    async def run_async(*args: Any) -> Any:
        __tracebackhide__ = True
        with alone():
            return await test(*args)

    # pytest takes the one, and leaves coroutines to unittest, which takes the other.
    item.obj = run_async if iscoroutinefunction(test) else run
    setattr(case, item.name, item.obj)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell in a failing test's report what fired; what was in force for it ends with it, or with its fixtures."""
    report = yield
    proxy = _running(item)
    if proxy is None:
        return report
    concerned = _uses(item) or proxy.used
    if concerned and report.failed:
        report.sections.append(("chaosproxy", f"{proxy.told()}\n{_again(item, proxy)}"))
    # While it runs, reports are of its subtests.
    over = not item.stash.get(_runs_key, False)
    if over and concerned and (call.when != "setup" or not report.passed):
        proxy.end(fixtures=call.when != "call")
    return report


def _running(item: pytest.Item) -> "ChaosProxy | None":
    """The proxy, if this process has one by now."""
    return item.config.stash.get(_proxy_key, None)


def _names(item: pytest.Item) -> Collection[str]:
    """The fixtures that a test has by now, also those that another one has asked for as it ran."""
    names: Collection[str] = getattr(getattr(item, "_request", None) or item, "fixturenames", ())
    return names


def _uses(item: pytest.Item) -> bool:
    """Whether a test has the proxy."""
    return "chaosproxy" in _names(item)


def _of_the_run(item: pytest.Item) -> tuple[str, ...]:
    """The profiles of tests that have the proxy and no marker."""
    return tuple(item.config.getoption("--chaos-profile") or ()) if _uses(item) else ()


def _usable(ask: Callable[[], Any]) -> Any:
    """Do what a marker or an option says; what is wrong with that is the test's failure, told without our code."""
    from chaosproxy.profile import ProfileError  # noqa: PLC0415

    try:
        return ask()
    except (ProfileError, TypeError, ValueError) as error:
        wrong = str(error)
    pytest.fail(f"chaos: {wrong}", pytrace=False)


def _again(item: pytest.Item, proxy: "ChaosProxy") -> str:
    """The line that runs this test once more, with the same faults, where this run was begun."""
    config = item.config
    began = getattr(config, "workerinput", {}).get("mainargv", sys.argv)
    words = ["python", "-m", "pytest"] if Path(began[0]).name == _MODULE else ["pytest"]
    seed, default = proxy.seeded()
    file, colons, name = item.nodeid.partition("::")
    words += [os.path.relpath(config.rootpath / file, config.invocation_params.dir) + colons + name]
    words += [f"--chaos-{'default-' if default else ''}seed={seed}"]
    words += [f"--chaos-profile={name}" for name in config.getoption("--chaos-profile") or ()]
    upstream = config.getoption("--chaos-upstream")
    if upstream != _EMBEDDED and not _has_password(upstream):
        words.append(f"--chaos-upstream={upstream}")
    return f"again: {shlex.join(words)}"


def _has_password(url: str) -> bool:
    from chaosproxy.net.address import parse_upstream  # noqa: PLC0415

    upstream = parse_upstream(url)
    return bool(upstream.password or upstream.sentinel_password)
