"""Two tabs of one chat: the whole history is read, and stored again once the model has answered.

Takes a scene and a session; gives which turn is gone.
"""

import json
import time
from collections.abc import Callable

from chaosproxy.demo.client import Client
from chaosproxy.demo.scene import MODEL, PACE, Scene, Story, missing

#: Takes a connection, a key and a message, and stores the message and its answer.
Turn = Callable[[Client, str, str], None]


def _overwriting(redis: Client, key: str, text: str) -> None:
    """Store what was read before the model thought, and the turn: whatever came meanwhile is written over."""
    messages = json.loads(redis.ask("GET", key) or "[]")
    time.sleep(MODEL)
    redis.ask("SET", key, json.dumps([*messages, text, f"re: {text}"]))


def _appending(redis: Client, key: str, text: str) -> None:
    """Add each message to what is there by then."""
    redis.ask("RPUSH", key, text)
    time.sleep(MODEL)
    redis.ask("RPUSH", key, f"re: {text}")


def _both_send(scene: Scene, key: str, turn: Turn) -> None:
    """Send m1 in one tab and m2 in the other, a moment later."""

    def tab(name: str, text: str, wait: float) -> None:
        with scene.client(name) as redis:
            time.sleep(wait)
            turn(redis, key, text)

    scene.together(lambda: tab("tab A", "m1", 0), lambda: tab("tab B", "m2", PACE))


def _verdict(messages: list[str]) -> str:
    return missing(["m1", "re: m1", "m2", "re: m2"], messages)


def buggy(scene: Scene, session: str) -> str:
    """Play it as it was."""
    key = f"user:ada:session:{session}:messages"
    _both_send(scene, key, _overwriting)
    with scene.client("reload") as redis:
        return _verdict(json.loads(redis.ask("GET", key)))


def repaired(scene: Scene, session: str) -> str:
    """Play it as it should have been."""
    key = f"user:ada:session:{session}:messages"
    _both_send(scene, key, _appending)
    with scene.client("reload") as redis:
        return _verdict(redis.ask("LRANGE", key, "0", "-1"))


STORY = Story(
    "two-tabs",
    "Two tabs of one chat: whose SET is applied last wins, and the other one's turn is gone.",
    ("late-writer",),
    buggy,
    repaired,
)
