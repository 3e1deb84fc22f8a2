"""The fields of a profile as a whole, and of every fault's entry."""

from chaosproxy.core.setting import settings_of
from chaosproxy.profile.fields import Head, Shared


def test_head(load):
    """Description, healthy and seed are read; all may be left out."""
    profile = load("description: d\nhealthy: h\nseed: 7\nfaults: []")
    assert (profile.description, profile.healthy, profile.seed) == ("d", "h", 7)
    profile = load("faults: []")
    assert (profile.description, profile.healthy, profile.seed) == ("", "", None)


def test_bad_values(told):
    """Each is of its kind."""
    assert told("description: 7\nhealthy: [x]\nseed: -1\nfaults: []") == [
        "a.yaml:1:14: description: expected text, got 7: put it in quotes",
        "a.yaml:2:10: healthy: expected text, got a list",
        "a.yaml:3:7: seed: expected a whole number from 0 to 1000000000000000, got -1",
    ]


def test_a_name_is_a_name(told):
    """A fault's name has no dot and no space: --set and metrics use it."""
    assert told("faults: [{fault: drop_write, tell: ok, name: a.b}]") == [
        "a.yaml:1:46: name: expected a name of letters, digits, - and _ (at most 64), got 'a.b'"
    ]


def test_none_is_required():
    """Nothing but a fault and its own settings has to be written."""
    settings = [one for cls in (Head, Shared) for _, one in settings_of(cls).values()]
    assert [one.default for one in settings] == [None] * len(settings)
