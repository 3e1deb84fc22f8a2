"""What all conversations of one proxy share: names looked up once, tallies, the engine in force."""

import pytest

from chaosproxy.core import world as world_module
from chaosproxy.core.world import OTHER
from tests.conversation import TABLE, Talk

LATE_GETS = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"


@pytest.mark.parametrize(
    ("sent", "plain", "turning", "handshake", "blocking"),
    [
        (b"PING", True, False, False, False),
        (b"ping", True, False, False, False),
        (b"get", False, False, False, False),
        (b"Multi", False, True, False, False),
        (b"SYNC", False, False, False, False),
        (b"HELLO", False, True, True, False),
        (b"INFO", True, False, True, False),
        (b"BLPOP", True, False, False, True),
        (b"NOSUCH", True, False, False, False),
        (b"", True, False, False, False),
        (b"\xff", True, False, False, False),
    ],
)
def test_a_name(sent, plain, turning, handshake, blocking):
    """All there is to know of a first argument, in any case of its letters."""
    name = Talk(LATE_GETS).world.name(sent)
    assert name.upper == sent.upper()
    assert (name.plain, name.turning, name.handshake, name.blocking) == (
        plain, turning, handshake, blocking,
    )  # fmt: skip
    assert name.interest is (sent.upper() == b"GET")


def test_a_rule_that_looks_back_has_to_see_every_command():
    """`match: after` makes every command interesting, so that the one before is known."""
    rule = "- {fault: latency, match: {commands: SET, after: {command: GET}}, at: after_apply, delay: 1s}"
    assert Talk(rule).world.name(b"PING").interest


def test_names_are_kept_up_to_a_limit(monkeypatch):
    """A client that sends ever new names makes nothing grow: neither their number nor their size."""
    monkeypatch.setattr(world_module, "MOST_NAMES", 2)
    world = Talk().world
    for sent in (b"GET", b"x" * 1000, b"SET", b"PING", b"GET"):
        assert world.name(sent).upper == sent.upper()
    assert list(world._names) == [b"GET", b"SET"]


def test_tallies():
    """Commands are counted by the names the table knows, all others together."""
    with Talk() as talk:
        talk.client("GET a", "get b", "NOSUCH", "ALSONOT", "CONFIG GET x")
        talk.heard("upstream")
        counts = {label: tally.count for label, tally in talk.world.tallies.items()}
        assert counts == {"GET": 2, OTHER: 2, "CONFIG": 1}


def test_how_long_the_upstream_took():
    """From forwarding to the whole reply; blocking commands and queued ones do not count."""
    with Talk() as talk:
        talk.client("GET a")
        talk.wait(0.004)
        talk.upstream('"A"')
        talk.client("BLPOP q 0")
        talk.wait(60)
        talk.upstream('*["q" "job"]')
        talk.client("MULTI", "SET a 1")
        talk.wait(0.3)
        talk.upstream("+OK", "+QUEUED")
        tallies = talk.world.tallies
        timed = {name: sum(tally.histogram.buckets) for name, tally in tallies.items()}
        assert (timed["GET"], timed["BLPOP"], timed["SET"], timed["MULTI"]) == (1, 0, 0, 1)
        assert tallies["GET"].histogram.sum == pytest.approx(0.004)
        talk.heard("upstream")
        talk.heard("client")


def test_a_switch_changes_what_names_mean():
    """What interests one profile need not interest the next, and the other way round."""
    with Talk(LATE_GETS) as talk:
        assert not talk.world.name(b"GET").plain
        talk.switch()
        assert talk.world.name(b"GET").plain


def test_a_table_from_the_server_counts_at_once():
    """A command that only the live server knows is known from then on."""
    rule = "- {fault: latency, match: {commands: '@write'}, at: after_apply, delay: 1s}"
    world = Talk(rule).world
    assert world.name(b"NOSUCH").plain
    specs = dict(TABLE.specs)
    specs["NOSUCH"] = specs["SET"]
    world.learn(type(TABLE)(specs))
    assert not world.name(b"NOSUCH").plain


@pytest.mark.parametrize(
    ("rules", "swallows"),
    [
        ("", False),
        (LATE_GETS, False),
        ("- {fault: drop_write, tell: error}", False),
        ("- {fault: drop_write, tell: ok}", True),
    ],
)
def test_swallows(rules, swallows):
    """Whether a MULTI is worth a look at the scratch database."""
    assert Talk(rules).world.swallows is swallows
