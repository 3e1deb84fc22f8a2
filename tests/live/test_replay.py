"""The same seed and the same commands give the same faults, whatever the timing; and a recording gives them again.

Eight clients with random think time, three faults with chance, counted per key: the promise is about sets of (key, match,
fault, delay), not about times or the order between connections.
"""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from chaosproxy.core.replay import Recording
from tests.proxying import RunningProxy, serve_proxy, start_proxy

CLIENTS = 8
COMMANDS = 40
THREE = """
description: three faults, each with a chance of its own
faults:
  - fault: latency
    name: slow
    match: {commands: [GET, RPUSH]}
    when: {chance: 30%, per: key}
    at: before_forward
    delay: {uniform: [1ms, 5ms]}
  - fault: drop_write
    name: lost
    match: {commands: [RPUSH]}
    when: {chance: 25%, per: key}
    tell: ok
  - fault: reply
    name: busy
    match: {commands: [INCR]}
    when: {chance: 20%, per: key}
    at: after_apply
    error: BUSY
"""
FOURTH = (
    THREE
    + """
  - fault: latency
    name: another
    match: {commands: [GET, RPUSH, INCR]}
    when: {chance: 50%, per: key}
    at: after_apply
    delay: {uniform: [1ms, 3ms]}
"""
)


def decisions(proxy: RunningProxy, *faults: str) -> set[tuple[object, ...]]:
    """What fired, without anything that timing could change."""
    return {
        (*event["keys"], event["match"], event["fault"], event.get("delay"), event.get("draw"))
        for event in proxy.events()
        if event["fault"] in faults
    }


def converse(proxy: RunningProxy, pace: int, most: float = 0.004) -> None:
    """Let eight clients send their commands, each in its order, with think times that `pace` seeds."""
    start = threading.Barrier(CLIENTS)

    def client(number: int) -> None:
        random = Random(f"{pace}/{number}")
        with proxy.connect() as wire:
            start.wait()
            for step in range(COMMANDS):
                command = ("GET", "RPUSH", "INCR")[step % 3]
                key = f"{command.lower()}:{number}:{step % 2}"
                wire.ask(command, key, *(["x"] if command == "RPUSH" else []))
                time.sleep(random.uniform(0, most))

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client, number) for number in range(CLIENTS)]:
            done.result()


def run(url: str, profile: str, pace: int, seed: int = 7, **plan: object) -> RunningProxy:
    with serve_proxy(url, profile, seed=seed, **plan) as proxy:
        converse(proxy, pace)
    return proxy


def test_same_seed_same_faults(redis70):
    """Five runs with other think times fire the same faults on the same matches, with the same delays and draws."""
    names = ("slow", "lost", "busy")
    runs = []
    for pace in range(5):
        redis70.ask("FLUSHALL")
        runs.append(decisions(run(redis70.url, THREE, pace), *names))
    assert {fault for *_, fault, _, _ in runs[0]} == set(names)
    assert all(each == runs[0] for each in runs)


def test_another_seed(redis70):
    """Another seed gives other faults."""
    names = ("slow", "lost", "busy")
    first = decisions(run(redis70.url, THREE, 1, seed=7), *names)
    redis70.ask("FLUSHALL")
    assert decisions(run(redis70.url, THREE, 1, seed=8), *names) != first


def test_another_fault_shifts_nothing(redis70):
    """A fourth fault in the profile changes nothing of what the three do."""
    names = ("slow", "lost", "busy")
    three = decisions(run(redis70.url, THREE, 1), *names)
    redis70.ask("FLUSHALL")
    proxy = run(redis70.url, FOURTH, 2)
    assert decisions(proxy, *names) == three
    assert decisions(proxy, "another")


def test_replay_under_other_timing(redis70, tmp_path: Path):
    """A replay fires exactly what was recorded, with the recorded delays, whatever the think times; and says so."""
    names = ("slow", "lost", "busy")
    recorded = run(redis70.url, THREE, 1)
    recording = Recording.of(recorded.events())
    redis70.ask("FLUSHALL")
    with serve_proxy(redis70.url, THREE, seed=7, recording=recording) as proxy:
        converse(proxy, pace=99, most=0.001)
    assert decisions(proxy, *names) == decisions(recorded, *names)
    assert recording.verdict() is None


def _record(url: str, path: Path, *commands: tuple[str, ...]) -> Path:
    with start_proxy(
        url, "lost-writes", "--seed", "7", "--set", "lost-writes.when.chance=100%"
    ) as proxy:
        with proxy.connect() as wire:
            for command in commands:
                wire.ask(*command)
        proxy.wait_events(len(commands))
        path.write_bytes((proxy.folder / "events.jsonl").read_bytes())
    return path


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (("RPUSH", "chat:1", "b"), "with digest"),
        (None, "it never came (1 of 1 recorded did not)"),
    ],
)
def test_divergence_is_told(redis70, tmp_path: Path, now, says):
    """Another request in the place of the recorded one, or none at all: both sides are told, and the status is 1."""
    path = _record(redis70.url, tmp_path / "events.jsonl", ("RPUSH", "chat:1", "a"))
    event = json.loads(path.read_text().splitlines()[1])
    proxy = start_proxy(
        redis70.url, "lost-writes", "--replay", str(path), "--set", "lost-writes.when.chance=100%"
    )
    if now is not None:
        with proxy.connect() as wire:
            wire.ask(*now)
        proxy.wait_events(1)
    with pytest.raises(AssertionError, match="ended with 1"):
        proxy.stop()
    assert f"recorded was event 1: {event['fault']}, match 1: " in proxy.stderr
    assert f"RPUSH with digest {event['digest']}" in proxy.stderr
    assert says in proxy.stderr


def test_replay_that_holds(redis70, tmp_path: Path):
    """The command line replays a file by itself: seed and profile are in it. Status 0, and it says that it was the same."""
    path = _record(redis70.url, tmp_path / "events.jsonl", ("RPUSH", "chat:1", "a"))
    redis70.ask("FLUSHALL")
    proxy = start_proxy(redis70.url, "lost-writes", "--replay", str(path))
    with proxy.connect() as wire:
        assert wire.ask("RPUSH", "chat:1", "a") == 1
        assert redis70.ask("EXISTS", "chat:1") == 0
    proxy.wait_events(1)
    proxy.stop()
    assert "the replay was the recording, event by event" in proxy.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is empty"),
        ("{}\n", ":1: the first line should say seed"),
        (
            '{"seed": 1, "profile": "calm", "profile_sha256": "x"}\nnonsense\n',
            ":2: not a JSON object",
        ),
        ('{"seed": 1, "profile": "calm", "profile_sha256": "x"}\n{"n": 1}\n', "no event to replay"),
        (
            '{"seed": 1, "profile": "calm", "profile_sha256": "x"}\n',
            "it was recorded with profile calm as it was then",
        ),
    ],
)
def test_no_recording(tmp_path: Path, text, says):
    """A file that is no recording, or of another profile, is refused with its place and reason; status 2."""
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    with pytest.raises(AssertionError, match=r"it did not start") as error:
        start_proxy("redis://127.0.0.1:1", "calm", "--replay", str(path))
    assert says in str(error.value)
