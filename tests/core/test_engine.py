"""Who acts on an exchange: rules in profile order, each with counts of its own that nothing else shifts."""

import pytest

from chaosproxy.core import engine as engine_module
from chaosproxy.core.engine import Engine
from tests.conversation import TABLE, Talk, profile

TWO = """
- {fault: reply, name: first, match: {commands: GET}, at: before_forward, value: 1}
- {fault: reply, name: second, match: {commands: GET}, at: before_forward, value: 2}
"""


def test_profile_order():
    """The first rule in the profile acts first; the other counts its match and is told that it was ended."""
    with Talk(TWO) as talk:
        talk.client("GET a")
        talk.expect_client(":1")
        assert talk.matched("second") == 1
        assert talk.skipped("second") == ["ended"]
    other_way = "\n".join(reversed(TWO.strip().splitlines()))
    with Talk(other_way) as talk:
        talk.client("GET a")
        talk.expect_client(":2")


def test_no_rule_shifts_another():
    """Every rule counts every match of its own, whatever an earlier rule did to the exchange."""
    nth = TWO.replace("name: first,", "name: first, when: {chance: 50%},").replace(
        "name: second,", "name: second, when: {chance: 50%},"
    )

    def drawn(rules: str) -> list[float]:
        with Talk(rules) as talk:
            for _ in range(30):
                talk.client("GET a")
                if talk.heard("upstream"):
                    talk.upstream("$-1")
                talk.heard("client")
            return [event.match for event in talk.events() if event.fault == "second"]

    both, alone = drawn(nth), drawn(nth.strip().splitlines()[1])
    assert both
    assert set(both) < set(alone)  # those that the first rule did not end


def test_every_connection_counts():
    """Counts are the proxy's, not a connection's, unless `per` says so."""
    rule = "- {fault: reply, match: {commands: GET}, when: {nth: 2}, at: before_forward, value: 1}"
    with Talk(rule) as one, one.another() as two:
        one.handshake("GET a", "$-1")
        two.client("GET a")
        two.expect_client(":1")
        one.handshake("GET a", "$-1")
        two.handshake("GET a", "$-1")


def test_status():
    """What came of each rule's matches, in profile order."""
    with Talk(TWO) as talk:
        talk.client("GET a", "GET b")
        talk.expect_client(":1", ":1")
        assert talk.world.engine.status() == [
            {
                "name": "first",
                "type": "reply",
                "position": "before_forward",
                "matched": 2,
                "fired": 2,
                "skipped": {},
                "enabled": True,
                "armed": True,
                "trigger": None,
                "requested": 0,
            },
            {
                "name": "second",
                "type": "reply",
                "position": "before_forward",
                "matched": 2,
                "fired": 0,
                "skipped": {"ended": 2},
                "enabled": True,
                "armed": True,
                "trigger": None,
                "requested": 0,
            },
        ]


def test_armed_by():
    """A rule that waits for another counts from that one's first firing."""
    rules = """
- {fault: reply, name: now, match: {commands: GET}, when: {armed_by: switch-on, nth: 1}, at: before_forward, value: 1}
- {fault: reply, name: switch-on, match: {commands: SET}, at: before_forward, value: 2}
"""
    with Talk(rules) as talk:
        talk.handshake("GET a", "$-1")
        talk.wait(5)
        talk.client("SET a 1", "SET a 2")
        talk.expect_client(":2", ":2")
        assert talk.world.engine.by_name["now"].armed_at == talk.now
        talk.wait(5)
        talk.client("SET a 1")
        talk.expect_client(":2")
        assert talk.world.engine.by_name["now"].armed_at == talk.now - 5
        talk.client("GET a", "GET b")
        talk.expect_client(":1")
        talk.expect_upstream("GET b")
        assert talk.skipped("now") == ["not_armed", "nth"]


def test_disabled():
    """A rule that is switched off counts nothing, and says so."""
    with Talk(TWO) as talk:
        talk.world.engine.by_name["first"].counter.enabled = False
        talk.client("GET a")
        talk.expect_client(":2")
        assert talk.skipped("first") == ["disabled"]
        assert talk.world.engine.status()[0]["enabled"] is False


def test_a_switch_begins_anew():
    """Another generation counts from nothing, and its events carry its number."""
    rule = "- {fault: reply, match: {commands: GET}, when: {nth: 1}, at: before_forward, value: 1}"
    with Talk(rule) as talk:
        talk.client("GET a", "GET b")
        talk.expect_client(":1")
        talk.expect_upstream("GET b")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.switch(rule)
        talk.client("GET a")
        talk.expect_client(":1")
        assert [event.generation for event in talk.events()] == [1, 2]


def test_names_are_kept_up_to_a_limit(monkeypatch):
    """A client that sends ever new names makes nothing grow: neither their number nor their size."""
    monkeypatch.setattr(engine_module, "MOST_NAMES", 3)
    engine = Engine(profile("- {fault: reorder, until: {command: SET}}"), TABLE, 7, 1, 0.0)
    for name in ("GET", "X" * 1000, "SET", "A", "B", "GET"):
        assert len(engine.interest(name)) == 1
        assert engine.watches(name) is (name == "SET")
    assert list(engine._interest) == ["GET", "SET", "A"]
    assert list(engine._watched) == ["GET", "SET", "A"]


def test_a_table_from_the_server_counts_at_once():
    """What was looked up in another table is looked up again."""
    engine = Engine(
        profile("- {fault: latency, match: {commands: '@write'}, at: after_apply, delay: 1s}"),
        TABLE,
        7,
        1,
        0.0,
    )
    assert engine.interest("SET")
    specs = {name: spec for name, spec in TABLE.specs.items() if name != "SET"}
    engine.learn(type(TABLE)(specs))
    assert not engine.interest("SET")


def test_the_last_command_on_a_key_is_remembered_up_to_a_limit(monkeypatch):
    """The keys untouched for longest are forgotten first."""
    monkeypatch.setattr(engine_module, "MOST_KEYS", 2)
    rule = "- {fault: reply, match: {commands: GET, after: {command: SET}}, at: before_forward, value: 1}"
    with Talk(rule) as talk:
        for key in ("a", "b", "a", "c"):
            talk.handshake(f"SET {key} 1", "+OK")
        talk.handshake("GET b", "$-1")  # forgotten
        talk.client("GET c")
        talk.expect_client(":1")
        talk.handshake("NOSUCH a", "-ERR unknown command")


@pytest.mark.parametrize("db", [0, 1])
def test_a_key_is_one_of_its_database(db):
    """The command before is looked for on the same key of the same database."""
    rule = "- {fault: reply, match: {commands: GET, after: {command: SET}}, at: before_forward, value: 1}"
    with Talk(rule) as talk:
        talk.handshake("SET k 1", "+OK")
        talk.handshake(f"SELECT {db}", "+OK")
        if db:
            talk.handshake("GET k", "$-1")
        else:
            talk.client("GET k")
            talk.expect_client(":1")


def test_a_key_named_twice():
    """What came before it on a key is never the command itself, though that names the key twice: a list that is rotated."""
    rules = """
- {fault: reply, name: itself, match: {after: {command: LMOVE}}, when: {first: 1}, at: before_forward, value: 1}
- {fault: reply, name: other, match: {commands: LMOVE, after: {command: RPUSH}}, at: before_forward, value: 2}
"""
    with Talk(rules) as talk:
        talk.handshake("LMOVE k k LEFT RIGHT", "$-1")
        talk.client("LMOVE k k LEFT RIGHT")
        talk.expect_client(":1")
        talk.handshake("RPUSH k a", ":1")
        talk.client("LMOVE k k LEFT RIGHT")
        talk.expect_client(":2")


def test_opened_before_and_after_a_firing():
    """Old connections are stale from a fault's first firing on; new ones are not."""
    rules = """
- {fault: reply, name: switch-over, match: {commands: SET}, at: before_forward, value: 1}
- fault: reply
  name: stale
  match: {commands: GET, connection: {opened_before: switch-over}}
  at: before_forward
  error: READONLY
"""
    with Talk(rules) as old:
        old.handshake("GET a", '"A"')
        old.wait(1)
        old.client("SET a 1")
        old.expect_client(":1")
        old.wait(1)
        with old.another() as new:
            new.handshake("GET a", '"A"')
        old.client("GET a")
        old.expect_client("-READONLY You can't write against a read only replica.")


def test_a_rule_by_reply_looks_at_the_rest_first():
    """A rule that looks at the reply is no candidate where the rest of its match does not hold."""
    rule = "- {fault: reply, match: {commands: GET, keys: a, reply: {type: bulk}}, at: after_apply, value: 1}"
    with Talk(rule) as talk:
        talk.handshake("GET b", '"B"')
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client(":1")
        assert talk.matched("reply") == 1
