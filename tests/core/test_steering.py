"""What a user asks of a profile in force: which fault is meant, when it acts then, and what cannot be asked."""

import pytest

from chaosproxy.core.admission import admit, shut_door, stays_shut
from chaosproxy.core.decision import Admit
from chaosproxy.core.engine import Engine
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.replay import Recording
from chaosproxy.core.steering import CannotTriggerError, UnknownFaultError, enable, find, trigger
from tests.conversation import TABLE, Talk, profile

RULES = """
- {fault: reply, name: manual, match: {commands: GET}, when: {trigger: manual}, at: before_forward, value: 1}
- {fault: reply, name: other, match: {commands: SET}, at: before_forward, value: 2}
"""
MANUAL = "- {fault: admit, name: door, when: {trigger: manual}, %s}"


def engine(faults: str, recording: Recording | None = None) -> Engine:
    """A profile in force since 100."""
    return Engine(profile(faults), TABLE, 7, 1, 100.0, recording=recording)


def come(engine: Engine, now: float) -> list[Admit]:
    """A connection comes; give what it meets."""
    met, _ = admit(engine, ServerInfo(), 1, "10.0.0.9", now, open_connections=0)
    return [meeting.decision for meeting in met]


def test_a_request_is_for_the_next_match():
    """Triggered, a manual rule acts on its next match, once; until then it passes over all of them."""
    with Talk(RULES) as talk:
        talk.handshake("GET a", ":7")
        trigger(talk.world.engine, "manual", talk.now)
        talk.client("GET a", "GET b")
        talk.expect_client(":1")
        talk.expect_upstream("GET b")
        assert talk.skipped("manual") == ["manual", "manual"]


def test_requests_add_up():
    """Twice triggered is two acts; what is still open can be seen."""
    with Talk(RULES) as talk:
        rules = talk.world.engine
        trigger(rules, "manual", talk.now)
        assert trigger(rules, "manual", talk.now) is find(rules, "manual")
        assert [status["requested"] for status in rules.status()] == [2, 0]
        talk.client("GET a")
        talk.expect_client(":1")
        assert [status["requested"] for status in rules.status()] == [1, 0]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("manuel", "no fault of profile test is called 'manuel'; did you mean 'manual'?"),
        ("x", "no fault of profile test is called 'x'; it has manual, other"),
    ],
)
def test_unknown(name, said):
    """A name that is not there is answered with those that are."""
    for ask in (find, lambda *asked: trigger(*asked, 0.0), lambda *asked: enable(*asked, False)):
        with pytest.raises(UnknownFaultError) as caught:
            ask(engine(RULES), name)
        assert caught.value.args == (said,)


def test_unknown_where_there_is_none():
    """A profile without faults says so."""
    with pytest.raises(UnknownFaultError, match="it has no fault at all"):
        find(engine(""), "x")


def test_what_cannot_be_triggered():
    """What acts by itself, what is switched off, and a replay."""
    rules = engine(RULES)
    with pytest.raises(CannotTriggerError, match="fault other acts by itself"):
        trigger(rules, "other", 100.0)
    enable(rules, "manual", False)
    with pytest.raises(CannotTriggerError, match="fault manual is switched off"):
        trigger(rules, "manual", 100.0)
    with pytest.raises(CannotTriggerError, match="a replay fires what was recorded"):
        trigger(engine(RULES, Recording.of([])), "manual", 100.0)


def test_switched_off_and_on():
    """Switched off it passes over matches without counting them; on again it goes on where it was."""
    with Talk(
        "- {fault: reply, match: {commands: GET}, when: {nth: 2}, at: before_forward, value: 1}"
    ) as talk:
        talk.handshake("GET a", ":7")
        assert not enable(talk.world.engine, "reply", False).counter.enabled
        talk.handshake("GET a", ":7")
        assert enable(talk.world.engine, "reply", True).counter.enabled
        talk.client("GET a")
        talk.expect_client(":1")
        assert talk.skipped("reply") == ["nth", "disabled"]


def test_a_time_begins_at_the_request():
    """`for` counts from the request, and everybody meets it meanwhile; a second request is a second time."""
    rules = engine(MANUAL % "new_connections: reset, for: 2s")
    assert come(rules, 101) == []
    trigger(rules, "door", 110.0)
    assert [come(rules, now) for now in (110, 111.9, 112)] == [[Admit("reset")]] * 2 + [[]]
    trigger(rules, "door", 120.0)
    assert [come(rules, now) for now in (121, 122)] == [[Admit("reset")], []]


def test_the_next_ones_count_from_the_request():
    """`next: 2` is the next two after each request."""
    rules = engine(MANUAL % "new_connections: reset, next: 2")
    for now in (110.0, 120.0):
        trigger(rules, "door", now)
        assert [come(rules, now) for _ in range(3)] == [[Admit("reset")]] * 2 + [[]]


def test_one_connection_otherwise():
    """Without a time of its own a request is for one connection."""
    rules = engine(MANUAL % "new_connections: reset")
    trigger(rules, "door", 110.0)
    assert [come(rules, 110) for _ in range(2)] == [[Admit("reset")], []]


def test_nobody_listens_from_the_request_on():
    """A door that is to be shut for a time is shut when it is triggered, and again the next time."""
    rules = engine(MANUAL % "new_connections: refuse, for: 2s")
    assert shut_door(rules, 101.0) is None
    for now in (110.0, 120.0):
        trigger(rules, "door", now)
        until, effects = shut_door(rules, now)
        assert (until, len(effects)) == (now + 2, 2)
        assert shut_door(rules, now) is None
        assert stays_shut(rules, now + 1.9)
        assert not stays_shut(rules, now + 2)


def test_who_is_switched_off_shuts_nothing():
    """Switching the rule off opens the door; switched on again it is shut for the rest of its time."""
    rules = engine("- {fault: admit, name: door, new_connections: refuse, for: 9s}")
    assert shut_door(rules, 101.0)[0] == 109
    enable(rules, "door", False)
    assert not stays_shut(rules, 102.0)
    assert shut_door(rules, 102.0) is None
    enable(rules, "door", True)
    assert shut_door(rules, 103.0)[0] == 109


def test_a_replay_knows_no_request():
    """What was triggered when it was recorded comes again by its place, without a request."""
    rules = engine(MANUAL % "new_connections: reset, for: 2s")
    trigger(rules, "door", 110.0)
    met, _ = admit(rules, ServerInfo(), 1, "10.0.0.9", 111.0, open_connections=0)
    (fired,) = [meeting.fired for meeting in met]
    event = {"n": 1, "fault": "door", "ordinal": fired.ordinal, "match": fired.match}
    event |= {"digest": fired.digest, "command": fired.command}
    assert come(
        engine(MANUAL % "new_connections: reset, for: 2s", Recording.of([event])), 999.0
    ) == [Admit("reset")]
