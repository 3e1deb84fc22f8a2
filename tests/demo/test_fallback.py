"""The fallback in the terminal: an outage is taken for a new customer, unless somebody waits for its end."""

import pytest

from chaosproxy.demo import fallback
from chaosproxy.demo.scene import Scene
from tests.busy import within
from tests.proxying import serve_proxy

PROFILES = ["sentinel-failover", "redis-restart"]


def played(play, proxy):
    said = []
    return play(Scene(("127.0.0.1", proxy.port), said.append), "s1"), said


@within(0.5)
@pytest.mark.parametrize("profile", PROFILES)
def test_buggy(valkey9, profile):
    """Turns are answered without memory, and those of the outage are gone with what the new primary never had."""
    valkey9.ask("FLUSHALL")
    with serve_proxy(valkey9.url, profile) as proxy:
        broken, said = played(fallback.buggy, proxy)
    assert broken.startswith("gone: ")
    assert {"m10", "re: m10"} <= set(broken.removeprefix("gone: ").split(", "))
    assert any("as to a new customer" in line for line in said)


@pytest.mark.parametrize("profile", PROFILES)
def test_repaired(valkey9, profile):
    """Redis is waited for, and what it has lost is brought in again from the page: nothing is missing, nothing is double."""
    with serve_proxy(valkey9.url, profile) as proxy:
        broken, said = played(fallback.repaired, proxy)
        assert [event for event in proxy.events() if event["applied"] == "undone"]
    assert broken == ""
    assert not any("new customer" in line for line in said)


@pytest.mark.parametrize("play", [fallback.buggy, fallback.repaired])
def test_calm(valkey9, play):
    """Without a fault both remember everything."""
    with serve_proxy(valkey9.url, "calm") as proxy:
        broken, said = played(play, proxy)
    assert broken == ""
    assert not any("new customer" in line for line in said)
