"""Barriers: who waits, what opens them, and that nobody stands in the way of others once he is gone."""

from random import Random

import pytest

from chaosproxy.core.barrier import Barrier, Ticket
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.match import Exchange, NameTest

TABLE = CommandTable.bundled()


def exchange(connection, text, db=0):
    args = tuple(word.encode() for word in text.split())
    return Exchange(Command.parse(TABLE, args, text.encode()), connection, b"", "", db)


def ticket(connection, text="SET k a", key=b"k", db=0):
    return Ticket(exchange(connection, text, db), key, Random(connection), since=0.0, due=2.0)


def until(*commands, applied=1, same_key=True):
    return Barrier(NameTest(commands), applied, same_key=same_key)


def test_opened_by_another_connection_on_the_same_key():
    """Another connection's command of that name on that key opens it, and it says which that was."""
    barrier, held = until("SETEX"), ticket(1)
    assert barrier.join(held) == []
    assert barrier.hear(exchange(2, "SETEX k 9 b")) == [1]
    assert held.open
    assert held.why == "let go once SETEX had been applied"


@pytest.mark.parametrize(
    "heard",
    [
        exchange(2, "SET k b"),  # another command
        exchange(2, "SETEX j 9 b"),  # another key
        exchange(2, "SETEX k 9 b", db=1),  # the same name in another database
        exchange(1, "SETEX k 9 b"),  # its own connection's
    ],
    ids=["command", "key", "database", "connection"],
)
def test_not_opened_by_anything_else(heard):
    """What is another command, key or database, or the held one's own connection, opens nothing."""
    barrier, held = until("SETEX"), ticket(1)
    barrier.join(held)
    assert barrier.hear(heard) == []
    assert not held.open


def test_any_key_opens_where_that_is_asked_for():
    """`same: any` does not look at keys, nor at databases."""
    barrier = until("@write", same_key=False)
    barrier.join(ticket(1))
    assert barrier.hear(exchange(2, "RPUSH other x", db=3)) == [1]


def test_any_key_of_several_opens():
    """A command with several keys opens what waits for any of them."""
    barrier = until("MSET")
    barrier.join(ticket(1))
    assert barrier.hear(exchange(2, "MSET j 1 k 2")) == [1]


def test_so_many_have_to_be_applied():
    """`applied: 3` counts from when the command is held, for each held command by itself."""
    barrier, first, second = until("SET", applied=2), ticket(1), ticket(2)
    barrier.join(first)
    assert barrier.hear(exchange(3, "SET k x")) == []
    barrier.join(second)
    assert barrier.hear(exchange(3, "SET k y")) == [1]
    assert first.why == "let go once 2 had been applied, SET last"
    assert barrier.hear(exchange(3, "SET k z")) == [2]
    assert barrier.hear(exchange(3, "SET k z")) == []


def test_one_that_left_is_not_opened():
    """A command that waits no more is nobody's to open."""
    barrier, held = until("SET"), ticket(1)
    barrier.join(held)
    assert barrier.leave(held) == []
    assert barrier.hear(exchange(2, "SET k x")) == []


def test_a_crowd_hears_nothing():
    """What is applied elsewhere does not open a barrier that waits for a crowd."""
    barrier = Barrier(crowd=2)
    barrier.join(ticket(1))
    assert barrier.hear(exchange(2, "SET k x")) == []


@pytest.mark.parametrize(("order", "expected"), [("as_given", [1, 2, 3]), ("reversed", [3, 2, 1])])
def test_a_crowd_goes_one_after_the_other(order, expected):
    """Once enough wait, each goes on when the one before it is through; then the next crowd gathers."""
    barrier = Barrier(crowd=3, order=order)
    tickets = {number: ticket(number) for number in (1, 2, 3)}
    assert barrier.join(tickets[1]) == barrier.join(tickets[2]) == []
    assert barrier.join(tickets[3]) == [expected[0]]
    assert [number for number in tickets if tickets[number].open] == [expected[0]]
    assert barrier.leave(tickets[expected[0]]) == [expected[1]]
    assert barrier.leave(tickets[expected[1]]) == [expected[2]]
    assert tickets[expected[2]].why == f"let go {order}, once 3 were waiting"
    assert barrier.leave(tickets[expected[2]]) == []
    assert barrier.join(ticket(4)) == []


def test_shuffled_is_the_last_ones_stream():
    """The order of a shuffled crowd is drawn from the stream of the match that completes it."""
    orders = set()
    for seed in range(20):
        barrier = Barrier(crowd=3, order="shuffled")
        tickets = [ticket(1), ticket(2), ticket(3)]
        tickets[2].random = Random(seed)
        opened = [*barrier.join(tickets[0]), *barrier.join(tickets[1]), *barrier.join(tickets[2])]
        while len(opened) < 3:
            opened += barrier.leave(tickets[opened[-1] - 1])
        expected = [1, 2, 3]
        Random(seed).shuffle(expected)
        assert opened == expected
        orders.add(tuple(opened))
    assert len(orders) == 6


def test_who_leaves_a_crowd_early_blocks_nobody():
    """One that left before its turn is passed over, and one under way still keeps its place."""
    barrier = Barrier(crowd=3)
    one, two, three = ticket(1), ticket(2), ticket(3)
    barrier.join(one)
    barrier.join(two)
    assert barrier.join(three) == [1]
    assert barrier.leave(two) == []
    assert barrier.leave(one) == [3]


def test_a_second_crowd_waits_for_the_first():
    """Crowds do not mix: the second one begins when the last of the first is through."""
    barrier = Barrier(crowd=2)
    tickets = [ticket(number) for number in (1, 2, 3, 4)]
    assert [barrier.join(each) for each in tickets] == [[], [1], [], []]
    assert barrier.leave(tickets[0]) == [2]
    assert barrier.leave(tickets[1]) == [3]
    assert barrier.leave(tickets[2]) == [4]


def test_who_is_gone_does_not_count_as_waiting():
    """A crowd is complete only with those that still wait."""
    barrier = Barrier(crowd=2)
    gone = ticket(1)
    barrier.join(gone)
    barrier.leave(gone)
    assert barrier.join(ticket(2)) == []
    assert barrier.join(ticket(3)) == [2]
