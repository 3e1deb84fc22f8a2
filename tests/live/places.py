"""On which servers the dropped writes are tried: by default those that most have and the two that differ most; all for `-m matrix`.

Takes nothing; gives marks that run a test on the stands they name.
"""

from typing import Any

import pytest

from tests import servers

PLACES = [(name, cluster) for name in servers.NAMES for cluster in (False, True)]
#: In both protocols.
EVERYWHERE = {("redis70", False), ("redis70", True), ("valkey9", False), ("valkey9", True)}
#: In one of them.
ONCE = {("redis62", False, 2), ("redis62", True, 3)}
#: For what hardly depends on the server.
COMMON = {("redis70", False), ("valkey9", False), ("valkey9", True)}


def _place(place: tuple[str, bool], *more: Any, default: bool) -> Any:
    name, cluster = place
    text = "-".join([name, "cluster" if cluster else "alone", *(f"resp{resp}" for resp in more)])
    return pytest.param(place, *more, id=text, marks=() if default else pytest.mark.matrix)


#: A test with `stand` and `resp`.
everywhere = pytest.mark.parametrize(
    ("stand", "resp"),
    [
        _place(place, resp, default=place in EVERYWHERE or (*place, resp) in ONCE)
        for place in PLACES
        for resp in (2, 3)
    ],
    indirect=["stand"],
)
#: A test with `stand`.
commonly = pytest.mark.parametrize(
    "stand", [_place(place, default=place in COMMON) for place in PLACES], indirect=True
)
#: The same, where there is a scratch database.
with_databases = pytest.mark.parametrize(
    "stand",
    [_place(place, default=place in COMMON) for place in PLACES if not place[1]],
    indirect=True,
)
