"""Rolls are the same ones each time, evenly spread, and what is told ahead of them is true."""

import pytest

from chaosproxy.core.rolls import Rolls


def test_a_roll_depends_on_all_that_is_said():
    """The same words give the same roll, in any order; another seed, key or number gives another one."""
    rolls = Rolls("7/rule/")
    found = [rolls.roll("", number) for number in range(100)]
    assert [Rolls("7/rule/").roll("", number) for number in reversed(range(100))] == found[::-1]
    assert len({*found, Rolls("8/rule/").roll("", 3), rolls.roll("key", 3)}) == 102
    assert rolls.roll("", 3) == found[3]
    assert all(0 <= roll < 1 for roll in found)


def test_they_are_evenly_spread():
    """Of ten thousand a tenth is below a tenth, a hundredth below a hundredth, give or take four standard deviations."""
    found = [Rolls("7/rule/").roll("", number) for number in range(10_000)]
    assert abs(sum(roll < 0.1 for roll in found) - 1000) < 120
    assert abs(sum(roll < 0.01 for roll in found) - 100) < 40


@pytest.mark.parametrize("chance", [0.0, 1e-9, 0.003, 0.01, 0.2, 0.5, 1.0])
def test_what_is_too_high_is_known_ahead(chance: float):
    """From any match on: so many are not below the chance; the next one is, or it was not looked any further."""
    rolls, fresh = Rolls("7/rule/"), Rolls("7/rule/")
    for number in [*range(300), 5, 299, 1000, 0]:
        quiet = rolls.too_high(number, chance)
        assert all(fresh.roll("", number + each) >= chance for each in range(quiet))
        assert fresh.roll("", number + quiet) < chance or quiet >= 64
