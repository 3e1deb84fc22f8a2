"""A chunk is read as far as it may pass: up to what a rule acts on, what is not for the lane, or what is not here."""

from collections.abc import Sequence

import pytest

from chaosproxy.core.glance import Glance
from chaosproxy.core.lane import _NOTHING
from chaosproxy.core.reading import Reading, read
from chaosproxy.core.resp import encode_command
from tests.conversation import Talk

SET = encode_command(b"SET", b"k", b"v")
GET = encode_command(b"GET", b"k")
BIG = encode_command(b"SET", b"k", b"x" * 9000)
LATE = "- {fault: latency, at: before_forward, delay: 1s, match: {commands: SET"


def reading(data: bytes, faults: str = "", before: Reading | None = None) -> Reading:
    """Read a chunk, alone or behind another one; whatever a rule looks at it acts on."""
    body, inside = (before.body, before.inside) if before else (None, None)
    return read(Talk(faults).world, data, 5.0, body, inside, _NOTHING, wanted)


def wanted(glance: Glance, args: Sequence[bytes], raw: bytes, now: float) -> bool:
    """A rule acts on it: nothing is left alone."""
    assert (args, raw, now) == ([b"SET", b"k", b"v"], SET, 5.0)
    assert glance.rules
    return False


def names(found: Reading) -> list[tuple[bytes, int]]:
    """Who passed, and how many of each."""
    assert all(since == 5.0 for _, since, _, _ in found.passed)
    return [(name.upper, times) for name, _, times, _ in found.passed]


def test_all_that_is_here():
    """Whole commands, whatever they are, up to the end."""
    found = reading(SET + GET + SET)
    assert names(found) == [(b"SET", 1), (b"GET", 1), (b"SET", 1)]
    assert (found.taken, found.upto, found.body) == (len(SET + GET + SET), 0, None)
    assert found.opening.name.upper == b"SET"


def test_what_may_wait_comes_with_its_arguments():
    """Where it waits may be asked later; of very long ones nothing is kept."""
    one, long = encode_command(b"BLPOP", b"k", b"0"), encode_command(b"BLPOP", b"k" * 1100, b"0")
    found = reading(GET + one * 2 + long)
    assert names(found) == [(b"GET", 1), (b"BLPOP", 1), (b"BLPOP", 1), (b"BLPOP", 1)]
    args = (b"BLPOP", b"k", b"0")
    assert [each[3] for each in found.passed] == [(), args, args, ()]


@pytest.mark.parametrize(
    "rest",
    [
        b"*",
        GET[:-1],
        b"PING\r\n",
        b"*1\r\n$5\r\nMULTI\r\n",
        b"*0\r\n",
        b"*x\r\n",
        GET[:-2] + b"$\r\n",
    ],
)
def test_up_to_what_is_not_for_the_lane(rest: bytes):
    """What is unfinished, or odd, or has consequences, is left; of what came before it nothing is lost."""
    found = reading(SET + rest)
    assert (names(found)[:1], found.body, found.upto) == ([(b"SET", 1)], None, 0)
    assert found.taken == len(SET) + (len(GET) if rest.startswith(GET[:-2] + b"$") else 0)


def test_up_to_what_a_rule_acts_on():
    """It is told how long that command is."""
    found = reading(GET + SET + GET, LATE + ", arguments: {has: v}}}")
    assert (names(found), found.taken, found.upto) == ([(b"GET", 1)], len(GET), len(SET))


@pytest.mark.parametrize("faults", ["", LATE + ", keys: other}}", LATE + "}, when: {nth: 9}}"])
def test_a_large_value(faults: str):
    """Where it breaks off, and whose it is, if no rule acts on it; then what is behind it, once its end is here."""
    first = reading(GET + BIG[:500], faults)
    assert (names(first), first.taken) == ([(b"GET", 1)], len(GET))
    assert first.body is not None
    assert first.inside is not None
    assert (first.inside[0].upper, first.inside[1]) == (b"SET", 0)
    assert first.body.passes(len(BIG[500:600]))
    second = reading(BIG[600:] + GET, faults, first)
    assert names(second) == [(b"SET", 1), (b"GET", 1)]
    assert (second.taken, second.body) == (len(BIG[600:] + GET), None)
    # Its end is here, but not all that belongs to the command.
    more = encode_command(b"SET", b"k", b"x" * 9000, b"EX", b"10")
    first = reading(more[:500])
    assert first.body is not None
    third = reading(more[500:-4], "", first)
    assert (third.passed, third.taken, third.body) == ([], 0, None)


@pytest.mark.parametrize(
    "faults",
    [
        LATE + ", keys: k}}",
        LATE + "}, when: {nth: 1}}",
        LATE + ", arguments: {has: EX}}}",
        LATE + ", reply: {type: error}}}".replace("before_forward", "after_apply"),
    ],
)
def test_a_large_value_that_a_rule_may_act_on(faults: str):
    """It is not begun, and no match is counted."""
    if "reply" in faults:
        faults = faults.replace("before_forward", "after_apply")
    talk = Talk(faults)
    found = read(talk.world, GET + BIG[:500], 5.0, None, None, _NOTHING, wanted)
    assert (names(found), found.taken, found.body) == ([(b"GET", 1)], len(GET), None)
    assert talk.world.engine.rules[0].matched == 0
