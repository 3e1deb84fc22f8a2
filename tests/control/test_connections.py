"""Connections over HTTP: the list, and cutting one."""

import pytest


def test_list(ask, backend):
    """All that are open."""
    backend.links = {3: {"id": 3}, 5: {"id": 5}}
    assert ask("GET", "/connections").json == {"connections": [{"id": 3}, {"id": 5}]}


def test_cut(ask, backend):
    """One is cut; it is gone then."""
    backend.links = {3: {"id": 3}}
    assert ask("DELETE", "/connections/3").json == {"id": 3, "cut": "reset"}
    assert ask("DELETE", "/connections/3").status == 404


@pytest.mark.parametrize("number", ["0", "-1", "x", "³", "9" * 30])
def test_no_such(ask, number):
    """What is no number is no connection."""
    said = ask("DELETE", f"/connections/{number.replace('³', '%C2%B3')}")
    assert (said.status, said.json) == (404, {"error": f"there is no connection {number!r}"})
