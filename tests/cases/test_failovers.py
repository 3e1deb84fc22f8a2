"""The primary fails over: who comes back and who stays with the old one, who waits while it loads, what is missing afterwards.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

MOVED_ON = ("managed-failover.match.commands=SET", "managed-failover.when.nth=3")
#: From the third SET on, who is connected already has a replica before it; who connects anew has the primary.
OLD_PRIMARY = """
faults:
  - {fault: latency, name: switch, match: {commands: [SET]}, when: {nth: 3}, at: before_forward, delay: 1ms}
  - fault: reply
    name: old
    match: {commands: "@write", connection: {opened_before: switch}}
    at: before_forward
    error: READONLY
"""


@pytest.mark.parametrize(
    ("profile", "sets"),
    [
        pytest.param("managed-failover", MOVED_ON, id="as it happens"),
        pytest.param(OLD_PRIMARY, (), id="only the old primary"),
    ],
)
@pytest.mark.parametrize(
    ("package", "script", "how", "last"),
    [
        ("redis@5.9.0", "npm_redis_set.mjs", "default", "READONLY"),
        ("ioredis@5.11.1", "ioredis_set.mjs", "default", "READONLY"),
        ("ioredis@5.11.1", "ioredis_set.mjs", "reconnect", "OK"),
    ],
)
def test_stuck_on_the_old_primary(stage, npm, package, script, how, last, profile, sets):
    """LibreChat#15500: the connection stays, and stays with the old primary; who connects anew gets on."""
    run = stage.play(profile, npm(package), script, how, sets=sets)
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
LOADING_ALONE = """
faults:
  - {fault: reply, name: loads, when: {until: 1s}, at: before_forward, error: LOADING}
"""


@pytest.mark.parametrize("profile", [LOADING, LOADING_ALONE], ids=["failover", "reply"])
@pytest.mark.parametrize(("version", "said"), [("5.2.1", "BusyLoadingError"), ("8.1.0", "v")])
def test_loading(stage, python, version, said, profile):
    """redis-py 5.2.1 raises while the server loads; 8.1.0 tries again, on a new connection each time.

    A second of loading, not three: its ten random waits are more than one second together, and not always more than three.
    """
    client = python(f"redis=={version}")
    run = stage.play(profile, client, "get.py", before=[("SET", "k", "v")], when_ready=True)
    assert run.said == said
    by_the_way = ("(failover)", "CLIENT")
    assert [what for what in run.fired if what[1] not in by_the_way] == [("loads", "GET", "no")]


@pytest.mark.parametrize("version", ["5.2.1", "8.1.0"])
@pytest.mark.parametrize(("how", "stored"), [("blind", 9), ("checks", 12)])
def test_lost_at_failover(stage, python, version, how, stored):
    """redis#6062: acknowledged, readable, and gone with the primary; only who reads back afterwards notices."""
    run = stage.play("sentinel-failover", python(f"redis=={version}"), "count_on.py", how)
    assert run.said == {"acknowledged": 12, "stored": stored}
    assert ("sentinel-failover", "(failover)", "undone") in run.fired
