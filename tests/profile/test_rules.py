"""Entries of `faults:`: names, types, positions, settings that must agree."""

import pytest

from chaosproxy.core.decision import Position

DROP = "{fault: drop_write, tell: ok}"


def test_a_rule(load):
    """Everything that is written arrives, parsed, and with its line."""
    yaml = """\
faults:
  - fault: disconnect
    name: lost-ack
    match:
      commands: [RPUSH, lpush]
      keys: "chat:*"
    when:
      nth: 1
      from: 2s
    at: after_apply
    how: close
"""
    (rule,) = load(yaml).rules
    assert (rule.name, rule.at, rule.line) == ("lost-ack", Position.AFTER_APPLY, 2)
    assert (rule.fault.type, rule.fault.how, rule.fault.bytes) == ("disconnect", "close", None)
    assert rule.match.commands == ("RPUSH", "LPUSH")
    assert rule.match.keys == (b"chat:*",)
    assert (rule.when.nth, rule.when.from_, rule.when.per) == ((1,), 2.0, "fault")


def test_default_names(load):
    """The type, then type-2, type-3; a name that somebody chose is passed over."""
    chosen = "{fault: drop_write, tell: ok, name: drop_write-2}"
    profile = load(f"faults: [{DROP}, {DROP}, {chosen}, {DROP}]")
    names = [rule.name for rule in profile.rules]
    assert names == ["drop_write", "drop_write-3", "drop_write-2", "drop_write-4"]


def test_names_over_several_files(load, told):
    """Default names go on counting in the next file; a chosen name is unique in all of them."""
    profile = load(f"faults: [{DROP}]", f"faults: [{DROP}]")
    assert [rule.name for rule in profile.rules] == ["drop_write", "drop_write-2"]
    named = "faults:\n  - {name: x, fault: drop_write, tell: ok}"
    assert told(named, named) == [
        "b.yaml:2:12: two faults are called 'x', the first at a.yaml:2:12"
    ]


def test_unknown_type(told):
    """A misspelt type is told with what was meant, one that is nothing like any with all there are."""
    assert told("faults: [{fault: disconect}, {fault: xyzzy}, {fault: }, {fault: [x]}]") == [
        "a.yaml:1:18: unknown fault 'disconect'; did you mean 'disconnect'?",
        "a.yaml:1:38: unknown fault 'xyzzy', expected one of disconnect, drop_write, latency",
        "a.yaml:1:53: unknown fault nothing, expected one of disconnect, drop_write, latency",
        "a.yaml:1:65: unknown fault a list, expected one of disconnect, drop_write, latency",
    ]


def test_what_others_call_it(told):
    """What other tools call a fault is told with what it is called here, where that is nothing like it."""
    assert told("faults: [{fault: Delay}, {fault: reset}, {fault: throttle}]") == [
        "a.yaml:1:18: unknown fault 'Delay'; did you mean 'latency'?",
        "a.yaml:1:34: unknown fault 'reset'; did you mean 'disconnect'?",
        "a.yaml:1:50: unknown fault 'throttle', expected one of disconnect, drop_write, latency",
    ]


def test_no_type(told):
    """An entry without a type, or that is no mapping, says what it should be."""
    assert told("faults: [{type: latency}, latency, 7]") == [
        "a.yaml:1:10: an entry needs 'fault', its type, such as `fault: latency`",
        "a.yaml:1:27: expected a fault, such as `- fault: latency` and its fields, got 'latency'",
        "a.yaml:1:36: expected a fault, such as `- fault: latency` and its fields, got 7",
    ]


def test_the_rest_of_an_unknown_fault_is_read(told):
    """What is wrong in match and when is told even where the type is not known."""
    assert told("faults: [{fault: disconect, match: {db: x}, when: {nth: 0}}]") == [
        "a.yaml:1:18: unknown fault 'disconect'; did you mean 'disconnect'?",
        "a.yaml:1:41: db: expected a database number from 0, got 'x'",
        "a.yaml:1:57: nth: expected a match number (a whole number from 1), got 0",
    ]


@pytest.mark.parametrize("at", list(Position))
def test_position(load, at):
    """Where a fault may stand at several positions the one given is taken."""
    (rule,) = load(f"faults: [{{fault: disconnect, at: {at.value}}}]").rules
    assert rule.at is at


def test_the_only_position(load, told):
    """Where there is one it may be left out, or said; another is no slip of the pen."""
    for entry in (DROP, "{fault: drop_write, tell: ok, at: before_forward}"):
        (rule,) = load(f"faults: [{entry}]").rules
        assert rule.at is Position.BEFORE_FORWARD
    assert told("faults: [{fault: drop_write, tell: ok, at: after_apply}]") == [
        "a.yaml:1:44: at: fault drop_write always acts at before_forward, not at after_apply"
    ]


def test_bad_positions(told):
    """A missing, misspelt or impossible position is told with those that are possible."""
    yaml = """\
faults:
  - {fault: latency, delay: 1s}
  - {fault: latency, delay: 1s, at: mid_reply}
  - {fault: latency, delay: 1s, at: after_aply}
  - {fault: latency, delay: 1s, at: [after_apply]}
"""
    both = "before_forward, after_apply"
    assert told(yaml) == [
        f"a.yaml:2:5: fault latency needs 'at': one of {both}",
        f"a.yaml:3:37: at: fault latency can act at {both}, not at mid_reply",
        f"a.yaml:4:37: at: expected one of {both}, got 'after_aply'; did you mean 'after_apply'?",
        f"a.yaml:5:37: at: expected one of {both}, got a list",
    ]


def test_settings_that_contradict(load, told):
    """What the fault itself says about its settings points at the one it names."""
    (rule,) = load("faults: [{fault: disconnect, at: mid_reply, bytes: -2}]").rules
    assert rule.fault.bytes == -2
    assert told("faults: [{fault: disconnect, at: after_apply, bytes: -2}]") == [
        "a.yaml:1:54: bytes: only at mid_reply is a part delivered"
    ]
