"""The write is done, its acknowledgement is lost: who repeats it without a word, who says so.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

#: As the shipped lost-ack, for one command after the other.
LOST_ACK = """
faults:
  - {{fault: disconnect, match: {{commands: [{command}]}}, when: {{nth: 1}}, at: {at}, how: reset}}
"""


def lost(command: str, at: str = "after_apply") -> str:
    return LOST_ACK.format(command=command, at=at)


def messages(server):
    return server.ask("LRANGE", "l", 0, -1)


@pytest.mark.parametrize("version", ["6.4.0", "7.1.0", "8.1.0"])
def test_redis_py_stores_it_twice(stage, python, version):
    """redis-py#3559: made with Redis(host=), it sends the push again and tells nobody."""
    run = stage.play("lost-ack", python(f"redis=={version}"), "push.py", "host", look=messages)
    assert (run.said, run.found) == (2, [b"m1", b"m1"])
    assert run.fired == [("lost-ack", "RPUSH", "yes")]


@pytest.mark.parametrize("version", ["6.4.0", "7.1.0", "8.1.0"])
def test_redis_py_stores_a_transaction_twice(stage, python, version):
    """The same with MULTI RPUSH EXPIRE EXEC whose EXEC is not acknowledged."""
    client = python(f"redis=={version}")
    run = stage.play(lost("EXEC"), client, "push.py", "pipeline", look=messages)
    assert (run.said, run.found) == ([2, True], [b"m1", b"m1"])
    assert run.fired == [("disconnect", "EXEC", "yes")]


@pytest.mark.parametrize("how", ["host", "pipeline"])
@pytest.mark.parametrize("version", ["6.4.0", "8.1.0"])
def test_redis_py_control(stage, python, version, how):
    """Cut before Redis saw it, sending it again is right: it is there once."""
    command = "RPUSH" if how == "host" else "EXEC"
    client = python(f"redis=={version}")
    run = stage.play(lost(command, "before_forward"), client, "push.py", how, look=messages)
    assert (run.said, run.found) == (1 if how == "host" else [1, True], [b"m1"])
    assert run.fired == [("disconnect", command, "no")]


@pytest.mark.parametrize("how", ["url", "pool"])
@pytest.mark.parametrize("version", ["6.4.0", "7.1.0", "8.1.0"])
def test_redis_py_made_otherwise_raises(stage, python, version, how):
    """The same versions, made with from_url() or from a pool, do not try again: once, and an error."""
    run = stage.play("lost-ack", python(f"redis=={version}"), "push.py", how, look=messages)
    assert (run.said, run.found) == ("ConnectionError", [b"m1"])


@pytest.mark.parametrize(("how", "command"), [("host", "RPUSH"), ("pipeline", "EXEC")])
def test_older_redis_py_raises(stage, python, how, command):
    """5.2.1 does not try again, however it is made."""
    run = stage.play(lost(command), python("redis==5.2.1"), "push.py", how, look=messages)
    assert (run.said, run.found) == ("ConnectionError", [b"m1"])


BOTH = """
faults:
  - {fault: disconnect, name: push, match: {commands: [RPUSH]}, when: {nth: 1}, at: after_apply, how: reset}
  - {fault: disconnect, name: count, match: {commands: [INCR]}, when: {nth: 1}, at: after_apply, how: reset}
"""


def messages_and_count(server):
    return messages(server), server.ask("GET", "n")


@pytest.mark.parametrize("version", ["5.3.0", "5.11.1", "6.0.0"])
def test_ioredis_sends_it_again(stage, npm, version):
    """ioredis#933: with its defaults it resends what was not answered; both are done twice."""
    client = npm(f"ioredis@{version}")
    run = stage.play(BOTH, client, "ioredis_push.mjs", look=messages_and_count)
    assert run.said == {"pushed": 2, "counted": 2}
    assert run.found == ([b"m1", b"m1"], b"2")


@pytest.mark.parametrize("version", ["5.9.0"])
def test_npm_redis_rejects(stage, npm, version):
    """Npm's redis rejects; each is done once."""
    client = npm(f"redis@{version}")
    run = stage.play(BOTH, client, "npm_redis_push.mjs", look=messages_and_count)
    assert run.found == ([b"m1"], b"1")
    assert run.said == {"pushed": "rejected", "counted": "rejected"}


@pytest.mark.parametrize("version", ["5.3.0", "5.11.1", "6.0.0"])
def test_ioredis_never_settles(stage, npm, version):
    """ioredis#2193: told not to resend, it forgets the command, and its caller waits for ever."""
    client = npm(f"ioredis@{version}")
    run = stage.play(lost("RPUSH"), client, "ioredis_settles.mjs", 0, look=messages)
    assert run.said == {"outcome": "not settled", "next": "PONG"}
    assert run.found == [b"m1"]


def test_ioredis_with_a_time_limit(stage, npm):
    """The repair that there is: with a limit for each command it rejects."""
    client = npm("ioredis@6.0.0")
    run = stage.play(lost("RPUSH"), client, "ioredis_settles.mjs", 500, look=messages)
    assert run.said == {"outcome": "rejected", "next": "PONG"}


@pytest.mark.parametrize(
    ("version", "how", "told"),
    [
        ("6.4.0", "plain", False),
        ("8.1.0", "plain", False),
        ("5.2.1", "plain", "ConnectionError"),
        ("8.1.0", "checked", True),
    ],
)
def test_own_lock(stage, python, version, how, told):
    """A lock whose owner, asking twice, is told that it is somebody else's; right is an error, or to look."""
    sets = ("lost-ack.match.commands=SET", "lost-ack.match.arguments={has: NX}")
    run = stage.play("lost-ack", python(f"redis=={version}"), "lock.py", how, sets=sets)
    assert run.said == {"told": told, "ours": True}
    assert run.fired == [("lost-ack", "SET", "yes")]


JOBS = [("RPUSH", "q", "job1", "job2")]


def queue(server):
    return server.ask("LRANGE", "q", 0, -1)


@pytest.mark.parametrize("version", ["6.4.0", "8.1.0"])
def test_popped_and_lost(stage, python, version):
    """go-redis#697: job1 was popped for nobody, and the consumer goes on with job2."""
    client = python(f"redis=={version}")
    run = stage.play("lost-ack", client, "pop.py", "BLPOP", before=JOBS, look=queue)
    assert (run.said, run.found) == ("job2", [])


LATE = """
faults:
  - {fault: latency, match: {commands: [BLPOP, BLMOVE]}, when: {nth: 1}, at: after_apply, delay: 3s}
"""


@pytest.mark.parametrize("version", ["6.4.0", "8.1.0"])
def test_popped_too_late(stage, python, version):
    """The same with a reply that comes later than the client waits."""
    client = python(f"redis=={version}")
    run = stage.play(LATE, client, "pop.py", "BLPOP", before=JOBS, look=queue)
    assert (run.said, run.found) == ("job2", [])


@pytest.mark.parametrize(
    ("profile", "error"), [("lost-ack", "ConnectionError"), (LATE, "TimeoutError")]
)
def test_popped_with_an_error(stage, python, profile, error):
    """5.2.1 does not ask again: the consumer knows that something may be missing."""
    client = python("redis==5.2.1")
    run = stage.play(profile, client, "pop.py", "BLPOP", before=JOBS, look=queue)
    assert (run.said, run.found) == (error, [b"job2"])


@pytest.mark.parametrize("profile", ["lost-ack", LATE])
def test_popped_into_a_list_of_work(stage, python, profile):
    """With BLMOVE nothing is lost: job1 stands among what is not finished."""
    client = python("redis==8.1.0")
    run = stage.play(profile, client, "pop.py", "BLMOVE", before=JOBS, look=queue)
    assert run.said == {"job": "job2", "unfinished": ["job1", "job2"]}


@pytest.mark.parametrize("version", ["1.15.1", "3.0.0"])
def test_orphaned_job(stage, python, version):
    """rq#2079: a worker of two queues pops a job that nobody gets; it stays "queued", in no queue."""
    client = python(f"rq=={version}", "redis==6.4.0")
    run = stage.play(lost("BLPOP"), client, "rq_worker.py", "default", "low")
    assert run.said == {"first": ["queued", []], "second": ["finished", []]}
    assert run.fired == [("disconnect", "BLPOP", "yes")]


def test_job_kept_in_an_intermediate_queue(stage, python):
    """A worker of one queue moves it instead: it can be found, and rq's own maintenance does."""
    client = python("rq==3.0.0", "redis==6.4.0")
    run = stage.play(lost("BLMOVE"), client, "rq_worker.py", "default")
    kept = ["rq:queue:default:intermediate"]
    assert run.said == {"first": ["queued", kept], "second": ["finished", []]}
    assert run.fired == [("disconnect", "BLMOVE", "yes")]
