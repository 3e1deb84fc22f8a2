"""What all stories share: how many runs, a server and proxies of their own, apps in processes, a browser.

Takes the options of counting.py; gives the fixtures `tally`, `stage`, `artifacts` and `browser`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import browser  # noqa: F401 - a fixture
from tests.stories.counting import FEW, MANY, Tally, keep
from tests.stories.stage import Stage


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that counts has a fast form and, behind the marker `stories`, a long one; or that one only."""
    if "tally" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--story-runs")
        long = [pytest.mark.stories, pytest.mark.timeout(3600)]
        forms = [
            pytest.param((asked or FEW, False), id="fast"),
            pytest.param((asked or MANY, True), id="long", marks=long),
        ]
        if metafunc.definition.get_closest_marker("stories"):
            del forms[0]
        metafunc.parametrize("tally", forms, indirect=True)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Count this test's runs."""
    runs, long = request.param
    return Tally(runs, keep(request.node), long)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Lend a Valkey of this module's own, with proxies before it and apps behind those."""
    with Stage() as stage:
        yield stage


@pytest.fixture
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Name a folder for what broken runs leave: below `--story-artifacts`, or the test's own."""
    asked = request.config.getoption("--story-artifacts")
    return tmp_path / "artifacts" if asked is None else asked / request.node.name
