"""At a glance: the same rules chosen, with the same draws and counts, as by looking at everything; and told less of.

Takes rules and commands; gives proof against `Engine.select`. That a whole conversation goes the same way is `test_lane`'s.
"""

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.conversation import NO_COMMAND
from chaosproxy.core.engine import Engine
from chaosproxy.core.glance import glance
from chaosproxy.core.resp import encode_command
from tests.conversation import TABLE, Talk, profile

LATE = "- {fault: latency, at: before_forward, delay: 1s, "
COMMANDS = [
    "SET a 1", "SET b 2 EX 9", "GET a", "GET", "GET b", "MSET a 1 b 2", "MSET", "PING", "NO.SUCH a", "LPUSH c v", "OBJECT HELP",
]  # fmt: skip
RULES = [
    "match: {commands: [SET, GET]}}",
    "match: {commands: '@write'}}",
    "match: {keys: a}}",
    "match: {keys: [a, 'b*'], slots: 0-16383}}",
    "match: {key_share: 50%}, when: {chance: 40%}}",
    "when: {chance: 40%, per: key}}",
    "when: {nth: [2, 3], per: connection}}",
    "match: {db: 0}}",
    "match: {db: 1}}",
    "match: {clients: {address: '10.*'}, keys: b}}",
    "match: {arguments: {has: EX}}}",
    "match: {connection: {nth: 1}}, when: {limit: 3}}",
    "match: {commands: [MSET], keys: b}}",
    "when: {skip: 2, first: 4, every: 2}}",
]


@pytest.mark.parametrize("rule", RULES)
def test_as_the_engine_chooses(rule: str):
    """Whatever a rule looks at: the same choice each time, and the same numbers at the end."""
    talk = Talk(LATE + rule)
    slow = Engine(profile(LATE + rule), TABLE, 7, 1, 100.0)
    quick = talk.world.engine
    line = talk.conversation._line
    for text in COMMANDS * 20:
        args = text.encode().split()
        raw = encode_command(*args)
        found = glance(quick, TABLE, text.split()[0])
        command = Command.parse(TABLE, args, raw)
        wanted = slow.select(line.where(command), talk.now, [])
        if text == "OBJECT HELP":
            # What it is depends on its second word.
            assert found is None
            quick.select(line.where(command), talk.now, [])
            continue
        assert found is not None
        chosen = found.choose(args, raw, line.where(NO_COMMAND), line.where, talk.now)
        assert [(each.turn, each.key) for each in chosen] == [(e.turn, e.key) for e in wanted]
    (one,), (other,) = quick.rules, slow.rules
    assert (one.matched, one.skipped) == (other.matched, other.skipped)
    assert (one.matched > 0) != ("db: 1" in rule)
    looked = [args for args in COMMANDS if args == "OBJECT HELP"]
    assert 0 <= one.matched - one.unsaid()[0] <= 20 * len(looked)


@pytest.mark.parametrize(
    "rule",
    [
        LATE + "match: {batch: {index: 2}}}",
        LATE + "match: {after: {command: SET}}}",
        LATE + "match: {connection: {state: blocked}}}",
        "- {fault: reorder, until: {command: SET}, max: 1s}",
        "- {fault: stale_read, behind: 1}",
    ],
)
def test_what_is_not_seen_at_a_glance(rule: str):
    """What came before, what comes behind and what others did is not in the command itself."""
    assert glance(Talk(rule).world.engine, TABLE, "SET") is None


def test_a_rule_that_looks_at_the_reply():
    """It may hold once the reply is here: then nothing is counted; where it cannot hold the other rules choose."""
    after = LATE.replace("before_forward", "after_apply")
    rules = after + "match: {keys: a, reply: {type: error}}}\n" + LATE + "when: {nth: 1}}"
    talk = Talk(rules)
    line = talk.conversation._line
    found = glance(talk.world.engine, TABLE, "GET")
    assert found is not None
    here = line.where(NO_COMMAND)
    assert found.choose([b"GET", b"a"], b"", here, line.where, talk.now) is None
    assert [live.matched for live in talk.world.engine.rules] == [0, 0]
    chosen = found.choose([b"GET", b"b"], b"", here, line.where, talk.now)
    assert [each.live.name for each in chosen or ()] == ["latency-2"]
    assert found.choose([b"GET", b"b"], b"", here, line.where, talk.now) == []
    assert talk.world.engine.rules[1].counter.left_alone() == {"nth": 1}
