"""Slots and nodes where there is no cluster: shares, moves, and the replies that tell of them."""

import pytest

from chaosproxy.core import slot_map
from chaosproxy.core.slot_map import Seat, SlotMap, node_id
from chaosproxy.core.value import decode
from tests.conversation import reply


@pytest.fixture
def seat():
    return Seat(b"h", (7000, 7001), 1, SlotMap(2))


def test_equal_shares():
    """All slots are somebody's, in a row, and no share is larger than another by more than one."""
    assert SlotMap(1).ranges() == [(0, 16383, 0)]
    assert SlotMap(2).ranges() == [(0, 8191, 0), (8192, 16383, 1)]
    assert SlotMap(3).ranges() == [(0, 5461, 0), (5462, 10922, 1), (10923, 16383, 2)]


def test_a_slot_moves():
    """One slot elsewhere cuts a range in three; back again, and it is whole."""
    slots = SlotMap(2)
    slots.move(7, 1)
    assert slots.owner(7) == 1
    assert slots.ranges() == [(0, 6, 0), (7, 7, 1), (8, 8191, 0), (8192, 16383, 1)]
    slots.move(7, 0)
    assert slots.ranges() == [(0, 8191, 0), (8192, 16383, 1)]


def test_where_nodes_are(seat):
    """A seat knows where all nodes are, and which is another one than its own."""
    assert (seat.address(0), seat.address(1), seat.elsewhere) == ("h:7000", "h:7001", "h:7000")


@pytest.mark.parametrize(
    ("raw", "owner"),
    [
        (b"-MOVED 7 h:7001\r\n", 1),
        (b"-MOVED 7 h:7000\r\n", 0),
        (b"-MOVED 7 h:9999\r\n", 0),
        (b"-MOVED 7\r\n", 0),
        (b"-MOVED x h:7001\r\n", 0),
        (b"-MOVED 16384 h:7001\r\n", 0),
        (b"-ASK 7 h:7001\r\n", 0),
    ],
)
def test_what_is_heeded(seat, raw, owner):
    """Who is told that a slot is elsewhere for good finds it there; ASK is for one command, and nonsense moves nothing."""
    seat.heed(raw)
    assert seat.slots.owner(7) == owner


def test_a_real_cluster_moves_its_own():
    """What is told of a real cluster changes nothing here."""
    seat = Seat(b"h", (7000, 7001), 0)
    seat.heed(b"-MOVED 7 h:7001\r\n")
    assert seat == Seat(b"h", (7000, 7001), 0)


@pytest.mark.parametrize(("protocol", "map_"), [(2, "*["), (3, "%[")])
def test_slots(seat, protocol, map_):
    """CLUSTER SLOTS: each range with its node."""
    a, b = (node_id(node).decode() for node in (0, 1))
    assert slot_map.slots_reply(seat, seat.slots, protocol) == reply(
        f'*[ *[ :0 :8191 *[ "h" :7000 "{a}" {map_} ] ] ] *[ :8192 :16383 *[ "h" :7001 "{b}" {map_} ] ] ] ]'
    )


@pytest.mark.parametrize(("protocol", "map_"), [(2, "*["), (3, "%[")])
def test_shards(seat, protocol, map_):
    """CLUSTER SHARDS: each node with all its ranges."""
    seat.slots.move(7, 1)
    shard = """MAP "slots" *[ SLOTS ] "nodes" *[ MAP "id" "ID" "port" :PORT "ip" "h" "endpoint" "h" "role" "master"
        "replication-offset" :0 "health" "online" ] ] ]"""
    first = shard.replace("SLOTS", ":0 :6 :8 :8191").replace("PORT", "7000")
    second = shard.replace("SLOTS", ":7 :7 :8192 :16383").replace("PORT", "7001")
    first, second = (
        text.replace("ID", node_id(node).decode()) for node, text in enumerate((first, second))
    )
    wanted = f"*[ {first} {second} ]".replace("MAP", map_)
    assert slot_map.shards_reply(seat, seat.slots, protocol) == reply(wanted)


@pytest.mark.parametrize("protocol", [2, 3])
def test_nodes(seat, protocol):
    """CLUSTER NODES: a line for each node, its own marked."""
    seat.slots.move(7, 1)
    a, b = node_id(0), node_id(1)
    said = slot_map.nodes_reply(seat, seat.slots, protocol)
    assert said[:1] == (b"$" if protocol == 2 else b"=")
    assert decode(said) == (
        a + b" h:7000@17000 master - 0 0 1 connected 0-6 8-8191\n"
        b"" + b + b" h:7001@17001 myself,master - 0 0 2 connected 7 8192-16383\n"
    )


def test_info(seat):
    """CLUSTER INFO: all is well; a node without slots does not count."""
    said = decode(slot_map.info_reply(seat.slots, 1, 2))
    assert b"cluster_state:ok\r\n" in said
    assert b"cluster_known_nodes:2\r\ncluster_size:2\r\n" in said
    assert b"cluster_my_epoch:2\r\n" in said
    for slot in range(8192):
        seat.slots.move(slot, 1)
    assert b"cluster_known_nodes:2\r\ncluster_size:1\r\n" in decode(
        slot_map.info_reply(seat.slots, 1, 3)
    )
