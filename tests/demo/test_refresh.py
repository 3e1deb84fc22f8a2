"""A refresh in the terminal: what was not stored yet, or has run out, is gone; and only there."""

import pytest

from chaosproxy.demo import refresh
from chaosproxy.demo.scene import Scene
from tests.busy import within
from tests.proxying import serve_proxy

#: Longer than the shipped profile holds a write: so long that even a busy machine reads before.
HELD = """
faults:
  - fault: latency
    match: {commands: "@write"}
    at: before_forward
    delay: 1s
"""


def played(server, profile, play) -> str:
    server.ask("FLUSHALL")
    with serve_proxy(server.url, profile) as proxy:
        return play(Scene(("127.0.0.1", proxy.port), print), "s1")


@within(0.5)
@pytest.mark.parametrize(
    ("play", "broken"), [(refresh.buggy, "gone: m1, re: m1"), (refresh.repaired, "")]
)
def test_slow_writes(valkey9, monkeypatch, play, broken):
    """A refresh right after the answer overtakes the writes that nobody waits for."""
    monkeypatch.setattr(refresh, "ROUNDS", 1)
    monkeypatch.setattr(refresh, "PACE", 0.0)
    assert played(valkey9, HELD, play) == broken


@within(0.5)
@pytest.mark.parametrize(
    ("play", "broken"), [(refresh.buggy, "gone: m1, re: m1"), (refresh.repaired, "")]
)
def test_ttl_lapse(valkey9, monkeypatch, play, broken):
    """A conversation that outlives the time of its first turn loses that turn, unless each turn renews it."""
    monkeypatch.setattr(refresh, "ROUNDS", 4)
    monkeypatch.setattr(refresh, "THINK", 0.9)
    found = played(valkey9, "ttl-lapse", play)
    assert found.startswith(broken) if broken else found == ""


@within(0.5)
@pytest.mark.parametrize("play", [refresh.buggy, refresh.repaired])
def test_calm(valkey9, monkeypatch, play):
    """Without a fault the writes are through long before a person refreshes."""
    monkeypatch.setattr(refresh, "ROUNDS", 1)
    monkeypatch.setattr(refresh, "PACE", 1.0)
    assert played(valkey9, "calm", play) == ""
