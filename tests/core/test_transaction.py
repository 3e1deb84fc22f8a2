"""What lies between MULTI and EXEC: whose element is whose in EXEC's array."""

from chaosproxy.core.channels import Channels
from chaosproxy.core.transaction import Entry, Transaction


def transaction(*entries: Entry) -> Transaction:
    return Transaction(0, Channels(), list(entries))


def test_plain_commands():
    """One element each; nothing of it changes the connection, nothing was decided for it."""
    plain = transaction(Entry(1, None), Entry(1, None))
    assert plain.shares([b":1\r\n", b":2\r\n"]) == [range(1), range(1, 2)]
    assert (plain.turns, plain.looked_at, plain.overflows) == (False, False, False)


def test_what_turns_the_connection():
    """A command whose arguments matter at EXEC turns it; one for which something was decided is looked at."""
    assert transaction(Entry(1, None), Entry(1, (b"SELECT", b"1"))).turns
    assert transaction(Entry(1, None, element=object())).looked_at


def test_subscriptions_take_more_than_one():
    """A queued SUBSCRIBE gives a frame for each channel, beyond what the array's header counts."""
    entry = Entry(2, (b"SUBSCRIBE", b"a", b"b"))
    both = transaction(entry, Entry(1, None))
    assert both.overflows
    assert both.shares([b"*3\r\n", b"*3\r\n", b":1\r\n"]) == [range(2), range(2, 3)]
    assert both.asks_for(b"subscribe")
    assert not both.asks_for(b"psubscribe")
    assert not both.asks_for(None)


def test_a_subscription_refused_only_now_gives_one_error():
    """However many channels it names, so that what follows keeps its place."""
    refused = transaction(Entry(3, (b"SSUBSCRIBE", b"a", b"b", b"c")), Entry(1, None))
    assert refused.shares([b"-ERR no\r\n", b":1\r\n"]) == [range(1), range(1, 2)]


def test_what_the_server_never_saw_takes_none():
    """The proxy gives that element itself."""
    absent = transaction(Entry(1, None, absent=True), Entry(1, None))
    assert absent.shares([b":1\r\n"]) == [range(0), range(1)]


def test_as_far_as_it_is_here():
    """Where elements are still to come, the shares say where they will be."""
    assert transaction(Entry(1, None), Entry(2, (b"SUBSCRIBE", b"a", b"b"))).shares([]) == [
        range(1),
        range(1, 3),
    ]
