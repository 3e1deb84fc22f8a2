"""The control API told to programs: an OpenAPI 3.1 document.

Takes the table of routes; gives the document as plain data: every route with all that it takes and every way it can be
answered.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from chaosproxy import __version__
from chaosproxy.control.answer import JSON, MOST_BODY
from chaosproxy.control.guard import OPEN_ROUTES
from chaosproxy.control.routing import Route
from chaosproxy.control.shapes import SHAPES, ref

#: What may be said of any request at all.
_ANY: Final = {
    400: "It is no request that there is: its query, its body, its length, or the HTTP itself.",
    411: "It has a body without a Content-Length.",
    414: "Its address is too long.",
    431: "It has too many header lines, or too long ones.",
    503: "There is no time for it now; ask again.",
}
_GUARDED: Final = {
    401: "The token is wrong, or there is none.",
    403: "It was asked by a page of another site, or under a name that this address does not have.",
}
_WITH_BODY: Final = {
    408: "The body did not come in time.",
    413: f"The body has more than {MOST_BODY} bytes.",
    415: "The body is of another type.",
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Describe these routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.pattern, {})[route.method.lower()] = _operation(route)
        if route.method == "GET":
            paths[route.pattern]["head"] = _operation(route, head=True)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "chaosproxy control",
            "version": __version__,
            "description": "A running chaosproxy: what is in force, what fired, who is connected, and changing that.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The one of --control-token, where there is one.",
                }
            },
            "schemas": SHAPES,
        },
    }


def _operation(route: Route, *, head: bool = False) -> dict[str, Any]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", route.pattern)
    ]
    in_query = [
        {"name": name, "in": "query", "description": text, "schema": dict(schema)}
        for name, (text, schema) in route.query.items()
    ]
    words = re.findall(r"\w+", f"{route.method} {route.pattern}".lower())
    found: dict[str, Any] = {
        "operationId": "_".join(["head", *words[1:]] if head else words),
        "summary": route.summary,
        "responses": _responses(route, head=head),
    }
    if in_path or in_query:
        found["parameters"] = in_path + in_query
    if route.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": dict(route.body)}},
        }
    if route.pattern not in OPEN_ROUTES:
        # With a token it is needed; without one nothing is.
        found["security"] = [{"token": []}, {}]
    return found


def _responses(route: Route, *, head: bool) -> dict[str, Any]:
    guarded: Mapping[int, str] = {} if route.pattern in OPEN_ROUTES else _GUARDED
    body: Mapping[int, str] = {} if route.body is None else _WITH_BODY
    done: dict[str, Any] = {"description": "Done."}
    if not head and route.status != 204:
        schema = ref(route.gives) if route.gives else {"type": "string"}
        done["content"] = {route.content_type: {"schema": schema}}
        if route.content_type == "text/plain":
            # OpenMetrics, for who accepts it.
            done["content"]["application/openmetrics-text"] = {"schema": schema}
    responses = {str(route.status): done}
    for status, text in sorted({**_ANY, **guarded, **body, **route.answers}.items()):
        shape = ref(route.shapes.get(status, "Error"))
        content = {} if head else {"content": {JSON: {"schema": shape}}}
        responses[str(status)] = {"description": text, **content}
    return responses
