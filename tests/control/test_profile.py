"""Profiles over HTTP: those that ship, the one in force, another one, and everything that is wrong with one."""

import pytest

from chaosproxy import profile

BAD = "faults:\n- {fault: latncy}\n- {fault: disconnect}\n"
GOOD = "seed: 3\nfaults:\n- {fault: latency, at: after_apply, delay: 1s}\n"


def test_what_ships(ask):
    """The list, and each as it ships."""
    listed = ask("GET", "/profiles").json["profiles"]
    assert [each["name"] for each in listed] == profile.names()
    assert {"name": "calm", "summary": profile.first_line("calm")} in listed
    said = ask("GET", "/profiles/lost-ack")
    assert (said.body, said.headers["Content-Type"]) == (
        profile.shipped("lost-ack").raw,
        "application/yaml",
    )


@pytest.mark.parametrize(
    "name", ["lost-akc", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "x.yaml"]
)
def test_what_does_not_ship(ask, name):
    """Only names that ship are found: no path leads anywhere."""
    said = ask("GET", f"/profiles/{name}")
    assert said.status == 404
    assert "no shipped profile is called" in said.json["error"]


def test_in_force(ask):
    """What is in force."""
    assert ask("GET", "/profile").json == {"name": "calm", "seed": 7, "generation": 1}


def test_by_name(ask, backend):
    """A shipped one by its name, with a seed and with values of its own."""
    body = {"name": "lost-ack", "seed": 5, "set": {"lost-ack.when.nth": [2, 3]}}
    said = ask("PUT", "/profile", body)
    assert said.status == 200
    assert said.json == {"name": "lost-ack", "seed": 5, "generation": 2, "warnings": []}
    assert backend.profile.rules[0].when.nth == (2, 3)


def test_several(ask, backend):
    """Several are joined."""
    ask("PUT", "/profile", {"name": ["lost-ack", "slow-redis"]})
    assert backend.profile.name == "lost-ack+slow-redis"


def test_as_text(ask, backend):
    """YAML, with a name if it is given one."""
    assert ask("PUT", "/profile", {"yaml": GOOD}).json["name"] == "sent"
    assert backend.profile.seed == 3
    assert ask("PUT", "/profile", {"yaml": GOOD, "name": "mine"}).json["name"] == "mine"
    body = {"yaml": GOOD, "set": {"latency.delay": "250ms"}}
    assert ask("PUT", "/profile", body).status == 200
    assert "seconds=0.25" in repr(backend.profile.rules[0].fault)


def test_warnings(ask, backend):
    """What the very server does not know is told, and no reason to refuse."""
    backend.strange = ["unknown command HEXPIRE"]
    assert ask("PUT", "/profile", {"yaml": GOOD}).json["warnings"] == backend.strange


def test_problems(ask, backend):
    """All problems at once, each with its place and as a line to print; the old profile stays."""
    said = ask("PUT", "/profile", {"yaml": BAD, "name": "mine"})
    assert said.status == 422
    assert said.json["error"] == "the profile has 2 problems"
    first, second = said.json["problems"]
    assert (first["file"], first["line"], first["column"]) == ("mine.yaml", 2, 11)
    assert (first["suggestion"], first["source_line"]) == ("latency", "- {fault: latncy}")
    assert first["text"].startswith("mine.yaml:2:11: ")
    assert (second["line"], second["column"]) == (3, 3)
    assert (backend.profile.name, backend.generation) == ("calm", 1)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "lost-akc"},
        {"name": "/etc/passwd"},
        {"name": "../profiles/calm.yaml"},
        {"name": ["calm", "nosuch"]},
        {"name": "lost-ack", "set": {"lost-ack.when.nht": 3}},
        {"yaml": ""},
        {"yaml": "a: &a [*a]"},
        {"yaml": "faults: []\n" + "#" * (256 * 1024)},
    ],
)
def test_other_problems(ask, backend, body):
    """A path is no name; an override can be wrong; a text may be anything: 422, and nothing changes."""
    said = ask("PUT", "/profile", body)
    assert said.status == 422
    assert all(problem["message"] for problem in said.json["problems"])
    assert backend.generation == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": []},
        {"name": [1]},
        {"name": 1},
        {"seed": 1},
        {"name": "calm", "seed": -1},
        {"name": "calm", "seed": "1"},
        {"name": "calm", "path": "x"},
        {"yaml": GOOD, "name": ""},
        {"yaml": GOOD, "name": "a\nb"},
        {"yaml": GOOD, "name": "x" * 101},
        {"yaml": GOOD, "name": ["a"]},
    ],
)
def test_bad_requests(ask, backend, body):
    """What is no such request is 400, in words."""
    said = ask("PUT", "/profile", body)
    assert said.status == 400
    assert said.json["error"]
    assert backend.generation == 1


def test_calm(ask, backend):
    """DELETE is calm, under the same seed."""
    ask("PUT", "/profile", {"name": "lost-ack", "seed": 5})
    assert ask("DELETE", "/profile").json == {"name": "calm", "seed": 5, "generation": 3}


def test_busy(ask, backend):
    """Where the data side has no time a profile is not put in force, and it is said so."""
    backend.busy = True
    for said in (ask("PUT", "/profile", {"name": "lost-ack"}), ask("DELETE", "/profile")):
        assert (said.status, said.json) == (503, {"error": "the data side is busy; ask again"})
    assert (backend.profile.name, backend.generation) == ("calm", 1)
    backend.busy = False
    assert ask("PUT", "/profile", {"name": "lost-ack"}).status == 200
