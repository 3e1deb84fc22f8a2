"""New connections: what rules decide for them, and when nobody is to listen at all."""

import pytest

from chaosproxy.core.admission import CONNECT, admit, doors, shut_door, stays_shut
from chaosproxy.core.decision import Admit
from chaosproxy.core.effect import Matched, Skipped
from chaosproxy.core.engine import Engine
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.replay import Recording
from tests.conversation import TABLE, profile

ERROR = Admit("error", raw=b"-ERR max number of clients reached\r\n")


class Door:
    """A profile in force since 100, and the connections that come."""

    def __init__(self, faults):
        self.engine = Engine(profile(faults), TABLE, 7, 3, 100.0)
        self.number = 0

    def come(self, at=100.0, *, address="10.0.0.9", others=0):
        """A connection comes; give what it meets."""
        self.number += 1
        self.met, self.effects = admit(
            self.engine, ServerInfo(), self.number, address, at, open_connections=others
        )
        return [meeting.decision for meeting in self.met]

    def come_by(self, listener):
        """A connection comes by that listener; give what it meets."""
        self.number += 1
        met, _ = admit(
            self.engine,
            ServerInfo(),
            self.number,
            "",
            100.0,
            open_connections=0,
            listener=listener,
        )
        return [meeting.decision for meeting in met]

    def skipped(self):
        return [effect.reason for effect in self.effects if isinstance(effect, Skipped)]


def test_no_rules():
    """Where no rule speaks of connections nothing is decided and nothing counted."""
    door = Door("- {fault: latency, at: after_apply, delay: 1s}")
    assert door.come() == []
    assert door.effects == []


def test_what_is_written_down():
    """A connection is told of as a command of its own; nothing was applied."""
    door = Door("- {fault: admit, name: full, new_connections: {error: MAXCLIENTS}, delay: 1s}")
    assert door.come() == [Admit("error", 1.0, ERROR.raw)]
    assert door.effects == [Matched("full")]
    fired = door.met[0].fired
    assert (fired.fault, fired.type, fired.position) == ("full", "admit", "before_forward")
    assert (fired.command, fired.keys, fired.client) == (CONNECT, (), "10.0.0.9")
    assert (fired.connection, fired.match, fired.ordinal, fired.generation) == (1, 1, 1, 3)
    assert (fired.applied, fired.told, fired.outcome) == ("no", "error", "fail")
    assert (fired.delay, fired.detail) == (1.0, "error")


@pytest.mark.parametrize(
    ("settings", "told", "outcome"),
    [
        ("new_connections: accept, delay: 1s", "late", "ok"),
        ("new_connections: refuse", "reset", "fail"),
        ("new_connections: reset", "reset", "fail"),
        ("new_connections: accept_silent", "nothing", "fail"),
        ("new_connections: {error: no}", "error", "fail"),
    ],
)
def test_what_it_was_told(settings, told, outcome):
    """Each treatment has its word and its outcome."""
    door = Door(f"- {{fault: admit, {settings}}}")
    door.come()
    fired = door.met[0].fired
    assert (fired.told, fired.outcome) == (told, outcome)


def test_waits_add_up_and_the_first_end_is_the_last():
    """In profile order: each wait is waited, and after what ends it nothing more is asked."""
    door = Door("""
- {fault: admit, delay: 1s}
- {fault: admit, delay: 2s}
- {fault: admit, name: end, new_connections: reset}
- {fault: admit, name: late, new_connections: accept_silent}
""")
    assert door.come() == [Admit("accept", 1.0), Admit("accept", 2.0), Admit("reset")]
    assert door.skipped() == ["ended"]


def test_what_picks_among_connections():
    """`when` counts new connections, `match` looks at their address and number."""
    door = Door("""
- {fault: admit, new_connections: reset, when: {nth: 2}}
- {fault: admit, new_connections: reset, match: {connection: {nth: 3}}}
- {fault: admit, new_connections: reset, match: {clients: {address: 10.0.1.*}}}
""")
    assert door.come() == []
    assert door.skipped() == ["nth"]
    assert door.come() == [Admit("reset")]
    assert door.come() == [Admit("reset")]
    assert door.come() == []
    assert door.come(address="10.0.1.5") == [Admit("reset")]


def test_armed_by():
    """A rule that waits for another one counts from when that has decided something."""
    door = Door("""
- {fault: admit, name: first, delay: 1s, when: {nth: 2}}
- {fault: admit, name: second, new_connections: reset, when: {armed_by: first}, next: 1}
""")
    assert door.come() == []
    assert door.come() == [Admit("accept", 1.0)]
    assert door.come() == [Admit("reset")]
    assert door.come() == []


def test_another_connection_chance():
    """Chance is rolled for each connection, and is the same for the same seed."""
    rule = "- {fault: admit, new_connections: reset, when: {chance: 50%}}"
    rolls = [[bool(door.come()) for _ in range(64)] for door in (Door(rule), Door(rule))]
    assert rolls[0] == rolls[1]
    assert 16 < sum(rolls[0]) < 48
    door = Door(rule)
    while not door.come():
        pass
    assert door.met[0].fired.draw < 0.5


def test_let_in_or_gone():
    """What did not come to its time is told as what it was."""
    door = Door("- {fault: admit, new_connections: reset, delay: 9s}")
    door.come()
    (meeting,) = door.met
    fired = meeting.let_in(2.0)
    assert (fired.told, fired.outcome, fired.delay) == ("late", "ok", 2.0)
    assert fired.detail == "reset: let in at a switch"
    fired = meeting.gone(3.0)
    assert (fired.told, fired.outcome, fired.delay) == ("nothing", "fail", 3.0)
    assert fired.detail == "reset: the connection ended while it was kept waiting"


# -- nobody listens


def shut(faults, now=100.0):
    """Until when a profile in force since 100 shuts the door; None if it does not."""
    found = shut_door(Engine(profile(faults), TABLE, 7, 3, 100.0), now)
    return None if found is None else found[0]


REFUSE = "- {fault: admit, new_connections: refuse, %s}"


@pytest.mark.parametrize(
    ("settings", "until"),
    [
        ("for: 7s", 107),
        ("when: {}", float("inf")),
        ("when: {until: 3s}", 103),
        ("for: 7s, when: {until: 3s}", 103),
        ("for: 7s, when: {until: 30s}", 107),
        ("for: 7s, when: {per: key}", 107),
    ],
)
def test_nobody_listens(settings, until):
    """Where all are refused nobody listens, as long as the rule says; without an end until the next profile."""
    assert shut(REFUSE % settings) == until


@pytest.mark.parametrize(
    "settings",
    [
        "when: {nth: 1}",
        "when: {first: 1}",
        "when: {skip: 1}",
        "when: {every: 2}",
        "when: {limit: 1}",
        "when: {chance: 50%}",
        "when: {trigger: manual}",
        "match: {connection: {nth: 1}}",
        "match: {clients: {address: 10.*}}",
        "limit: 5",
        "next: 5",
        "delay: 1s",
    ],
)
def test_somebody_has_to_listen(settings):
    """Where something picks among connections they have to come first, to be told apart."""
    assert shut(REFUSE % settings) is None


@pytest.mark.parametrize("what", ["reset", "accept_silent", "{error: no}"])
def test_other_treatments_need_a_listener(what):
    """Only who is refused finds nobody."""
    assert shut(f"- {{fault: admit, new_connections: {what}, for: 7s}}") is None


@pytest.mark.parametrize(("now", "until"), [(104.9, None), (105, 107), (106, 107), (107, None)])
def test_from(now, until):
    """`for` counts from when the rule can act: its `from`."""
    assert shut(REFUSE % "for: 2s, when: {from: 5s}", now) == until


def test_asked_once():
    """The door is shut once; a rule that refuses meanwhile acts on those who got in before."""
    engine = Engine(profile(REFUSE % "for: 7s"), TABLE, 7, 3, 100.0)
    until, effects = shut_door(engine, 101.0)
    assert until == 107
    matched, fired = effects
    assert matched == Matched("admit")
    assert (fired.connection, fired.command, fired.delay) == (0, CONNECT, 6.0)
    assert (fired.told, fired.outcome, fired.detail) == ("reset", "fail", "refuse")
    assert shut_door(engine, 102.0) is None
    met, _ = admit(engine, ServerInfo(), 1, "", 102.0, open_connections=0)
    assert [meeting.decision for meeting in met] == [Admit("refuse")]
    met, _ = admit(engine, ServerInfo(), 1, "", 107.0, open_connections=0)
    assert met == []


def test_for_ever_has_no_length():
    """Nothing that is written down is infinite."""
    engine = Engine(profile("- {fault: admit, new_connections: refuse}"), TABLE, 7, 3, 100.0)
    _, (_, fired) = shut_door(engine, 101.0)
    assert fired.delay is None


def test_armed_and_shut():
    """A rule that waits for another fault shuts the door when that has fired, and as long from then on."""
    rules = (
        "- {fault: disconnect, at: after_apply}\n"
        + REFUSE % "for: 7s, when: {armed_by: disconnect}"
    )
    engine = Engine(profile(rules), TABLE, 7, 3, 100.0)
    assert shut_door(engine, 120.0) is None
    engine.by_name["disconnect"].fire(130.0)
    assert shut_door(engine, 130.0)[0] == 137


def test_two_of_them():
    """The second one has its turn when the first is over, for what is left of its time."""
    rules = REFUSE % "name: a, for: 2s" + "\n" + REFUSE % "name: b, for: 5s"
    engine = Engine(profile(rules), TABLE, 7, 3, 100.0)
    assert shut_door(engine, 100.0)[0] == 102
    assert shut_door(engine, 102.0)[0] == 105


def test_not_recorded():
    """In a replay the door is shut only if it was."""
    engine = Engine(profile(REFUSE % "for: 7s"), TABLE, 7, 3, 100.0, recording=Recording({}))
    assert shut_door(engine, 100.0) is None
    assert engine.rules[0].skipped == {"not_recorded": 1}
    assert shut_door(engine, 101.0) is None
    assert engine.rules[0].skipped == {"not_recorded": 1}


def test_by_listener():
    """A connection meets what was decided for the listener it came by, and that alone is counted."""
    door = Door(
        "- {fault: admit, match: {connection: {listener: node-2}}, new_connections: reset, next: 1}"
    )
    assert door.come_by("node-1") == []
    assert [each.what for each in door.come_by("node-2")] == ["reset"]
    assert door.come_by("node-2") == []


REFUSED_AT = """
- {fault: admit, name: two, match: {connection: {listener: node-2}}, new_connections: refuse, for: 5s}
- {fault: admit, name: all, when: {from: 2s}, new_connections: refuse, for: 1s}
- {fault: admit, name: third, match: {connection: {listener: node-3, nth: 1}}, new_connections: refuse, for: 5s}
"""


def test_a_door_for_each_listener():
    """A rule that names a listener shuts that one's door and no other; one that picks among its connections shuts none."""
    engine = Engine(profile(REFUSED_AT), TABLE, 7, 3, 100.0)
    assert doors(engine) == {"node-2", "node-3"}
    assert shut_door(engine, 100.0) is None
    assert shut_door(engine, 100.0, "node-1") is None
    assert shut_door(engine, 100.0, "node-3") is None
    until, (matched, fired) = shut_door(engine, 100.0, "node-2")
    assert (until, matched, fired.detail) == (105.0, Matched("two"), "refuse")
    assert [stays_shut(engine, 104.9, name) for name in (None, "node-1", "node-2")] == [
        False,
        False,
        True,
    ]
    assert not stays_shut(engine, 105.0, "node-2")
    assert shut_door(engine, 102.0)[0] == 103.0
    assert not stays_shut(engine, 102.0, "node-1")
