"""A bucket: bytes pass one after the other at its rate, and nothing is saved up."""

import pytest

from chaosproxy.core.bucket import MOST_PIECES, Bucket


def test_bytes_take_as_long_as_the_rate_says():
    """A hundred bytes at fifty a second have passed after two seconds."""
    assert Bucket(50).take(100, 10.0) == 12.0


def test_who_comes_second_waits_for_the_first():
    """Bytes pass one after the other, whoever they are of."""
    bucket = Bucket(100)
    assert bucket.take(100, 0.0) == 1.0
    assert bucket.take(50, 0.5) == 1.5


def test_nothing_is_saved_up():
    """What did not pass while nothing was there to pass is not made up for."""
    bucket = Bucket(100)
    bucket.take(100, 0.0)
    assert bucket.take(100, 60.0) == 61.0


def test_late_waking_costs_nothing():
    """A transfer in pieces ends when it would have in one, if each piece counts from the one before it."""
    bucket = Bucket(1000)
    due = 0.0
    for _ in range(50):
        due = bucket.take(20, due)
    assert due == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("rate", "size", "pieces"),
    [(1000, 50, [20, 20, 10]), (1000, 20, [20]), (10, 3, [1, 1, 1]), (1e12, 3, [3]), (10, 0, [])],
)
def test_pieces_of_twenty_milliseconds(rate, size, pieces):
    """A piece takes about 20 ms, and is never less than a byte; put together they are what was cut."""
    raw = bytes(range(size))
    cut = Bucket(rate).split(raw)
    assert [len(piece) for piece in cut] == pieces
    assert b"".join(cut) == raw


def test_not_all_pieces_at_once():
    """Of what would be very many pieces some are cut, and the rest stays as it is."""
    bucket = Bucket(1)
    raw = b"x" * (MOST_PIECES + 10)
    cut = bucket.split(raw)
    assert [len(piece) for piece in cut] == [1] * MOST_PIECES + [10]
    assert [len(piece) for piece in bucket.split(cut[-1])] == [1] * 10
    assert bucket.size == 1
