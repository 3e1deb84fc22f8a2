"""The stories that can be played, and the playing of one against a proxy.

Takes a story, a proxy and a function for lines; gives whether the bug showed under its profiles and nowhere else.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chaosproxy.demo import crash_tail, fallback, refresh, two_tabs, window
from chaosproxy.demo.scene import Scene, Story
from chaosproxy.profile import find, load
from chaosproxy.service import Service

CALM = "calm"
STORIES = {
    story.name: story
    for story in (two_tabs.STORY, refresh.STORY, fallback.STORY, window.STORY, crash_tail.STORY)
}


@dataclass(frozen=True, slots=True)
class Act:
    """One performance: which app under which profile, and how its memory was broken; empty if it was whole."""

    app: str
    profile: str
    broken: str

    @property
    def as_told(self) -> bool:
        """Whether it ended as the story tells it: the buggy app breaks under a profile, and nothing else does."""
        return bool(self.broken) == (self.app == "buggy" and self.profile != CALM)


def play(story: Story, service: Service, seed: int, say: Callable[[str], None]) -> Iterator[Act]:
    """Play a story in all its acts, and give each when it is over. Raises OSError and AnswerError."""
    address = (service.listen.host, service.listen.port)
    for app, performance in (("buggy", story.buggy), ("repaired", story.repaired)):
        for profile in (CALM, *story.profiles):
            service.use(load([find(profile)]), seed)
            say(f"\n{story.name}, {app}, under {profile}")
            before = service.journal.last
            broken = performance(Scene(address, say), secrets.token_hex(4))
            fired = [event["command"] for event in service.journal.events(before)]
            say(f"  chaosproxy: {told(fired)}")
            say(f"  {'BROKEN: ' + broken if broken else 'whole'}")
            yield Act(app, profile, broken)


def told(commands: list[str]) -> str:
    """Say which commands a fault struck, and how often."""
    counts = {command: commands.count(command) for command in commands}
    if not counts:
        return "nothing fired"
    return "fired on " + ", ".join(f"{command} ({count})" for command, count in counts.items())
