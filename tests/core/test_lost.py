"""What writes come to that are lost together: what is put back, what stays, and why."""

from chaosproxy.core.lost import EVERYTHING, Lost, Written, lost
from chaosproxy.core.memory import Image, restore
from chaosproxy.core.undo import UndoLog
from tests.wire import encode

A, B, C = (0, b"a"), (0, b"b"), (3, b"c")
OLD, NEW = Image(b"old"), Image(b"new")


def made(name, *places, image=OLD, **more):
    """A write to places that all were the same before."""
    write = name, tuple(key for _, key in places)
    return Written(1, places, [write], images=dict.fromkeys(places, image), **more)


def test_nothing():
    """No write, and nothing to be done."""
    assert lost([]) == Lost((), (), ())


def test_what_is_below_one_that_may_have_written_anywhere():
    """The last such one counts: what was there before it stays, in all databases, and is named in its order."""
    sweep = Written(1, (EVERYTHING,), kept=[("FLUSHALL", "sweeps")], blind=True)
    script = Written(1, (EVERYTHING,), kept=[("EVAL", "no_keys")], blind=True)
    swap = Written(1, (EVERYTHING,), [("SWAPDB", ())], swaps=[(0, 3)])
    writes = [made("SET", C), sweep, made("RPUSH", A), swap, script, made("DEL", A, image=NEW)]
    found = lost(writes[::-1])
    assert found.writes == (("DEL", (b"a",)),)
    assert found.requests == (restore(b"a", NEW),)
    built_on = [(name, "built_on") for name in ("SET", "RPUSH", "SWAPDB")]
    assert found.kept == (("FLUSHALL", "sweeps"), ("EVAL", "no_keys"), *built_on)


def test_never_asked():
    """What nobody has an image of is not called undone; what an older one knows is."""
    bare = Written(1, (A, B), [("MSET", (b"a", b"b"))])
    assert lost([bare, made("SET", A), made("SET", B)]).kept == ()
    found = lost([bare, made("SET", A)])
    assert (found.writes, found.requests) == ((), ())
    assert found.kept == (("SET", "no_image"), ("MSET", "no_image"))


def test_in_another_database_since():
    """An image from before a swap is none of what was written to the same place behind it."""
    log = UndoLog(10, opens=1.0)
    calls = made("SET", A), Written(1, swaps=[(0, 3)], writes=[("SWAPDB", ())]), made("DEL", A)
    for each, places in zip(calls, ([A], [EVERYTHING], [A]), strict=True):
        # All of one connection, and on their way together.
        assert log.claim(each, places)
        assert log.missing([A]) == (A,)
    for each in calls:
        log.end(each, 2.0)
    assert log.missing([A]) == ()
    log.window = 1.0
    back = restore(b"a", OLD)
    assert log.lose().requests == (back, encode("SWAPDB", 0, 3), back)
