"""The table of routes: what it has is what is answered, method by method."""

import pytest

from chaosproxy.control import page
from chaosproxy.control.api import ROUTES
from chaosproxy.control.openapi import document

PAGE = {route.pattern: "GET" for route in page.ROUTES}
PATHS = PAGE | {
    "/healthz": "GET",
    "/readyz": "GET",
    "/metrics": "GET",
    "/profiles": "GET",
    "/profiles/{name}": "GET",
    "/profile": "GET PUT DELETE",
    "/profile/check": "POST",
    "/faults/{name}/trigger": "POST",
    "/faults/{name}": "PATCH",
    "/events": "GET DELETE",
    "/events/stream": "GET",
    "/timeline": "GET",
    "/connections": "GET",
    "/connections/{id}": "DELETE",
    "/openapi.json": "GET",
    "/proxies": "GET POST",
    "/populate": "POST",
    "/proxies/{proxy}": "GET POST PATCH DELETE",
    "/proxies/{proxy}/toxics": "GET POST",
    "/proxies/{proxy}/toxics/{toxic}": "GET POST PATCH DELETE",
    "/reset": "POST",
    "/version": "GET",
}


def test_all_of_them():
    """Every route that was promised, and no other."""
    found = {}
    for route in ROUTES:
        found.setdefault(route.pattern, []).append(route.method)
    assert {path: " ".join(methods) for path, methods in found.items()} == PATHS


METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")
#: The stream does not end; test_events reads it.
ASKED = sorted(
    {(path, method) for path in PATHS for method in METHODS} - {("/events/stream", "GET")}
)


@pytest.mark.parametrize(("path", "method"), ASKED)
def test_methods(ask, path, method):
    """A method it does not take is 405 with those it takes; HEAD goes where GET does, and nothing else is 405."""
    takes = PATHS[path].split()
    said = ask(method, path.replace("{name}", "calm").replace("{id}", "1"))
    if method in takes or (method == "HEAD" and "GET" in takes):
        assert said.status != 405
    else:
        assert said.status == 405
        allowed = said.headers["Allow"].split(", ")
        assert [each for each in allowed if each != "HEAD"] == takes
    if method == "HEAD":
        assert said.body == b""


def test_describes_itself(ask):
    """The table, for programs."""
    assert ask("GET", "/openapi.json").json == document(ROUTES)
