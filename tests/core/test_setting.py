"""How a setting is declared: once, with its kind, its help and its default, for everybody who asks."""

from dataclasses import dataclass

import pytest

from chaosproxy.core.setting import REQUIRED, Invalid, Setting, setting, settings_of
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
