"""Fixtures for tests on real servers with a proxy before them, which run as long as anything here is tested.

Takes names of servers; gives stands.
"""

from collections.abc import Iterator

import pytest

from tests import servers
from tests.live.stand import Stand, make_stand


@pytest.fixture(scope="session")
def stands() -> Iterator[dict[tuple[str, bool], Stand]]:
    running: dict[tuple[str, bool], Stand] = {}
    yield running
    for stand in running.values():
        stand.proxy.stop()
        stand.server.stop()


@pytest.fixture
def stand(request: pytest.FixtureRequest, stands) -> Stand:
    """The stand of a (name, cluster) pair; its server has the settings and users it started with."""
    name, _ = request.param
    if reason := servers.available(name):
        pytest.skip(reason)
    if request.param not in stands:
        stands[request.param] = make_stand(*request.param)
    return stands[request.param]
