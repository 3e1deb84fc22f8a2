"""`admit`: which new connections, for how long, and what they meet."""

import pytest

from chaosproxy.core.admission import admit
from chaosproxy.core.decision import Admit
from chaosproxy.core.engine import Engine
from chaosproxy.core.fault import FAULTS, ServerInfo
from tests.conversation import TABLE, profile

VALKEY = ServerInfo("Valkey", (9, 1, 2))


class Door:
    """A profile in force since 100, and the connections that come."""

    def __init__(self, settings):
        self.engine = Engine(profile(f"- {{fault: admit, {settings}}}"), TABLE, 7, 1, 100.0)

    def come(self, at=100.0, *, others=0, server=VALKEY):
        met, _ = admit(self.engine, server, 1, "10.0.0.9", at, open_connections=others)
        return [meeting.decision for meeting in met]


@pytest.mark.parametrize("what", ["refuse", "reset", "accept_silent"])
def test_treatments(what):
    """Each word is what the connection meets, at once or after a wait."""
    assert Door(f"new_connections: {what}").come() == [Admit(what)]
    assert Door(f"new_connections: {what}, delay: 2s").come() == [Admit(what, 2.0)]


def test_accept_is_a_wait():
    """Left out, connections are accepted, late."""
    assert Door("delay: 300ms").come() == [Admit("accept", 0.3)]


@pytest.mark.parametrize(
    ("error", "raw"),
    [
        ("MAXCLIENTS", b"-ERR max number of clients reached\r\n"),
        ("ERR max number of clients reached", b"-ERR max number of clients reached\r\n"),
        ("LOADING", b"-LOADING Valkey is loading the dataset in memory\r\n"),
        ("go away", b"-ERR go away\r\n"),
    ],
)
def test_errors(error, raw):
    """A code stands for the server's text, another text for itself."""
    assert Door(f"new_connections: {{error: {error}}}").come() == [Admit("error", raw=raw)]


def test_limit():
    """Only while at least so many others are there."""
    door = Door("new_connections: reset, limit: 2")
    assert [bool(door.come(others=others)) for others in (0, 1, 2, 3, 1)] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_next():
    """Only so many, whoever comes later is let in; what `when` passes over does not count."""
    door = Door("new_connections: reset, next: 2, when: {skip: 1}")
    assert [bool(door.come()) for _ in range(5)] == [False, True, True, False, False]


def test_for():
    """Only so long, from when the rule is in force."""
    door = Door("new_connections: reset, for: 2s")
    assert [bool(door.come(at)) for at in (100, 101.9, 102, 110)] == [True, True, False, False]


def test_for_counts_from_from():
    """A rule that begins later lasts as long as it says all the same."""
    door = Door("new_connections: reset, for: 2s, when: {from: 5s}")
    assert [bool(door.come(at)) for at in (100, 105, 106.9, 107)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("for: 1s", "new_connections: accept goes with delay, else nothing happens"),
        ("new_connections: accept",
         "new_connections: accept goes with delay, else nothing happens"),
        ("new_connections: refuse, for: 0s",
         "for: expected a duration such as 800ms or 1.5s, longer than 0, got '0s'"),
    ],
)  # fmt: skip
def test_settings_that_do_nothing(problems, settings, message):
    """A rule that never does anything is told where it is written."""
    assert problems(f"- {{fault: admit, {settings}}}") == [message]


@pytest.mark.parametrize("what", ["refused", "{error: 5}", "{text: x}", "{}", "[reset]"])
def test_treatments_that_are_none(problems, what):
    """Only its words and {error: text} are treatments."""
    assert len(problems(f"- {{fault: admit, new_connections: {what}}}")) == 1


def test_other_faults_leave_the_door_alone():
    """Nobody but admit says whether anybody listens."""
    rules = profile("- {fault: latency, at: after_apply, delay: 1s}").rules
    assert rules[0].fault.shuts_door() is None
    assert FAULTS["admit"].subject == "connection"
