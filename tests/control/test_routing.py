"""Which function answers: by path, then by method, and what is said where there is none."""

import pytest

from chaosproxy.control.answer import Refused
from chaosproxy.control.routing import Route, resolve


def nothing(backend, request):
    raise AssertionError


ROUTES = (
    Route("GET", "/a", nothing, ""),
    Route("PUT", "/a", nothing, ""),
    Route("GET", "/a/stream", nothing, ""),
    Route("POST", "/b/{name}/do", nothing, ""),
    Route("DELETE", "/b/{name}", nothing, ""),
)


@pytest.mark.parametrize(
    ("method", "path", "number", "params"),
    [
        ("GET", "/a", 0, {}),
        ("HEAD", "/a", 0, {}),
        ("PUT", "/a", 1, {}),
        ("GET", "/a/stream", 2, {}),
        ("POST", "/b/lost-ack/do", 3, {"name": "lost-ack"}),
        ("DELETE", "/b/a%2Fb%20c", 4, {"name": "a/b c"}),
    ],
)
def test_found(method, path, number, params):
    """The parts of a path are given by name, as they were meant; HEAD is GET."""
    assert resolve(ROUTES, method, path) == (ROUTES[number], params)


@pytest.mark.parametrize("path", ["/", "/b", "/b/", "/a/", "/a/x", "/b/x/y", "", "/../a", "/%61"])
def test_not_found(path):
    """What is not there is not there, for every method."""
    for method in ("GET", "DELETE"):
        with pytest.raises(Refused) as caught:
            resolve(ROUTES, method, path)
        assert (caught.value.status, str(caught.value)) == (404, f"there is no {path}")


def test_other_methods():
    """What is there says which methods it takes."""
    with pytest.raises(Refused) as caught:
        resolve(ROUTES, "DELETE", "/a")
    assert (caught.value.status, caught.value.headers) == (405, {"Allow": "GET, HEAD, PUT"})
    assert str(caught.value) == "/a takes GET, HEAD, PUT, not DELETE"
