"""The crash in the terminal: what was acknowledged last is neither in the cache nor in the database."""

import pytest

from chaosproxy.demo import crash_tail
from chaosproxy.demo.scene import Scene
from tests.proxying import serve_proxy


@pytest.mark.parametrize(
    ("play", "profile", "broken"),
    [
        (crash_tail.buggy, "crash-tail", "gone: fact 11, fact 12, fact 13"),
        (crash_tail.buggy, "calm", ""),
        (crash_tail.repaired, "crash-tail", ""),
        (crash_tail.repaired, "calm", ""),
    ],
)
def test_acts(valkey9, play, profile, broken):
    """Three writes are acknowledged and lost, then the pod dies with its queue; written first, nothing is lost."""
    said = []
    with serve_proxy(valkey9.url, profile) as proxy:
        assert play(Scene(("127.0.0.1", proxy.port), said.append), "s1") == broken
    assert any("dies at fact 14" in line for line in said) == (profile == "crash-tail")
