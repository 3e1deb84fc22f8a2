"""What keys were: as of a time, so many writes ago, forgotten when they are too many."""

import pytest

from chaosproxy.core import memory
from chaosproxy.core.memory import Image, Memory

A, B, C = Image(b"a"), Image(b"b"), Image(b"c")
GONE = Image(None)
#: What an image of one byte of a key with a name of one takes.
ONE = memory.COST + 2


def kept(*images: Image, **how) -> Memory:
    """Remember a key that was each of these until 10, 20, 30 and so on."""
    found = Memory(**how)
    for index, image in enumerate(images, 1):
        found.keep(0, b"k", index * 10.0, image)
    return found


@pytest.mark.parametrize(
    ("then", "image"),
    [(5.0, A), (9.9, A), (10.0, B), (19.9, B), (20.0, C), (29.9, C), (30.0, None), (99.0, None)],
)
def test_as_of(then, image):
    """A key is what it was until the next write; after the last one it is what it is now."""
    assert kept(A, B, C).as_of(0, b"k", then) == image


def test_as_of_knows_one_key_of_one_database():
    """What one key was says nothing of another one, nor of the same name in another database."""
    assert kept(A).as_of(1, b"k", 5.0) is None
    assert kept(A).as_of(0, b"l", 5.0) is None


@pytest.mark.parametrize(("writes", "image"), [(1, C), (2, B), (3, A), (4, None)])
def test_behind(writes, image):
    """So many writes ago; None where so many are not known."""
    assert kept(A, B, C).behind(0, b"k", writes) == image


@pytest.mark.parametrize("writes", [1, 2, 3, 99])
def test_behind_a_key_that_is_new(writes):
    """A key that was made by fewer writes was not there yet."""
    assert kept(GONE, A).behind(0, b"k", writes) == (A if writes == 1 else GONE)
    assert Memory().behind(0, b"k", writes) is None


def test_only_what_can_be_asked_for_is_kept():
    """What is longer ago than the lag, or more writes than are asked for, is forgotten; the rest answers as before."""
    lagging = kept(A, B, C, span=15.0)
    assert lagging.as_of(0, b"k", 30.0 - 15.0) == B
    assert lagging.as_of(0, b"k", 5.0) == B
    assert kept(A, B, C, writes=2).behind(0, b"k", 2) == B
    assert kept(A, B, C, writes=2).size == 2 * ONE
    # However long ago it is: the last one tells what the key was before it.
    last = kept(A, span=0.5)
    last.keep(0, b"k", 1000.0, B)
    assert (last.as_of(0, b"k", 999.0), last.size) == (B, ONE)


def test_no_more_than_so_many_writes():
    """Of a key that is written again and again the oldest images go."""
    many = kept(*(Image(b"%d" % n) for n in range(memory.MOST_WRITES + 3)))
    assert many.as_of(0, b"k", 0.0) == Image(b"3")
    assert many.behind(0, b"k", memory.MOST_WRITES) == Image(b"3")
    assert many.behind(0, b"k", memory.MOST_WRITES + 1) is None


def test_no_more_than_so_many_keys():
    """The key that was not written to for the longest goes first, with all its images."""
    many = Memory()
    for n in range(memory.MOST_KEYS):
        many.keep(0, b"%d" % n, 1.0, A)
    many.keep(0, b"0", 2.0, B)
    many.keep(0, b"new", 3.0, C)
    assert many.as_of(0, b"1", 0.0) is None
    assert many.as_of(0, b"0", 0.0) == A
    assert many.as_of(0, b"new", 0.0) == C
    assert many.size > (memory.MOST_KEYS + 1) * memory.COST


def test_no_more_than_so_many_bytes():
    """Large values push out what is older; one that is too large by itself pushes out its own past only."""
    half = Image(b"x" * (memory.MOST_BYTES // 2 - ONE))
    large = Memory()
    large.keep(0, b"a", 1.0, half)
    large.keep(0, b"b", 2.0, half)
    assert large.as_of(0, b"a", 0.0) == half
    large.keep(0, b"c", 3.0, A)
    assert large.as_of(0, b"a", 0.0) is None
    assert large.as_of(0, b"b", 0.0) == half
    for key in (b"b", b"new"):
        large.keep(0, key, 4.0, Image(b"x" * (memory.MOST_BYTES + 1)))
        assert large.as_of(0, key, 0.0) is None
    assert (large.as_of(0, b"c", 0.0), large.size) == (A, ONE)


def test_forget():
    """What is known of one database, or of all, holds no more."""
    two = Memory()
    two.keep(0, b"k", 1.0, A)
    two.keep(1, b"k", 1.0, B)
    two.forget(0)
    assert (two.as_of(0, b"k", 0.0), two.as_of(1, b"k", 0.0), two.size) == (None, B, ONE)
    two.forget()
    assert (two.as_of(1, b"k", 0.0), two.size) == (None, 0)


def test_names_count():
    """A key's name is held too, and may be as large as a value."""
    named = Memory()
    for n in range(3):
        named.keep(0, b"%d" % n * (memory.MOST_BYTES // 2 - memory.COST), 1.0, GONE)
        assert named.size <= memory.MOST_BYTES
    assert named.as_of(0, b"0" * (memory.MOST_BYTES // 2 - memory.COST), 0.0) is None
