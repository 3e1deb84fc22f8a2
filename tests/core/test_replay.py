"""A recording: which matches it holds, what diverges from it, what never came."""

import pytest

from chaosproxy.core.replay import Divergence, Recording


def event(n: int, **more: object) -> dict[str, object]:
    return {
        "n": n,
        "fault": "lost",
        "ordinal": n,
        "match": n,
        "digest": f"d{n}",
        "command": "RPUSH",
        **more,
    }


def test_finds_by_fault_scope_and_ordinal():
    """A match is found by its fault, its scope and its place there, with the recorded delay and draw."""
    recording = Recording.of([event(1, per="k", delay=0.5, draw=0.25), event(2)])
    found = recording.find("lost", "k", 1, "RPUSH", "d1")
    assert found is not None
    assert (found.n, found.match, found.delay, found.draw) == (1, 1, 0.5, 0.25)
    assert recording.find("lost", "k", 2, "RPUSH", "d2") is None
    assert recording.find("lost", "", 1, "RPUSH", "d1") is None
    assert recording.find("other", "k", 1, "RPUSH", "d1") is None


def test_played_whole():
    """When all of it came there is no difference."""
    recording = Recording.of([event(1), event(2)])
    recording.find("lost", "", 1, "RPUSH", "d1")
    recording.find("lost", "", 2, "RPUSH", "d2")
    assert recording.unplayed() == []
    assert recording.verdict() is None


def test_first_divergence_stays():
    """The first request that is another one is told, with both sides; later ones do not take its place."""
    recording = Recording.of([event(1, per="k"), event(2, per="k")])
    recording.find("lost", "k", 1, "LPUSH", "x")
    recording.find("lost", "k", 2, "SET", "y")
    difference = Divergence(
        "event 1: lost, match 1 of k: RPUSH with digest d1", "LPUSH with digest x"
    )
    assert recording.verdict() == recording.divergence == difference
    assert str(difference) == (
        "diverges: recorded was event 1: lost, match 1 of k: RPUSH with digest d1; what came: LPUSH with digest x"
    )


def test_what_never_came():
    """What did not come is told in the order it was recorded, with how much that is."""
    recording = Recording.of([event(3), event(1), event(2)])
    recording.find("lost", "", 1, "RPUSH", "d1")
    assert [recorded.n for recorded in recording.unplayed()] == [2, 3]
    assert recording.verdict() == Divergence(
        "event 2: lost, match 2: RPUSH with digest d2", "it never came (2 of 3 recorded did not)"
    )


@pytest.mark.parametrize("missing", ["n", "fault", "ordinal", "match", "digest", "command"])
def test_no_event(missing: str):
    """What lacks one of an event's fields cannot be replayed."""
    broken = {name: value for name, value in event(1).items() if name != missing}
    with pytest.raises(ValueError, match="no event to replay"):
        Recording.of([broken])


def test_no_number():
    """Nor can what has words in a number's place."""
    with pytest.raises(ValueError, match="no event to replay"):
        Recording.of([event(1, ordinal="first")])


@pytest.mark.parametrize(
    "more",
    [{"delay": -1.0}, {"delay": float("nan")}, {"delay": float("inf")}, {"draw": "x"}, {"n": 0}],
)
def test_no_such_number(more: dict[str, object]):
    """A delay, a roll or a number that no event can have is damage, and nothing is replayed with it."""
    with pytest.raises(ValueError, match="no event to replay"):
        Recording.of([event(1, **more)] if "n" not in more else [event(1) | more])


def test_an_event_twice():
    """No event stands in a recording twice, or its number would say that others are there."""
    with pytest.raises(ValueError, match="event 2 stands in it twice"):
        Recording.of([event(1), event(2), event(2)])
