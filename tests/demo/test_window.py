"""The window in the terminal: under late-writer two trims take messages away, and only there."""

import pytest

from chaosproxy.demo import window
from chaosproxy.demo.scene import Scene
from tests.busy import within
from tests.proxying import serve_proxy


@within(0.5)
@pytest.mark.parametrize(
    ("play", "profile", "broken"),
    [
        (window.buggy, "late-writer", "gone: m3"),
        (window.buggy, "calm", ""),
        (window.repaired, "late-writer", ""),
        (window.repaired, "calm", ""),
    ],
)
def test_acts(valkey9, monkeypatch, play, profile, broken):
    """The first tab's LTRIM comes last and drops what the second one's has made room for; one step loses nothing."""
    valkey9.ask("FLUSHALL")
    # However busy the machine is, the first tab is through by then if nothing holds it.
    monkeypatch.setattr(window, "PACE", 1.0)
    with serve_proxy(valkey9.url, profile) as proxy:
        assert play(Scene(("127.0.0.1", proxy.port), print), "s1") == broken
