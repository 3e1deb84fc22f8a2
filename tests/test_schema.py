"""The JSON Schema of a profile: valid itself, and of one mind with the loader."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chaosproxy.core.fault import FAULTS
from chaosproxy.core.setting import REQUIRED, settings_of
from chaosproxy.profile import ProfileError, Source, load, names, shipped
from chaosproxy.schema import profile_schema

SCHEMA = profile_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def test_it_is_a_schema():
    """It is valid by the draft that it names, and plain JSON."""
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", names())
def test_every_shipped_profile_is_valid(name):
    """Each one that ships passes."""
    VALIDATOR.validate(yaml.safe_load(shipped(name).raw))


def test_everything_is_explained():
    """Every field has the help that its declaration has, and shows its default."""
    for name, cls in FAULTS.items():
        properties = SCHEMA["$defs"][f"fault-{name}"]["properties"]
        for field, (_, setting) in settings_of(cls).items():
            assert properties[field]["description"] == setting.help
            if setting.default not in (None, REQUIRED):
                assert properties[field]["default"] == setting.default
        required = set(SCHEMA["$defs"][f"fault-{name}"]["required"])
        assert ("at" in required) == (len(cls.positions) > 1)


def error_of(document):
    """The one complaint: where, and which rule of the schema."""
    (error,) = VALIDATOR.iter_errors(document)
    return list(error.absolute_path), error.validator


@pytest.mark.parametrize(
    ("document", "path", "rule"),
    [
        ({}, [], "required"),
        ({"faults": {}}, ["faults"], "type"),
        ({"faults": [], "x": 1}, [], "additionalProperties"),
        ({"faults": [], "seed": -1}, ["seed"], "minimum"),
        ({"faults": [{}]}, ["faults", 0], "required"),
        ({"faults": [{"fault": "nope"}]}, ["faults", 0, "fault"], "enum"),
        ({"faults": [{"fault": "drop_write"}]}, ["faults", 0], "required"),
        (
            {"faults": [{"fault": "drop_write", "tell": "okay"}]},
            ["faults", 0, "tell"],
            "enum",
        ),
        (
            {"faults": [{"fault": "drop_write", "tell": "ok", "at": "after_apply"}]},
            ["faults", 0, "at"],
            "enum",
        ),
        ({"faults": [{"fault": "disconnect"}]}, ["faults", 0], "required"),
        (
            {"faults": [{"fault": "drop_write", "tell": "ok", "hwo": 1}]},
            ["faults", 0],
            "additionalProperties",
        ),
        (
            {"faults": [{"fault": "drop_write", "tell": "ok", "when": {"nth": 0}}]},
            ["faults", 0, "when", "nth"],
            "anyOf",
        ),
    ],
)
def test_complaints(document, path, rule):
    """A mistake gives one complaint, at its place: an editor underlines just that."""
    assert error_of(document) == (path, rule)


def loads(document):
    """What the loader complains about, without what no schema can say."""
    try:
        load([Source("x", json.dumps(document).encode(), "x")])
    except ProfileError as error:
        beyond = (
            "can never hold",
            "two faults are called",
            "armed_by:",
            "goes with",
            "exactly one",
        )
        return [
            problem.message
            for problem in error.problems
            if not any(word in problem.message for word in beyond)
        ]
    return []


values = st.sampled_from(
    ["ok", "error", "1s", "25%", "reset", "after_apply", "before_forward", "mid_reply", "GET", "fault",
     "key", "request", "reply", "connection", 1, 0, 7, True, False, None, [], {}, ["GET"], [["DEL", "a"]],
     {"has": "NX"}, {"uniform": ["1s", "2s"]}, {"address": "x"}, {"type": "array"}]
)  # fmt: skip
parts = st.dictionaries(
    st.sampled_from(["commands", "keys", "db", "reply", "nth", "per", "chance", "from", "x"]),
    values,
    max_size=3,
)


@st.composite
def entry(draw):
    """A fault with some of its fields, and sometimes one too many."""
    kind = draw(st.sampled_from(sorted(FAULTS)))
    own = [*settings_of(FAULTS[kind]), "at", "match", "when", "name", "x"]
    fields = draw(st.dictionaries(st.sampled_from(own), values, max_size=5))
    for part in ("match", "when"):
        if part in fields:
            fields[part] = draw(parts)
    return {"fault": kind, **fields}


@given(faults=st.lists(entry(), max_size=2))
def test_of_one_mind_with_the_loader(faults):
    """What the schema passes the loader reads, and the other way round."""
    document = {"faults": faults}
    assert VALIDATOR.is_valid(document) == (loads(document) == [])
