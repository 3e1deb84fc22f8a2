"""What the control API's answers look like, as JSON Schema, by name.

Takes nothing: it is data, which openapi puts into its document and a test holds against real answers.
"""

from typing import Any, Final

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
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


_PROBLEM: Final = of(
    {
        "file": _TEXT,
        "line": _COUNT,
        "column": _COUNT,
        "message": _TEXT,
        "suggestion": _TEXT,
        "source_line": _TEXT,
        "text": _TEXT,
    }
)
_FAULT: Final = of(
    {
        "name": _TEXT,
        "type": _TEXT,
        "position": _TEXT,
        "matched": _COUNT,
        "fired": _COUNT,
        "skipped": _COUNTS,
        "enabled": _FLAG,
        "armed": _FLAG,
        "trigger": {"type": ["string", "null"]},
        "requested": _COUNT,
    }
)
_IN_FORCE: Final[Schema] = {
    "name": _TEXT,
    "seed": _COUNT,
    "generation": _COUNT,
    "since": _TEXT,
    "age": _NUMBER,
    "description": _TEXT,
    "healthy": _TEXT,
    "faults": list_of(ref("Fault")),
    "yaml": _TEXT,
    "sha256": _TEXT,
}
_EVENT: Final = of(
    {
        "n": {"type": "integer", "minimum": 1},
        "t": _NUMBER,
        "at": _TEXT,
        "generation": _COUNT,
        "connection": _COUNT,
        "client": _TEXT,
        "db": _COUNT,
        "command": _TEXT,
        "fault": _TEXT,
        "type": _TEXT,
        "position": _TEXT,
        "match": _COUNT,
        "ordinal": _COUNT,
        "applied": {"enum": ["yes", "no", "undone", "unknown"]},
        "told": {"enum": ["ok", "error", "nothing", "reset", "closed", "late", "partial"]},
        "outcome": {"enum": ["ok", "fail", "unknown", "false_ok"]},
        "digest": _TEXT,
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
    {
        "id": _COUNT,
        "address": _TEXT,
        "listener": _TEXT,
        "name": _TEXT,
        "db": _COUNT,
        "protocol": {"enum": [2, 3]},
        "in_transaction": _FLAG,
        "subscribed": _FLAG,
        "buffered": _COUNT,
        "waiting_replies": _COUNT,
        "holding": _FLAG,
        "raw": _FLAG,
        "age": _NUMBER,
        "connected": _FLAG,
    }
)
_SECOND: Final = of(
    {
        "n": {"type": "integer", "minimum": 1},
        "at": _TEXT,
        "seconds": _NUMBER,
        "profile": _TEXT,
        "generation": _COUNT,
        "commands": _COUNT,
        "delayed": _COUNT,
        "delay": _NUMBER,
        "connections": _COUNT,
        "fired": _COUNTS,
    }
)
_TOXIC: Final = of(
    {
        "attributes": {"type": "object"},
        "name": _TEXT,
        "type": _TEXT,
        "stream": {"enum": ["upstream", "downstream"]},
        "toxicity": {"type": "number", "minimum": 0, "maximum": 1},
    }
)
_PROXY: Final = of(
    {
        "name": _TEXT,
        "listen": _TEXT,
        "upstream": _TEXT,
        "enabled": _FLAG,
        "toxics": list_of(ref("Toxic")),
    }
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
    "Events": of({"events": list_of(ref("Event")), "last": _COUNT, "dropped": _COUNT}),
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
