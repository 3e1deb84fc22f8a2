"""The playing of a story: every act under its own profile, and whether it went as it is told."""

import dataclasses

import pytest

from chaosproxy.demo.scene import Story
from chaosproxy.demo.stories import STORIES, Act, play, told
from chaosproxy.profile import names
from tests.proxying import serve_proxy


def test_acts(redis70):
    """Both apps under calm and then under each profile, which is in force; what fired in this act is told."""
    said: list[str] = []
    with serve_proxy(redis70.url) as proxy:

        def act(scene, session) -> str:
            with scene.client("a") as client:
                client.ask("SET", session, "v")
            return "" if proxy.service.profile.name == "calm" else "lost"

        story = Story("toy", "A toy.", ("slow-writes", "cache-miss"), act, lambda *_: "")
        acts = list(play(story, proxy.service, 7, said.append))
        assert proxy.service.seed == 7
    assert acts == [
        Act("buggy", "calm", ""),
        Act("buggy", "slow-writes", "lost"),
        Act("buggy", "cache-miss", "lost"),
        Act("repaired", "calm", ""),
        Act("repaired", "slow-writes", ""),
        Act("repaired", "cache-miss", ""),
    ]
    fired = [line for line in said if "chaosproxy:" in line]
    assert fired[:2] == ["  chaosproxy: nothing fired", "  chaosproxy: fired on SET (1)"]
    assert said[-1] == "  whole"
    assert "  BROKEN: lost" in said


@pytest.mark.parametrize(
    ("act", "as_told"),
    [
        (Act("buggy", "late-writer", "gone"), True),
        (Act("buggy", "late-writer", ""), False),
        (Act("buggy", "calm", "gone"), False),
        (Act("repaired", "late-writer", "gone"), False),
        (Act("repaired", "late-writer", ""), True),
    ],
)
def test_as_told(act, as_told):
    """Only the buggy app under a profile is to break."""
    assert act.as_told is as_told


def test_told():
    """Which commands were struck, how often."""
    assert told(["SET", "GET", "SET"]) == "fired on SET (2), GET (1)"
    assert told([]) == "nothing fired"


def test_stories():
    """Each is known by its own name, says in a line what happens, and names profiles that ship."""
    for name, story in STORIES.items():
        assert dataclasses.replace(story, name=name) == story
        assert story.summary.endswith(".")
        assert set(story.profiles) <= set(names()) - {"calm"}
