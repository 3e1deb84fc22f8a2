"""What was reported of other clients, or of no version in particular, played with the clients of today and with own code.

Takes the named client versions; gives proof that the profile makes what was reported, and who withstands it.
"""

import re

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

SLOW_SHARD = """
faults:
  - {fault: latency, match: {commands: "@read", key_share: 25%}, at: after_apply, delay: 5s}
"""


@pytest.mark.parametrize(("how", "tries"), [("host", 11), ("url", 1)])
def test_slow_shard(stage, python, how, tries):
    """The same keys are slow at every run; a client that tries again makes eleven reads of each."""

    def reads(server):
        calls = re.search(rb"cmdstat_get:calls=(\d+)", server.ask("INFO", "commandstats"))
        return int(calls[1])

    before = [("CONFIG", "RESETSTAT")]
    client = python("redis==8.1.0")
    run = stage.play(SLOW_SHARD, client, "slow_shard.py", how, before=before, look=reads)
    assert run.said == ["c"]
    assert run.found == 2 + tries


REFUSED_IN_BETWEEN = """
faults:
  - {fault: reply, match: {commands: "@denyoom", batch: {index: 2}}, at: before_forward, error: OOM}
"""


@pytest.mark.parametrize(
    ("package", "script", "ended"),
    [
        ("redis==5.2.1", "transaction.py", ["OutOfMemoryError", True]),
        ("redis==8.1.0", "transaction.py", ["OutOfMemoryError", True]),
        ("ioredis@6.0.0", "ioredis_transaction.mjs", ["EXECABORT", "PONG"]),
        ("redis@5.9.0", "npm_redis_transaction.mjs", ["OOM", "PONG"]),
    ],
)
def test_out_of_memory_in_a_transaction(stage, python, npm, package, script, ended):
    """go-redis#3800: its second command is refused; EXEC answers EXECABORT, nothing is stored, and nobody waits for ever."""
    client = npm(package) if "@" in package else python(package)
    run = stage.play(REFUSED_IN_BETWEEN, client, script, look=lambda s: s.ask("EXISTS", "l"))
    assert (run.said, run.found) == (ended, 0)


OLD_SERVER = """
faults:
  - {{fault: {fault}, name: hello, match: {{commands: [HELLO]}}, at: before_forward, {setting}}}
  - fault: reply
    name: setinfo
    match: {{commands: ["CLIENT|SETINFO"]}}
    at: before_forward
    error: "ERR unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP."
"""
UNKNOWN = OLD_SERVER.format(
    fault="reply",
    setting='error: "ERR unknown command `HELLO`, with args beginning with: `3`, "',
)
NOPROTO = OLD_SERVER.format(fault="reply", setting="error: NOPROTO")
END = OLD_SERVER.format(fault="disconnect", setting="how: close")
IOREDIS, NPM_REDIS = "ioredis_connect.mjs", "npm_redis_connect.mjs"


@pytest.mark.parametrize(
    ("package", "script", "profile", "said", "met"),
    [
        # Speak RESP2 unless told otherwise, and do without SETINFO.
        ("redis==5.2.1", "connect.py", UNKNOWN, True, ["setinfo"]),
        ("redis@5.9.0", NPM_REDIS, UNKNOWN, "PONG", ["setinfo"]),
        # Speaks RESP3 first, and RESP2 where that is refused.
        ("ioredis@6.0.0", IOREDIS, UNKNOWN, "PONG", ["hello", "setinfo"]),
        ("ioredis@6.0.0", IOREDIS, NOPROTO, "PONG", ["hello", "setinfo"]),
        # Speaks RESP3 or not at all.
        ("redis==8.1.0", "connect.py", UNKNOWN, "ResponseError", ["hello"]),
        ("redis==8.1.0", "connect.py", NOPROTO, "ResponseError", ["hello"]),
        # Nobody takes the end of the connection for a refusal of RESP3.
        ("redis==8.1.0", "connect.py", END, "ConnectionError", ["hello"]),
        ("ioredis@6.0.0", IOREDIS, END, "no answer", ["hello"]),
    ],
)
def test_refused_handshake(stage, python, npm, package, script, profile, said, met):
    """go-redis#2616: a server that knows no HELLO, no RESP3, no SETINFO, or hangs up: who connects all the same."""
    client = npm(package) if "@" in package else python(package)
    run = stage.play(profile, client, script)
    assert run.said == said
    assert [fault for fault, *_ in run.fired] == met


EVICTED = """
faults:
  - {fault: expire_key, match: {commands: [EVALSHA], keys: job}, when: {nth: 1}, mode: evict}
"""


@pytest.mark.parametrize(("how", "twice"), [("carefree", True), ("careful", False)])
def test_evicted_lock(stage, python, how, twice):
    """bullmq#1046: the lock was evicted; the renewal says so, and who does not listen works beside another."""
    run = stage.play(EVICTED, python("redis==8.1.0"), "held_lock.py", how)
    assert run.said == {"renewed": "LockNotOwnedError", "twice": twice}


SILENT_LEADER = """
faults:
  - fault: blackhole
    match: {commands: [PEXPIRE], clients: first}
    when: {nth: 1}
    at: before_forward
    what: connection
    for: 1s
"""


@pytest.mark.parametrize(("how", "beats"), [("plain", ["second", "first"]), ("fenced", ["second"])])
def test_double_beat(stage, python, how, beats):
    """redbeat#127: a leader that was silent for longer than its lease goes on, beside the next; a fence keeps it out."""
    run = stage.play(SILENT_LEADER, python("redis==6.4.0"), "two_leaders.py", how)
    assert run.said == beats
    assert run.fired == [("blackhole", "PEXPIRE", "unknown")]


DEAD = """
faults:
  - {fault: blackhole, match: {commands: [BRPOPLPUSH]}, when: {nth: 1}, at: after_apply, what: connection}
"""


def lists(server):
    return [server.ask("LRANGE", key, 0, -1) for key in ("q", "work")]


def test_popped_for_a_dead_connection(stage, python):
    """redis#949: nobody gets the job, but it stands in the list it was moved to."""
    run = stage.play(DEAD, python("redis==8.1.0"), "pop_for_nobody.py", "soon", look=lists)
    assert (run.said, run.found) == ("TimeoutError", [[], [b"job"]])


def test_a_client_that_went_pops_nothing(stage, python):
    """The proxy's own part: a client that gives up is gone for the server at once, so that what comes later stays."""
    run = stage.play("calm", python("redis==8.1.0"), "pop_for_nobody.py", "later", look=lists)
    assert (run.said, run.found) == ("TimeoutError", [[b"job"], []])
