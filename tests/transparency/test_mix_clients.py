"""Real clients' calls, many at once, for a time: through the proxy as without it, in results and in bytes.

Takes pip's and npm's packages, two servers of a kind and relays that record; gives proof that each call gives the same, that
the proxy passes on each byte in both directions, and that client and server have said the same as without it.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.clients import installs
from tests.proxying import RunningProxy, start_proxy
from tests.transparency.recorder import Recorded, Recorder
from tests.wire import encode

PROGRAMS = Path(__file__).with_name("programs")
ARMED = Path(__file__).with_name("armed.yaml")
CALM = "calm"
WORKERS = 4
TIMEOUT = 100.0

#: How it is known that a scratch database may be used, ahead of each MULTI while a rule may drop a write: the proxy's own words
#: on the client's connection, and their answers. Nothing is put in their place.
GATE = (
    (
        b"".join(
            encode(*words.split())
            for words in (
                "SELECT 15",
                "DBSIZE",
                "SELECT 0",
                "COPY chaosproxy:probe chaosproxy:probe",
                "DEL chaosproxy:probe",
            )
        ),
        b"",
    ),
    (
        b"+OK\r\n:0\r\n+OK\r\n-ERR source and destination objects are the same\r\n:0\r\n",
        b"",
    ),
)

REDIS_PY, NODE_REDIS, IOREDIS = "redis==8.1.0", "redis@5.9.0", "ioredis@5.11.1"
#: The package, its program, and what it is called with besides where, the seed, how many workers and rounds.
KINDS: dict[str, tuple[str, str, tuple[object, ...]]] = {
    "redis-py-resp2": (REDIS_PY, "mix_redis_py.py", (2, "sync")),
    "redis-py-resp3": (REDIS_PY, "mix_redis_py.py", (3, "sync")),
    "redis-py-asyncio-resp2": (REDIS_PY, "mix_redis_py.py", (2, "asyncio")),
    "redis-py-asyncio-resp3": (REDIS_PY, "mix_redis_py.py", (3, "asyncio")),
    "npm-redis-resp2": (NODE_REDIS, "mix_node_redis.cjs", (2,)),
    "npm-redis-resp3": (NODE_REDIS, "mix_node_redis.cjs", (3,)),
    "ioredis": (IOREDIS, "mix_ioredis.cjs", ()),
}


@dataclass(frozen=True, slots=True)
class Passage:
    """One way through a proxy: recorded before it, and behind it. `armed`: its rules look at everything."""

    armed: bool
    before: Recorder
    proxy: RunningProxy
    behind: Recorder


@dataclass(frozen=True, slots=True)
class Stage:
    """A server behind a recorder; its twin behind a proxy between two of them, once with each profile."""

    direct: servers.Server
    recorder: Recorder
    twin: servers.Server
    passages: tuple[Passage, ...]

    def compare(self, kind: str, seed: int, rounds: int, passage: Passage) -> tuple[int, int]:
        """Run a kind's program both ways at once and compare all there is; gives how many calls and bytes that were."""
        package = KINDS[kind][0]
        recorders = (self.recorder, passage.before, passage.behind)
        for server, recorder in zip((self.direct, self.twin, self.twin), recorders, strict=True):
            server.ask("FLUSHALL")
            server.ask("SCRIPT", "FLUSH")
            # Whatever a run that failed has left.
            recorder.connections.clear()
        direct, through = both(kind, seed, rounds, (self.recorder.port, passage.before.port))
        assert direct["version"] == package.replace("@", "==").partition("==")[2]
        for name, calls in direct["got"].items():
            assert calls == through["got"][name]
        streams = [recorder.take(_is_workers) for recorder in recorders]
        assert streams[0].keys() == streams[1].keys() == streams[2].keys()
        size = 0
        for name in streams[0]:
            for alone, before, behind in zip(*(each[name] for each in streams), strict=True):
                what = f"{kind}, seed {seed}, {name}"
                self.compare_streams(what, alone, before, behind, gate=passage.armed)
                size += len(alone.said) + len(alone.told)
        calls = sum(map(len, direct["got"].values()))
        assert calls > WORKERS * rounds
        return calls, size

    def compare_streams(
        self, what: str, alone: Recorded, before: Recorded, behind: Recorded, *, gate: bool
    ) -> None:
        """The proxy changes nothing; and nobody says anything else because of it."""
        said, told = behind.said, behind.told
        if gate:
            said, told = said.replace(*GATE[0]), told.replace(*GATE[1])
        assert before.said == said, what
        assert before.told == told, what
        assert alone.said == before.said, what
        assert alone.frames() == before.frames(), what


def both(kind: str, seed: int, rounds: int, ports: Sequence[int]) -> list[Any]:
    """Run a kind's program at each of these ports, at once, and give what they gave."""
    package, program, more = KINDS[kind]
    make = installs.npm if "@" in package else installs.python
    try:
        client = make(package)
    except installs.Unavailable as reason:
        pytest.skip(str(reason))

    def run(port: int) -> Any:
        arguments = (port, seed, WORKERS, rounds, *more)
        return client.run(PROGRAMS / program, *arguments, timeout=TIMEOUT)

    with ThreadPoolExecutor() as threads:
        return list(threads.map(run, ports))


def _is_workers(name: str) -> bool:
    # The proxy's own connection to the server is called otherwise.
    return name.startswith("w")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    with ExitStack() as stack:
        direct, twin = (servers.start("valkey9") for _ in range(2))
        stack.callback(twin.stop)
        stack.callback(direct.stop)

        def record(port: int) -> Recorder:
            recorder = Recorder(port)
            stack.callback(recorder.stop)
            return recorder

        passages = []
        for profile in (CALM, str(ARMED)):
            behind = record(twin.port)
            proxy = stack.enter_context(start_proxy(f"redis://127.0.0.1:{behind.port}", profile))
            passages.append(Passage(profile != CALM, record(proxy.port), proxy, behind))
        yield Stage(direct, record(direct.port), twin, tuple(passages))


@pytest.mark.parametrize("kind", KINDS)
def test_once(stage: Stage, kind: str):
    """A few dozen rounds of each kind, through a proxy with nothing in force and one with much that never acts."""
    for passage in stage.passages:
        stage.compare(kind, 1, 12, passage)


@pytest.mark.soak
@pytest.mark.timeout(0)  # each run has a time by which it has to be over
@pytest.mark.parametrize("kind", KINDS)
def test_for_minutes(stage: Stage, kind: str, mix_seconds: float):
    """For ten minutes with other seeds each time, in turn through a proxy with nothing in force and one with much that never acts."""
    end, seed, calls, size = time.monotonic() + mix_seconds, 1, 0, 0
    while time.monotonic() < end:
        for passage in stage.passages:
            seed += 1
            more, bytes_ = stage.compare(kind, seed, 150, passage)
            calls, size = calls + more, size + bytes_
    for passage in stage.passages:
        assert passage.proxy.metric("protocol_errors_total") == 0
        assert passage.proxy.metric("faults_fired_total") == 0
    print(f"{kind}: {calls} calls, {size >> 20} MiB, {seed - 1} runs")
