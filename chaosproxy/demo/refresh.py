"""A chat that answers before it has stored, and whose time to live begins with its first turn only.

Takes a scene and a session; gives what a refresh no longer shows.
"""

import time
from collections.abc import Callable
from threading import Thread

from chaosproxy.demo.client import Client
from chaosproxy.demo.scene import MODEL, PACE, Scene, Story, missing

ROUNDS = 5
#: How long the next message takes, in seconds: five rounds outlive the two seconds of ttl-lapse.
THINK = 0.5
SEVEN_DAYS = str(7 * 24 * 3600)


def _store(redis: Client, key: str, text: str) -> None:
    """Store a turn; begin the conversation's time if it is a new one."""
    for line in (text, f"re: {text}"):
        if redis.ask("RPUSH", key, line) == 1:
            redis.ask("EXPIRE", key, SEVEN_DAYS)


def _store_whole(redis: Client, key: str, text: str) -> None:
    """Store a turn as a whole, and begin the conversation's time again."""
    redis.ask("MULTI")
    redis.ask("RPUSH", key, text, f"re: {text}")
    redis.ask("EXPIRE", key, SEVEN_DAYS)
    redis.ask("EXEC")


def _chat_and_refresh(scene: Scene, key: str, turn: Callable[[str], None]) -> str:
    """Send messages and, a moment after the last answer, read the history."""
    texts = [f"m{number}" for number in range(1, ROUNDS + 1)]
    for text in texts:
        if text != texts[0]:
            time.sleep(THINK)
        time.sleep(MODEL)
        turn(text)
        scene.tell("page", f"{text} is answered")
    time.sleep(PACE)
    with scene.client("refresh") as redis:
        history = redis.ask("LRANGE", key, "0", "-1")
    return missing([line for text in texts for line in (text, f"re: {text}")], history)


def buggy(scene: Scene, session: str) -> str:
    """Play it as it was: each turn is stored in the background, and nobody waits."""
    key = f"chat:{session}"
    background: list[Thread] = []

    def store(text: str) -> None:
        with scene.client(f"turn {text}") as redis:
            _store(redis, key, text)

    def turn(text: str) -> None:
        background.append(Thread(target=store, args=(text,)))
        background[-1].start()

    try:
        return _chat_and_refresh(scene, key, turn)
    finally:
        for thread in background:
            thread.join()


def repaired(scene: Scene, session: str) -> str:
    """Play it as it should have been: what is answered is stored."""
    key = f"chat:{session}"
    with scene.client("chat") as redis:
        return _chat_and_refresh(scene, key, lambda text: _store_whole(redis, key, text))


STORY = Story(
    "refresh",
    "A chat answers before it has stored, and forgets what its time to live outran.",
    ("slow-writes", "ttl-lapse"),
    buggy,
    repaired,
)
