"""`--set`: one value from outside, wherever it stands, and mistakes shown in what was given."""

import pytest

from chaosproxy.core.distribution import Distribution, Fixed, Uniform
from chaosproxy.profile import ProfileError

YAML = """\
description: d
seed: 7
faults:
  - fault: disconnect
    name: lost-ack
    match: {commands: [RPUSH, LPUSH]}
    when: &when {nth: 1}
    at: after_apply
  - fault: latency
    when: *when
    at: after_apply
    delay: {uniform: [1ms, 2ms], max: 1s}
"""


def test_a_value(load):
    """A value is replaced, and read as YAML."""
    cut, wait = load(
        YAML,
        overrides=[
            "lost-ack.when.nth=3",
            "lost-ack.match.commands=[INCR]",
            "lost-ack.at=before_forward",
            "lost-ack.how=close",
            "latency.delay=800ms",
        ],
    ).rules
    assert (cut.when.nth, cut.match.commands, cut.at, cut.fault.how) == (
        (3,),
        ("INCR",),
        "before_forward",
        "close",
    )
    assert wait.fault.delay == Distribution(Fixed(0.8))


def test_an_alias_is_changed_in_one_place(load):
    """What two faults share by an alias is changed for the one that was named."""
    cut, wait = load(YAML, overrides=["lost-ack.when.nth=3"]).rules
    assert (cut.when.nth, wait.when.nth) == ((3,), (1,))


def test_deep_down(load):
    """Steps go through mappings and, by index, through lists; the last of several counts."""
    cut, wait = load(
        YAML,
        overrides=[
            "lost-ack.match.commands.0=INCR",
            "latency.delay.uniform.1=5ms",
            "latency.delay.uniform.1=3ms",
        ],
    ).rules
    assert cut.match.commands == ("INCR", "LPUSH")
    assert wait.fault.delay == Distribution(Uniform(0.001, 0.003), 1.0)


def test_what_was_not_there(load):
    """A field that is not written yet is made, with the mappings around it."""
    cut, _ = load(YAML, overrides=["lost-ack.match.arguments.has=NX", "lost-ack.when="]).rules
    assert cut.match.arguments.has == b"NX"
    assert cut.when.nth is None


def test_the_profiles_own_fields(load):
    """Seed and description are named without a fault; they hold for all profiles that are joined."""
    profile = load(YAML, "seed: 8\nfaults: []", overrides=["seed=9", "description=e=f"])
    assert (profile.seed, profile.description) == (9, "e=f")


def test_default_names_can_be_used(load):
    """A fault without a name goes by its type, and by its number in the profiles that are joined."""
    other = "faults: [{fault: latency, at: after_apply, delay: 1s}]"
    rules = load(YAML, other, overrides=["latency.delay=2s", "latency-2.delay=3s"]).rules
    assert [rule.fault.delay.shape.seconds for rule in rules[1:]] == [2, 3]


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        ("lost-ack", 1, "expected PATH=VALUE, such as lost-ack.when.nth=3"),
        ("=3", 1, "expected PATH=VALUE, such as lost-ack.when.nth=3"),
        ("lost-ack..nth=3", 1, "expected PATH=VALUE, such as lost-ack.when.nth=3"),
        ("lost-ack=3", 1, "'lost-ack' is a fault: name one of its fields, such as lost-ack.when.nth"),
        ("lostack.when.nth=3", 1, "no fault is called 'lostack'; did you mean 'lost-ack'?"),
        ("xyzzy.when.nth=3", 1, "no fault is called 'xyzzy', expected one of lost-ack, latency"),
        ("sed=3", 1, "no fault is called 'sed'; did you mean 'seed'?"),
        ("seed=x", 6, "seed: expected a whole number from 0 to 1000000000000000, got 'x'"),
        ("lost-ack.when.nht=3", 15, "unknown field 'nht' in when; did you mean 'nth'?"),
        ("lost-ack.wen.nth=3", 10, "unknown field 'wen' in fault disconnect; did you mean 'when'?"),
        ("lost-ack.nth=3", 10, "unknown field 'nth' in fault disconnect: it belongs under 'when'"),
        ("lost-ack.how=rest", 14, "how: expected reset or close, got 'rest'; did you mean 'reset'?"),
        ("lost-ack.match.commands.7=GET", 25, "no item 7, the list has 0 to 1"),
        ("lost-ack.at.x=GET", 13, "'x' leads nowhere: before it stands a value, not a mapping"),
        ("lost-ack.match.commands=@read", 25, "a value that begins with @ must be in quotes"),
        ("lost-ack.match.commands=[GET, RPUHS]", 31,
         "commands: unknown command RPUHS; did you mean 'RPUSH'?"),
        ("latency.delay.lognormal={p50: 1ms, p99: 2ms}", 15,
         "delay: expected one of uniform, normal, lognormal, pareto, got uniform and lognormal"),
    ],
)  # fmt: skip
def test_problems(load, given, column, message):
    """A mistake is shown in the override itself, which has no line number."""
    with pytest.raises(ProfileError) as raised:
        load(YAML, overrides=[given])
    (problem,) = raised.value.problems
    if "uniform and" in message:
        # Two values that do not go together: one stands in the file, and that is where it is told.
        assert problem.render().startswith(f"a.yaml:12:12: {message}\n")
    else:
        caret = " " * (column - 1) + "^"
        assert problem.render() == f"--set: {message}\n    {given}\n    {caret}"


def test_problems_of_files_come_first(told):
    """The files' problems, then the overrides', in the order given."""
    assert told("faults: [{fault: x}]", overrides=["b=1", "a=1"]) == [
        "a.yaml:1:18: unknown fault 'x', expected one of disconnect, drop_write, latency",
        "--set: no fault is called 'b', expected one of description, healthy, seed, x",
        "--set: no fault is called 'a', expected one of description, healthy, seed, x",
    ]
