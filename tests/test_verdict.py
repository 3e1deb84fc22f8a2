"""Which faults must fire, what is missing, and which exit status that is."""

import pytest

from chaosproxy.profile import Source, find, load
from chaosproxy.verdict import NoSuchFaultError, required_faults
from tests.report.running import FAULT, NEVER, run

RULES = b"""
faults:
- {fault: latency, name: sure, at: after_apply, delay: 1ms}
- {fault: latency, name: perhaps, at: after_apply, delay: 1ms, when: {chance: 10%}}
- {fault: latency, name: by-hand, at: after_apply, delay: 1ms, when: {trigger: manual}}
"""
PROFILE = load([Source("p", RULES, "p.yaml")])


@pytest.mark.parametrize(
    ("asked", "required"),
    [
        ((), ("sure",)),
        (("all",), ("sure", "perhaps", "by-hand")),
        (("none",), ()),
        (("by-hand", "sure", "by-hand"), ("by-hand", "sure")),
        (("none", "perhaps"), ("perhaps",)),
    ],
)
def test_required(asked, required):
    """Without a word all that need no luck and no hand; else what is said."""
    assert required_faults(PROFILE, asked) == required


def test_calm_requires_nothing():
    """Where there is no fault none has to fire, even if all have to."""
    calm = load([find("calm")])
    assert required_faults(calm) == required_faults(calm, ["all"]) == ()


@pytest.mark.parametrize(
    ("name", "said"), [("shure", "did you mean 'sure'?"), ("x", "it has sure, perhaps, by-hand")]
)
def test_unknown(name, said):
    """A name that is not there is answered with those that are."""
    with pytest.raises(NoSuchFaultError) as caught:
        required_faults(PROFILE, [name])
    assert str(caught.value) == f"no fault of profile p is called '{name}'; {said}"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 0),
        ({"faults": [NEVER], "required": ("never",)}, 3),
        ({"faults": [NEVER], "required": ("never",), "status": 7}, 7),
        ({"faults": [NEVER], "required": ("never",), "divergence": "diverges"}, 1),
        ({"divergence": "diverges", "status": 7}, 7),
        ({"faults": [NEVER], "required": ("never",), "recorded": 5, "lost": 2}, 1),
        ({"lost": 2, "status": 7}, 7),
        ({"faults": [NEVER], "required": ()}, 0),
    ],
)
def test_exit_status(more, status):
    """The command's own first, then the replay and what the file lacks, then what never fired."""
    assert run(**more).exit_status == status


def test_missing():
    """What never fired, of the profile that the run began with, and why."""
    elsewhere = FAULT | {"profile": "other", "name": "never"}
    skipped = NEVER | {"name": "late", "matched": 2, "skipped": {"nth": 2}}
    held = NEVER | {"name": "held", "matched": 1}
    ended = run(
        faults=[FAULT, elsewhere, NEVER, skipped, held],
        required=("lost-ack", "never", "late", "held", "gone"),
    )
    assert ended.missing == ("never", "late", "held", "gone")
    assert [ended.why_missing(name) for name in ended.missing] == [
        "nothing that it matches ever came",
        "it matched 2 times and was skipped: nth 2",
        "it matched once and was skipped: it was still under way",
        "nothing that it matches ever came",
    ]


def test_what_came_instead():
    """A fault that met none of its commands is told with those that came: redis-py's incr() sends INCRBY."""
    came = dict.fromkeys("BCDEFGHI", 1) | {"INCRBY": 3, "HELLO": 0}
    told = run(faults=[NEVER], required=("never",), came=came).why_missing("never")
    most = "INCRBY 3, B 1, C 1, D 1, E 1, F 1, G 1, H 1"
    assert told == f"nothing that it matches ever came; most that came: {most}"


def test_incomplete():
    """What the events file lacks is said; where it has all there is nothing to say."""
    assert run().incomplete == ""
    said = "2 of 5 events could not be written: their numbers are missing in the file"
    assert run(recorded=5, lost=2).incomplete == said
    assert run(recorded=5, lost=2).as_dict()["events_lost"] == 2


def test_as_dict():
    """All that programs want to know; the events stand in their own file."""
    told = run().as_dict()
    assert (told["seed"], told["exit_status"], told["missing"], told["events"]) == (7, 0, [], 1)
    assert told["faults"] == [FAULT | {"required": True}]
