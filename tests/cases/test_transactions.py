"""Transactions and pipelines that a lost connection or a moved slot tears: who carries half of one out, who waits for ever.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

WATCH_LOST = """
faults:
  - {fault: disconnect, match: {commands: [GET], connection: {state: watching}}, when: {nth: 1}, at: after_reply, how: close}
"""


@pytest.mark.parametrize(
    ("package", "script", "ended"),
    [
        ("ioredis@5.3.0", "ioredis_watched.mjs", ([[None, "OK"]], 2)),
        ("ioredis@6.0.0", "ioredis_watched.mjs", ([[None, "OK"]], 2)),
        ("redis@5.9.0", "npm_redis_watched.mjs", ("WatchError", 10)),
        ("redis==5.2.1", "watched.py", ("WatchError", 10)),
        ("redis==8.1.0", "watched.py", ("WatchError", 10)),
    ],
)
def test_lost_watch(stage, python, npm, package, script, ended):
    """ioredis#1686: it connects anew and commits, though what it watched has changed; others know that the watch is gone."""
    client = npm(package) if "@" in package else python(package)
    run = stage.play(WATCH_LOST, client, script)
    assert (run.said["said"], run.said["n"]) == ended
    assert run.fired == [("disconnect", "GET", "yes")]


#: What comes behind the refused DEL meets the end of the connection: EXPIRE and EXEC were never answered.
SEVERED = """
faults:
  - {fault: reply, name: switched, match: {commands: [DEL]}, when: {nth: 1}, at: before_forward, error: READONLY}
  - {fault: disconnect, name: severed, match: {after: {command: DEL, same: connection}}, when: {nth: 1}, at: before_forward, how: close}
"""


ABORTED = {"transaction": "Command aborted due to connection close", "mine": "mine", "later": "later", "last": "last"}  # fmt: skip
NEVER = "not settled"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("4.14.1", {"transaction": NEVER, "mine": "last", "later": NEVER, "last": NEVER}),
        ("4.28.5", ABORTED),
        ("6.0.0", ABORTED),
    ],
)
def test_torn_transaction(stage, npm, version, said):
    """ioredis#965: READONLY and a cut in a transaction; 4.14 sends the rest of it anew, and gives callers others' replies."""
    run = stage.play(SEVERED, npm(f"ioredis@{version}"), "ioredis_torn_transaction.mjs")
    assert run.said == said
    assert run.fired == [("switched", "DEL", "no"), ("severed", "HSET", "no")]


HALF = """
faults:
  - {fault: disconnect, match: {batch: {index: 2}}, when: {nth: 1}, at: before_forward, how: reset}
"""


@pytest.mark.parametrize(
    ("version", "how", "said", "stored"),
    [
        ("8.1.0", "host", [2, True], 2),
        ("8.1.0", "url", "ConnectionError", 1),
        ("5.2.1", "host", "ConnectionError", 1),
    ],
)
def test_half_a_pipeline(stage, python, version, how, said, stored):
    """Cut off after its first command a pipeline is sent again as a whole: 8.1.0 made with Redis(host=) stores it twice."""
    client = python(f"redis=={version}")
    run = stage.play(HALF, client, "pipeline.py", how, look=lambda s: s.ask("LLEN", "l"))
    assert (run.said, run.found) == (said, stored)
    assert run.fired == [("disconnect", "EXPIRE", "no")]


SLOT_MOVED = """
faults:
  - {fault: reply, match: {commands: [INCR], connection: {state: transaction}}, when: {nth: 1}, at: before_forward, error: MOVED}
"""


@pytest.mark.parametrize(
    ("package", "script", "said"),
    [
        ("redis@5.12.1", "npm_redis_cluster.mjs", ["MOVED", "MOVED", "MOVED", [1]]),
        ("redis@6.2.0", "npm_redis_cluster.mjs", ["MOVED", "MOVED", "MOVED", [1]]),
        ("ioredis@6.0.0", "ioredis_cluster.mjs", [[1], [2], [3], [4]]),
    ],
)
def test_slot_moved_in_a_transaction(cluster, npm, package, script, said):
    """node-redis#3394: a transaction goes to the old node again and again, until another command has asked where the slot is."""
    run = cluster.play(SLOT_MOVED, npm(package), script)
    assert run.said == said
    assert run.fired == [("reply", "INCR", "no")]
