"""The last minutes: what is counted is told once, in the second in which it happened, and forgotten in time."""

import json
from contextlib import closing
from time import monotonic

import pytest

from chaosproxy.control.timeline import Numbers, Timeline
from tests import servers
from tests.proxying import serve_proxy, wait_for

NONE = Numbers(
    profile="p", generation=1, commands=0, delayed=0, delay=0.0, connections=0, fired={"a": 0}
)


class Reading:
    """What is counted, set by the test."""

    def __init__(self, **fields):
        self.set(**fields)

    def set(self, **fields):
        self.now = Numbers(**{name: getattr(NONE, name) for name in NONE.__slots__} | fields)

    def __call__(self):
        return self.now


def test_differences():
    """A second has what came since the one before; what is, is told as it is."""
    reading = Reading(commands=5, fired={"a": 1, "b": 7})
    before, timeline, began = monotonic(), Timeline(reading), monotonic()
    reading.set(commands=12, delayed=2, delay=0.5, connections=3, fired={"a": 4, "b": 7})
    timeline.look(began + 1)
    reading.set(commands=13, delayed=2, delay=0.5, connections=2, fired={"a": 4, "b": 8})
    timeline.look(began + 3)
    first, second = timeline.seconds()
    names = ("n", "commands", "delayed", "delay", "connections", "fired")
    assert [first[name] for name in names] == [1, 7, 2, 0.5, 3, {"a": 3}]
    assert [second[name] for name in names] == [2, 1, 0, 0.0, 2, {"b": 1}]
    assert 1 <= first["seconds"] + 0.001 <= began + 1.002 - before
    assert second["seconds"] == 2


def test_another_profile():
    """A second in which another profile came has what fired before that, too."""
    reading = Reading(fired={"a": 9})
    timeline = Timeline(reading)
    reading.set(profile="q", generation=2, fired={"a": 11, "b": 1})
    timeline.look(monotonic())
    (second,) = timeline.seconds()
    assert (second["profile"], second["generation"]) == ("q", 2)
    assert second["fired"] == {"a": 2, "b": 1}


def test_bounded():
    """So many are kept; their numbers go on."""
    timeline = Timeline(Reading(), kept=3)
    for _ in range(5):
        timeline.look(monotonic())
    assert [second["n"] for second in timeline.seconds()] == [3, 4, 5]


def test_looks_by_itself():
    """From start to stop, and no longer."""
    timeline = Timeline(Reading(), step=0.01)
    timeline.start()
    wait_for(lambda: len(timeline.seconds()) >= 3, "three looks")
    timeline.stop()
    count = len(timeline.seconds())
    assert not timeline._thread.is_alive()
    assert len(timeline.seconds()) == count


def test_never_started():
    """What was not started can be stopped."""
    timeline = Timeline(Reading())
    timeline.stop()
    assert timeline.seconds() == []


def test_route(ask, backend):
    """All of it, or what is new; the last number is told even if nothing is."""
    assert ask("GET", "/timeline").json == {"seconds": [], "last": 0}
    backend.looks = [{"n": 4, "commands": 1}, {"n": 5, "commands": 2}]
    assert ask("GET", "/timeline").json == {"seconds": backend.looks, "last": 5}
    assert ask("GET", "/timeline?after=4").json == {"seconds": backend.looks[1:], "last": 5}
    assert ask("GET", "/timeline?after=5").json == {"seconds": [], "last": 5}
    assert ask("GET", "/timeline?after=x").status == 400
    assert ask("GET", "/timeline?before=5").status == 400


SLOW = """\
faults:
- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 20ms}
"""


def test_a_running_proxy():
    """Every command, delay and fault is in just one of the seconds."""
    redis = servers.start("valkey9")
    try:
        with serve_proxy(redis.url, SLOW) as proxy, closing(proxy.connect()) as wire:
            for number in range(3):
                wire.ask("SET", "k", number)
                wire.ask("GET", "k")

            def seconds():
                return json.loads(proxy.get("/timeline")[1])["seconds"]

            def total():
                found = seconds()
                names = ("commands", "delayed", "delay")
                fired = sum(second["fired"].get("slow", 0) for second in found)
                return *(sum(second[name] for second in found) for name in names), fired

            # It may be looked in the middle of one of them.
            wait_for(lambda: total() == (6, 3, pytest.approx(0.06), 3), "the commands")
            assert seconds()[-1]["connections"] == 1
            assert {second["profile"] for second in seconds()} == {"test"}
            # A profile that came and went between two looks.
            proxy.use(SLOW)
            wire.ask("GET", "k")
            proxy.use("calm")
            wait_for(lambda: total() == (7, 4, pytest.approx(0.08), 4), "what is over")
    finally:
        redis.stop()


def test_the_last_part_of_a_second():
    """What has happened since the last look is not lost in the end."""
    reading = Reading(commands=1)
    timeline = Timeline(reading)
    timeline.start()
    reading.set(commands=4)
    timeline.stop()
    assert [each["commands"] for each in timeline.seconds()] == [3]
