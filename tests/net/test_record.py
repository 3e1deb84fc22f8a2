"""What is written down: each effect in the journal and the counts, under the profile it happened in."""

import logging
from dataclasses import replace

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.effect import CloseClient, Matched, ProtocolFault, Skipped
from chaosproxy.core.engine import Engine
from chaosproxy.core.replay import Divergence, Recording
from chaosproxy.core.world import World
from chaosproxy.counts import Counts
from chaosproxy.journal import Journal
from chaosproxy.net.record import Record
from tests.conversation import Talk, profile

TABLE = CommandTable.bundled()
LOST = "- {fault: disconnect, name: lost, match: {commands: GET}, at: after_apply, how: reset}"


def fired(generation=1):
    """One real event of fault `lost`."""
    with Talk(LOST) as talk:
        talk.client("GET k")
        talk.expect_upstream("GET k")
        talk.upstream("$-1")
        talk.expect_closed("reset")
        return replace(talk.expect_fired("lost"), generation=generation)


class Written:
    """A record, its journal and its counts."""

    def __init__(self, recording=None):
        self.journal = Journal(0.0)
        self.counts = Counts()
        self.world = World(Engine(profile(LOST), TABLE, 7, 1, 0.0, recording=recording), TABLE)
        self.record = Record(self.journal, self.counts, self.world)

    def switch(self, name):
        """Put the next generation in force: a profile of that name."""
        generation = self.world.engine.generation + 1
        again = replace(profile(LOST), name=name)
        self.world.switch(Engine(again, TABLE, 7, generation, 0.0))
        self.record.declare(self.world.engine)


def test_an_event():
    """What fired is in the journal, and counted."""
    written = Written()
    written.record.write(fired(), 1.0)
    assert [event["fault"] for event in written.journal.events()] == ["lost"]
    assert list(written.counts.fired) == [
        ("test", "lost", "disconnect", "GET", "after_apply", "unknown")
    ]


def test_an_event_that_is_told_is_counted(monkeypatch):
    """Whoever finds it in the journal, or in its file, finds it in the metrics."""
    written, counted = Written(), []
    monkeypatch.setattr(written.journal, "record", lambda *_: counted.extend(written.counts.fired))
    written.record.write(fired(), 1.0)
    assert [key[1] for key in counted] == ["lost"]


def test_a_late_event_is_counted_under_its_own_profile():
    """An event of a generation that is over counts for its profile; one of long ago for none."""
    written = Written()
    written.switch("second")
    for generation in (1, 2):
        written.record.write(fired(generation), 1.0)
    assert [key[0] for key in written.counts.fired] == ["test", "second"]
    for _ in range(100):
        written.switch("third")
    written.record.write(fired(), 1.0)
    assert [key[0] for key in written.counts.fired] == ["test", "second", ""]


def test_a_match_is_counted_under_its_own_profile():
    """What was matched, or is left alone as profiles are switched, was the old one's, whatever the new one has of that name."""
    written = Written()
    written.switch("second")
    for generation in (0, 1, 2):
        written.record.write(Matched("lost", generation), 1.0)
        written.record.write(Skipped("lost", "switched", generation), 1.0)
    assert written.counts.matched == {
        ("test", "lost", "disconnect"): 1,
        ("second", "lost", "disconnect"): 2,
    }
    assert written.counts.skipped == {
        ("test", "lost", "switched"): 1,
        ("second", "lost", "switched"): 2,
    }


def test_a_held_up_match_that_a_switch_ends_is_the_old_profile_s():
    """The conversation says whose the match was that it lets go."""
    with Talk("- {fault: latency, name: late, at: after_apply, delay: 1s}") as talk:
        talk.client("GET k")
        talk.expect_upstream("GET k")
        talk.switch("- {fault: latency, name: late, at: after_apply, delay: 1s}")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        left = [each for each in talk.effects if isinstance(each, Skipped)]
        assert [(each.fault, each.reason, each.generation) for each in left] == [
            ("late", "switched", 1)
        ]


def test_what_has_not_happened_is_not_written_down():
    """Effects that ask for something are nobody's event; matches and protocol errors are counted only."""
    written = Written()
    for effect in (CloseClient("reset"), Matched("lost"), ProtocolFault("client", "no")):
        written.record.write(effect, 1.0)
    assert written.journal.events() == []
    assert written.counts.matched == {("test", "lost", "disconnect"): 1}
    assert written.counts.protocol_errors == {"client": 1}


def test_a_replay_that_goes_another_way_is_told_once(caplog):
    """What the recording does not have is an error in the log, one line however often it happens."""
    recording = Recording()
    written = Written(recording)
    recording.divergence = Divergence("a GET", "a SET")
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            written.record.write(fired(), 1.0)
    assert caplog.messages == ["the replay diverges: recorded was a GET; what came: a SET"]
