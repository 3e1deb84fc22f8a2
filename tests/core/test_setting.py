"""How a setting is declared: once, with its kind, its help and its default, for everybody who asks."""

from dataclasses import dataclass

import pytest

from chaosproxy.core.setting import (
    MOST_WRONG,
    REQUIRED,
    Invalid,
    Setting,
    parse_each,
    setting,
    settings_of,
)
from chaosproxy.core.units import COUNT, DURATION, FLAG


@dataclass(frozen=True)
class Some:
    """Settings of all sorts."""

    delay: float = setting(DURATION, "How long.")
    from_: float | None = setting(DURATION, "Since when.", default=None, name="from")
    limit: int = setting(COUNT, "How many.", default=3)
    quiet: bool = setting(FLAG, "Whether.", default=None, absent=False)
    noted: str = "no setting"


def test_what_a_class_declares():
    """By their names in YAML, in order; what is no setting is not among them."""
    assert settings_of(Some) == {
        "delay": ("delay", Setting("delay", DURATION, "How long.", REQUIRED)),
        "from": ("from_", Setting("from", DURATION, "Since when.", None)),
        "limit": ("limit", Setting("limit", COUNT, "How many.", 3)),
        "quiet": ("quiet", Setting("quiet", FLAG, "Whether.", None)),
    }


def test_defaults():
    """A default is written as in YAML and is what its kind makes of it; what may be left out is as it says then."""
    some = Some(delay=1.0)
    assert (some.from_, some.limit, some.quiet) == (None, 3, False)
    with pytest.raises(TypeError):
        Some()
    assert repr(REQUIRED) == "required"


def test_a_default_must_be_right():
    """A default that its kind refuses is a mistake of ours, found when the class is made."""
    with pytest.raises(Invalid):
        setting(COUNT, "How many.", default=-1)


def test_a_complaint_finds_its_place():
    """Seen from what holds the wrong value, the way to it is longer; all else stays."""
    wrong = Invalid("no", ("b",), suggestion="yes", at_key=True).under("a", 0)
    assert (wrong.message, wrong.path, wrong.suggestion, wrong.at_key) == (
        "no",
        ("a", 0, "b"),
        "yes",
        True,
    )
    assert str(wrong) == "no"


def one(key, value):
    """Take a whole number, or a list of them."""
    del key
    if isinstance(value, list):
        return parse_each(one, enumerate(value))
    return COUNT.parse(value)


def test_all_complaints_of_one_value():
    """Whatever is wrong in a list or a mapping is told at once, each with its own way; if nothing is, all values are given."""
    assert parse_each(one, {"a": 1, "b": [2, 3]}.items()) == [1, [2, 3]]
    with pytest.raises(Invalid) as refused:
        parse_each(one, {"a": 1, "b": [2, 0, -1], "c": 0}.items())
    wrong = refused.value.under("x")
    assert [each.path for each in (wrong, *wrong.more)] == [
        ("x", "b", 1),
        ("x", "b", 2),
        ("x", "c"),
    ]
    assert wrong.more[1].message == "expected a whole number from 1, got 0"


def test_not_more_complaints_than_anybody_reads():
    """Of a list with very many wrong items MOST_WRONG are told, and the others not looked at."""
    with pytest.raises(Invalid) as refused:
        parse_each(one, enumerate([0] * 10_000))
    assert len(refused.value.more) == MOST_WRONG - 1
