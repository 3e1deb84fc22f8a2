"""A primary and its standby on real servers: attached, switched, joined again, and put back as they were."""

import asyncio
import time

import pytest

from chaosproxy.net.loop import LoopThread
from chaosproxy.net.pair import _offset
from chaosproxy.net.pair_error import PairError, UnsurePairError
from tests.net.pairs import AT_ONCE, info, make_pair, nothing, two_servers, wait_equal
from tests.proxying import wait_for

PATIENCE = 60


@pytest.fixture(params=["redis70"])
def two(request):
    """Two servers that know nothing of each other; tests/live/test_real_failover.py has more kinds."""
    with two_servers(request.param, *AT_ONCE) as two:
        yield two


@pytest.fixture
def loop():
    """A running loop. What is here is about servers; the relay's own tests run on both kinds of loop."""
    thread = LoopThread()
    yield thread
    thread.stop()


@pytest.fixture
def pair(loop, two):
    """A pair of them, attached; put back in the end."""
    pair = make_pair(loop, *two)
    loop.run(pair.attach(), PATIENCE)
    yield pair
    loop.run(pair.put_back(), PATIENCE)


def switch(loop, pair, quiet=nothing):
    return loop.run(pair.switch(quiet), PATIENCE)


def names(lost):
    return [(write.db, write.command, *write.keys) for write in lost.writes]


def test_attach_and_put_back(loop, two):
    """An empty standby gets what is there and what comes, by way of the relay; in the end it is nobody's replica again."""
    primary, standby = two
    primary.ask("SET", "before", "1")
    pair = make_pair(loop, *two)
    loop.run(pair.attach(), PATIENCE)
    assert pair.ready
    primary.ask("SET", "after", "2")
    wait_equal(standby, primary)
    assert standby.ask("MGET", "before", "after") == [b"1", b"2"]
    assert int(info(standby)["master_port"]) not in {primary.port, standby.port}
    loop.run(pair.put_back(), PATIENCE)
    assert info(standby)["role"] == "master"
    assert standby.ask("GET", "after") == b"2"


def test_attached_once_more(loop, two, pair):
    """Who copies by way of the relay already goes on doing so, and is put back as it was at first."""
    primary, standby = two
    syncs = info_stats(primary)["sync_full"]
    loop.run(pair.attach(), PATIENCE)
    assert info_stats(primary)["sync_full"] == syncs
    loop.run(pair.put_back(), PATIENCE)
    assert info(standby)["role"] == "master"


def test_a_replica_is_pointed_back(loop, two):
    """A standby that copies the primary already goes on where it is, by way of the relay, and back in the end."""
    primary, standby = two
    standby.ask("REPLICAOF", "127.0.0.1", primary.port)
    primary.ask("SET", "k", "v")
    wait_equal(standby, primary)
    syncs = info_stats(primary)["sync_full"]
    pair = make_pair(loop, *two)
    loop.run(pair.attach(), PATIENCE)
    primary.ask("SET", "k", "w")
    wait_equal(standby, primary)
    assert standby.ask("GET", "k") == b"w"
    assert info_stats(primary)["sync_full"] == syncs, "no second copy of it all"
    loop.run(pair.put_back(), PATIENCE)
    assert info(standby)["master_port"] == str(primary.port)
    wait_equal(standby, primary)


def info_stats(server):
    lines = server.ask("INFO", "stats").decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def test_lag(loop, two, pair):
    """What is written crosses so much later, never earlier, in its order; without a lag at once."""
    primary, standby = two
    loop.call(lambda: pair.relay.hold_back(0.4, 0))
    begin = time.monotonic()
    primary.ask("SET", "k", "v")
    wait_for(lambda: standby.ask("GET", "k") is not None, "the write")
    assert time.monotonic() - begin >= 0.4
    loop.call(lambda: pair.relay.hold_back(60, 0))
    for number in range(3):
        primary.ask("RPUSH", "l", number)
    wait_for(lambda: pair.relay.held > 0, "the writes on the link")
    assert standby.ask("EXISTS", "l") == 0
    loop.call(lambda: pair.relay.hold_back(0, 0))
    wait_for(lambda: standby.ask("LRANGE", "l", 0, -1) == [b"0", b"1", b"2"], "the writes")


def test_switch(loop, two, pair):
    """The standby takes over; what had not crossed is lost, and exactly that is said; a transaction goes as a whole."""
    primary, standby = two
    primary.ask("SET", "a", 1)
    wait_equal(standby, primary)
    loop.call(lambda: pair.relay.hold_back(60, 0))
    primary.ask("SET", "b", 1)
    primary.ask("SELECT", 3)
    primary.ask("MULTI")
    primary.ask("INCR", "n")
    primary.ask("RPUSH", "l", "x", "y")
    primary.ask("EXEC")
    primary.ask("SELECT", 0)
    lost = switch(loop, pair)
    assert names(lost) == [(0, "SET", b"b"), (3, "INCR", b"n"), (3, "RPUSH", b"l")]
    assert info(standby)["role"] == "master"
    assert standby.ask("DBSIZE") == 1
    assert (pair.primary.upstream.address.port, pair.ready) == (standby.port, False)
    assert primary.ask("EXISTS", "b") == 1, "who stayed with it still sees it"


def test_nothing_is_lost_without_lag(loop, two, pair):
    """What was acknowledged before the switch crosses before it."""
    primary, standby = two
    for number in range(500):
        primary.ask("INCR", f"n{number % 7}")
    lost = switch(loop, pair)
    assert list(lost.writes) == []
    assert standby.ask("DEBUG", "DIGEST") == primary.ask("DEBUG", "DIGEST")


def test_so_many_writes_are_lost(loop, two, pair):
    """The last so many, whatever time they had."""
    primary, standby = two
    loop.call(lambda: pair.relay.hold_back(0, 3))
    for number in range(10):
        primary.ask("SET", f"k{number}", 1)
    wait_for(lambda: standby.ask("DBSIZE") == 7, "those that cross")
    assert names(switch(loop, pair)) == [(0, "SET", b"k7"), (0, "SET", b"k8"), (0, "SET", b"k9")]
    assert standby.ask("DBSIZE") == 7


def test_what_is_under_way_is_waited_for(loop, two, pair):
    """A write that is still being answered when the switch begins counts as one of those before it."""
    primary, standby = two
    loop.call(lambda: pair.relay.hold_back(60, 0))

    async def quiet():
        primary.ask("SET", "late", 1)
        await asyncio.sleep(0)

    assert names(switch(loop, pair, quiet)) == [(0, "SET", b"late")]
    assert standby.ask("EXISTS", "late") == 0


def test_rejoin_and_back(loop, two, pair):
    """The old primary copies the new one and forgets what that never got; and then it all works the other way."""
    primary, standby = two
    primary.ask("SET", "kept", 1)
    wait_equal(standby, primary)
    loop.call(lambda: pair.relay.hold_back(60, 0))
    primary.ask("SET", "lost", 1)
    assert names(switch(loop, pair)) == [(0, "SET", b"lost")]
    loop.call(lambda: pair.relay.hold_back(0, 0))
    loop.run(pair.rejoin(), PATIENCE)
    standby.ask("SET", "new", 1)
    wait_equal(primary, standby)
    assert sorted(primary.ask("KEYS", "*")) == [b"kept", b"new"]
    assert primary.ask("SET", "k", 1).startswith("READONLY")
    loop.call(lambda: pair.relay.hold_back(60, 0))
    standby.ask("SET", "again", 1)
    assert names(switch(loop, pair)) == [(0, "SET", b"again")]
    assert info(primary)["role"] == "master"
    assert sorted(primary.ask("KEYS", "*")) == [b"kept", b"new"]


@pytest.mark.parametrize("rejoined", [True, False])
@pytest.mark.parametrize("replica", [True, False])
def test_put_back_after_a_switch(loop, two, replica, rejoined):
    """The first primary is that again, with all that was written to the other meanwhile, and the standby is what it was."""
    primary, standby = two
    if replica:
        standby.ask("REPLICAOF", "127.0.0.1", primary.port)
        wait_equal(standby, primary)
    pair = make_pair(loop, *two)
    loop.run(pair.attach(), PATIENCE)
    loop.call(lambda: pair.relay.hold_back(60, 0))
    primary.ask("SET", "lost", 1)
    switch(loop, pair)
    if rejoined:
        loop.call(lambda: pair.relay.hold_back(0, 0))
        loop.run(pair.rejoin(), PATIENCE)
    standby.ask("SET", "new", 1)
    loop.run(pair.put_back(), PATIENCE)
    assert info(primary)["role"] == "master"
    assert primary.ask("KEYS", "*") == [b"new"]
    if replica:
        assert info(standby)["master_port"] == str(primary.port)
        wait_equal(standby, primary)
    else:
        assert info(standby)["role"] == "master"
    assert standby.ask("KEYS", "*") == [b"new"]


def test_settings_are_put_back(loop, two):
    """A primary with a password: the standby is given it for as long as that is needed."""
    primary, standby = two
    primary.ask("CONFIG", "SET", "requirepass", "secret")
    standby.ask("CONFIG", "SET", "masterauth", "other")
    pair = make_pair(loop, f"redis://default:secret@127.0.0.1:{primary.port}", standby)
    loop.run(pair.attach(), PATIENCE)
    primary.ask("SET", "k", "v")
    wait_equal(standby, primary)
    assert standby.ask("CONFIG", "GET", "masterauth")[1] == b"secret"
    loop.run(pair.put_back(), PATIENCE)
    assert standby.ask("CONFIG", "GET", "masterauth")[1] == b"other"
    assert standby.ask("CONFIG", "GET", "masteruser")[1] == b""


@pytest.mark.parametrize(
    ("two", "setting"),
    [("redis82", "repl-rdb-channel"), ("valkey9", "dual-channel-replication-enabled")],
    indirect=["two"],
)
def test_a_snapshot_on_a_connection_of_its_own(loop, two, setting):
    """Where servers would do that it comes by the one that is held back and cut: there, and back again."""
    for server in two:
        assert server.ask("CONFIG", "SET", setting, "yes") == "OK"
    pair = make_pair(loop, *two)
    two[0].ask("SET", "k", "v")
    loop.run(pair.attach(), PATIENCE)
    assert two[1].ask("GET", "k") == b"v"
    assert names(switch(loop, pair)) == []
    loop.run(pair.rejoin(), PATIENCE)
    loop.run(pair.caught_up(), PATIENCE)
    loop.run(pair.put_back(), PATIENCE)
    assert [server.ask("CONFIG", "GET", setting)[1] for server in two] == [b"yes"] * 2


@pytest.mark.parametrize("step", ["data", "replica", "upstream", "gone"])
def test_what_is_no_standby(loop, two, step):
    """What would be lost, or is not what it seems, is left alone, and it is said why."""
    primary, standby = two
    match step:
        case "data":
            standby.ask("SET", "mine", 1)
            why = "has data of its own, and is no replica: that would be lost"
        case "replica":
            standby.ask("REPLICAOF", "127.0.0.1", standby.port)
            why = f"is a replica of 127.0.0.1:{standby.port}, not of the upstream"
        case "upstream":
            primary.ask("REPLICAOF", "127.0.0.1", primary.port)
            why = "is a replica itself"
        case _:
            standby.stop()
            why = "does not answer"
    pair = make_pair(loop, *two)
    with pytest.raises(PairError, match=why):
        loop.run(pair.attach(), PATIENCE)
    loop.run(pair.put_back(), PATIENCE)
    if step == "data":
        assert standby.ask("GET", "mine") == b"1"
    if step == "replica":
        assert info(standby)["master_port"] == str(standby.port)


@pytest.mark.parametrize(
    ("said", "offset"), [("17", 17), ("-1", -1), ("", 0), ("x", 0), ("²", 0), ("9" * 5000, 0)]
)
def test_offsets(said, offset):
    """What is none counts as nothing said, and is no mistake: the end of a proxy goes by them too."""
    assert _offset({"master_repl_offset": said}, "master_repl_offset", 0) == offset
    assert _offset({}, "master_repl_offset", offset) == offset


def test_a_link_that_is_down(loop, two, pair):
    """What was lost cannot be said then, and that is said."""
    primary, standby = two
    primary.ask("SET", "k", 1)
    wait_equal(standby, primary)
    loop.call(pair.relay.cut)
    lost = switch(loop, pair)
    assert (lost.writes, lost.why) == (None, "the replication link was down, or did not keep up")
    assert info(standby)["role"] == "master"


def test_a_standby_that_goes_at_the_switch(loop, two, pair):
    """Whether it has become the primary nobody knows then."""
    primary, standby = two
    primary.ask("SET", "k", 1)
    wait_equal(standby, primary)
    standby.stop()
    with pytest.raises(UnsurePairError, match="refuses REPLICAOF NO: no answer"):
        switch(loop, pair)
