"""Each toxic as faults: what it acts on, where, for how long; and what has no counterpart."""

import json

import pytest

from chaosproxy.control.toxics import Toxic, ToxicError, faults_of, read_toxic
from chaosproxy.core.command_table import CommandTable
from chaosproxy.profile import Source, load


def rules(kind, stream="downstream", toxicity=1.0, **attributes):
    """The rules that a toxic makes, read as a profile is."""
    toxic = read_toxic(
        {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
    )
    text = json.dumps({"faults": faults_of(toxic, "node-1", "x")})
    profile = load([Source("t", text.encode(), "t")], table=CommandTable.bundled())
    assert all(rule.match.connection.listener == "node-1" for rule in profile.rules)
    return profile.rules


def shape(rules):
    """Type, position and commands of each."""
    return [(rule.fault.type, str(rule.at), rule.match.commands) for rule in rules]


BOTH = (None, ("@handshake",))


@pytest.mark.parametrize(
    ("kind", "stream", "attributes", "expected"),
    [
        ("latency", "downstream", {"latency": 5}, [("latency", "after_apply")]),
        ("latency", "upstream", {"latency": 5, "jitter": 9}, [("latency", "before_forward")]),
        ("bandwidth", "downstream", {"rate": 5}, [("bandwidth", "before_forward")]),
        ("bandwidth", "upstream", {"rate": 0}, [("blackhole", "before_forward")]),
        ("timeout", "downstream", {"timeout": 0}, [("blackhole", "before_forward")]),
        ("timeout", "upstream", {"timeout": 5}, [("latency", "before_forward"), ("disconnect", "before_forward")]),
        ("timeout", "downstream", {"timeout": 5}, [("latency", "after_apply"), ("disconnect", "after_apply")]),
        ("slicer", "downstream", {"average_size": 5, "delay": 9}, [("slice", "after_apply")]),
        ("limit_data", "downstream", {"bytes": 5}, [("disconnect", "mid_reply")]),
        ("limit_data", "downstream", {"bytes": 0}, [("disconnect", "after_apply")]),
    ],
)  # fmt: skip
def test_all_commands(kind, stream, attributes, expected):
    """Every command is meant, also those with which a connection begins."""
    assert shape(rules(kind, stream, **attributes)) == [
        (*each, commands) for each in expected for commands in BOTH
    ]


def test_numbers():
    """Toxiproxy's units are ms, KB/s, µs and bytes."""
    assert "seconds=0.25" in repr(rules("latency", latency=250)[0].fault.delay)
    jitter = repr(rules("latency", latency=100, jitter=250)[0].fault.delay)
    assert "0.35" in jitter
    assert "-" not in jitter
    assert rules("bandwidth", rate=5)[0].fault.rate == 5000
    slice_ = rules("slicer", average_size=7, delay=1500)[0].fault
    assert (slice_.size, slice_.gap) == (7, 0.0015)
    cut = rules("limit_data", bytes=20)[0]
    assert (cut.fault.bytes, cut.match.reply.larger_than) == (20, 20)


def test_directions():
    """What is throttled or silent is one way."""
    assert rules("bandwidth", rate=5)[0].fault.direction == "to_client"
    assert rules("bandwidth", "upstream", rate=5)[0].fault.direction == "to_upstream"
    assert rules("timeout", "upstream")[0].fault.direction == "to_upstream"


def test_reset_peer():
    """New connections are reset too, after the same time."""
    newcomers, *others = rules("reset_peer", timeout=50)
    assert (newcomers.fault.type, newcomers.fault.new_connections, newcomers.fault.delay) == (
        "admit",
        "reset",
        0.05,
    )
    assert [rule.fault.how for rule in others if rule.fault.type == "disconnect"] == ["reset"] * 2
    assert rules("reset_peer")[0].fault.delay is None


def test_slow_close():
    """The order in which a Redis connection is closed is QUIT's."""
    assert shape(rules("slow_close", delay=5)) == [("latency", "after_apply", ("QUIT",))]


@pytest.mark.parametrize("kind", ["latency", "slow_close"])
def test_nothing_to_do(kind):
    """No time is no fault."""
    assert rules(kind) == ()


def test_toxicity():
    """Less than all of it is a chance."""
    assert [rule.when.chance for rule in rules("latency", toxicity=0.25, latency=5)] == [0.25] * 2
    assert rules("latency", latency=5)[0].when.chance is None


def test_faults_are_toxics():
    """Any fault is a type: its attributes are its fields, and its match stays."""
    (rule,) = rules("drop_write", tell="ok", match={"keys": "a*"}, when={"nth": 2})
    assert (rule.fault.tell, rule.match.keys, rule.when.nth) == ("ok", (b"a*",), (2,))
    (rule,) = rules("drop_write", toxicity=0.5, tell="ok", when={"first": 2})
    assert (rule.when.first, rule.when.chance) == (2, 0.5)
    (rule,) = rules("admit", new_connections="reset")
    assert rule.match.commands is None


def test_defaults_and_updates():
    """A name and a stream where there is none; an update keeps what it does not say."""
    toxic = read_toxic({"type": "latency", "attributes": {"latency": 5}})
    assert toxic == Toxic(
        "latency_downstream", "latency", "downstream", 1.0, {"latency": 5, "jitter": 0}
    )
    assert toxic.as_dict()["attributes"] == {"latency": 5, "jitter": 0}
    new = read_toxic({"attributes": {"jitter": 7}, "toxicity": 0.5, "type": "other"}, toxic)
    assert (new.type, new.toxicity, new.attributes) == ("latency", 0.5, {"latency": 5, "jitter": 7})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "invalid toxic type: ''"),
        ({"type": "nope"}, "invalid toxic type: 'nope'; there are latency, bandwidth"),
        ({"type": ["x"]}, "invalid toxic type"),
        ({"type": "latency", "stream": "sideways"}, "stream was invalid"),
        ({"type": "latency", "name": "x" * 101}, "name: "),
        ({"type": "latency", "name": 3}, "name: "),
        ({"type": "latency", "toxicity": 2}, "toxicity: "),
        ({"type": "latency", "toxicity": "1"}, "toxicity: "),
        ({"type": "latency", "toxicity": True}, "toxicity: "),
        ({"type": "latency", "attributes": [1]}, "attributes: "),
        ({"type": "latency", "attributes": {"delay": 1}}, "unknown attribute 'delay'"),
        ({"type": "latency", "attributes": {"latency": -1}}, "latency: expected a whole number"),
        ({"type": "latency", "attributes": {"latency": 1.5}}, "latency: expected a whole number"),
        ({"type": "latency", "attributes": {"latency": 10**10}}, "latency: "),
        ({"type": "latency", "attributes": {"latency": None}}, "latency: "),
    ],
)
def test_what_is_no_toxic(body, said):
    """Each mistake is named."""
    with pytest.raises(ToxicError) as caught:
        read_toxic(body)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("kind", "stream", "said"),
    [
        ("slicer", "upstream", "slicer: stream downstream only"),
        ("slicer", "downstream", "average_size: "),
        ("limit_data", "upstream", "limit_data: stream downstream only"),
    ],
)
def test_what_has_no_counterpart(kind, stream, said):
    """What cannot be done is refused, and not passed over."""
    with pytest.raises(ToxicError) as caught:
        rules(kind, stream)
    assert str(caught.value).startswith(said)
