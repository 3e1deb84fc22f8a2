"""Where stories play: who acts at once, what is said, and how a memory is found broken."""

import threading

import pytest

from chaosproxy.demo import client
from chaosproxy.demo.scene import Scene, missing


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def scene(redis70, said) -> Scene:
    return Scene(("127.0.0.1", redis70.port), said.append)


def test_a_line(scene, said, monkeypatch):
    """A line has the time, the name and what was asked."""
    monkeypatch.setattr(client, "SLOW", 60.0)
    with scene.client("tab A") as tab:
        tab.ask("PING")
    (line,) = said
    assert line.split(maxsplit=2)[1:] == ["s", "tab A     PING → PONG"]


def test_together(scene):
    """Acts run at the same time: each waits for the other here."""
    both = threading.Barrier(2)
    scene.together(lambda: both.wait(30), lambda: both.wait(30))


def test_what_an_actor_raises(scene):
    """What one of them raises comes out, once all are through."""

    def fall() -> None:
        raise OSError("fell")

    done: list[int] = []
    with pytest.raises(OSError, match="fell"):
        scene.together(fall, lambda: done.append(1))
    assert done == [1]


def test_missing():
    """Whole, short of something, or in another order."""
    assert missing(["a", "b"], ["a", "b"]) == ""
    assert missing(["a", "b", "c"], ["b"]) == "gone: a, c"
    assert missing(["a", "b"], ["b", "a"]) == "in this order: b, a"
    assert missing(["a"], ["a", "a"]) == "in this order: a, a"
