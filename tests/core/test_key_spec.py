"""The key-spec interpreter on its own: each rule, and input the server would refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core import key_spec
from chaosproxy.core.key_spec import (
    BeginIndex,
    BeginKeyword,
    FindKeyNum,
    FindRange,
    KeySpec,
    Unknown,
    migrate_positions,
    positions,
    single_position,
    sort_positions,
)

RO = frozenset({"RO", "access"})
TEXTS = [
    "RO access; index 1; range 0 1 0",
    "RO access; keyword STREAMS 1; range -1 1 2",
    "RW access update; index 2; keynum 0 1 1",
    "OW update; unknown; unknown",
    "RW access delete incomplete; keyword KEYS -2; range -1 1 0",
]


def found(text: str, *args: bytes | None) -> list[int]:
    return list(positions([KeySpec.parse(text)], args))


@pytest.mark.parametrize("text", TEXTS)
def test_one_line_form(text):
    """What str writes, parse reads, and the other way round."""
    spec = KeySpec.parse(text)
    assert str(spec) == text
    assert KeySpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text", ["", "RO", "RO; index; range 0 1 0", "RO; index 1; range 0", "; x 1; y"]
)
def test_one_line_form_refused(text):
    """What is not such a line is an error, not a spec that finds nothing."""
    with pytest.raises(ValueError):  # noqa: PT011 - any message
        KeySpec.parse(text)


def test_range_with_a_limit():
    """A limit of 2 takes the first half of what remains: XREAD's keys, not its IDs."""
    text = "RO; keyword STREAMS 1; range -1 1 2"
    assert found(text, b"XREAD", b"streams", b"a", b"b", b"0", b"0") == [2, 3]
    assert found(text, b"XREAD", b"COUNT", b"1", b"STREAMS", b"a", b"0") == [4]


def test_range_with_steps_from_the_end():
    """A step of 2 skips the values: MSET; a last of -2 leaves the time-out out: BLPOP."""
    assert found("OW; index 1; range -1 2 0", b"MSET", b"a", b"1", b"b", b"2") == [1, 3]
    assert found("RW; index 1; range -2 1 0", b"BLPOP", b"a", b"b", b"0") == [1, 2]


@pytest.mark.parametrize("text", ["RO; unknown; range 0 1 0", "RO; index 1; unknown"])
def test_unknown(text):
    """Where the server does not say how its keys are found, none are."""
    assert found(text, b"X", b"a", b"b") == []


def test_keyword_from_the_end():
    """A negative start looks backwards: the last KEYS counts."""
    text = "RW; keyword KEYS -2; range -1 1 0"
    assert found(text, b"X", b"KEYS", b"a", b"KEYS", b"b", b"c") == [4, 5]
    assert found(text, b"X", b"a", b"b") == []


@pytest.mark.parametrize(
    "count", [b"", b"x", b"-1", b"+1", b"1.0", b"9", b"9" * 5000, b" 1", b"1_0", None]
)
def test_counts_that_are_none(count):
    """A count that is no number, or promises more keys than there are arguments, finds none."""
    assert found("RW; index 2; keynum 0 1 1", b"EVAL", b"return", count, b"a", b"b") == []


def test_a_count_of_nothing():
    """EVAL … 0 has no keys, whatever follows."""
    assert found("RW; index 2; keynum 0 1 1", b"EVAL", b"return", b"0", b"a") == []


def test_channels_are_no_keys():
    """not_key marks positions that the cluster routes by and nobody reads."""
    text = "not_key; index 1; range 0 1 0"
    assert found(text, b"SPUBLISH", b"ch", b"m") == []
    assert single_position([KeySpec.parse(text)]) == 0
    assert not KeySpec.parse("RW not_key; index 1; range 0 1 0").writes


def test_single_position():
    """The one key at a fixed place is told without looking at arguments; nothing else is."""
    one = KeySpec(RO, BeginIndex(2), FindRange(0, 1, 0))
    assert single_position([one]) == 2
    assert single_position([one, one]) == 0
    assert single_position([]) == 0
    assert single_position([KeySpec(RO, BeginIndex(1), FindRange(-1, 1, 0))]) == 0


def test_sort_takes_the_last_store():
    """Words that are another option's value are no STORE, and of two the last counts."""
    assert list(
        sort_positions([b"SORT", b"a", b"BY", b"store", b"STORE", b"x", b"store", b"d"])
    ) == [1, 7]
    assert list(sort_positions([b"SORT", b"a", b"STORE"])) == [1]
    assert list(sort_positions([b"SORT"])) == []
    assert list(sort_positions([b"SORT", b"a", None, b"STORE", b"d"])) == [1, 4]


def test_migrate_takes_one_key_or_many():
    """An empty key argument means those after KEYS, which may be a password first."""
    head = [b"MIGRATE", b"h", b"1"]
    assert list(migrate_positions([*head, b"k", b"0", b"9"])) == [3]
    assert list(migrate_positions([*head, b"", b"0", b"9", b"keys", b"a", b"b"])) == [7, 8]
    assert list(migrate_positions([*head, b"", b"0", b"9", b"KEYS"])) == [3], "as every server says"
    auth = [*head, b"", b"0", b"9", b"AUTH2", b"KEYS", b"KEYS", b"KEYS", b"a"]
    assert list(migrate_positions(auth)) == [10]
    assert list(migrate_positions(head)) == []


ARGS = st.lists(
    st.none()
    | st.binary(max_size=4)
    | st.sampled_from([b"KEYS", b"STREAMS", b"STORE", b"1", b"2"]),
    max_size=9,
)
NUMBER = st.integers(-9, 9)
SPECS = st.builds(
    KeySpec,
    st.just(RO),
    st.builds(BeginIndex, NUMBER)
    | st.builds(BeginKeyword, st.just(b"KEYS"), NUMBER)
    | st.just(Unknown()),
    st.builds(FindRange, NUMBER, NUMBER, NUMBER)
    | st.builds(FindKeyNum, NUMBER, NUMBER, NUMBER)
    | st.just(Unknown()),
)


@given(st.lists(SPECS, max_size=3), ARGS)
def test_never_beyond_the_arguments(specs, args):
    """Whatever spec a server may send and whatever a client may say: positions of arguments, no error."""
    for position in key_spec.positions(specs, args):
        assert 0 < position < len(args)
    for by_code in (sort_positions, migrate_positions):
        assert all(0 < position < len(args) for position in by_code(args))
