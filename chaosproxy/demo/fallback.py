"""A bot that answers in any case: what its memory raises becomes an empty history.

Takes a scene and a session; gives which lines are gone that the customer's page shows.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from chaosproxy.demo.client import AnswerError, Client
from chaosproxy.demo.scene import MODEL, Scene, Story, missing

TEXTS = [f"m{number}" for number in range(1, 13)]
#: How long somebody who waits for Redis goes on trying, and how soon he tries again, in seconds.
PATIENCE, PAUSE = 15.0, 0.25
AWAY = (OSError, AnswerError)

#: Takes the message and what the page shows; gives how many lines the bot remembered.
Turn = Callable[[str, list[str]], int]
Given = TypeVar("Given")


def _asked(scene: Scene, name: str, act: Callable[[Client], Given]) -> Given:
    """Do something on a connection of its own, as each request has one."""
    with scene.client(name) as redis:
        return act(redis)


def _patiently(act: Callable[[], Given]) -> Given:
    """Try again while Redis is away; raise when that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return act()
        except AWAY:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def _chat(scene: Scene, key: str, turn: Turn) -> str:
    """Send messages one after the other, and read the history once Redis is there."""
    page: list[str] = []
    for text in TEXTS:
        remembered = turn(text, page)
        new = ", as to a new customer" if page and not remembered else ""
        scene.tell("page", f"{text} is answered{new}")
        page += [text, f"re: {text}"]
    history = _patiently(lambda: _asked(scene, "reload", lambda redis: _history(redis, key)))
    return missing(page, history)


def _history(redis: Client, key: str) -> list[str]:
    found: list[str] = redis.ask("LRANGE", key, "0", "-1")
    return found


def buggy(scene: Scene, session: str) -> str:
    """Play it as it was: a bot without memory is better than none."""
    key = f"support:{session}"

    def turn(text: str, page: list[str]) -> int:
        del page
        try:
            history = _asked(scene, "pod", lambda redis: _history(redis, key))
        except AWAY:
            history = []
        time.sleep(MODEL)
        try:
            _asked(scene, "pod", lambda redis: redis.ask("RPUSH", key, text, f"re: {text}"))
        except AWAY:
            scene.tell("pod", "is of good cheer")
        return len(history)

    return _chat(scene, key, turn)


def repaired(scene: Scene, session: str) -> str:
    """Play it as it should have been: wait for Redis, bring in again what it has lost, and add a turn only once."""
    key = f"support:{session}"

    def store(redis: Client, text: str, page: list[str]) -> int:
        history = _history(redis, key)
        wanted = [*page, text, f"re: {text}"]
        # What the page shows and the memory has not: this turn, and what went with the old primary.
        if lacking := wanted[len(history) :]:
            redis.ask("RPUSH", key, *lacking)
        return len(page)

    def turn(text: str, page: list[str]) -> int:
        time.sleep(MODEL)
        return _patiently(lambda: _asked(scene, "pod", lambda redis: store(redis, text, page)))

    return _chat(scene, key, turn)


STORY = Story(
    "fallback",
    "A bot that answers in any case, and takes an outage for a new customer.",
    ("sentinel-failover", "redis-restart"),
    buggy,
    repaired,
)
