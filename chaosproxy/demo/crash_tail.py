"""A memory whose last turns are in a cache and in a queue: a crash takes them from both.

Takes a scene and a session; gives the facts that were acknowledged and that nobody can recall. The database, which is not what
breaks, is a list here; tests/stories/context_loss has a real one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from chaosproxy.demo.client import Client
from chaosproxy.demo.scene import Scene, Story, missing

#: How many turns there are, how many of them the window has, and how many the queue gathers before it writes them.
TURNS, WINDOW, BATCH = 16, 4, 5


@dataclass(slots=True)
class _Pod:
    """A process that serves turns, with its connection and its queue; both end with it."""

    redis: Client
    key: str
    database: list[str]
    queue: list[str] = field(default_factory=list)

    def remember_later(self, fact: str) -> None:
        """Acknowledge what the cache has and the database will have."""
        self.redis.ask("RPUSH", self.key, fact)
        self.queue.append(fact)
        if len(self.queue) == BATCH:
            self.database += self.queue
            self.queue.clear()

    def remember_first(self, fact: str) -> None:
        """Acknowledge what the database has; the cache may lack it."""
        if fact not in self.database:
            self.database.append(fact)
        self.redis.ask("RPUSH", self.key, fact)

    def window(self) -> list[str]:
        """What the cache takes for the last turns."""
        found: list[str] = self.redis.ask("LRANGE", self.key, str(-WINDOW), "-1")
        return found


def _converse(
    scene: Scene,
    key: str,
    remember: Callable[[_Pod, str], None],
    recall: Callable[[_Pod], list[str]],
) -> str:
    """Say a fact in each turn, again if the pod died of it, and ask for all of them."""
    facts = [f"fact {number}" for number in range(1, TURNS + 1)]
    database: list[str] = []
    pod = _Pod(scene.client("pod 1"), key, database)
    for fact in facts:
        try:
            remember(pod, fact)
        except OSError:
            scene.tell("pod 1", f"dies at {fact}; {len(pod.queue)} turns were in its queue")
            pod.redis.close()
            pod = _Pod(scene.client("pod 2"), key, database)
            remember(pod, fact)
    with pod.redis:
        return missing(facts, recall(pod))


def buggy(scene: Scene, session: str) -> str:
    """Play it as it was: whatever is in the cache is taken for the window, and the queue is written when it is full."""

    def recall(pod: _Pod) -> list[str]:
        window = pod.window()
        # Nobody has said anything for a while: what is queued is written.
        written = [*pod.database, *pod.queue]
        return [fact for fact in written if fact not in window] + window

    return _converse(scene, f"window:{session}", _Pod.remember_later, recall)


def repaired(scene: Scene, session: str) -> str:
    """Play it as it should have been: acknowledged is what is written, and a window that differs from it is none."""

    def recall(pod: _Pod) -> list[str]:
        newest = pod.database[-WINDOW:]
        if pod.window() != newest:
            pod.redis.ask("DEL", pod.key)
            pod.redis.ask("RPUSH", pod.key, *newest)
        return pod.database[:-WINDOW] + pod.window()

    return _converse(scene, f"window:{session}", _Pod.remember_first, recall)


STORY = Story(
    "crash-tail",
    "The last turns are in a cache and a queue; a crash takes them from both.",
    ("crash-tail",),
    buggy,
    repaired,
)
