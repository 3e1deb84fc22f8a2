"""Toxiproxy's routes over HTTP: its shapes and its statuses."""

import pytest

from chaosproxy.control.toxiproxy_api import VERSION

PROXY = {"name": "redis", "upstream": "127.0.0.1:6379", "listen": "127.0.0.1:0"}
LATENCY = {"type": "latency", "attributes": {"latency": 5}}


def test_a_life(ask):
    """A proxy is made, gets a toxic, loses it, is disabled, and ends."""
    made = ask("POST", "/proxies", PROXY)
    assert (made.status, made.json["listen"]) == (201, "127.0.0.1:40000")
    assert ask("GET", "/proxies").json == {"redis": made.json}
    toxic = ask("POST", "/proxies/redis/toxics", LATENCY)
    assert (toxic.status, toxic.json["name"]) == (200, "latency_downstream")
    assert ask("GET", "/proxies/redis/toxics").json == [toxic.json]
    assert ask("GET", "/proxies/redis/toxics/latency_downstream").json == toxic.json
    for method in ("POST", "PATCH"):
        body = {"attributes": {"latency": 7}}
        said = ask(method, "/proxies/redis/toxics/latency_downstream", body)
        assert said.json["attributes"]["latency"] == 7
        assert ask(method, "/proxies/redis", {"enabled": False}).json["enabled"] is False
    said = ask("DELETE", "/proxies/redis/toxics/latency_downstream")
    assert (said.status, said.body, said.headers["Content-Length"]) == (204, b"", None)
    assert ask("POST", "/reset").status == 204
    assert ask("GET", "/proxies/redis").json["enabled"] is True
    assert ask("DELETE", "/proxies/redis").status == 204
    assert ask("GET", "/proxies").json == {}


def test_populate(ask):
    """Several at once."""
    said = ask("POST", "/populate", [PROXY, {**PROXY, "name": "other"}])
    assert said.status == 201
    assert [each["name"] for each in said.json["proxies"]] == ["redis", "other"]


def test_version(ask):
    """The version whose routes these are, and whose they really are."""
    assert ask("GET", "/version").json == {"version": VERSION}
    assert "chaosproxy" in VERSION


def test_any_content_type_but_a_forms(ask):
    """Its clients do not all say what they send; a page's form cannot be one of them."""
    body = b'{"name": "a", "upstream": "127.0.0.1:1"}'
    assert ask("POST", "/proxies", body).status == 201
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        said = ask("POST", "/proxies", body, Content_Type=kind)
        assert (said.status, said.json["status"]) == (415, 415)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/proxies", b"x"),
        ("/proxies", b"[]"),
        ("/populate", b"{}"),
        ("/populate", b"[1]"),
        ("/proxies", b""),
    ],
)
def test_bad_bodies(ask, path, body):
    """What is no such body is refused in its shape."""
    said = ask("POST", path, body)
    assert (said.status, said.json["status"]) == (400, 400)
    assert said.json["error"].startswith("bad request body")


def test_not_found(ask):
    """As it says it."""
    assert ask("GET", "/proxies/x").json == {"error": "proxy not found", "status": 404}
