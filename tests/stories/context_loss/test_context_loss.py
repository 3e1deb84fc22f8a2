"""Context loss: a crash before the flush, a window with a hole in it, and how many questions nobody can answer any more.

Takes both memories, a PostgreSQL and a Redis that crashes; gives the context loss rate, the same for the same seed.
"""

import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from tests.proxying import start_proxy
from tests.stories import postgres
from tests.stories.context_loss.memory import APPS, BATCH, Buggy, Repaired, Turn
from tests.stories.context_loss.pod import prepare
from tests.stories.counting import Broken
from tests.stories.stage import ROOT

# A process for each run, and a busy machine: nothing hangs.
pytestmark = pytest.mark.timeout(600)

#: Each conversation has a crash of its own: its 14th write.
CRASH_TAIL = ("--set", "lost-tail.when.per=key", "--set", "crash.when.per=key")
#: Each conversation has a failover of its own, at a turn that is drawn; it takes no longer than it must.
FAILOVER = (
    *("--set", "sentinel-failover.when={trigger: manual}", "--set", "sentinel-failover.match={}"),
    *("--set", "sentinel-failover.outage=50ms"),
)
PROFILES = {"crash-tail": CRASH_TAIL, "sentinel-failover": FAILOVER, "calm": ()}
#: Conversations of a run, for each window: of one that is counted, and of those whose rate is compared.
FEW, FAST, LONG = 5, 20, 50
#: How long the whole story may take on two cores, in seconds.
LIMIT = 36.0


@pytest.fixture(scope="module")
def database():
    """Lend a PostgreSQL; what cannot be had skips."""
    try:
        with postgres.running() as server:
            prepare(server.dsn)
            yield server
    except postgres.Unavailable as reason:
        pytest.skip(str(reason))


def play(proxy, database, app, conversations, seed, *more):
    """Run the story in a process of its own; gives questions and lost ones by window, and how often a pod died."""
    command = [sys.executable, "-m", "tests.stories.context_loss", "--json", "--app", app]
    command += ["--redis-url", proxy.url, "--database", database.dsn, "--seed", seed]
    command += ["--conversations", str(conversations), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = json.loads(done.stdout.splitlines()[-1])["losses"]
    assert [loss["conversations"] for loss in losses] == [conversations] * 3
    return losses


def rate(losses):
    return sum(loss["lost"] for loss in losses) / sum(loss["questions"] for loss in losses)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("app", APPS)
def test_runs(app, profile, tally, stage, database):
    """With a crash or a failover the buggy memory loses something on every run, without never; the repaired one never loses."""
    proxy = stage.proxy(profile, *PROFILES[profile])
    more = (
        ["--control", proxy.control, "--trigger", profile] if profile == "sentinel-failover" else []
    )

    def run(number):
        losses = play(proxy, database, app, FEW, f"run {number}", *more)
        if rate(losses):
            raise Broken(f"context loss rate {rate(losses):.1%}")

    tally("context-loss", app, profile, run, breaks=app == "buggy" and profile != "calm")
    assert bool(proxy.events()) == (profile != "calm")


def processor_time(*servers):
    """Add up what these servers and this process's children that have ended have had of the processor, in seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime
    for server in servers:
        # Its own and its children's: utime, stime, cutime, cstime.
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds


def test_the_rate(tally, stage, database):
    """The buggy rate is clearly above zero and the same on five runs with one seed; the repaired one is 0."""
    conversations = LONG if tally.long else FAST
    began, used = time.monotonic(), processor_time(stage.server, database)

    def run(app):
        # Each has a Redis that crashes of its own: a crash cuts off everybody.
        with start_proxy(stage.server.url, "crash-tail", *CRASH_TAIL) as proxy:
            return play(proxy, database, app, conversations, "five times the same")

    with ThreadPoolExecutor(2) as pool:
        *buggy, repaired = pool.map(run, ["buggy"] * 5 + ["repaired"])
    seconds = time.monotonic() - began
    used = processor_time(stage.server, database) - used
    print(
        f"context loss rate before: {rate(buggy[0]):.1%}, five times; after: {rate(repaired):.1%}"
    )
    for loss in buggy[0]:
        print("before, window {window}: {lost} of {questions} questions lost".format(**loss))
    print(
        f"6 runs of {conversations * 3} conversations in {seconds:.1f} s, {used / 2:.1f} s of two cores"
    )
    assert buggy == [buggy[0]] * 5
    assert rate(buggy[0]) > 0.05
    assert all(loss["lost"] for loss in buggy[0]), "each window loses some"
    assert rate(repaired) == 0
    # Whatever else the machine does meanwhile.
    assert used / 2 < LIMIT


@contextmanager
def memories(app, stage, database, window):
    """Lend a memory in this process, its Redis client, and a session nobody has had."""
    with (
        redis.Redis.from_url(stage.server.url) as client,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        client.flushall()
        connection.execute("TRUNCATE turns")
        yield app(client, connection, window), client


@pytest.mark.parametrize(("app", "answer"), [(Buggy, None), (Repaired, "turn 3")])
def test_an_incomplete_slice(app, answer, stage, database):
    """A window that lacks a turn is taken for whole by the buggy memory; the repaired one sees that, and mends it."""
    with memories(app, stage, database, 2) as (memory, client):
        for number in range(1, 5):
            memory.remember("s", Turn(number, f"turn {number}"))
        memory.idle()
        memory.settle()
        assert [memory.recall("s", f"turn {number}") for number in (1, 2, 3, 4)] == [
            f"turn {number}" for number in (1, 2, 3, 4)
        ]
        client.lpop("window:s")
        assert memory.recall("s", "turn 3") == answer
        assert client.llen("window:s") == (2 if app is Repaired else 1)


@pytest.mark.parametrize("app", APPS.values())
def test_what_is_written_when(app, stage, database):
    """The buggy memory writes when it has enough, or nothing else to do; the repaired one before it acknowledges."""
    with memories(app, stage, database, 2) as (memory, _):
        written = []
        for number in range(1, BATCH + 2):
            memory.remember("s", Turn(number, "text"))
            memory.settle()
            written.append(memory.database.execute("SELECT count(*) FROM turns").fetchone()[0])
        late = [0] * (BATCH - 1) + [BATCH, BATCH]
        assert written == (late if app is Buggy else [*range(1, BATCH + 2)])
        memory.idle()
        memory.settle()
        assert memory.database.execute("SELECT count(*) FROM turns").fetchone() == (BATCH + 1,)
