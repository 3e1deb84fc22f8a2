"""The JSON Schema of a profile, for editors and for whoever makes profiles by program.

Takes the declarations of settings that the loader reads; gives a schema (draft 2020-12) as plain data. What it cannot
say (one value less than another, two faults of one name, a command that does not exist) only
the loader finds.
"""

from typing import Any

from chaosproxy import faults
from chaosproxy.core.fault import FAULTS, Fault
from chaosproxy.core.rule import Match, When
from chaosproxy.core.setting import REQUIRED, Setting, settings_of
from chaosproxy.profile.fields import AT_HELP, MATCH_HELP, WHEN_HELP, Head, Shared

faults.register()

Schema = dict[str, Any]


def profile_schema() -> Schema:
    """The whole schema; every fault that is registered by now is in it."""
    kinds = sorted(FAULTS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "chaosproxy profile",
        "description": "Which Redis commands meet which fault, when, and where in their life.",
        "type": "object",
        "properties": {
            **_properties(Head),
            "faults": {
                "description": "They are asked in this order; `[]` for none.",
                "type": ["array", "null"],
                "items": {"$ref": "#/$defs/entry"},
            },
        },
        "required": ["faults"],
        "additionalProperties": False,
        "$defs": {
            "entry": {
                "type": "object",
                "properties": {
                    "fault": {"description": "What happens.", "enum": kinds},
                },
                "required": ["fault"],
                # One branch a fault: an editor then complains about the field, not about all branches.
                "allOf": [
                    {
                        "if": {"properties": {"fault": {"const": kind}}, "required": ["fault"]},
                        "then": {"$ref": f"#/$defs/fault-{kind}"},
                    }
                    for kind in kinds
                ],
            },
            "match": _part(Match, MATCH_HELP),
            "when": _part(When, WHEN_HELP),
            **{f"fault-{kind}": _fault(FAULTS[kind]) for kind in kinds},
        },
    }


def _fault(cls: type[Fault]) -> Schema:
    at: Schema = {"description": AT_HELP, "enum": [position.value for position in cls.positions]}
    required = [name for name, (_, one) in settings_of(cls).items() if one.default is REQUIRED]
    if len(cls.positions) > 1:
        required.insert(0, "at")
    return {
        "description": (cls.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": {
            "fault": {"const": cls.type},
            **_properties(Shared),
            "match": {"$ref": "#/$defs/match"},
            "when": {"$ref": "#/$defs/when"},
            "at": at,
            **_properties(cls),
        },
        "required": ["fault", *required],
        "additionalProperties": False,
    }


def _part(cls: type, help_text: str) -> Schema:
    return {
        "description": help_text,
        "type": ["object", "null"],
        "properties": _properties(cls),
        "additionalProperties": False,
    }


def _properties(cls: type) -> Schema:
    return {name: _property(setting) for name, (_, setting) in settings_of(cls).items()}


def _property(setting: Setting) -> Schema:
    schema = {"description": setting.help, **setting.kind.schema}
    if setting.default is not None and setting.default is not REQUIRED:
        schema["default"] = setting.default
    return schema
