"""A profile once it is read: its fields are those of the profile language, each explained."""

import pytest

from chaosproxy.core.rule import Match, When
from chaosproxy.core.setting import settings_of
from tests.conversation import profile


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        (
            Match,
            "commands keys key_share slots arguments db clients connection batch after push reply",
        ),
        (When, "nth first skip every limit per chance from until armed_by trigger"),
    ],
)
def test_fields(part, fields):
    """No field is missing, none is without its explanation, and all may be left out."""
    settings = settings_of(part)
    assert set(settings) == set(fields.split())
    for _, setting in settings.values():
        assert len(setting.help) > 20
    assert part() == part()


def test_a_rule_knows_where_it_stands():
    """Its name, its place in the file, its position."""
    rules = profile("- {fault: drop_write, tell: error}\n- {fault: drop_write, tell: ok}").rules
    assert [(rule.name, rule.line) for rule in rules] == [("drop_write", 2), ("drop_write-2", 3)]
    assert {str(rule.at) for rule in rules} == {"before_forward"}
