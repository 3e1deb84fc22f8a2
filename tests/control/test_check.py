"""A profile's text is checked as it will be when it is put in force, and nothing else happens."""

import pytest


@pytest.mark.parametrize(
    "yaml", ["faults: []\n", "faults:\n- {fault: latency, at: after_apply, delay: 1s}\n"]
)
def test_good(ask, yaml):
    """What could be put in force has no problems."""
    assert ask("POST", "/profile/check", {"yaml": yaml}).json == {"problems": []}


@pytest.mark.parametrize("yaml", ["", "a: &a [*a]", "faults:\n- {fault: latncy}\n", "\ud800"])
def test_bad(ask, backend, yaml):
    """The problems are those of PUT /profile, and what is in force stays in force."""
    checked = ask("POST", "/profile/check", {"yaml": yaml})
    refused = ask("PUT", "/profile", {"yaml": yaml})
    assert (checked.status, refused.status) == (200, 422)
    assert checked.json["problems"] == refused.json["problems"]
    assert checked.json["problems"]
    assert backend.generation == 1


@pytest.mark.parametrize("body", [{}, {"yaml": 1}, {"name": "calm"}])
def test_no_request(ask, body):
    """What is no text is 400."""
    assert ask("POST", "/profile/check", body).status == 400
