"""The description is a valid document of its kind, tells of every route, and every answer looks as it says."""

import re

import jsonschema
import pytest

from chaosproxy.control.api import ROUTES
from chaosproxy.control.guard import OPEN_ROUTES
from chaosproxy.control.openapi import document
from chaosproxy.control.shapes import SHAPES


def operations():
    return {
        (method.upper(), path): operation
        for path, methods in document(ROUTES)["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_is_told():
    """Each with its parameters, its body, all its answers, and who needs a token; GET also as HEAD, without bodies."""
    assert document(ROUTES)["openapi"].startswith("3.1")
    told = operations()
    given = {(route.method, route.pattern) for route in ROUTES}
    assert set(told) == given | {("HEAD", path) for method, path in given if method == "GET"}
    assert len({operation["operationId"] for operation in told.values()}) == len(told)
    for (method, path), operation in told.items():
        assert operation["summary"].endswith(".")
        places = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
        assert places == re.findall(r"\{(\w+)\}", path)
        assert ("security" in operation) == (path not in OPEN_ROUTES)
        assert ("401" in operation["responses"]) == (path not in OPEN_ROUTES)
        assert ("413" in operation["responses"]) == ("requestBody" in operation)
        if method == "HEAD":
            assert not any("content" in each for each in operation["responses"].values())
    put = told["PUT", "/profile"]["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator.check_schema(put)
    jsonschema.validate({"name": "lost-ack", "seed": 3, "set": {"a.b": 1}}, put)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    """Each is a schema, what it refers to is there, and some route gives it or one that refers to it does."""
    jsonschema.Draft202012Validator.check_schema(SHAPES[name])
    told = str(document(ROUTES))
    assert f"#/components/schemas/{name}'" in told
    for named in re.findall(r"#/components/schemas/(\w+)", str(SHAPES[name])):
        assert named in SHAPES
