"""`status`: what is in force and what it has done, for people and for programs."""

import json


def test_status(asked):
    """The profile, its seed, and a row a fault."""
    proxy, run = asked
    proxy.use("lost-ack", 5)
    with proxy.connect() as client:
        client.send("RPUSH", "l", "x")
        client.read_to_end()
    with proxy.connect() as client:
        client.ask("RPUSH", "l", "x")
        done = run("status")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[:2] == ["profile      lost-ack", "seed         5"]
    assert lines[2].startswith("generation   2, since 2")
    assert lines[3] == "connections  1"
    assert [line.split() for line in lines[5:]] == [
        ["fault", "type", "matched", "fired", "skipped"],
        ["lost-ack", "disconnect", "2", "1", "nth", "1"],
    ]


def test_without_faults(asked):
    """Calm has none, and says so."""
    assert asked[1]("status").stdout.splitlines()[-1] == "no faults"


def test_as_json(asked):
    """All that the API knows."""
    now = json.loads(asked[1]("status", "--json").stdout)
    assert (now["name"], now["faults"], now["connections"]) == ("calm", [], 0)
