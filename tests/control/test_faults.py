"""One fault over HTTP: triggered, switched off and on, and why not."""

import pytest


def test_trigger(ask, backend):
    """What can be triggered is, and its status comes back."""
    backend.faults = {"manual": "", "other": None}
    assert ask("POST", "/faults/manual/trigger").json == {"name": "manual", "requested": 1}
    said = ask("POST", "/faults/other/trigger")
    assert (said.status, said.json) == (409, {"error": "it acts by itself"})
    said = ask("POST", "/faults/nosuch/trigger")
    assert (said.status, said.json) == (404, {"error": "no fault nosuch"})


def test_busy(ask, backend):
    """A data side without time is an answer too."""
    backend.busy = True
    said = ask("POST", "/faults/manual/trigger")
    assert (said.status, said.json) == (503, {"error": "the data side is busy; ask again"})


@pytest.mark.parametrize("enabled", [True, False])
def test_switch(ask, backend, enabled):
    """Off and on."""
    backend.faults = {"a": ""}
    said = ask("PATCH", "/faults/a", {"enabled": enabled})
    assert (said.status, said.json) == (200, {"name": "a", "enabled": enabled})
    assert ask("PATCH", "/faults/b", {"enabled": enabled}).status == 404


@pytest.mark.parametrize("body", [{}, {"enabled": 1}, {"enabled": None}, {"on": True}])
def test_bad_switch(ask, body):
    """Nothing else is understood."""
    assert ask("PATCH", "/faults/a", body).status == 400
