"""The primary fails over: who comes back and who stays with the old one, who waits while it loads, what is missing afterwards.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

MOVED_ON = ("managed-failover.match.commands=SET", "managed-failover.when.nth=3")


@pytest.mark.parametrize(
    ("package", "script", "how", "last"),
    [
        ("redis@5.9.0", "npm_redis_set.mjs", "default", "READONLY"),
        ("ioredis@5.11.1", "ioredis_set.mjs", "default", "READONLY"),
        ("ioredis@5.11.1", "ioredis_set.mjs", "reconnect", "OK"),
    ],
)
def test_stuck_on_the_old_primary(stage, npm, package, script, how, last):
    """LibreChat#15500 as it happens: the connection stays, and stays with the old primary; who connects anew gets on."""
    run = stage.play("managed-failover", npm(package), script, how, sets=MOVED_ON)
    assert run.said == {"last": last, "failed": True}


CRASH = """
faults:
  - {fault: failover, name: crash, match: {commands: [BZPOPMIN]}, when: {nth: 2}, style: sentinel, outage: 7s}
"""


@pytest.mark.parametrize(
    ("version", "done"),
    [("5.7.8", ["first"]), ("6.0.10", ["first"]), ("6.7.0", ["first", "second"])],
)
def test_worker_that_never_comes_back(stage, npm, version, done):
    """bullmq#4585: after seven seconds without a primary the worker says it runs, and does nothing; repaired in 6.7.0."""
    run = stage.play(CRASH, npm(f"bullmq@{version}", "ioredis@5.11.1"), "bullmq_worker.mjs")
    assert run.said == {"running": True, "done": done}


LOADING = """
faults:
  - {fault: failover, name: loads, style: steps, steps: [{loading: 1s}]}
"""


@pytest.mark.parametrize(("version", "said"), [("5.2.1", "BusyLoadingError"), ("8.1.0", "v")])
def test_loading(stage, python, version, said):
    """redis-py 5.2.1 raises while the server loads; 8.1.0 tries again, on a new connection each time.

    A second of loading, not three: its ten random waits are more than one second together, and not always more than three.
    """
    client = python(f"redis=={version}")
    run = stage.play(LOADING, client, "get.py", before=[("SET", "k", "v")], when_ready=True)
    assert run.said == said
    assert ("loads", "GET", "no") in run.fired


@pytest.mark.parametrize("version", ["5.2.1", "8.1.0"])
@pytest.mark.parametrize(("how", "stored"), [("blind", 9), ("checks", 12)])
def test_lost_at_failover(stage, python, version, how, stored):
    """redis#6062: acknowledged, readable, and gone with the primary; only who reads back afterwards notices."""
    run = stage.play("sentinel-failover", python(f"redis=={version}"), "count_on.py", how)
    assert run.said == {"acknowledged": 12, "stored": stored}
    assert ("sentinel-failover", "(failover)", "undone") in run.fired
