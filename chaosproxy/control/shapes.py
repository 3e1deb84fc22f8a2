"""What the control API's answers look like, as JSON Schema, by name.

Takes nothing: it is data, which openapi puts into its document and a test holds against real answers.
"""

from typing import Any, Final

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
#: The number of something that is counted from 1.
_ORDINAL: Final[Schema] = {"type": "integer", "minimum": 1}
_FLAG: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": _COUNT}


def ref(name: str) -> Schema:
    """One of SHAPES, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def of(required: Schema, **optional: Schema) -> Schema:
    """An object of these fields and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | optional,
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items}


def each(schema: Schema, *names: str) -> Schema:
    """Fields of these names that look alike."""
    return dict.fromkeys(names, schema)


_PROBLEM: Final = of(
    each(_TEXT, "file", "message", "suggestion", "source_line", "text")
    | each(_COUNT, "line", "column")
)
_FAULT: Final = of(
    each(_TEXT, "name", "type", "position")
    | each(_COUNT, "matched", "fired", "requested")
    | each(_FLAG, "enabled", "armed")
    | {"skipped": _COUNTS, "trigger": {"type": ["string", "null"]}}
)
_IN_FORCE: Final[Schema] = (
    each(_TEXT, "name", "since", "description", "healthy", "yaml", "sha256")
    | each(_COUNT, "seed", "generation")
    | {"age": _NUMBER, "faults": list_of(ref("Fault"))}
)
_EVENT: Final = of(
    each(_TEXT, "at", "client", "command", "fault", "type", "position", "digest")
    | each(_COUNT, "generation", "connection", "db", "match", "ordinal")
    | {
        "n": _ORDINAL,
        "t": _NUMBER,
        "applied": {"enum": ["yes", "no", "undone", "unknown"]},
        "told": {"enum": ["ok", "error", "nothing", "reset", "closed", "late", "partial"]},
        "outcome": {"enum": ["ok", "fail", "unknown", "false_ok"]},
    },
    keys=_TEXTS,
    keys_b64=_TEXTS,
    per=_TEXT,
    delay=_NUMBER,
    draw=_NUMBER,
    detail=_TEXT,
    writes=list_of(
        of({"command": _TEXT, "count": _COUNT}, keys=_TEXTS, keys_b64=_TEXTS),
    ),
)
_CONNECTION: Final = of(
    each(_TEXT, "address", "listener", "name")
    | each(_COUNT, "id", "db", "buffered", "waiting_replies")
    | each(_FLAG, "in_transaction", "subscribed", "holding", "raw", "connected")
    | {"protocol": {"enum": [2, 3]}, "age": _NUMBER}
)
_SECOND: Final = of(
    each(_TEXT, "at", "profile")
    | each(_NUMBER, "seconds", "delay")
    | each(_COUNT, "generation", "commands", "delayed", "connections")
    | {"n": _ORDINAL, "fired": _COUNTS}
)
_TOXIC: Final = of(
    each(_TEXT, "name", "type")
    | {
        "attributes": {"type": "object"},
        "stream": {"enum": ["upstream", "downstream"]},
        "toxicity": {"type": "number", "minimum": 0, "maximum": 1},
    }
)
_PROXY: Final = of(
    each(_TEXT, "name", "listen", "upstream") | {"enabled": _FLAG, "toxics": list_of(ref("Toxic"))}
)

#: All of them. Error is what every refusal says, with more in it where there is more to say.
SHAPES: Final[dict[str, Schema]] = {
    "Error": of({"error": _TEXT}, problems=list_of(ref("Problem")), status={"type": "integer"}),
    "Health": of({"status": {"const": "ok"}, "version": _TEXT}),
    "Ready": of({"status": {"const": "ready"}}),
    "NotReady": of({"status": {"const": "not ready"}, "problem": _TEXT}),
    "Problem": _PROBLEM,
    "Problems": of({"problems": list_of(ref("Problem"))}),
    "Fault": _FAULT,
    "InForce": of(_IN_FORCE),
    "Put": of(_IN_FORCE | {"warnings": _TEXTS}),
    "Profiles": of({"profiles": list_of(of({"name": _TEXT, "summary": _TEXT}))}),
    "Event": _EVENT,
    "Events": of(
        {"events": list_of(ref("Event")), "last": _COUNT, "dropped": _COUNT, "run": _TEXT}
    ),
    "Last": of({"last": _COUNT}),
    "Connections": of({"connections": list_of(_CONNECTION)}),
    "Cut": of({"id": _COUNT, "cut": {"const": "reset"}}),
    "Timeline": of({"seconds": list_of(_SECOND), "last": _COUNT}),
    "Toxic": _TOXIC,
    "Toxics": list_of(ref("Toxic")),
    "Proxy": _PROXY,
    "Proxies": {"type": "object", "additionalProperties": ref("Proxy")},
    "Populated": of({"proxies": list_of(ref("Proxy"))}),
    "Version": of({"version": _TEXT}),
    "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
}
