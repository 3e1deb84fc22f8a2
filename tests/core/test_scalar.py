"""Every scalar kind: what it takes, what it gives, and the exact words in which it refuses."""

import math
import re

import pytest

from chaosproxy.core import scalar
from chaosproxy.core.setting import Invalid


@pytest.mark.parametrize(
    ("kind", "value", "meaning"),
    [
        (scalar.DURATION, "800ms", 0.8),
        (scalar.DURATION, "1.5s", 1.5),
        (scalar.DURATION, "2m", 120.0),
        (scalar.DURATION, "1h", 3600.0),
        (scalar.DURATION, "250us", 0.00025),
        (scalar.DURATION, "0s", 0.0),
        (scalar.DURATION, 3, 3.0),
        (scalar.DURATION, 0.25, 0.25),
        (scalar.POSITIVE_DURATION, "0.001us", 1e-9),
        (scalar.SHARE, "25%", 0.25),
        (scalar.SHARE, "0.5%", 0.005),
        (scalar.SHARE, "100%", 1.0),
        (scalar.SHARE, "100.0%", 1.0),
        (scalar.SHARE, "0%", 0.0),
        (scalar.SHARE, 0.25, 0.25),
        (scalar.SHARE, 1, 1.0),
        (scalar.SIZE, "64KiB", 65536),
        (scalar.SIZE, "10kB", 10_000),
        (scalar.SIZE, "1.5MiB", 1_572_864),
        (scalar.SIZE, "512B", 512),
        (scalar.SIZE, 512, 512),
        (scalar.SIZE, "1GB", 10**9),
        (scalar.RATE, "64KiB/s", 65536),
        (scalar.RATE, "0.0001kB/s", 1),
        (scalar.COUNT, 1, 1),
        (scalar.COUNT, 3.0, 3),
        (scalar.COUNT_OR_ZERO, 0, 0),
        (scalar.SIGNED_INT, -7, -7),
        (scalar.DB, 15, 15),
        (scalar.SEED, 0, 0),
        (scalar.NAME, "lost-ack_2", "lost-ack_2"),
        (scalar.TEXT, "", ""),
        (scalar.TEXT, "ä", "ä"),
        (scalar.WORD, "é", b"\xc3\xa9"),
        (scalar.WORD, -12, b"-12"),
        (scalar.WORD, "\ud800", b"\xed\xa0\x80"),
        (scalar.FLAG, True, True),
        (scalar.choice("how", "reset", "close"), "close", "close"),
    ],
)
def test_meaning(kind, value, meaning):
    """A good value means just this, and is of just this type."""
    parsed = kind.parse(value)
    assert (parsed, type(parsed)) == (meaning, type(meaning))


DURATION = "expected a duration such as 800ms or 1.5s, got "
POSITIVE = "expected a duration such as 800ms or 1.5s, longer than 0, got "
SHARE = "expected a share such as 25% or 0.25, got "
COUNT = "expected a whole number from 1, got "
NAME = "expected a name of letters, digits, - and _ (at most 64), got "
SIZE_TEXT = "expected a size such as 64KiB, 10kB or 512B, got "
SIZE = "expected a size such as 64KiB, 10kB or 512 (bytes), got "


@pytest.mark.parametrize(
    ("kind", "value", "message", "suggestion"),
    [
        (scalar.DURATION, "fast", DURATION + "'fast'", ""),
        (scalar.DURATION, "5 sec", DURATION + "'5 sec'", "5s"),
        (scalar.DURATION, "10 Minutes", DURATION + "'10 Minutes'", "10m"),
        (scalar.DURATION, "5S", DURATION + "'5S'", "5s"),
        (scalar.DURATION, "7µs", DURATION + "'7µs'", "7us"),
        (scalar.DURATION, "3 days", DURATION + "'3 days'", ""),
        (scalar.DURATION, "5", DURATION + "'5'", ""),
        (scalar.DURATION, "5s\n", DURATION + r"'5s\n'", "5s"),
        (scalar.DURATION, "٣s", DURATION + "'٣s'", ""),
        (scalar.DURATION, "-1s", DURATION + "'-1s'", ""),
        (scalar.DURATION, -1, DURATION + "-1", ""),
        (scalar.DURATION, True, DURATION + "true", ""),
        (scalar.DURATION, None, DURATION + "nothing", ""),
        (scalar.DURATION, [], DURATION + "a list", ""),
        (scalar.DURATION, {}, DURATION + "a mapping", ""),
        (scalar.DURATION, math.inf, DURATION + "inf", ""),
        (scalar.DURATION, math.nan, DURATION + "nan", ""),
        (scalar.DURATION, 10**9, DURATION + "1000000000", ""),
        (scalar.DURATION, "x" * 99, DURATION + "'" + "x" * 57 + "...'", ""),
        (scalar.POSITIVE_DURATION, "0ms", POSITIVE + "'0ms'", ""),
        (scalar.POSITIVE_DURATION, 0, POSITIVE + "0", ""),
        (scalar.SHARE, 25, SHARE + "25", "25%"),
        (scalar.SHARE, "101%", SHARE + "'101%'", ""),
        (scalar.SHARE, "25", SHARE + "'25'", ""),
        (scalar.SHARE, 101, SHARE + "101", ""),
        (scalar.SHARE, -0.1, SHARE + "-0.1", ""),
        (scalar.SHARE, False, SHARE + "false", ""),
        (scalar.COUNT, 0, COUNT + "0", ""),
        (scalar.COUNT, 1.5, COUNT + "1.5", ""),
        (scalar.COUNT, "3", COUNT + "'3'", ""),
        (scalar.COUNT, True, COUNT + "true", ""),
        (scalar.COUNT, 10**16, COUNT + "10000000000000000", ""),
        (scalar.NAME, "a.b", NAME + "'a.b'", ""),
        (scalar.NAME, "x" * 65, NAME + "'" + "x" * 57 + "...'", ""),
        (scalar.NAME, 7, NAME + "7", ""),
        (scalar.SIZE, "64kb", SIZE_TEXT + "'64kb'", ""),
        (scalar.SIZE, "1.5B", SIZE_TEXT + "'1.5B'", ""),
        (scalar.SIZE, -1, SIZE + "-1", ""),
        (scalar.RATE, "64KiB", "expected a rate such as 64KiB/s, got '64KiB'", ""),
        (scalar.RATE, "0kB/s", "expected a rate such as 64KiB/s, got '0kB/s'", ""),
        (scalar.TEXT, 7, "expected text, got 7: put it in quotes", ""),
        (scalar.TEXT, None, "expected text, got nothing: put it in quotes", ""),
        (scalar.TEXT, ["a"], "expected text, got a list", ""),
        (scalar.WORD, 1.5, "expected text, got 1.5: put it in quotes", ""),
        (scalar.WORD, True, "expected text, got true: put it in quotes", ""),
        (
            scalar.WORD,
            {"key": None},
            'expected text, got a mapping: put it in quotes, "{key}"',
            "",
        ),
        (scalar.WORD, {"key": 1}, "expected text, got a mapping", ""),
        (scalar.FLAG, "yes", "expected true or false, got 'yes'", "true"),
        (scalar.FLAG, "Off", "expected true or false, got 'Off'", "false"),
        (scalar.FLAG, "flase", "expected true or false, got 'flase'", "false"),
        (scalar.FLAG, 1, "expected true or false, got 1", ""),
        (scalar.choice("x", "a"), "b", "expected a, got 'b'", ""),
        (
            scalar.choice("per", "fault", "key", "connection"),
            "conection",
            "expected fault, key or connection, got 'conection'",
            "connection",
        ),
        (
            scalar.choice("per", "fault", "key"),
            ["key"],
            "expected fault or key, got a list",
            "",
        ),
    ],
)
def test_refusal(kind, value, message, suggestion):
    """A bad value is refused in just these words."""
    with pytest.raises(Invalid) as refused:
        kind.parse(value)
    assert (refused.value.message, refused.value.suggestion) == (message, suggestion)


def test_closest_knows_no_case():
    """A word in the wrong case alone is as near as can be; the suggestion is spelt right."""
    assert scalar.closest("RESET", ["reset", "close"]) == "reset"
    assert scalar.closest("rpuhs", ["RPOP", "RPUSH"]) == "RPUSH"
    assert scalar.closest("gte", ["GETEX", "GET"]) == "GET"
    assert scalar.closest("xyzzy", ["RPOP", "RPUSH"]) == ""
    assert scalar.closest(7, ["7"]) == ""
    # Comparing takes a length times a length, and nobody misspells so much.
    assert scalar.closest("r" * 101, ["R" * 101]) == ""


def test_a_suggestion_is_taken():
    """What is suggested would have been right."""
    for kind, value in ((scalar.DURATION, "5 sec"), (scalar.SHARE, 25), (scalar.SHARE, 2.5)):
        with pytest.raises(Invalid) as refused:
            kind.parse(value)
        kind.parse(refused.value.suggestion)


def test_patterns_allow_no_trailing_newline():
    """`$` in Python holds before a last newline; a schema's pattern must not."""
    assert re.search(scalar.pattern("[0-9]+"), "12")
    assert not re.search(scalar.pattern("[0-9]+"), "12\n")


def test_what_others_call_it():
    """A word of another tool means what it is called here, where that is known; else what comes near."""
    meant = {"delay": "latency", "relly": "latency", "throttle": "bandwidth"}
    assert scalar.closest("Delay", ["latency", "reply"], meant) == "latency"
    assert scalar.closest("relly", ["reply"], meant) == "reply"
    assert scalar.closest("throttle", ["reply"], meant) == ""
