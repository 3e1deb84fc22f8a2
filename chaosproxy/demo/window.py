"""A window of the newest messages, trimmed by what was seen before somebody else trimmed it.

Takes a scene and a session; gives which messages are gone that should have been kept.
"""

import time
from collections.abc import Callable

from chaosproxy.demo.client import Client
from chaosproxy.demo.scene import PACE, Scene, Story, missing

#: How many messages the window has room for.
ROOM = 4
SEVEN_DAYS = str(7 * 24 * 3600)
#: Appends and trims in one step: there is no moment at which what was seen is no longer so.
APPEND = "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], -ARGV[2], -1)"

Append = Callable[[Client, str, str], None]


def _append_and_trim(redis: Client, key: str, text: str) -> None:
    """Append, look, and drop as many of the oldest as were too many then."""
    redis.ask("RPUSH", key, text)
    seen = redis.ask("LRANGE", key, "0", "-1")
    redis.ask("EXPIRE", key, SEVEN_DAYS)
    if len(seen) > ROOM:
        redis.ask("LTRIM", key, str(len(seen) - ROOM), "-1")


def _append_trimming(redis: Client, key: str, text: str) -> None:
    """Append, and keep no more than there is room for."""
    redis.ask("EVAL", APPEND, "1", key, text, str(ROOM))
    redis.ask("EXPIRE", key, SEVEN_DAYS)


def _both_append(scene: Scene, key: str, append: Append) -> str:
    """Fill the window, then append from two tabs, one a moment after the other."""
    texts = [f"m{number}" for number in range(1, ROOM + 3)]
    with scene.client("tab A") as first, scene.client("tab B") as second:
        for text in texts[:ROOM]:
            append(first, key, text)

        def later() -> None:
            time.sleep(PACE)
            append(second, key, texts[-1])

        scene.together(lambda: append(first, key, texts[-2]), later)
    with scene.client("reload") as redis:
        return missing(texts[-ROOM:], redis.ask("LRANGE", key, "0", "-1"))


def buggy(scene: Scene, session: str) -> str:
    """Play it as it was."""
    return _both_append(scene, f"memory:{session}", _append_and_trim)


def repaired(scene: Scene, session: str) -> str:
    """Play it as it should have been."""
    return _both_append(scene, f"memory:{session}", _append_trimming)


STORY = Story(
    "window",
    "Two appends trim one window, each by what it saw: messages go that there was room for.",
    ("late-writer",),
    buggy,
    repaired,
)
