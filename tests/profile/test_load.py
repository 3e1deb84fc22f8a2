"""Profiles as a whole: joined, fingerprinted, and all problems of all files at once."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.profile import ProfileError, Source, load

A = "description: da\nhealthy: ha\nseed: 1\nfaults: [{fault: drop_write, tell: ok, name: a}]\n"
B = "description: db\nseed: 2\nfaults: [{fault: drop_write, tell: error, name: b}]\n"


def test_one(load):
    """A profile knows its name, its text and the digest of that."""
    profile = load(A)
    assert (profile.name, profile.source) == ("a", A)
    assert profile.sha256 == hashlib.sha256(A.encode()).hexdigest()


def test_joined(load):
    """Faults one after the other, names with +, texts line by line; the last seed given counts."""
    profile = load(A, B, "faults: []\n")
    assert profile.name == "a+b+c"
    assert (profile.description, profile.healthy, profile.seed) == ("da\ndb", "ha", 2)
    assert [rule.name for rule in profile.rules] == ["a", "b"]
    assert profile.source == f"{A}\n---\n{B}\n---\nfaults: []\n"
    assert profile.sha256 == hashlib.sha256(profile.source.encode()).hexdigest()


def test_calm(load):
    """No faults is a profile, in either spelling."""
    assert load("faults: []").rules == ()
    assert load("faults:\n").rules == ()


@pytest.mark.parametrize(
    ("yaml", "problem"),
    [
        ("", "1:1: empty: a profile needs 'faults' (`faults: []` for none)"),
        ("# nothing\n", "1:1: empty: a profile needs 'faults' (`faults: []` for none)"),
        ("x", "1:1: expected a mapping, got 'x': a profile needs 'faults' (`faults: []` for none)"),
        (
            "- a",
            "1:1: expected a mapping, got a list: a profile needs 'faults' (`faults: []` for none)",
        ),
        ("seed: 1", "1:1: a profile needs 'faults' (`faults: []` for none)"),
        ("faults: {}", "1:9: faults: expected a list, got a mapping"),
        ("faults: calm", "1:9: faults: expected a list, got 'calm'"),
    ],
)
def test_not_a_profile(told, yaml, problem):
    """What is no profile at all is told what one needs."""
    assert told(yaml) == [f"a.yaml:{problem}"]


def test_all_problems_of_all_files(told):
    """Nothing stops at the first problem, nor at the first file."""
    assert told("seed: x\nfaults: [{fault: nope}]", "a: 'b", "faults: [{fault: drop_write}]") == [
        "a.yaml:1:7: seed: expected a whole number from 0 to 1000000000000000, got 'x'",
        "a.yaml:2:18: unknown fault 'nope', expected one of disconnect, drop_write, latency",
        "b.yaml:1:4: not YAML: this quote is never closed",
        "c.yaml:1:10: fault drop_write needs 'tell' (ok, error)",
    ]


def test_bytes_that_are_no_text():
    """A file that is no text is one problem, told with its place."""
    with pytest.raises(ProfileError) as raised:
        load([Source("x", b"faults: []\n\xff", "x.yaml")])
    assert str(raised.value) == "x.yaml:2:1: not UTF-8: byte 0xff\n    \ufffd\n    ^"


def test_without_a_table():
    """Where there is no command table yet the names of commands are not looked at."""
    yaml = b"faults: [{fault: drop_write, tell: ok, match: {commands: [XYZZY]}}]"
    assert load([Source("x", yaml, "x.yaml")]).rules[0].match.commands == ("XYZZY",)


def test_a_whole_message():
    """What a user sees: place, message, suggestion, line, caret; all of it, and nothing else."""
    yaml = b"""\
faults:
  - fault: disconnect
    match:
      commands: [RPUHS]
    at: after_aply
"""
    with pytest.raises(ProfileError) as raised:
        load([Source("x", yaml, "my/x.yaml")], table=CommandTable.bundled())
    assert str(raised.value) == (
        "my/x.yaml:4:18: commands: unknown command RPUHS; did you mean 'RPUSH'?\n"
        "          commands: [RPUHS]\n"
        "                     ^\n"
        "my/x.yaml:5:9: at: expected one of before_forward, after_apply, mid_reply, after_reply, "
        "got 'after_aply'; did you mean 'after_apply'?\n"
        "        at: after_aply\n"
        "            ^"
    )


fields = st.sampled_from(
    ["fault", "name", "match", "when", "at", "delay", "tell", "how", "commands", "nth", "x", "keys"]
)
scalars = (
    st.sampled_from(["latency", "drop_write", "after_apply", "ok", "GET", "1s", "@read", "a b", ""])
    | st.integers(-2, 9)
    | st.none()
    | st.booleans()
    | st.floats(allow_nan=False)
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5),
    max_leaves=20,
)


@given(entries=st.lists(st.dictionaries(fields, anything, max_size=6), max_size=3), path=fields)
def test_any_document_loads_or_has_problems(entries, path):
    """Whatever is written, however it is overridden: a profile, or problems with places."""
    raw = json.dumps({"faults": entries}).encode()
    try:
        profile = load(
            [Source("x", raw, "x.yaml")],
            table=CommandTable.bundled(),
            overrides=[f"latency.{path}=1", f"fault.match.{path}.0=x"],
        )
    except ProfileError as error:
        problems = error.problems
    else:
        assert isinstance(profile, Profile)
        return
    assert problems
    for problem in problems:
        assert problem.column >= 1
        problem.render().encode()
