"""Two tabs in the terminal: one turn is gone under late-writer, and only there."""

import pytest

from chaosproxy.demo import two_tabs
from chaosproxy.demo.scene import Scene
from tests.busy import within
from tests.proxying import serve_proxy


@within(0.5)
@pytest.mark.parametrize(
    ("play", "profile", "broken"),
    [
        (two_tabs.buggy, "late-writer", "gone: m2, re: m2"),
        (two_tabs.buggy, "calm", ""),
        (two_tabs.repaired, "late-writer", ""),
        (two_tabs.repaired, "calm", ""),
    ],
)
def test_acts(valkey9, monkeypatch, play, profile, broken):
    """The first tab's SET comes last and takes the second one's turn away; appending loses nothing."""
    valkey9.ask("FLUSHALL")
    # However busy the machine is, the first tab is through by then if nothing holds it.
    monkeypatch.setattr(two_tabs, "PACE", 1.0)
    with serve_proxy(valkey9.url, profile) as proxy:
        assert play(Scene(("127.0.0.1", proxy.port), print), "s1") == broken
