"""The control API told to programs: an OpenAPI 3.1 document.

Takes the table of routes; gives the document as plain data.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from chaosproxy import __version__
from chaosproxy.control.guard import OPEN_ROUTES
from chaosproxy.control.routing import Route

_ERROR: Final = {"$ref": "#/components/schemas/Error"}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Describe these routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.pattern, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "chaosproxy control", "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string"}, "problems": {"type": "array"}},
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.pattern)
    ]
    in_query = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in route.query.items()
    ]
    found: dict[str, Any] = {
        "summary": route.summary,
        "responses": {
            "200": {"description": "Done."},
            **{
                str(status): {
                    "description": text,
                    "content": {"application/json": {"schema": _ERROR}},
                }
                for status, text in route.answers.items()
            },
        },
    }
    if in_path or in_query:
        found["parameters"] = in_path + in_query
    if route.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": dict(route.body)}},
        }
    if route.pattern not in OPEN_ROUTES:
        # With a token it is needed; without one nothing is.
        found["security"] = [{"token": []}, {}]
    return found
