"""Commands that begin alike pass together, as far as the rules leave them alone; what is odd is left for others to read."""

from chaosproxy.core import glance, opening
from chaosproxy.core.opening import OFTEN, Opening
from chaosproxy.core.resp import encode_command
from tests.conversation import Talk

RAW = b"*3\r\n$3\r\nSET\r\n"
LATE = "- {fault: latency, at: before_forward, delay: 1s, match: {commands: SET"


def one(faults: str = "") -> tuple[Opening, Talk]:
    """An opening that has come often enough."""
    talk = Talk(faults)
    found = Opening(talk.world.name(b"SET"), RAW, 2)
    for _ in range(OFTEN):
        assert found.alike(sets(1), 0, 0.0) == (0, 0)
    return found, talk


def sets(count: int, value: bytes = b"v") -> bytes:
    return b"".join(encode_command(b"SET", b"k:%d" % number, value) for number in range(count))


def test_it_is_learnt_once_it_has_come_often():
    """Up to then, and when it is over, it knows of nothing."""
    found, _ = one()
    assert found.alike(sets(3), 0, 0.0) == (3, len(sets(3)))
    found.over()
    assert found.alike(sets(3), 0, 0.0) == (0, 0)
    assert not found.is_long(sets(1, b"x" * 500), 0.0)
    assert found.all(b"xyz", 1) == [b"yz"]
    assert found.all(b"xyz") == [b"xyz"]


def test_commands_of_many_arguments_are_not():
    """One with more arguments than are spelled out never gets a pattern."""
    raw = encode_command(*[b"MSET", *[b"k"] * 20])
    found = Opening(Talk("").world.name(b"MSET"), b"*21\r\n$4\r\nMSET\r\n", 20)
    assert [found.alike(raw, 0, 0.0) for _ in range(OFTEN + 2)] == [(0, 0)] * (OFTEN + 2)


def test_as_many_as_stand_together():
    """Those from a place on, up to another command, a long value, or the end."""
    found, _ = one()
    first = sets(2)
    for behind in (b"", encode_command(b"GET", b"k"), sets(1, b"x" * 999)[:-1], sets(1)[:-1], b"x"):
        assert found.alike(b"AB" + first + behind, 2, 0.0) == (2, 2 + len(first))
        assert found.alike(behind, 0, 0.0) == (0, 0)


def test_a_long_last_argument():
    """It ends where it says, be there more behind it or not; a key that is long, or an argument before the last, is not read here."""
    found, _ = one()
    for size in (256, 999, 12_345):
        raw = sets(1, b"\r\n" * (size // 2))
        assert found.alike(raw, 0, 0.0) == found.alike(raw + raw, 0, 0.0) == (1, len(raw))
        assert found.alike(raw[:-1], 0, 0.0) == (0, 0)
        assert found.alike(encode_command(b"SET", b"k" * size, b"v"), 0, 0.0) == (0, 0)
    assert found.alike(raw.replace(b"$12344", b"$012344"), 0, 0.0) == (0, 0)
    keyed, talk = one(LATE + ", keys: 'k:3'}}")
    assert keyed.alike(raw, 0, 0.0) == (1, len(raw))
    assert keyed.alike(encode_command(b"SET", b"k:3", b"x" * 500), 0, 0.0) == (0, 0)
    assert talk.world.engine.rules[0].matched == 0
    get = Opening(talk.world.name(b"GET"), b"*2\r\n$3\r\nGET\r\n", 1)
    for _ in range(OFTEN):
        assert get.ends_long(b"", 0) == (None, 0)
        get.alike(b"", 0, 0.0)
    assert get.alike(encode_command(b"GET", b"k" * 300), 0, 0.0) == (1, 306 + len(get.raw) + 2)


def test_what_a_rule_would_act_on_is_left():
    """Those ahead of it pass and are counted; from it on nothing is."""
    found, talk = one(LATE + "}, when: {nth: 5}}")
    live = talk.world.engine.rules[0]
    assert found.alike(sets(9), 0, 0.0) == (4, len(sets(4)))
    assert (live.matched, live.counter.left_alone()) == (4, {"nth": 4})
    assert found.alike(sets(9), len(sets(4)), 0.0) == (0, len(sets(4)))
    assert live.matched == 4


def test_rules_that_look_at_keys():
    """The first of the keys that a rule is about ends it; whatever stands ahead of it is not counted as its match."""
    found, talk = one(LATE + ", keys: 'k:3'}}")
    live = talk.world.engine.rules[0]
    assert found.alike(sets(9), 0, 0.0) == (3, len(sets(3)))
    assert found.alike(sets(3), 0, 0.0) == (3, len(sets(3)))
    assert not found.unkeyed
    assert found.all(sets(2)) == [b"$3\r\nk:0\r\n", b"$3\r\nk:1\r\n"]
    assert found.all(sets(1) + b"x") == [b"$3\r\nk:0\r\n", b""]
    for key, alone in (b"k:2", True), (b"k:3", False):
        assert found.is_long(encode_command(b"SET", key, b"x" * 500), 0.0) == alone
    assert live.matched == 0


def test_keys_without_end(monkeypatch):
    """What is known of so many keys is forgotten, and found out again."""
    monkeypatch.setattr(glance, "MOST_KEYS", 4)
    found, talk = one(LATE + ", keys: 'k:30'}}")
    assert found.alike(sets(40), 0, 0.0) == (30, len(sets(30)))
    assert found.glance is not None
    assert len(found.glance.held) <= 4
    assert talk.world.engine.rules[0].matched == 0


def test_rules_that_want_more():
    """A rule that looks at arguments is asked about each command by itself."""
    found, _ = one(LATE + ", arguments: {has: EX}}}")
    assert found.alike(sets(2), 0, 0.0) == (0, 0)
    assert not found.is_long(sets(1, b"x" * 500), 0.0)
    assert found.all(sets(1)) == [sets(1)]
    assert opening.OFTEN == OFTEN
