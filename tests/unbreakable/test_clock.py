"""The wall clock is set, forward and back, while faults are under way.

Takes a proxy in a process of its own whose clock a test sets, and the package's source; gives proof that what lasts is
measured on a clock that is never set, and that times to live follow the one that is.
"""

import ast
import json
import os
import time
from pathlib import Path

import pytest

from tests.proxying import start_proxy, wait_for
from tests.servers import free_port
from tests.unbreakable.stand import until

ROOT = Path(__file__).resolve().parent.parent.parent
DAY = 86400.0
#: Where the wall clock is looked at, and how often: to be shown, or as what Redis calls the time. It is never subtracted from.
LOOKS = {
    "cli/exec.py": 1,  # when it started
    "control/timeline.py": 1,  # a second's time of day
    "journal.py": 1,  # an event's
    "net/connection.py": 1,  # what is added to the other clock gives the time that a command's TTL speaks of
    "service.py": 1,  # since when a profile is in force, its age being known
}


def looks(tree: ast.Module) -> int:
    """How often a module looks at the wall clock."""
    names = ("time", "datetime.now", "datetime.utcnow", "date.today", "time.time", "time.time_ns")
    more = ("time.localtime", "time.gmtime", "localtime", "gmtime", "time_ns")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sum(ast.unparse(call.func) in (*names, *more) for call in calls)


def test_where_it_is_looked_at():
    """Each look is known, with its reason: a new one has to give one."""
    found = {}
    for path in sorted((ROOT / "chaosproxy").rglob("*.py")):
        if count := looks(ast.parse(path.read_text())):
            found[str(path.relative_to(ROOT / "chaosproxy"))] = count
    assert found == LOOKS


class Clock:
    """The wall clock of a process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "stepped"
        self.set(0)
        path = os.pathsep.join((str(Path(__file__).parent / "stepping"), str(ROOT)))
        self.env = {"STEPPED": str(self.file), "PYTHONPATH": path}

    def set(self, ahead: float) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(str(ahead))
        new.replace(self.file)


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


#: What lasts about so long, on a client of its own: a rule, and what it is to begin with.
SECONDS = 1.0
LASTING = [
    "fault: latency, name: before, match: {keys: before}, at: before_forward, delay: 1s",
    "fault: latency, name: after, match: {keys: after}, at: after_apply, delay: 1s",
    "fault: reorder, name: barrier, match: {keys: barrier}, waiting: 2, max: 1s",
    "fault: blackhole, name: silent, match: {keys: silent}, at: before_forward, what: connection, for: 1s",
    "fault: slice, name: slice, match: {keys: slice}, split: [1], gap: 1s",
    "fault: bandwidth, name: slow, match: {keys: slow}, rate: 40B/s, direction: to_upstream",
]
PROFILE = "faults:\n" + "".join(f"  - {{{line}}}\n" for line in LASTING)
KEYS = ["before", "after", "barrier", "silent", "slice", "slow"]


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_what_lasts(redis70, clock, step):
    """Delays, a barrier's patience, a silence, gaps and rates take as long as they say, whatever the clock does meanwhile."""
    proxy = start_proxy(redis70.url, PROFILE, env=clock.env)
    wires = {key: proxy.connect() for key in KEYS}
    for wire in wires.values():
        assert wire.ask("PING") == "PONG"
    began = time.monotonic()
    for key, wire in wires.items():
        wire.send("SET", key, "x" * 10)
    clock.set(step)
    for key, wire in wires.items():
        assert wire.read() == [b"+OK\r\n"], key
        took = time.monotonic() - began
        assert 0.9 * SECONDS < took < SECONDS + 20, key
        wire.close()
    events = proxy.wait_events(len(KEYS))
    ahead = [event["t"] for event in events]
    assert ahead == sorted(ahead)
    assert ahead[-1] < 120
    in_force = json.loads(proxy.get("/profile")[1])
    assert 0 < in_force["age"] < 120
    proxy.stop()


WINDOWS = """
faults:
  - {fault: admit, new_connections: reset, for: 1s, when: {armed_by: start}}
  - {fault: reply, name: early, match: {keys: w}, when: {until: 4s}, at: before_forward, value: early}
  - {fault: reply, name: start, match: {keys: start}, at: before_forward, value: 1}
"""


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_windows(redis70, clock, step):
    """`for` and `until` begin and end when they say."""
    proxy = start_proxy(redis70.url, WINDOWS, env=clock.env)
    with proxy.connect() as client:
        began = time.monotonic()
        assert client.ask("GET", "start") == 1
        clock.set(step)
        until(lambda: _is_let_in(proxy), "connections to be let in again")
        assert time.monotonic() - began > 0.9
        wait_for(lambda: client.ask("GET", "w") is None, "the window to be over")
        age = json.loads(proxy.get("/profile")[1])["age"]
        assert 4 <= age < 120
    proxy.stop()


def _is_let_in(proxy) -> bool:
    try:
        with proxy.connect() as client:
            return client.ask("PING") == "PONG"
    except (ConnectionError, EOFError):
        return False


FAILOVER = """
faults:
  - fault: failover
    match: {commands: SET}
    style: steps
    steps: [{cut: reset}, {refuse: 1s}, switch, {loading: 1s}]
"""


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_failover(redis70, clock, step):
    """Its steps take as long as they say."""
    listen = f"127.0.0.1:{free_port()}"
    proxy = start_proxy(redis70.url, FAILOVER, "--listen", listen, env=clock.env)
    with proxy.connect() as client:
        began = time.monotonic()
        client.send("SET", "k", "v")
        assert client.read_to_end() == (b"", "RST")
    clock.set(step)
    until(lambda: _is_served(proxy), "it to be over")
    assert 1.9 < time.monotonic() - began < 60
    proxy.stop()


def _is_served(proxy) -> bool:
    try:
        with proxy.connect() as client:
            return client.ask("GET", "k") is None
    except (ConnectionError, EOFError):
        return False


SHORT = """
faults:
  - {fault: expire_key, match: {commands: [EXPIREAT, PEXPIREAT]}, mode: {ttl_scale: 0.1}}
"""


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_times_to_live_follow_the_clock(redis70, clock, step):
    """A clock that was wrong and is put right is right for the next command, on a connection that is open all the while."""
    clock.set(step)
    proxy = start_proxy(redis70.url, SHORT, env=clock.env)
    with proxy.connect() as client:
        assert client.ask("SET", "k", "v") == "OK"
        clock.set(0)
        assert client.ask("EXPIREAT", "k", int(time.time()) + 1000) == 1
        assert 80_000 < redis70.ask("PTTL", "k") <= 101_000
    proxy.stop()
