"""What a test asks for: each argument that is none of its kind is told, with what it should be."""

import re
from pathlib import Path

import pytest

from chaosproxy.asked import read_profile, read_required
from chaosproxy.core.scalar import MOST
from chaosproxy.profile import ProfileError

NAME = r"a profile: expected a shipped one's name or a file's path, got "
SEED = f"seed: expected a whole number from 0 to {MOST}, got "
SET = 'set: expected values by their paths, as {"lost-ack.when.nth": 3}, got '
REQUIRED = "require_fired: expected True, 'all', or the names of faults, got "


def read(*names, yaml=None, seed=None, overrides=None):
    return read_profile(names, yaml, seed, overrides)


def test_what_can_be_asked_for(tmp_path):
    """Names, paths of both kinds, a text; seeds from the least to the most; single values."""
    text = "faults:\n- {fault: latency, at: before_forward, delay: 1s}\n"
    (tmp_path / "mine.yaml").write_text(text)
    path = tmp_path / "mine.yaml"
    assert len(read("lost-ack", path, seed=0).rules) == len(read("lost-ack", str(path)).rules) == 2
    assert read("calm", seed=MOST).rules == ()
    profile = read(yaml=text, overrides={"latency.when": {"nth": [2, 3]}})
    assert profile.rules[0].when.nth == (2, 3)
    assert read("lost-ack", overrides={}).rules


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "use() takes the names of profiles, or yaml="),
        ({"names": ["calm"], "yaml": "faults: []"}, "use() takes the names of profiles, or yaml="),
        ({"names": [5]}, f"{NAME}5"),
        ({"names": [None]}, f"{NAME}None"),
        ({"names": [["calm"]]}, f"{NAME}['calm']"),
        ({"names": [b"calm"]}, f"{NAME}b'calm'"),
        ({"yaml": 5}, "yaml: expected a profile's text, got 5"),
        ({"yaml": Path("x")}, "yaml: expected a profile's text, got PosixPath('x')"),
        ({"names": ["calm"], "seed": "7"}, f"{SEED}'7'"),
        ({"names": ["calm"], "seed": -1}, f"{SEED}-1"),
        ({"names": ["calm"], "seed": True}, f"{SEED}True"),
        ({"names": ["calm"], "seed": 1.0}, f"{SEED}1.0"),
        ({"names": ["calm"], "seed": MOST + 1}, f"{SEED}{MOST + 1}"),
        ({"names": ["calm"], "overrides": ["x=1"]}, f"{SET}['x=1']"),
        ({"names": ["calm"], "overrides": "x=1"}, f"{SET}'x=1'"),
        (
            {"names": ["lost-ack"], "overrides": {"lost-ack.when.nth": {1}}},
            "set: no value that a profile can have: Object of type set is not JSON serializable",
        ),
    ],
)
def test_what_cannot(given, message):
    """What is none of its kind, in words of whoever wrote it."""
    given = {"names": (), "yaml": None, "seed": None, "overrides": None} | given
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        read_profile(**given)


def test_what_is_wrong_with_a_profile():
    """Half a character in a text is told where it stands, as in a file."""
    with pytest.raises(ProfileError, match="yaml:1:"):
        read(yaml="description: \ud800")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, None),
        (False, None),
        ([], None),
        (True, ()),
        ("all", ["all"]),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ({"a"}, ["a"]),
    ],
)
def test_required(given, names):
    """Nothing, each that acts for sure, or those that are named."""
    assert read_required(given) == names


@pytest.mark.parametrize("given", [5, 0, {}, {"a": 1}, ["a", 5], b"all"])
def test_nothing_that_is_required(given):
    """What is no name of a fault."""
    with pytest.raises(TypeError, match=f"^{re.escape(REQUIRED + repr(given))}$"):
        read_required(given)
