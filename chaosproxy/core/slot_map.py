"""A cluster's slots and nodes where there is no cluster: which node has which slot, and how a cluster tells it.

Takes how many nodes there are; gives the replies of CLUSTER's subcommands, as Redis 7.0 words them, and what INFO and HELLO of a
server become.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Final

from chaosproxy.core.addresses import text_changed
from chaosproxy.core.command import SLOTS
from chaosproxy.core.resp import encode_array, encode_bulk, encode_integer, encode_map


class SlotMap:
    """Which of `count` primaries has which slot: equal shares in a row, until slots move. Nodes are counted from 0."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._owners = bytearray(slot * count // SLOTS for slot in range(SLOTS))

    def owner(self, slot: int) -> int:
        """Give the node that has a slot."""
        return self._owners[slot]

    def move(self, slot: int, node: int) -> None:
        """From now on another node has this slot."""
        self._owners[slot] = node

    def ranges(self) -> list[tuple[int, int, int]]:
        """Give each run of slots, first to last, with the node that has them."""
        found = []
        low = 0
        for node, run in groupby(self._owners):
            high = low + len(list(run))
            found.append((low, high - 1, node))
            low = high
        return found


@dataclass(slots=True)
class Seat:
    """What one connection sees of the nodes: it is with the node `node`, and reaches all of them at `host` and their `ports`.

    `slots` None: a real cluster answers for itself. `asking`: the next command is meant for a slot that is on its way here.
    `queued`: the slots of the transaction's commands so far, up to one that was refused (`spoiled`): behind that none is queued.
    """

    host: bytes
    ports: tuple[int, ...]
    node: int
    slots: SlotMap | None = None
    asking: bool = field(default=False)
    queued: frozenset[int] = frozenset()
    spoiled: bool = False

    def address(self, node: int) -> str:
        """Where a node is, as redirections tell it."""
        return f"{self.host.decode()}:{self.ports[node]}"

    @property
    def next(self) -> int:
        """Another node, if there is one."""
        return (self.node + 1) % len(self.ports)

    @property
    def elsewhere(self) -> str:
        """Where another node is."""
        return self.address(self.next)

    def heed(self, raw: bytes) -> None:
        """A client is told this: if it is sent to another node for good, the slot is there from now on."""
        if self.slots is not None and raw.startswith(b"-MOVED "):
            words = raw.split()
            if len(words) == 3 and words[1].isdigit() and int(words[1]) < SLOTS:
                for node in range(len(self.ports)):
                    if words[2] == self.address(node).encode():
                        self.slots.move(int(words[1]), node)


def node_id(node: int) -> bytes:
    """A node's id: 40 hex digits, the same in each run."""
    return blake2b(b"node-%d" % (node + 1), digest_size=20).hexdigest().encode()


def slots_reply(seat: Seat, slots: SlotMap, protocol: int) -> bytes:
    """CLUSTER SLOTS."""
    return encode_array(
        [
            encode_array(
                [encode_integer(low), encode_integer(high), _slots_node(seat, node, protocol)]
            )
            for low, high, node in slots.ranges()
        ]
    )


def _slots_node(seat: Seat, node: int, protocol: int) -> bytes:
    parts = [encode_bulk(seat.host), encode_integer(seat.ports[node]), encode_bulk(node_id(node))]
    return encode_array([*parts, encode_map(protocol, [])])


def shards_reply(seat: Seat, slots: SlotMap, protocol: int) -> bytes:
    """CLUSTER SHARDS: each node is a shard of its own."""
    shards = []
    for node in range(slots.count):
        mine = [end for low, high, owner in slots.ranges() if owner == node for end in (low, high)]
        about = [
            (b"id", encode_bulk(node_id(node))),
            (b"port", encode_integer(seat.ports[node])),
            (b"ip", encode_bulk(seat.host)),
            (b"endpoint", encode_bulk(seat.host)),
            (b"role", encode_bulk(b"master")),
            (b"replication-offset", encode_integer(0)),
            (b"health", encode_bulk(b"online")),
        ]
        pairs = [(encode_bulk(name), value) for name, value in about]
        shards.append(
            encode_map(
                protocol,
                [
                    (encode_bulk(b"slots"), encode_array([encode_integer(end) for end in mine])),
                    (encode_bulk(b"nodes"), encode_array([encode_map(protocol, pairs)])),
                ],
            )
        )
    return encode_array(shards)


def nodes_reply(seat: Seat, slots: SlotMap, protocol: int) -> bytes:
    """CLUSTER NODES."""
    lines = []
    for node in range(slots.count):
        flags = b"myself,master" if node == seat.node else b"master"
        runs = [(low, high) for low, high, owner in slots.ranges() if owner == node]
        shown = [b"%d" % low if low == high else b"%d-%d" % (low, high) for low, high in runs]
        port = seat.ports[node]
        where = b"%s:%d@%d" % (seat.host, port, port + 10000)
        epoch = b"%d" % (node + 1)
        words = [node_id(node), where, flags, b"-", b"0", b"0", epoch, b"connected", *shown]
        lines.append(b" ".join(words) + b"\n")
    return encode_text(b"".join(lines), protocol)


def info_reply(slots: SlotMap, node: int, protocol: int) -> bytes:
    """CLUSTER INFO."""
    size = len({owner for _, _, owner in slots.ranges()})
    fields = {
        b"cluster_state": b"ok",
        b"cluster_slots_assigned": b"%d" % SLOTS,
        b"cluster_slots_ok": b"%d" % SLOTS,
        b"cluster_slots_pfail": b"0",
        b"cluster_slots_fail": b"0",
        b"cluster_known_nodes": b"%d" % slots.count,
        b"cluster_size": b"%d" % size,
        b"cluster_current_epoch": b"%d" % slots.count,
        b"cluster_my_epoch": b"%d" % (node + 1),
        b"cluster_stats_messages_sent": b"0",
        b"cluster_stats_messages_received": b"0",
        b"total_cluster_links_buffer_limit_exceeded": b"0",
    }
    return encode_text(b"".join(b"%s:%s\r\n" % pair for pair in fields.items()), protocol)


def encode_text(text: bytes, protocol: int) -> bytes:
    """Write a text as servers do: a verbatim string in RESP3, a bulk string in RESP2."""
    return encode_bulk(text) if protocol < 3 else b"=%d\r\ntxt:%s\r\n" % (len(text) + 4, text)


# What a server says of itself that is no node of a cluster.

_ENABLED = re.compile(rb"(?m)^cluster_enabled:0(?=\r$)")
_MODE = re.compile(rb"(?m)^(redis|server)_mode:standalone(?=\r$)")
_HELLO = encode_bulk(b"mode"), encode_bulk(b"standalone"), encode_bulk(b"cluster")


def retold_info(raw: bytes) -> bytes:
    """INFO as a node of a cluster gives it."""

    def change(text: bytes) -> bytes:
        return _MODE.sub(rb"\1_mode:cluster", _ENABLED.sub(b"cluster_enabled:1", text))

    return text_changed(raw, change)


def retold_hello(raw: bytes) -> bytes:
    """HELLO's reply as a node of a cluster gives it."""
    name, alone, among_others = _HELLO
    return raw.replace(name + alone, name + among_others, 1)


#: By command, what its reply becomes.
RETOLD: Final[dict[bytes, Callable[[bytes], bytes]]] = {
    b"INFO": retold_info,
    b"HELLO": retold_hello,
}
