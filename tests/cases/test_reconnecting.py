"""Connections break, fall silent, or meet a server that is not ready: who comes back, who never does.

Takes the named client versions; gives proof that the profile brings the wrong outcome out, and only that.
"""

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]

ALL_GONE = """
faults:
  - {fault: disconnect, name: cut, match: {commands: [BZPOPMIN]}, when: {nth: 2}, at: before_forward, how: reset, who: all}
  - {fault: admit, name: closed, when: {armed_by: cut}, new_connections: refuse, for: 7s}
"""


@pytest.mark.parametrize(
    ("version", "done"),
    [("5.7.8", ["first"]), ("6.0.10", ["first"]), ("6.7.0", ["first", "second"])],
)
def test_worker_that_never_comes_back(stage, npm, version, done):
    """bullmq#4585: after seven seconds without a server the worker says it runs, and does nothing; repaired in 6.7.0."""
    run = stage.play(ALL_GONE, npm(f"bullmq@{version}", "ioredis@5.11.1"), "bullmq_worker.mjs")
    assert run.said == {"running": True, "done": done}


#: As half-open's opening comment says for a subscriber.
SUBSCRIBER = ("half-open.match.commands=SUBSCRIBE", "half-open.when.nth=1")


@pytest.mark.parametrize("how", ["sync", "asyncio"])
@pytest.mark.parametrize("version", ["4.5.5", "5.2.1", "6.4.0", "8.1.0"])
def test_half_open_subscriber(stage, python, version, how):
    """redis-py#2417: on a connection that fell silent it hears nothing for ever, without an exception."""
    run = stage.play("half-open", python(f"redis=={version}"), "subscribe.py", how, sets=SUBSCRIBER)
    assert run.said == {"heard": False, "error": None}
    assert run.fired == [("half-open", "SUBSCRIBE", "yes")]


def test_half_open_subscriber_that_asks(stage, python):
    """Repaired: it sends PING where nothing comes, and connects again where no answer does."""
    run = stage.play(
        "half-open", python("redis==8.1.0"), "subscribe.py", "watched", sets=SUBSCRIBER
    )
    assert run.said == {"heard": True, "error": None}


GAP = """
faults:
  - {fault: disconnect, name: cut, match: {commands: [SUBSCRIBE]}, when: {nth: 1}, at: after_reply, how: reset}
  - {fault: admit, name: slow, when: {armed_by: cut}, delay: 300ms}
"""


@pytest.mark.parametrize(
    ("version", "how", "got", "errors"),
    [
        ("5.2.1", "plain", ["m2"], 1),
        ("8.1.0", "plain", ["m2"], 0),
        ("8.1.0", "catch-up", ["m1", "m2"], 0),
    ],
)
def test_gap_on_reconnect(stage, python, version, how, got, errors):
    """redis-py#1464: what is published while it connects again is lost; 5.2.1 raises once, 8.1.0 says nothing.

    The confirmation of the new subscription is the event to look at: who reads what was stored then has it all.
    """
    run = stage.play(GAP, python(f"redis=={version}"), "catch_up.py", how)
    assert run.said == {"got": got, "errors": errors}


ACK_CUT = """
faults:
  - fault: disconnect
    name: cut
    match: {commands: [EVALSHA], arguments: {has: ack}}
    when: {nth: 1}
    at: before_forward
    who: all
  - {fault: admit, name: closed, when: {armed_by: cut}, new_connections: refuse, for: 2s}
"""


@pytest.mark.parametrize(
    ("version", "done"), [("1.5.0", ["first"]), ("1.6.0", ["first", "second"])]
)
def test_worker_that_dies_of_an_acknowledgement(stage, python, version, done):
    """dramatiq#207: cut off while it acknowledges a task, 1.5.0 takes no other; 1.6.0 goes on when the server is back."""
    # This redis-py wants distutils, which not every Python has any more.
    worker = python(f"dramatiq=={version}", "redis==3.5.3", "setuptools==75.8.0")
    run = stage.play(ACK_CUT, worker, "dramatiq_worker.py")
    assert run.said == done


#: As it asks for tasks the third time none is under way; the other two cuts find it looking for other workers.
THREE_CUTS = """
faults:
  - {fault: disconnect, name: cut-1, match: {commands: [BRPOP], keys: celery}, when: {nth: 3}, at: before_forward, who: all}
  - {fault: admit, name: closed-1, when: {armed_by: cut-1}, new_connections: refuse, for: 300ms}
  - {fault: disconnect, name: cut-2, match: {commands: [BRPOP]}, when: {armed_by: cut-1, nth: 1}, at: before_forward, who: all}
  - {fault: admit, name: closed-2, when: {armed_by: cut-2}, new_connections: refuse, for: 300ms}
  - {fault: disconnect, name: cut-3, match: {commands: [BRPOP]}, when: {armed_by: cut-2, nth: 1}, at: before_forward, who: all}
  - {fault: admit, name: closed-3, when: {armed_by: cut-3}, new_connections: refuse, for: 300ms}
"""


@pytest.mark.parametrize(
    ("what", "done"),
    [
        (("celery==5.2.3", "kombu==5.2.4", "redis==4.3.4"), ["first"]),
        (("celery==5.6.0", "kombu==5.6.2", "redis==6.4.0"), ["first", "second"]),
    ],
    ids=["5.2.3", "5.6.0"],
)
def test_worker_that_connects_and_does_nothing(stage, python, what, done):
    """celery#8030: cut off while it looks for other workers, 5.2.3 connects, finds none, and takes no task any more."""
    run = stage.play(THREE_CUTS, python(*what), "celery_worker.py")
    assert run.said == {"connected": 2, "done": done}
    fired = [fault for fault, *_ in run.fired]
    assert fired == ["cut-1", "closed-1", "cut-2", "closed-2", "cut-3", "closed-3"]
