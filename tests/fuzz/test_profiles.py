"""Profiles that are nearly right, and bytes that are none.

Takes text as a file, a request or `--set` may have it; gives proof that all that comes of it is a profile or problems, each at a place
in the text, within bounded time, and that one that loads can be put in force.
"""

from time import process_time

from hypothesis import strategies as st

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.engine import Engine
from chaosproxy.profile import ProfileError, Source, load, names, shipped
from chaosproxy.profile.problems import MOST_PROBLEMS
from chaosproxy.profile.yaml_nodes import MAX_BYTES
from tests.fuzz.properties import Properties

properties = Properties()
TABLE = CommandTable.bundled()

SHIPPED = [shipped(name).raw for name in names()]
#: Seconds of this process's time that a profile may take: it takes a thousandth of it, most often.
MOST_SECONDS = 20.0

TOKENS = st.sampled_from(
    [
        *("- ", ": ", "? ", "{", "}", "[", "]", ",", "\n", "\n  ", "\n    ", "\t", "#", "'", '"', "|\n", ">\n", "---\n", "...\n"),
        *("&a ", "*a", "<<: *a\n", "!!python/object/apply:os.system [id]\n", "!!binary |\n  AAAA\n", "!x ", "%YAML 1.2\n", "%TAG ! x\n"),
        *("faults:", "faults: []\n", "fault: ", "match: ", "when: ", "at: ", "name: ", "commands: ", "keys: ", "seed: ", "include: x\n"),
        *(".nan", ".inf", "NaN", "1e999", "-1", "0x1F", "0o17", "1_000", "9" * 30, "1" * 5000, "1e-999", "-0", "2024-01-01", "1:30"),
        *("true", "null", "~", "''", '""', "\\ud800", '"\\ud800"', '"\\x00"', '"\\U0010ffff"', "\x85", "\u2028", "\ufeff", "\x00", "\x1b[2J"),
        *("100%", "1ms", "5s", "1d", "10KiB/s", "*" * 50, "[^", "\\", "(a+)+$", "@write", "CONFIG|SET", "x" * 3000),
        *("[" * 30, "{a: " * 30, "- " * 30, "&b [*a, *a, *a, *a]\n", "a: &a [x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a]\n"),
        *("normal: {mean: 1s, sd: 2s}", "{uniform: [1s, 2s]}", "trigger: manual", "chance: ", "nth: [1, 2]", "armed_by: x", "per: key"),
    ]
)  # fmt: skip

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["insert", "cut", "double", "replace", "word"]),
        st.integers(0, 1 << 14),
        st.integers(0, 80),
        TOKENS | st.text(max_size=5),
    ),
    min_size=1,
    max_size=6,
)


def changed(raw: bytes, changes) -> bytes:
    text = raw.decode()
    for what, where, size, token in changes:
        at = where % (len(text) + 1)
        match what:
            case "insert":
                text = text[:at] + token + text[at:]
            case "cut":
                text = text[:at] + text[at + size :]
            case "double":
                text = text[: at + size] + text[at:]
            case "replace":
                text = text[:at] + token + text[at + len(token) :]
            case "word":
                # A value: from the next colon to the end of its line.
                begin = text.find(": ", at) + 2
                end = text.find("\n", begin)
                if begin > 1 and end >= 0:
                    text = text[:begin] + token + text[end:]
    return text.encode("utf-8", "surrogatepass")


NEARLY = st.tuples(st.sampled_from(SHIPPED), CHANGES).map(lambda both: changed(*both))
SOUP = st.lists(TOKENS, max_size=40).map(
    lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
)
BYTES = st.one_of(NEARLY, NEARLY, SOUP, st.binary(max_size=300))


def check(sources, overrides=()):
    """It is a profile, which can be put in force, or problems that say where and what."""
    began = process_time()
    problems, profile = [], None
    try:
        profile = load(sources, table=TABLE, overrides=overrides)
    except ProfileError as error:
        problems = error.problems
    assert (profile is None) == bool(problems)
    assert len(problems) <= MOST_PROBLEMS + 1
    files = {source.file for source in sources} | {"--set"}
    for problem in problems:
        assert problem.message
        assert problem.file in files
        assert problem.line >= (problem.file != "--set")
        assert problem.column >= 1
        lines = problem.render().split("\n")
        assert len(lines) in {1, 3}
        assert all(char.isprintable() or char == "\t" for line in lines for char in line)
    if profile is not None:
        Engine(profile, TABLE, 7, 1, 0.0).status()
    assert process_time() - began < MOST_SECONDS


@properties.of(120, raw=BYTES)
def any_text(raw):
    check([Source("x", raw, "x.yaml")])


@properties.of(20, raws=st.lists(BYTES, min_size=2, max_size=3))
def several(raws):
    check([Source(f"x{n}", raw, f"x{n}.yaml") for n, raw in enumerate(raws)])


PATHS = st.lists(
    st.sampled_from(["lost-ack", "when", "match", "0", "faults", "steps", "-1", "seed", "delay", "", "nth", "99999999999999999999"]),
    min_size=1,
    max_size=4,
).map(".".join)  # fmt: skip
OVERRIDES = st.lists(
    st.tuples(PATHS, TOKENS | st.text(max_size=9)).map("=".join) | st.text(max_size=20), max_size=3
)


@properties.of(60, raw=st.sampled_from(SHIPPED) | NEARLY, overrides=OVERRIDES)
def overridden(raw, overrides):
    check([Source("x", raw, "x.yaml")], overrides)


@properties.of(10, part=TOKENS | st.text(min_size=1, max_size=20), before=TOKENS, after=TOKENS)
def as_large_as_may_be(part, before, after):
    """One thing over and over, up to the largest size and a little beyond."""
    raw = (before + part * (MAX_BYTES // len(part.encode("utf-8", "surrogatepass")))).encode(
        "utf-8", "surrogatepass"
    )
    check([Source("x", raw[: MAX_BYTES - 20] + after.encode("utf-8", "surrogatepass"), "x.yaml")])


test_quickly, test_for_minutes = properties.tests()
