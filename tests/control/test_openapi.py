"""The description is a valid document of its kind, and tells of every route."""

import re

import jsonschema

from chaosproxy.control.api import ROUTES
from chaosproxy.control.guard import OPEN_ROUTES
from chaosproxy.control.openapi import document


def test_every_route_is_told():
    """Each with its parameters, its body, and who needs a token."""
    told = document(ROUTES)
    assert told["openapi"].startswith("3.1")
    operations = {
        (method.upper(), path): operation
        for path, methods in told["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == {(route.method, route.pattern) for route in ROUTES}
    for (_, path), operation in operations.items():
        assert operation["summary"].endswith(".")
        places = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
        assert places == re.findall(r"\{(\w+)\}", path)
        assert ("security" in operation) == (path not in OPEN_ROUTES)
    put = operations["PUT", "/profile"]["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator.check_schema(put)
    jsonschema.validate({"name": "lost-ack", "seed": 3, "set": {"a.b": 1}}, put)
