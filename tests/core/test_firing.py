"""A fault that has acted becomes an event: each field from where it belongs, and the rule's count is kept."""

from chaosproxy.core.command import Command
from chaosproxy.core.firing import fired
from chaosproxy.core.match import Exchange
from chaosproxy.core.when import Turn
from tests.conversation import Talk

RULE = "- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 1s}"


def test_an_event():
    """The rule's name, type, position and generation, the exchange's command and client, the turn's numbers; what was done is said."""
    with Talk(RULE) as talk:
        (live,) = talk.world.engine.rules
        command = Command.parse(talk.world.table, (b"GET", b"k"), b"raw")
        turn = Turn(3, "stream", 0.25, "key", 2)
        exchange = Exchange(command, 9, b"app", "10.0.0.1", 4)
        event = fired(live, turn, exchange, 5.0, applied="yes", told="late", delay=1.0, detail="x")
        assert (event.fault, event.type, event.position) == ("slow", "latency", "after_apply")
        assert (event.command, event.keys, event.db) == ("GET", (b"k",), 4)
        assert (event.client, event.connection, event.digest) == ("app", 9, command.digest())
        assert (event.match, event.draw, event.per, event.ordinal) == (3, 0.25, "key", 2)
        assert (event.applied, event.told, event.outcome) == ("yes", "late", "ok")
        assert (event.delay, event.detail, event.writes) == (1.0, "x", ())
        assert (event.generation, live.fired, live.first_fired) == (live.generation, 1, 5.0)
        live.count([])


def test_whose_it_is():
    """A client without a name is told by its address; keys may be others than the command's own."""
    with Talk(RULE) as talk:
        (live,) = talk.world.engine.rules
        command = Command.parse(talk.world.table, (b"GET", b"k"), b"raw")
        exchange = Exchange(command, 9, b"", "10.0.0.1", 0)
        event = fired(live, Turn(1, "", None, "", 1), exchange, 5.0, keys=(b"a", b"b"))
        assert (event.client, event.keys) == ("10.0.0.1", (b"a", b"b"))
        assert (event.applied, event.told, event.outcome) == ("no", "nothing", "ok")
        live.count([])
