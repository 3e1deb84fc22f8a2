"""What a failover loses: the window, who waits for whom on the way there, and how everything is put back."""

import pytest

from chaosproxy.core import undo
from chaosproxy.core.failing import refused
from chaosproxy.core.lost import EVERYTHING, Lost, Written
from chaosproxy.core.memory import COST, Image, restore
from chaosproxy.core.undo import UndoLog
from tests.wire import encode

A, B, C = (0, b"a"), (0, b"b"), (3, b"c")


def write(log, place, image=b"old", *, at=0.0, name="SET", certain=True):
    """A write to one place, from beginning to end."""
    written = Written(1)
    assert log.claim(written, log.reach([place]))
    written.sent = True
    written.images = {each: Image(image) if image else None for each in log.missing([place])}
    if certain:
        written.writes.append((name, (place[1],)))
        log.end(written, at)
    else:
        log.drop(written, at)
    return written


#: What is kept beside the image of a write to one key whose name is one byte: its place, and the write itself.
NAMES = 2 * (COST + 1)


def lose(log, window=0.0):
    log.window = window
    return log.lose()


def test_the_oldest_image_counts():
    """A key becomes what it was before the first write of the window; all its writes are lost."""
    log = UndoLog(10)
    write(log, A, b"1", at=1)
    write(log, A, b"2", at=5)
    write(log, B, b"3", at=6, name="RPUSH")
    write(log, A, b"4", at=7, name="INCR")
    lost = lose(log, 4)
    assert lost.writes == (("SET", (b"a",)), ("RPUSH", (b"b",)), ("INCR", (b"a",)))
    assert set(lost.requests) == {restore(b"a", Image(b"2")), restore(b"b", Image(b"3"))}
    assert (log.size, lose(log).writes) == (0, ())


def test_by_count():
    """The last so many writes are lost, whoever made them; one transaction is lost whole."""
    log = UndoLog(writes=3)
    for number in range(5):
        write(log, A, b"%d" % number, at=number)
    assert log.size == 3 * (1 + NAMES)
    unit = Written(2, images={B: Image(b"x")}, writes=[("SET", (b"b",)), ("INCR", (b"b",))])
    assert log.claim(unit, [B])
    log.end(unit, 9)
    write(log, A, b"5", at=9)
    assert lose(log).writes == (("SET", (b"b",)), ("INCR", (b"b",)), ("SET", (b"a",)))
    for number in range(2):
        write(log, A, b"%d" % number, at=number)
    unit = Written(2, images={B: Image(b"x")}, writes=[("SET", (b"b",))] * 3)
    assert log.claim(unit, [B])
    log.end(unit, 9)
    write(log, A, b"5", at=9)
    assert len(lose(log).writes) == 4


def test_what_is_too_old_is_let_go():
    """Only what may still be lost is kept, until the failover begins: then all of the window is."""
    log = UndoLog(2)
    for number in range(5):
        write(log, A, at=number)
    assert log.size == 3 * (3 + NAMES)
    log.window = 2
    write(log, A, at=9)
    assert log.size == 4 * (3 + NAMES)


def test_a_window_that_is_known_is_kept():
    """Where it is known when it opens, what is in it stays, even if the failover begins later than it was to."""
    log = UndoLog(2, opens=5)
    for number in range(10):
        write(log, A, b"%d" % number, at=number)
    assert lose(log, 5).requests == (restore(b"a", Image(b"5")),)


def test_what_is_too_much_is_let_go(monkeypatch):
    """There is an end to what is kept; the names of keys count too, and what is forgotten is asked about anew."""
    monkeypatch.setattr(undo, "MOST_BYTES", 5 + NAMES)
    log = UndoLog(100, opens=0)
    write(log, A, at=1)
    assert log.missing([A, B]) == (B,)
    write(log, B, at=2)
    assert log.size == 3 + NAMES
    assert log.missing([A, B]) == (A,)
    large = (0, b"x" * 1000)
    write(log, large, at=3)
    assert (log.size, log.missing([large, B])) == (0, (large, B))


def test_once_it_is_known_nothing_is_asked():
    """Inside a window whose beginning is known one image of a key is enough, until databases are swapped."""
    log = UndoLog(10, opens=5)
    write(log, A, at=4)
    assert log.missing([A]) == (A,)
    write(log, A, at=6)
    write(log, B, None, at=6)
    assert log.missing([A, B]) == (B,)
    swap = Written(1, swaps=[(0, 1)], writes=[("SWAPDB", ())])
    assert log.claim(swap, [EVERYTHING])
    log.end(swap, 7)
    assert log.missing([A]) == (A,)
    by_count = UndoLog(writes=3, opens=5)
    write(by_count, A, at=6)
    assert by_count.missing([A]) == (A,)


def test_places_are_claimed():
    """Two connections write to one place one after the other; one connection need not wait for itself."""
    log = UndoLog(10)
    first, again, second, third = Written(1), Written(1), Written(2), Written(3)
    assert log.claim(first, [A])
    assert log.claim(again, [A, B])
    assert not log.claim(second, [B])
    assert not log.claim(second, [B])
    assert not log.claim(third, [A, C])
    assert log.claim(second, [C])
    assert log.release(again) == [2, 3]
    assert log.release(again) == []
    assert not log.claim(third, [A])
    assert log.drop(first, 0) == [3]
    assert log.claim(third, [A])


def test_everything_is_a_place():
    """What sweeps through a database waits for all writes, and they for it."""
    log = UndoLog(10)
    write_, sweep = Written(1), Written(2)
    assert log.claim(write_, [A])
    assert not log.claim(sweep, [EVERYTHING])
    assert log.release(write_) == [2]
    assert log.claim(sweep, [EVERYTHING])
    assert not log.claim(write_, [A])


def test_who_waits_at_the_server():
    """A BLMOVE that waits leaves its places; whoever writes where it waits looks at all of them, and that counts."""
    log = UndoLog(10)
    waiting, other = Written(1, sent=True), Written(2, sent=True)
    assert log.claim(waiting, [A, B])
    waiting.images = {A: Image(b"stale"), B: Image(b"stale")}
    assert not log.claim(Written(9), [A])
    assert log.park(waiting) == [9]
    assert log.claim(other, [B, C])
    other.images = {B: Image(b"other")}
    assert not waiting.images, "it may go on with this"
    log.park(other)
    assert log.reach([A]) == (A, B, C)
    assert log.reach([(7, b"z")]) == ((7, b"z"),)
    third = Written(3)
    assert log.claim(third, [(7, b"z")])
    assert other.images, "that is none of its places"
    waiting.writes.append(("BLMOVE", (b"a", b"b")))
    log.end(waiting, 1)
    assert log.drop(other, 1) == []
    assert log.reach([A]) == (A,)
    assert lose(log).requests == ()


def handed(log, first):
    """A BLMOVE that waits is given something by an RPUSH, behind another write; which of the two is answered `first`."""
    write(log, C)
    waiting, push = Written(1, sent=True), Written(2, sent=True)
    assert log.claim(waiting, [A, B])
    log.park(waiting)
    assert log.claim(push, log.reach([A]))
    push.images = {A: Image(b"1"), B: Image(b"2")}
    push.writes.append(("RPUSH", (b"a",)))
    waiting.writes.append(("BLMOVE", (b"a", b"b")))
    for each in (push, waiting) if first == "push" else (waiting, push):
        log.end(each, 1)
    return push


@pytest.mark.parametrize("first", ["push", "waiting"])
def test_what_is_given_and_taken_is_one(first):
    """Whichever is heard of first: both are lost, or neither."""
    log = UndoLog(writes=1)
    push = handed(log, first)
    write(log, C, at=2)
    assert log.size == write(UndoLog(writes=1), C).size
    assert not push.logged
    handed(log, first)
    assert log.size == 2 + 5 * (COST + 1), "two images; two places; and three keys of two writes"
    lost = log.lose()
    assert sorted(lost.writes) == [("BLMOVE", (b"a", b"b")), ("RPUSH", (b"a",))]
    assert lost.puts == (b"a", b"b")


def test_what_is_taken_from_one_whose_answer_nobody_heard():
    """It has been given: so it was applied."""
    log = UndoLog(writes=1)
    waiting, push = Written(1, sent=True), Written(2, sent=True)
    assert log.claim(waiting, [A])
    log.park(waiting)
    assert log.claim(push, [A])
    assert log.gives(push)
    push.images = {A: Image(b"1")}
    waiting.writes.append(("BLPOP", (b"a",)))
    log.end(waiting, 1)
    assert not log.gives(push)
    log.drop(push, 1)
    lost = log.lose()
    assert (lost.writes, lost.puts) == ((("BLPOP", (b"a",)),), (b"a",))


def test_what_is_given_on():
    """One that was given something, and seems to have given it to another before: all is lost as one."""
    log = UndoLog(writes=1)
    first, second, push = (Written(number, sent=True) for number in (1, 2, 3))
    for each in (first, second):
        assert log.claim(each, [A])
        each.writes.append(("BLPOP", (b"a",)))
        if each is second:
            log.end(first, 1)
        log.park(each)
    assert log.claim(push, [A])
    push.images = {A: Image(b"1")}
    push.writes.append(("RPUSH", (b"a",)))
    log.end(second, 2)
    log.end(push, 3)
    assert [name for name, _ in log.lose().writes] == ["RPUSH", "BLPOP", "BLPOP"]


def test_what_nobody_here_has_given():
    """Others, of whom nothing is known, have written there: what was before that cannot be put back, and that is said."""
    log = UndoLog(writes=1)
    waiting, push = Written(1, sent=True), Written(2, sent=True)
    assert log.claim(waiting, [A])
    log.park(waiting)
    assert log.claim(push, [A])
    log.end(push, 1)
    waiting.writes.append(("BLPOP", (b"a",)))
    log.end(waiting, 2)
    lost = log.lose()
    assert (lost.writes, lost.kept, lost.requests) == ((), (("BLPOP", "no_image"),), ())


def test_where_somebody_waits_one_writes_after_the_other():
    """Of one connection too: else nobody knew because of which of the two the other went on."""
    log = UndoLog(writes=1)
    waiting = Written(1, sent=True)
    assert log.claim(waiting, [A])
    log.park(waiting)
    first, second = Written(2, sent=True), Written(2, sent=True)
    assert log.claim(first, [A])
    assert not log.claim(second, [A])
    assert log.claim(second, [B])
    log.applied(first, 1)
    assert log.release(first) == [2]


def test_what_was_not_there():
    """A key that did not exist goes; one that had an end gets it back."""
    assert restore(b"k", Image(None)) == encode("UNLINK", "k")
    assert restore(b"k", Image(b"v", 9)) == encode("RESTORE", "k", 9, "v", "REPLACE", "ABSTTL")
    assert restore(b"k", Image(b"v")) == encode("RESTORE", "k", 0, "v", "REPLACE", "ABSTTL")


def test_what_cannot_be_lost_any_more():
    """It is asked about anew; the window of a failover that has begun stays what it is."""
    log = UndoLog(2, opens=1.0, window=1.0)
    write(log, A, at=2)
    assert log.missing([A]) == ()
    log.clear()
    assert (log.missing([A]), log.size, log.window) == ((A,), 0, 1.0)
    write(log, A, at=3)
    assert lose(log, 1.0).writes == (("SET", (b"a",)),)


def test_databases():
    """Each key is put back in its own, and the connection ends up in the first."""
    log = UndoLog(10)
    write(log, C, at=1)
    write(log, A, at=2)
    requests = lose(log).requests
    assert requests == (
        restore(b"a", Image(b"old")),
        encode("SELECT", 3),
        restore(b"c", Image(b"old")),
        encode("SELECT", 0),
    )


def test_swapped_databases():
    """What was written after a swap is put back before it is taken back, what was written before it after that."""
    log = UndoLog(10)
    write(log, A, b"1", at=1)
    swap = Written(1, swaps=[(0, 3)], writes=[("SWAPDB", ())])
    assert log.claim(swap, [EVERYTHING])
    log.end(swap, 2)
    write(log, A, b"2", at=3)
    lost = lose(log)
    assert lost.requests == (
        restore(b"a", Image(b"2")),
        encode("SWAPDB", 0, 3),
        restore(b"a", Image(b"1")),
    )
    assert [name for name, _ in lost.writes] == ["SET", "SWAPDB", "SET"]


def test_what_is_not_known():
    """A key whose first image in the window is missing is left as it is, and that is said."""
    log = UndoLog(10)
    write(log, A, None, at=1)
    write(log, A, b"2", at=2)
    lost = lose(log)
    assert (lost.requests, lost.writes) == ((), ())
    assert lost.kept == (("SET", "no_image"),) * 2


def test_what_nobody_answered_for():
    """A write whose connection ended may have been applied: it is put back where it is known how, and not listed."""
    log = UndoLog(10)
    write(log, A, b"1", at=1, certain=False)
    write(log, B, None, at=1, certain=False)
    write(log, B, b"2", at=2)
    lost = lose(log)
    assert set(lost.requests) == {restore(b"a", Image(b"1")), restore(b"b", Image(b"2"))}
    assert lost.writes == (("SET", (b"b",)),)


def test_what_never_left():
    """A write that was dropped before it left is none."""
    log = UndoLog(10)
    written = Written(1)
    assert log.claim(written, [A])
    log.drop(written, 1)
    log.end(Written(1), 1)
    assert lose(log) == Lost((), (), ())


def test_what_cannot_be_undone():
    """It is named, with the reason."""
    log = UndoLog(10)
    sweep = Written(1, kept=[("FLUSHALL", "sweeps")])
    assert log.claim(sweep, [EVERYTHING])
    log.end(sweep, 1)
    assert lose(log) == Lost((), (("FLUSHALL", "sweeps"),), ())


LOST = Lost((("SET", (b"a",)),), (), (b"request",), (b"a",))


@pytest.mark.parametrize(
    ("replies", "writes", "kept"),
    [
        ([b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n+OK\r\n"], LOST.writes, ()),
        (
            [b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n-ERR no\r\n"],
            (),
            (("SET", "refused"),),
        ),
        ([b"-NOPERM\r\n", b"+OK\r\n", b"-ERR EXEC\r\n"], LOST.writes, ()),
        ([b"+OK\r\n", b"-NOPERM\r\n", b"-EXECABORT\r\n"], (), (("SET", "refused"),)),
        (None, (), (("SET", "side_connection"),)),
    ],
)
def test_what_the_server_said(replies, writes, kept):
    """Nothing is called undone that was not."""
    assert refused(LOST, replies) == Lost(writes, kept, LOST.requests, LOST.puts)


def test_what_the_server_said_of_one_key():
    """Writes to a key that could not be put back are not lost; the others are."""
    writes = (("SET", (b"a",)), ("MSET", (b"a", b"b")), ("DEL", (b"b",)))
    lost = Lost(writes, (), (b"SELECT", b"a", b"b"), (None, b"a", b"b"))
    found = refused(lost, [b"+OK\r\n", *[b"+QUEUED\r\n"] * 3, b"*3\r\n+OK\r\n-ERR no\r\n+OK\r\n"])
    assert found.writes == (("DEL", (b"b",)),)
    assert found.kept == (("SET", "refused"), ("MSET", "refused"))


def test_a_key_beside_one_that_is_not_known():
    """What one write has done to two keys is undone of both, or of neither, and so is what else was written to these."""
    log = UndoLog(writes=9)
    known, moved = Image(b"1"), ("BLMOVE", (b"a", b"b"))
    log.end(Written(1, images={(0, b"a"): None, (0, b"b"): known}, writes=[moved]), 1.0)
    log.end(Written(1, images={(0, b"b"): known}, writes=[("SET", (b"b",))]), 2.0)
    log.end(Written(1, images={(0, b"c"): known}, writes=[("SET", (b"c",))]), 3.0)
    log.end(
        Written(1, images={(0, b"b"): known, (0, b"d"): known}, writes=[("MSET", (b"b", b"d"))]),
        4.0,
    )
    lost = log.lose()
    assert lost.writes == (("SET", (b"c",)),)
    assert lost.kept == tuple((name, "no_image") for name in ("BLMOVE", "SET", "MSET"))
    assert lost.requests == (restore(b"c", known),)
    assert lost.puts == (b"c",)
