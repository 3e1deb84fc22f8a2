"""Every write command there is, lost at a failover: value, type and end of each key are what they were, and nothing else is touched.

Takes real servers and real calls; gives what is not as it was.
"""

import itertools
import threading
from random import Random

import pytest

from tests.calls import Call
from tests.live.stand import Stand, words_of
from tests.proxying import wait_for
from tests.wire import Wire, WireError, connected, encode

PROFILE = """
faults:
- {fault: failover, name: fo, style: managed, lose: {for: 60s}, when: {trigger: manual}}
"""
SERVERS = [(name, False) for name in ("redis62", "redis70", "redis82", "valkey9")]
#: They are carried out, and not undone: the fault's own text says so.
SWEEPS = {"FLUSHALL", "FLUSHDB", "FUNCTION", "SFLUSH"}

everywhere = pytest.mark.parametrize("stand", SERVERS, indirect=True)


def state(stand: Stand) -> dict[object, object]:
    """Values and ends of all keys, and functions; how a value is stored inside is the server's to choose."""
    found = stand.state().items()
    return {place: about[1] if isinstance(place, tuple) else about for place, about in found}


def fail_over(stand: Stand, name: str = "fo") -> None:
    journal = stand.journal
    last = journal.last
    stand.proxy.service.trigger(name)

    def switched() -> bool:
        return any("switched" in event.get("detail", "") for event in journal.events(last))

    wait_for(switched, "the switch")


def changed(before, after):
    """What is not as it was."""
    places = before | after
    return {place for place in places if before.get(place) != after.get(place)}


def is_swept(call):
    return words_of(call)[0].decode().upper() in SWEEPS


def names_no_key(call):
    words = words_of(call)
    return words[0].upper() in {b"EVAL", b"EVALSHA", b"FCALL"} and words[2] == b"0"


@everywhere
@pytest.mark.parametrize("queued", [False, True])
def test_each_write(stand, queued):
    """One write, alone or in a transaction: acknowledged, there, and gone at the switch."""
    failures = []
    stand.fill()
    for call in stand.writes():
        if is_swept(call):
            continue
        stand.fill()
        before = state(stand)
        stand.use(PROFILE)
        with stand.proxy.connect() as client:
            if queued:
                stand.transaction(client, call)
            else:
                client.raw(*call)
            fail_over(stand)
        if wrong := changed(before, state(stand)):
            failures.append((call, wrong))
    stand.use("calm")
    assert failures == []


@everywhere
def test_all_writes_together(stand):
    """All of them in one window, from four connections: everything is what it was before the first.

    But for a script that names no keys, with which all would stay that was there before it.
    """
    calls = [call for call in stand.writes() if not (is_swept(call) or names_no_key(call))]
    stand.fill()
    before = state(stand)
    stand.use(PROFILE)
    with connected(stand.proxy.port, 4) as wires:
        for number, (call, wire) in enumerate(zip(calls, itertools.cycle(wires), strict=False)):
            if number % 7:
                wire.raw(*call)
            else:
                stand.transaction(
                    wire, call, ("INCR", "n"), ("SELECT", "2"), ("RPUSH", "there", "x")
                )
                wire.ask("SELECT", "0")
        assert changed(before, state(stand)), "nothing was written"
        fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")


@everywhere
def test_a_blocked_move(stand):
    """What a client that waits is given by another one's write is undone with it, on both lists."""
    stand.fill()
    before = state(stand)
    stand.use(PROFILE)
    with connected(stand.proxy.port, 2) as (waiting, other):
        for _ in range(20):
            waiting.send("BRPOPLPUSH", "queue", "l2", "0")
            wait_for(lambda: _is_blocked(stand), "the client to wait")
            other.ask("RPUSH", "queue", "job")
            other.ask("RPUSH", "l2", "x")
            waiting.read()
        assert stand.server.ask("LLEN", "l2") == 41
        fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")


@everywhere
@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_given_by_a_swap(stand, written, queued):
    """Who waits in one database gets what is in the other as the two are swapped: it is in that one's list again, whoever wrote before."""
    stand.fill(("SELECT", "1"), ("RPUSH", "queue", "job", "more"), ("SELECT", "0"))
    before = state(stand)
    stand.use(PROFILE)
    with connected(stand.proxy.port, 2) as (waiting, other):
        waiting.send("BLMOVE", "queue", "done", "LEFT", "LEFT", "0")
        wait_for(lambda: _is_blocked(stand), "the client to wait")
        if written:
            other.ask("DEL", "queue", "done")
            other.ask("RPUSH", "done", "x")
        if queued:
            stand.transaction(other, ("SWAPDB", "0", "1"))
        else:
            other.ask("SWAPDB", "0", "1")
        assert waiting.read() == [b"$3\r\njob\r\n"]
        fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")


@everywhere
def test_what_is_given_and_taken(stand):
    """One is not lost without the other, though the last write only is to be."""
    stand.fill()
    before = state(stand)
    stand.use(PROFILE.replace("for: 60s", "writes: 1"))
    for _ in range(10):
        with connected(stand.proxy.port, 2) as (waiting, other):
            waiting.send("BLMOVE", "queue", "l2", "LEFT", "LEFT", "0")
            wait_for(lambda: _is_blocked(stand), "the client to wait")
            last = stand.journal.last
            other.ask("RPUSH", "queue", "job")
            assert waiting.read() == [b"$3\r\njob\r\n"]
            fail_over(stand)
        assert changed(before, state(stand)) == set()
        (event,) = (each for each in stand.journal.events(last) if "writes" in each)
        assert {each["command"] for each in event["writes"]} == {"RPUSH", "BLMOVE"}
    stand.use("calm")


@everywhere
@pytest.mark.parametrize("behind", [[("DEL", "queue")], [("MULTI",), ("DEL", "queue"), ("EXEC",)]])
def test_a_write_behind_one_that_waits(stand, behind):
    """In the same pipeline, and to the same key: whoever gives what is waited for is not held up by it."""
    stand.fill()
    stand.use(PROFILE)
    with connected(stand.proxy.port, 2) as (waiting, other):
        waiting.send_bytes(b"".join(encode(*each) for each in [("BLPOP", "queue", "0"), *behind]))
        wait_for(lambda: _is_blocked(stand), "the client to wait")
        assert other.ask("RPUSH", "queue", "a", "b") == 2
        assert waiting.read(1 + len(behind))[-1] in {b":1\r\n", b"*1\r\n:1\r\n"}
    stand.use("calm")


def _is_blocked(stand: Stand) -> bool:
    return b"blocked_clients:1" in stand.server.ask("INFO", "clients")


#: Of each that cannot be undone: what it leaves of a list and a string that were written to before it, and why.
KEPT = {
    ("FLUSHALL",): (None, [], "sweeps"),
    ("FLUSHDB",): (None, [], "sweeps"),
    ("EVAL", "return redis.call('RPUSH', 'l', 'script')", 0): (b"changed", [b"x", b"script"], "no_keys"),
}  # fmt: skip


@everywhere
@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("call", KEPT)
def test_what_is_not_undone_is_said(stand, call, resp):
    """A flush stays, and so does what it was made on; what was written since is gone. What stays is counted, and stands in the event."""
    string, items, why = KEPT[call]
    last = stand.journal.last
    stand.fill()
    stand.server.ask("DEL", "l")
    stand.use(PROFILE)
    with stand.proxy.connect(resp=resp) as client:
        client.ask("SET", "str", "changed")
        client.ask("RPUSH", "l", "x")
        client.ask(*call)
        client.ask("SET", "new", "v")
        client.ask("RPUSH", "l", "y")
        fail_over(stand)
    assert stand.server.ask("EXISTS", "new") == 0
    assert stand.server.ask("GET", "str") == string
    assert stand.server.ask("LRANGE", "l", 0, -1) == items
    assert (stand.skipped()[why], stand.skipped()["built_on"]) == (1, 2)
    details = [event.get("detail", "") for event in stand.journal.events(last)]
    said = f"kept: {call[0]} x1 ({why}), SET x1 (built_on), RPUSH x1 (built_on)"
    assert any(detail.endswith(said) for detail in details), details
    stand.use("calm")


@everywhere
@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("seen", [False, True])
def test_what_was_sent_behind_one_that_waits(stand, seen, resp):
    """As the profile comes it waits at the server: it is lost with what was given to the one before it, or all is kept and named."""
    stand.fill()
    stand.server.ask("DEL", "given")
    looked_at = "faults:\n- {fault: latency, at: before_forward, delay: 0s}\n"
    stand.use(looked_at if seen else "calm")
    before = state(stand)
    with stand.proxy.connect(resp=resp) as waiting, stand.proxy.connect() as other:
        calls = ("BLPOP", "given", 0), ("SET", "str", "changed"), ("RPUSH", "l", "x")
        waiting.send_bytes(b"".join(encode(*call) for call in calls))
        wait_for(lambda: _is_blocked(stand), "the client to wait")
        stand.use(PROFILE)
        last = stand.journal.last
        other.ask("RPUSH", "given", "job", "rest")
        for _ in calls:
            waiting.read()
        fail_over(stand)
    left = changed(before, state(stand))
    events = stand.journal.events(last)
    if seen:
        assert left == set()
    else:
        assert stand.server.ask("GET", "str") == b"changed"
        assert stand.server.ask("LRANGE", "given", 0, -1) == [b"rest"]
        assert (stand.skipped()["no_keys"], stand.skipped()["built_on"]) == (2, 2)
        assert not any(event["applied"] == "undone" for event in events)
    stand.use("calm")


@everywhere
def test_who_may_not_look(stand):
    """A user without DUMP writes as ever; that its writes cannot be undone is said."""
    stand.fill()
    stand.server.ask("ACL", "SETUSER", "lim", "on", ">pw", "~*", "+@all", "-dump")
    try:
        before = state(stand)
        stand.use(PROFILE)
        with Wire(stand.proxy.port) as client:
            assert client.ask("AUTH", "lim", "pw") == "OK"
            assert client.ask("SET", "str", "kept") == "OK"
            assert isinstance(client.ask("DUMP", "str"), WireError)
            fail_over(stand)
        assert changed(before, state(stand)) == {"digest"}
        assert stand.server.ask("GET", "str") == b"kept"
        assert stand.skipped()["no_image"] == 1
    finally:
        stand.server.ask("ACL", "DELUSER", "lim")
        stand.use("calm")


@everywhere
def test_a_script_that_fails(stand):
    """What it has written before its error goes too."""
    stand.fill()
    before = state(stand)
    stand.use(PROFILE)
    half = "redis.call('SET', KEYS[1], 'x') return redis.call('INCR', KEYS[2])"
    with stand.proxy.connect() as client:
        assert isinstance(client.ask("EVAL", half, 2, "str", "l"), WireError)
        stand.transaction(client, ("EVAL", half, 2, "new", "l"))
        assert stand.server.ask("MGET", "str", "new") == [b"x", b"x"]
        fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")


@everywhere
def test_two_failovers(stand):
    """What the first has lost is not lost again, and no value comes back that was gone; nor goes what the first has left."""
    stand.fill()
    stand.use(
        "faults:\n"
        "- {fault: failover, name: fo, style: managed, lose: {writes: 2}, when: {trigger: manual}}\n"
        "- {fault: failover, name: next, style: managed, lose: {writes: 3}, when: {trigger: manual}}\n"
    )
    with stand.proxy.connect() as client:
        for number in range(4):
            client.ask("SET", "str", number)
    fail_over(stand)
    assert stand.server.ask("GET", "str") == b"1"
    with stand.proxy.connect() as client:
        client.ask("SET", "new", "v")
    fail_over(stand, "next")
    assert stand.server.ask("MGET", "str", "new") == [b"1", None]
    stand.use("calm")


class Writer(threading.Thread):
    """A client that makes calls in an order of its own, some of them in a transaction."""

    def __init__(self, stand: Stand, calls: list[Call], seed: int) -> None:
        super().__init__()
        self.stand, self.random = stand, Random(seed)
        self.calls = self.random.choices(calls, k=200)
        self.failed: list[object] = []

    def run(self) -> None:
        """Make them all."""
        with self.stand.proxy.connect() as wire:
            for call in self.calls:
                try:
                    if self.random.random() < 0.2:
                        self.stand.transaction(wire, *self.random.choices(self.calls, k=3))
                    else:
                        wire.raw(*call)
                except (OSError, AssertionError) as error:
                    self.failed.append((call, error))
                    return


@everywhere
@pytest.mark.parametrize("seed", range(3))
def test_all_at_once(stand, seed):
    """Four clients make them at the same time on the same keys, swap databases and wait for each other: all is undone."""
    calls = [call for call in stand.writes() if not (is_swept(call) or names_no_key(call))]
    calls += [("RPUSH", "none", "x"), ("ZADD", "none", "1", "x"), ("DEL", "none", "dst", "new")]
    stand.fill()
    before = state(stand)
    stand.use(PROFILE)
    writers = [Writer(stand, calls, 4 * seed + number) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.failed for writer in writers] == [[]] * 4
    assert changed(before, state(stand)), "nothing was written"
    fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")


@everywhere
def test_swapped_in_the_middle_of_a_transaction(stand):
    """Before the swap and behind it, there and back, one after the other: all is what it was."""
    stand.fill(("SELECT", "1"), ("SET", "n", "100"), ("SELECT", "0"))
    before = state(stand)
    stand.use(PROFILE)
    with stand.proxy.connect() as client:
        for _ in range(2):
            count = ("INCR", "n")
            swap = ("SWAPDB", "0", "1")
            stand.transaction(client, count, swap, count, ("DEL", "l"), ("SELECT", "1"), count)
            stand.transaction(client, swap, ("SWAPDB", "1", "2"), count, ("SWAPDB", "0", "99"))
            client.ask("SWAPDB", "0", "2")
            client.ask("SELECT", "0")
            client.ask("INCR", "n")
        assert changed(before, state(stand)), "nothing was written"
        fail_over(stand)
    assert changed(before, state(stand)) == set()
    stand.use("calm")
