"""The kinds of `match` and `when`: meanings, refusals, and schemas that say the same as the code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chaosproxy import faults
from chaosproxy.core import scalar, units
from chaosproxy.core.distribution import DISTRIBUTION
from chaosproxy.core.fault import FAULTS
from chaosproxy.core.rule import Match, When
from chaosproxy.core.setting import Invalid, settings_of
from chaosproxy.core.units import ArgumentTest, ClientTest, ReplyTest

faults.register()


@pytest.mark.parametrize(
    ("kind", "value", "meaning"),
    [
        (units.COMMANDS, "rpush", ("RPUSH",)),
        (units.COMMANDS, ["config|set", "@List", "FT.SEARCH"], ("CONFIG|SET", "@list", "FT.SEARCH")),
        (units.GLOBS, "chat:*", (b"chat:*",)),
        (units.GLOBS, ["a", 7], (b"a", b"7")),
        (units.SLOTS, 7, ((7, 7),)),
        (units.SLOTS, "0-4095", ((0, 4095),)),
        (units.SLOTS, [0, "16383-16383"], ((0, 0), (16383, 16383))),
        (units.ORDINALS, 3, (3,)),
        (units.ORDINALS, [4, 1, 4], (1, 4)),
        (units.ARGUMENTS, {"has": "NX"}, ArgumentTest(has=b"NX")),
        (units.ARGUMENTS, {"has": 1, "contains": "é"}, ArgumentTest(b"1", b"\xc3\xa9")),
        (units.CLIENTS, "worker-*", ClientTest(name=b"worker-*")),
        (units.CLIENTS, "", ClientTest(name=b"")),
        (units.CLIENTS, {"address": "10.0.0.*"}, ClientTest(address=b"10.0.0.*")),
        (units.CLIENTS, {"address": "::1", "name": "w"}, ClientTest(b"w", b"::1")),
        (units.REPLY, {"error": "WRONGTYPE"}, ReplyTest(error=b"WRONGTYPE")),
        (units.REPLY, {"type": "array", "larger_than": "64KiB"}, ReplyTest(None, "array", 65536)),
        (units.COMMAND_LIST, [["SCRIPT", "FLUSH"]], ((b"SCRIPT", b"FLUSH"),)),
        (units.COMMAND_LIST, [["DEL", "{key}"], ["SET", "a", 1]],
         ((b"DEL", b"{key}"), (b"SET", b"a", b"1"))),
    ],
)  # fmt: skip
def test_meaning(kind, value, meaning):
    """A good value means just this."""
    assert kind.parse(value) == meaning


COMMAND = "expected a command, CONFIG|SET or @category, got "
REPLY_TYPE = (
    "expected simple, error, integer, bulk, array, null, boolean, double, big_number, verbatim, "
    "map or set, got "
)
SLOT = "expected a hash slot (0 to 16383) or a range such as 0-4095, got "


@pytest.mark.parametrize(
    ("kind", "value", "message", "path", "suggestion"),
    [
        (units.COMMANDS, "CONFIG SET", COMMAND + "'CONFIG SET'", (), "CONFIG|SET"),
        (units.COMMANDS, "GET SET", COMMAND + "'GET SET'", (), "[GET, SET]"),
        (units.COMMANDS, "A ä", COMMAND + "'A ä'", (), ""),
        (units.COMMANDS, "get, @read xinfo", COMMAND + "'get, @read xinfo'", (), "[get, @read, xinfo]"),
        (units.COMMANDS, "GET *", COMMAND + "'GET *'", (), ""),
        (units.COMMANDS, ["GET", "a b c"], COMMAND + "'a b c'", (1,), "[a, b, c]"),
        (units.COMMANDS, ["GET", None], COMMAND + "nothing", (1,), ""),
        (units.COMMANDS, "@", COMMAND + "'@'", (), ""),
        (units.COMMANDS, "A|B|C", COMMAND + "'A|B|C'", (), ""),
        (units.COMMANDS, [], "expected at least one command, got an empty list", (), ""),
        (units.GLOBS, "", "expected a glob such as chat:*, got ''", (), ""),
        (units.GLOBS, ["a", "é" * 129], "expected a glob of at most 256 bytes, got 258", (1,), ""),
        (units.CLIENTS, "a" * 257, "expected a glob of at most 256 bytes, got 257", (), ""),
        (units.GLOBS, [1.5], "expected text, got 1.5: put it in quotes", (0,), ""),
        (units.ARGUMENTS, {"has": ""}, "expected some text, got ''", ("has",), ""),
        (units.REPLY, {"type": None},
         ("expected simple, error, integer, bulk, array, null, boolean, double, big_number, verbatim, map or set, "
          "got nothing: put null in quotes"), ("type",), ""),
        (units.SLOTS, 16384, SLOT + "16384", (), ""),
        (units.SLOTS, "0-16384", SLOT + "'0-16384'", (), ""),
        (units.SLOTS, ["5-3"], "the range 5-3 is empty", (0,), "3-5"),
        (units.ORDINALS, [1, 0], "expected a match number (a whole number from 1), got 0", (1,), ""),
        (units.ARGUMENTS, {"haz": 1}, "unknown field 'haz', expected {has: NX} or {contains: DONE}",
         ("haz",), "has"),
        (units.ARGUMENTS, "NX", "expected {has: NX} or {contains: DONE}, got 'NX'", (), ""),
        (units.ARGUMENTS, {}, "expected {has: NX} or {contains: DONE}, got nothing", (), ""),
        (units.ARGUMENTS, {"has": None}, "expected text, got nothing: put it in quotes",
         ("has",), ""),
        (units.CLIENTS, ["a"], "expected text, got a list", (), ""),
        (units.REPLY, {"type": "list"}, REPLY_TYPE + "'list'", ("type",), ""),
        (units.COMMAND_LIST, ["SCRIPT", "FLUSH"],
         "expected a command as a list of words such as [SCRIPT, FLUSH], got 'SCRIPT'", (0,), ""),
        (units.COMMAND_LIST, "FLUSHALL",
         "expected a list of commands such as [[SCRIPT, FLUSH]], got 'FLUSHALL'", (), ""),
        (units.COMMAND_LIST, [["SET", "a", {"key": None}]],
         'expected text, got a mapping: put it in quotes, "{key}"', (0, 2), ""),
    ],
)  # fmt: skip
def test_refusal(kind, value, message, path, suggestion):
    """A bad value is refused in just these words, and the path leads to what is wrong."""
    with pytest.raises(Invalid) as refused:
        kind.parse(value)
    wrong = refused.value
    assert (wrong.message, wrong.path, wrong.suggestion) == (message, path, suggestion)


def test_an_unknown_field_is_the_key():
    """The place of an unknown field is its key, at whatever depth it is found."""
    with pytest.raises(Invalid) as refused:
        units.REPLY.parse({"errror": "X"})
    assert refused.value.at_key
    assert refused.value.under("match").at_key
    assert refused.value.under("match").suggestion == "error"


# --- schemas ---------------------------------------------------------------------------------

DECLARED = {
    f"{cls.__name__}.{name}": setting.kind
    for cls in (Match, When, *FAULTS.values())
    for name, (_, setting) in settings_of(cls).items()
}
LOOSE = {
    "DISTRIBUTION": DISTRIBUTION,
    "POSITIVE_DURATION": scalar.POSITIVE_DURATION,
    "RATE": scalar.RATE,
    "SIZE": scalar.SIZE,
    "SEED": scalar.SEED,
    "COMMAND_LIST": units.COMMAND_LIST,
}
KINDS = DECLARED | LOOSE

#: A schema cannot compare two values: what fails for that reason only may pass it.
RELATIONS = ("the range", "p99 is less than p50")

WORDS = [
    "", "a", "0", "7", "07", "-1", "1.5", "800ms", "0ms", "0.0s", "1.5s", "2m", "1h", "5 s", "5s\n",
    "٣s", "1" * 10 + "s", "0.1234567890s", "25%", "100%", "100.0%", "101%", ".5%", "0%", "64KiB",
    "10kB", "512B", "1.5B", "64KiB/s", "0B/s", "0.0kB/s", "0-5", "5-0", "0-16383", "0-16384", "00-05",
    "00000-1", "GET", "config|set", "a|b|c", "@read", "@", "CONFIG SET", "a@b", "x\n", "ä", "chat:*",
    "lost-ack", "-x", "x" * 64, "x" * 65, "y" * 200, "fault", "key", "reset", "this", "ok", "manual",
    "connection", "both", "to_client", "true", "error", "array", "{key}", "OOM", "\ud800",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 0.5, 0.1, 0.05, 1.5, -0.1, 100, 101, 99.5, 16383, 16384, 10**9 - 1, 10**9, 999999999.5,
    10**15, 10**15 + 1, -(10**15), 10**18 - 1, 10**18, 2**31 - 1, 2**31, 1e-300,
]  # fmt: skip
FIELDS = [
    "has", "contains", "name", "address", "error", "type", "larger_than", "uniform", "normal",
    "lognormal", "pareto", "max", "mean", "stddev", "p50", "p99", "min", "alpha", "x", "",
]  # fmt: skip


def not_whole(number: float) -> bool:
    """JSON cannot tell 1.0 from 1, and text kinds take a number as it was written."""
    return not number.is_integer()


scalars = (
    st.sampled_from(WORDS)
    | st.sampled_from(NUMBERS)
    | st.booleans()
    | st.none()
    | st.text(max_size=8)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False).filter(not_whole)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=8,
)
likely = st.one_of(
    values,
    st.dictionaries(st.sampled_from(["has", "contains", "name", "address"]), scalars, max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "error": scalars,
            "type": st.sampled_from([*units.REPLY_TYPES, "list"]),
            "larger_than": scalars,
        },
    ),
    st.fixed_dictionaries({"uniform": st.lists(scalars, max_size=3)}, optional={"max": scalars}),
    *(
        st.fixed_dictionaries(
            {shape: st.fixed_dictionaries({}, optional=dict.fromkeys(fields, scalars))},
            optional={"max": scalars},
        )
        for shape, fields in (
            ("normal", ("mean", "stddev")),
            ("lognormal", ("p50", "p99")),
            ("pareto", ("min", "alpha")),
        )
    ),
)


@pytest.mark.parametrize("name", KINDS)
def test_the_schema_is_a_schema(name):
    """Each is valid JSON Schema by itself."""
    Draft202012Validator.check_schema(KINDS[name].schema)


@pytest.mark.parametrize("name", KINDS)
def test_the_schema_takes_what_parse_takes(name):
    """Code and schema agree on every value that lies near a border, alone and in lists."""
    for value in (*WORDS, *NUMBERS, True, False, None, [], {}):
        for wrapped in (value, [value], [value, value], [[value]]):
            agree(KINDS[name], wrapped)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=100)
@given(value=likely)
def test_the_schema_takes_what_parse_takes_of_anything(name, value):
    """Code and schema agree on whatever else there is."""
    agree(KINDS[name], value)


def agree(kind, value):
    accepted = Draft202012Validator(kind.schema).is_valid(value)
    try:
        kind.parse(value)
        refusal = ""
    except Invalid as wrong:
        refusal = wrong.message
    if not refusal:
        assert accepted, value
    elif not refusal.startswith(RELATIONS):
        assert not accepted, (value, refusal)
