"""Which function answers which request.

Takes a table of routes; gives the function for a method and a path, or raises Refused (404, 405) with what there is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from chaosproxy.control.answer import Answer, Refused, Request
from chaosproxy.control.backend import Backend

Respond = Callable[[Backend, Request], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path; `{name}` in it is any one part. The rest is for openapi.json.

    `query` is name -> (meaning, JSON Schema), `body` a JSON Schema. What is done is answered with `status` and, in JSON, the shape
    that is called `gives` (shapes.SHAPES), or with another `content_type`; `answers` is status -> meaning of what else there
    is, with the shape of its own for a status in `shapes`.
    """

    method: str
    pattern: str
    respond: Respond
    summary: str
    query: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    answers: Mapping[int, str] = field(default_factory=dict)
    gives: str = ""
    status: int = 200
    content_type: str = "application/json"
    shapes: Mapping[int, str] = field(default_factory=dict)

    def params(self, path: str) -> dict[str, str] | None:
        """Give the parts of a path by name, or None if it is not this route's."""
        wanted, given = self.pattern.split("/"), path.split("/")
        if len(wanted) != len(given):
            return None
        found = {}
        for want, part in zip(wanted, given, strict=True):
            if want.startswith("{"):
                found[want[1:-1]] = unquote(part)
            elif want != part:
                return None
        return None if "" in found.values() else found


def resolve(routes: Sequence[Route], method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Give the route and the path's parts. HEAD is GET. Raises Refused."""
    method = "GET" if method == "HEAD" else method
    allowed = []
    for route in routes:
        params = route.params(path)
        if params is None:
            continue
        if route.method == method:
            return route, params
        allowed += [route.method, "HEAD"] if route.method == "GET" else [route.method]
    if not allowed:
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no {path}")
    takes = ", ".join(allowed)
    raise Refused(
        HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {takes}, not {method}", {"Allow": takes}
    )
