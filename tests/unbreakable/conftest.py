"""Fixtures: a proxy in a process of its own before a server that tests may kill, one pair for a module."""

from collections.abc import Iterator

import pytest

from tests.unbreakable import stand as stands
from tests.unbreakable.stand import Stand


@pytest.fixture(scope="module")
def standing() -> Iterator[Stand]:
    stand = stands.start("redis70")
    yield stand
    stand.end()


@pytest.fixture
def stand(standing: Stand) -> Iterator[Stand]:
    """Give both as if just started, whatever the last test has left."""
    standing.mend()
    yield standing
    standing.mend()
    standing.put("calm")
