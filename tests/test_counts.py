"""Counting: each effect under its labels, and labels that stay bounded."""

from dataclasses import replace

from chaosproxy.core.effect import KeysTouched, Matched, ProtocolFault, Skipped
from chaosproxy.counts import MOST_NAMES, Counts
from tests import collecting
from tests.test_journal import FIRED

KNOWN = frozenset({"RPUSH", "GET"})


def test_each_effect_under_its_labels():
    """What a conversation says has happened is counted once, in its place."""
    counts = Counts()
    for effect in (
        Matched("lost-ack"),
        Matched("lost-ack"),
        Skipped("lost-ack", "nth"),
        FIRED,
        KeysTouched("gone", "expired", 3),
        ProtocolFault("client", "what?"),
    ):
        counts.count(effect, "demo", "disconnect", KNOWN)
    assert counts.matched == {("demo", "lost-ack", "disconnect"): 2}
    assert counts.skipped == {("demo", "lost-ack", "nth"): 1}
    labels = ("demo", "lost-ack", "disconnect", "RPUSH", "after_apply", "unknown")
    assert counts.fired == {labels: 1}
    assert counts.keys_touched == {("gone", "expired"): 3}
    assert counts.protocol_errors == {"client": 1}
    assert counts.delays["lost-ack"].sum == FIRED.delay


def test_delays_fall_into_buckets():
    """A delay counts in the bucket whose upper bound it does not exceed; beyond the last in +Inf."""
    counts = Counts()
    for delay in (0.0005, 0.001, 0.3, 31.0):
        counts.count(replace(FIRED, delay=delay), "demo", "latency", KNOWN)
    buckets = counts.delays["lost-ack"].buckets
    assert (buckets[0], buckets[7], buckets[-1], sum(buckets)) == (2, 1, 1, 4)


def test_declared_faults_are_there_with_zero():
    """A fault that never matched is seen as 0, not as absent."""
    counts = Counts()
    counts.declare("demo", {"lost-ack": "disconnect"})
    assert counts.matched == {("demo", "lost-ack", "disconnect"): 0}


def test_what_is_left_alone_without_a_word():
    """What a rule in force counts by itself, its matches and those that it leaves alone, is added to what was told of, and kept beyond its time."""
    counts = Counts()
    left = {"chance": 2}
    acted = [0]

    def unsaid() -> tuple[int, dict[str, int]]:
        return acted[0] + sum(left.values()), left.copy()

    counts.declare("demo", {"lost-ack": "disconnect"}, {"lost-ack": unsaid})
    left["chance"] = 5
    left["nth"] = 1
    acted[0] = 3
    counts.count(Matched("lost-ack"), "demo", "disconnect", KNOWN)
    counts.count(Skipped("lost-ack", "nth"), "demo", "disconnect", KNOWN)
    for _ in range(2):
        assert counts.matched[("demo", "lost-ack", "disconnect")] == 10
        assert counts.skipped == {("demo", "lost-ack", "chance"): 5, ("demo", "lost-ack", "nth"): 2}
        counts.declare("calm", {})
    left["chance"] = 9
    assert counts.matched == {("demo", "lost-ack", "disconnect"): 10}


def test_labels_are_bounded():
    """Commands that no server knows, and names without end, make no new time series."""
    counts = Counts()
    counts.count(replace(FIRED, command="X" * 100), "demo", "disconnect", KNOWN)
    assert [key[3] for key in counts.fired] == ["other"]
    for number in range(MOST_NAMES + 100):
        counts.count(Matched(f"fault-{number}"), f"profile-{number}", "reply", KNOWN)
    assert len(counts.matched) <= MOST_NAMES
    assert sum(counts.matched.values()) == MOST_NAMES + 100


def test_totals():
    """Each fault of each profile, with its own numbers only, also where names are the same."""
    counts = Counts()
    counts.declare("p", {"a": "reply", "b": "reply"})
    counts.declare("q", {"a": "latency"})
    for profile, type_ in (("p", "reply"), ("q", "latency"), ("q", "latency")):
        counts.count(Matched("a"), profile, type_, ())
    counts.count(Skipped("a", "nth"), "q", "latency", ())
    counts.count(replace(FIRED, fault="a", type="reply"), "p", "reply", ())
    assert counts.totals() == [
        {"profile": "p", "name": "a", "type": "reply", "matched": 1, "fired": 1, "skipped": {}},
        {"profile": "p", "name": "b", "type": "reply", "matched": 0, "fired": 0, "skipped": {}},
        {
            "profile": "q",
            "name": "a",
            "type": "latency",
            "matched": 2,
            "fired": 0,
            "skipped": {"nth": 1},
        },
    ]
    counts.count(replace(FIRED, fault="a", type="latency"), "q", "latency", ())
    assert counts.fired_by_name() == {"a": 2}


def test_totals_of_two_faults_of_one_name():
    """A profile that is put anew under its name may call another fault as one was called: each has its own numbers."""
    counts = Counts()
    for type_ in ("reply", "latency"):
        counts.declare("sent", {"a": type_})
        counts.count(Matched("a"), "sent", type_, ())
        counts.count(Skipped("a", "nth" if type_ == "reply" else "chance"), "sent", type_, ())
    assert [(each["type"], each["matched"], each["skipped"]) for each in counts.totals()] == [
        ("reply", 1, {"nth": 1}),
        ("latency", 1, {"chance": 1}),
    ]
    assert counts.skipped == {("sent", "a", "nth"): 1, ("sent", "a", "chance"): 1}


class Busy(Counts):
    """Counts with which more has happened by the time that whoever reads them goes on."""

    def happens(self):
        """A new fault leaves one match alone and acts on the next."""
        new = f"new-{sum(self._matched.values())}"
        for effect in (Matched(new), Skipped(new, "nth"), Matched(new), replace(FIRED, fault=new)):
            self.count(effect, "demo", FIRED.type, {"RPUSH"})

    @property
    def matched(self):
        """Read the matches."""
        found = super().matched
        self.happens()
        return found

    @property
    def left_alone(self):
        """Read what was left alone."""
        found = super().left_alone
        self.happens()
        return found


def test_totals_while_counting():
    """Whatever is new between any two steps, the numbers fit: nothing became of a match that is not there."""
    counts = Busy()
    for _ in range(3 * collecting.OFTEN):
        counts.happens()
    with collecting.meanwhile(counts.happens):
        found = counts.totals()
    assert len(found) > 3 * collecting.OFTEN
    assert all(one["fired"] + sum(one["skipped"].values()) <= one["matched"] for one in found)
