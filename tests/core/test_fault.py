"""What a fault is: registered by its file's name, asked with all it may look at, drawing from a stream of its own."""

from dataclasses import replace
from random import Random

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.decision import Position
from chaosproxy.core.fault import FAULTS, Context, Fault, ServerInfo, fault
from tests.conversation import TABLE, command

CONTEXT = Context(
    fault="slow",
    command=Command.parse(TABLE, (b"GET", b"k"), command("GET k")),
    position=Position.AFTER_APPLY,
    protocol=2,
    db=0,
    match=3,
    server=ServerInfo(),
    stream="7/slow//3",
)


def test_registered_under_its_file(monkeypatch):
    """A fault is called as its file; the registry finds it."""
    monkeypatch.setitem(FAULTS, "test_fault", Fault)

    @fault
    class Own(Fault):
        """Of this file."""

    assert Own.type == __name__.rpartition(".")[2]
    assert FAULTS[Own.type] is Own
    monkeypatch.delitem(FAULTS, Own.type)


def test_a_fault_that_says_nothing():
    """Settings that cannot contradict each other need no check; most faults keep and watch nothing; all must decide."""
    plain = Fault()
    plain.check(Position.AFTER_APPLY)
    assert plain.new_state() is None
    assert plain.watches() is None
    assert plain.needs_scratch is False
    assert (plain.standby, plain.spans, tuple(plain.names())) == (None, False, ())
    with pytest.raises(NotImplementedError):
        plain.decide(CONTEXT)


def test_random():
    """What a fault draws follows from its match alone, and is not the roll of chance again."""
    drawn = [CONTEXT.random.random(), CONTEXT.random.random()]
    again = replace(CONTEXT, now=99.0, connection=5)
    assert [again.random.random(), again.random.random()] == drawn
    assert replace(CONTEXT, stream="7/slow//4").random.random() != drawn[0]
    assert Random(CONTEXT.stream).random() != drawn[0]
