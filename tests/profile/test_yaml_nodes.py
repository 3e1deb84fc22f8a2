"""YAML: every value in its place, no surprises in what scalars mean, nothing hostile gets through."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.profile.problems import Problems, Text
from chaosproxy.profile.yaml_nodes import MAX_BYTES, MAX_NODES, compose, decode


def read(yaml):
    """The plain value of a good document."""
    problems = Problems()
    node = compose(Text("a", yaml), problems)
    problems.raise_if_any()
    return node.plain()


def wrong(yaml):
    """Every problem of a bad one: line, column, message."""
    problems = Problems()
    compose(Text("a", yaml), problems)
    return [(*place, problem.message) for _, place, problem in problems.found]


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("true", True),
        ("True", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("+7", "+7"),
        ("007", "007"),
        ("0o17", "0o17"),
        ("0x1f", "0x1f"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-01", "2024-01-01"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("999999999999999999", 999999999999999999),
        ("-9223372036854775808", -(1 << 63)),
        ("1" + "0" * 39, 10**39),
        ("1" + "0" * 40, "1" + "0" * 40),
        ("9" * 5000, "9" * 5000),
        ("1.5", 1.5),
        ("-0.5", -0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        (".inf", ".inf"),
        (".nan", ".nan"),
        (".", "."),
        ("1.2.3.4", "1.2.3.4"),
        ("01.5", "01.5"),
        ("12e03", 12000.0),
        ("=", "="),
        ("<<", "<<"),
        ("30%", "30%"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("'~'", "~"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("a|b", "a|b"),
        ("chat:*", "chat:*"),
        ("[a, [b], {c: d}]", ["a", ["b"], {"c": "d"}]),
        ("{true: 1, 7: 2, ~: 3, on: 4}", {"true": 1, "7": 2, "~": 3, "on": 4}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x k\n*x : 1", {"a": "k", "k": 1}),
        ("a:", {"a": None}),
        ("--- a\n...\n", "a"),
        ("%YAML 1.2\n---\na", "a"),
        ("# only a comment\na: 1", {"a": 1}),
    ],
)
def test_meaning(yaml, value):
    """A scalar means what it looks like, and nothing else."""
    found = read(yaml)
    assert (found, type(found)) == (value, type(value))


QUOTES = "must be in quotes"
NO_FIELD = (
    "not YAML: no field can begin here; a text with ': ' in it must be in quotes; "
    "else the field above lacks its ': ', or this one is indented too far"
)
NOT_ALIGNED = "not YAML: this line is indented otherwise than those that it belongs to"
BEHIND = (
    "not YAML: something stands behind a value here; "
    f"a text that begins with [, {{ or a quote {QUOTES} as a whole"
)


def test_json_is_yaml():
    """What JSON says of a text is what it says here, however its characters are escaped; a lone surrogate stays one."""
    value = {
        "\U0001f600k": ["\U0001f600", "a\U0010ffffb\u2028", "\ud83d", "\ude00\ud83d", "é/\x7f"]
    }
    assert read(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("yaml", "problems"),
    [
        ("a: 1\nb: 2\na: 3", [(3, 1, "duplicate field 'a', first given at 1:1")]),
        ("{a: 1, a: 2, a: 3}", [(1, 8, "duplicate field 'a', first given at 1:2"),
                                (1, 14, "duplicate field 'a', first given at 1:2")]),
        ("a: !!str 5", [(1, 4, "tags are not part of the profile language")]),
        ("!x {a: !y [1]}", [(1, 1, "tags are not part of the profile language"),
                            (1, 8, "tags are not part of the profile language")]),
        ("a: !!python/object/apply:os.system [ls]",
         [(1, 4, "tags are not part of the profile language")]),
        ("<<: {a: 1}", [(1, 1, "merge keys (<<) are not part of the profile language")]),
        ("? [a]\n: 1", [(1, 3, "a field's name is one word, not a list or a mapping")]),
        ("a: @read", [(1, 4, f"a value that begins with @ {QUOTES}")]),
        ("a: `x`", [(1, 4, f"a value that begins with ` {QUOTES}")]),
        ("a: %x", [(1, 4, f"a value that begins with % {QUOTES}")]),
        ("a: *", [(1, 4, f"a value that begins with * {QUOTES}")]),
        ("a: *:x", [(1, 4, f"a value that begins with * {QUOTES}")]),
        ("a: & x", [(1, 4, f"a value that begins with & {QUOTES}")]),
        ("a: *x", [(1, 4, ("no anchor &x before this alias; "
                          f"a value that begins with * {QUOTES}"))]),
        ("a: &x [*x]", [(1, 8, "*x stands inside what it stands for")]),
        ("a: &x 1\nb: &x 2", [(2, 4, "a second anchor &x")]),
        ("a:\n\t- b", [(2, 1, "a tab: YAML is indented with spaces")]),
        ("a: b: c", [(1, 5, NO_FIELD)]),
        ("a\nb: c", [(2, 2, NO_FIELD)]),
        ("a: b\n c: d", [(2, 3, NO_FIELD)]),
        ("a: 'b", [(1, 4, "not YAML: this quote is never closed")]),
        ("a:b\nc: d\n", [(2, 2, NO_FIELD)]),
        ("a: b\nc:d\ne: f", [(2, 1, "not YAML: a field's name ends with a colon and a blank")]),
        ("a: [b, c\nd: e", [(2, 2, "not YAML: expected ',' or ']', for what began at 1:4")]),
        ("a: {b: c\nd: e", [(2, 2, "not YAML: expected ',' or '}', for what began at 1:4")]),
        ("- a\nb: c", [(2, 1, NOT_ALIGNED)]),
        ("a:\n  b: c\n - d", [(3, 2, NOT_ALIGNED)]),
        ("a:\n  - b: c\n   d: e", [(3, 4, NOT_ALIGNED)]),
        ("a: [b]c", [(1, 7, BEHIND)]),
        ("a: 'b' c", [(1, 8, BEHIND)]),
        ("a: 1\n--- \nb: 2", [(2, 1, "a profile is one document: no second ---")]),
        ("a: b\x07", [(1, 5, "a character that YAML does not allow: U+0007")]),
        ("x: 1\na: \ufffe", [(2, 4, "a character that YAML does not allow: U+FFFE")]),
        ("[" * 25, [(1, 25, "nested deeper than 24 levels")]),
        ("- " * 25, [(1, 49, "nested deeper than 24 levels")]),
        ("[" * 100_000, [(1, 25, "nested deeper than 24 levels")]),
    ],
)  # fmt: skip
def test_problems(yaml, problems):
    """What is refused is refused at its place, in the words of somebody who writes profiles."""
    assert wrong(yaml) == problems


def test_reads_on_where_it_can():
    """Duplicate keys and tags do not hide what comes after them; the first value of a field counts."""
    problems = Problems()
    node = compose(Text("a", "a: 1\na: 2\nb: !!str x\nc: 3"), problems)
    assert node.plain() == {"a": 1, "b": "x", "c": 3}
    assert len(problems.found) == 2


def test_alias_bombs_are_small():
    """Nine levels of nine aliases, a billion laughs, end at the limit and at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    start = time.thread_time()
    ((line, _, message),) = wrong("\n".join(lines))
    assert time.thread_time() - start < 1
    assert message == f"more than {MAX_NODES} values, aliases followed"
    assert line == 5


def test_aliases_count_as_deep_as_they_lead():
    """Depth is bounded through aliases as well."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 40))]
    assert [message for _, _, message in wrong("\n".join(lines))] == [
        "nested deeper than 24 levels"
    ]


def test_the_largest_is_read_in_reasonable_time():
    """A file just within the bounds cannot stall whoever loads it for long."""
    entry = "- {fault: latency, match: {commands: [GET]}}\n"
    yaml = entry * (MAX_NODES // 9)
    start = time.thread_time()
    assert len(read(yaml)) == MAX_NODES // 9
    assert time.thread_time() - start < 60


def test_places():
    """A path leads to where its value begins, or its key; as far as there is anything."""
    yaml = "a:\n  b: [1, {c: 2}]\n"
    node = compose(Text("f", yaml), Problems())

    def at(*path, **which):
        return node.find(path, **which).order

    assert at() == (1, 1)
    assert at("a") == (2, 3)
    assert at("a", at_key=True) == (1, 1)
    assert at("a", "b") == (2, 6)
    assert at("a", "b", at_key=True) == (2, 3)
    assert at("a", "b", 1, "c") == (2, 14)
    assert at("a", "b", 1, "c", at_key=True) == (2, 11)
    assert at("a", "b", 7) == (2, 6)
    assert at("a", "x", "y", at_key=True) == (2, 3)
    assert at("a", "b", 0, "y") == (2, 7)


def test_start_is_passed_over():
    """What stands before `start` is no YAML; places are those in the whole text all the same."""
    problems = Problems()
    node = compose(Text("--set", "a.b=[x, *y]", numbered=False), problems, start=4)
    assert node is None
    assert [place for _, place, _ in problems.found] == [(1, 9)]
    good = compose(Text("--set", "a: b: c={d: 1}"), problems, start=8)
    assert good.plain() == {"d": 1}
    assert good.find(("d",)).order == (1, 13)


@pytest.mark.parametrize(
    ("raw", "message", "place"),
    [
        (b"a: \xff", "not UTF-8: byte 0xff", (1, 4)),
        (b"\xef\xbb\xbfa: 1\n\xc3\xa9: \xc3", "not UTF-8: byte 0xc3", (2, 4)),
        ("a".encode("utf-16"), "not UTF-8: byte 0xff", (1, 1)),
        (b"a" * (MAX_BYTES + 1), "larger than a profile may be (256 KiB)", (1, 1)),
    ],
)
def test_not_text(raw, message, place):
    """What is no UTF-8, or too much, is a problem with a place."""
    problems = Problems()
    assert decode(raw, "f", problems) is None
    assert [(where, problem.message) for _, where, problem in problems.found] == [(place, message)]


def test_a_byte_order_mark_is_no_text():
    """A byte order mark is taken off: the first column is the first character's."""
    assert decode(b"\xef\xbb\xbfa: 1", "f", Problems()).text == "a: 1"


def test_empty():
    """An empty text has no document, and that is not YAML's problem."""
    problems = Problems()
    assert compose(Text("f", ""), problems) is None
    assert compose(Text("f", "# a comment\n"), problems) is None
    problems.raise_if_any()


@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?~<\n \t01.\x00\ud800é"))
def test_anything_is_a_value_or_a_problem(yaml):
    """No text raises anything; every place that is told is in the text."""
    problems = Problems()
    text = Text("f", yaml)
    node = compose(text, problems)
    if node is not None:
        node.plain()
    for _, (line, column), problem in problems.found:
        assert 1 <= line <= len(text.lines) + 1
        assert column >= 1
        problem.render().encode()


@given(st.binary(max_size=60))
def test_any_bytes_are_text_or_a_problem(raw):
    """No file's content raises anything."""
    problems = Problems()
    text = decode(raw, "f", problems)
    assert (text is None) == bool(problems.found)
    if text is not None:
        compose(text, problems)
