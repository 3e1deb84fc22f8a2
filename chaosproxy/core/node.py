"""What a node of a cluster answers by itself where one server is the cluster: CLUSTER's questions, and what it refuses.

Takes a command and what its connection sees of the nodes; gives the raw answer, None where the server's own is the right one.

Keys of a slot are asked of the server as all its keys (`listing`): a server that is no node keeps no list by slot.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from chaosproxy.core import slot_map
from chaosproxy.core.command import SLOTS, Command, key_slot
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.modes import Args
from chaosproxy.core.reply import elements
from chaosproxy.core.resp import encode_array, encode_bulk, encode_error, encode_integer
from chaosproxy.core.slot_map import Seat, SlotMap
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

#: What asks the server for all its keys.
KEYS: Final = (b"KEYS", b"*")
_NO_NUMBER: Final = encode_error(b"ERR value is not an integer or out of range")
_NO_SLOT: Final = encode_error(b"ERR Invalid slot")
_NO_SLOT_OR_COUNT: Final = encode_error(b"ERR Invalid slot or number of keys")
_NO_REPLICA: Final = encode_error(b"ERR You should send CLUSTER FAILOVER to a replica")
_NUMBER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
#: Since then SORT may read keys by a pattern that is of its own key's slot.
_BY_SLOT: Final = (7, 4)
_SOMEWHERE: Final = b" when keys formed by the pattern may be in different slots"
#: SORT's options without a value.
_SORT: Final = frozenset({b"ASC", b"DESC", b"ALPHA"})


def told(seat: Seat, slots: SlotMap, args: Args, protocol: int) -> bytes | None:
    """Answer CLUSTER's question, one about a slot's keys only if the node has none."""
    what, *more = [arg or b"" for arg in args[1:]]
    what = what.upper()
    if not more:
        return _plain(seat, slots, what, protocol)
    match [what, *more]:
        case [b"KEYSLOT", key]:
            return encode_integer(key_slot(key))
        case [b"COUNTKEYSINSLOT" | b"GETKEYSINSLOT", *numbers]:
            return _keys(seat, slots, what, numbers)
        case [b"REPLICAS" | b"SLAVES" | b"COUNT-FAILURE-REPORTS", node]:
            if node not in map(slot_map.node_id, range(slots.count)):
                return encode_error(b"ERR Unknown node " + node)
            return encode_integer(0) if what == b"COUNT-FAILURE-REPORTS" else encode_array([])
    return None


def _plain(seat: Seat, slots: SlotMap, what: bytes, protocol: int) -> bytes | None:
    match what:
        case b"SLOTS":
            return slot_map.slots_reply(seat, slots, protocol)
        case b"SHARDS":
            return slot_map.shards_reply(seat, slots, protocol)
        case b"NODES":
            return slot_map.nodes_reply(seat, slots, protocol)
        case b"INFO":
            return slot_map.info_reply(slots, seat.node, protocol)
        case b"MYID":
            return encode_bulk(slot_map.node_id(seat.node))
        case b"FAILOVER":
            return _NO_REPLICA
        case _:
            # The server has an error for it.
            return None


def _keys(seat: Seat, slots: SlotMap, what: bytes, numbers: list[bytes]) -> bytes | None:
    """Answer what is about a slot's keys, unless the server has to be asked."""
    counts = what == b"COUNTKEYSINSLOT"
    if len(numbers) != 2 - counts:
        return None
    values = [value for each in numbers if (value := number(each)) is not None]
    if len(values) < len(numbers):
        return _NO_NUMBER
    slot, most = values[0], values[-1]
    if not 0 <= slot < SLOTS or most < 0:
        return _NO_SLOT if counts else _NO_SLOT_OR_COUNT
    if slots.owner(slot) == seat.node and most + counts:
        return None
    return encode_integer(0) if counts else encode_array([])


def listing(args: Args) -> Callable[[bytes], bytes] | None:
    """Where a question is about a slot's keys: what makes the answer to it of the server's to KEYS."""
    match [(arg or b"").upper() for arg in args]:
        case [b"CLUSTER", b"COUNTKEYSINSLOT", slot]:
            return lambda raw: _told_of(raw, int(slot), None)
        case [b"CLUSTER", b"GETKEYSINSLOT", slot, most]:
            return lambda raw: _told_of(raw, int(slot), int(most))
    return None


def _told_of(raw: bytes, slot: int, most: int | None) -> bytes:
    if raw[:1] != b"*":
        return raw  # an error
    _, parts, _ = elements(raw)
    found = [part for part in parts if _slot_of(part) == slot]
    return encode_integer(len(found)) if most is None else encode_array(found[:most])


def _slot_of(part: bytes) -> int | None:
    try:
        key = decode(part)
    except ProtocolError:  # no server's
        return None
    return key_slot(key) if isinstance(key, bytes) else None


def number(text: bytes, size: int = 64) -> int | None:
    """Read a number as servers do that have so many bits for it; None if they would not."""
    value = int(text) if _NUMBER.fullmatch(text) else None
    return value if value is not None and -(1 << size - 1) <= value < 1 << size - 1 else None


def is_elsewhere(db: bytes) -> bool:
    """Whether this is another database than a node has; what is none is the server's to refuse."""
    return bool(number(db, 32))


def copies_elsewhere(args: Args) -> bool:
    """Whether COPY's options name another database, and are ones that it has."""
    words = [(arg or b"").upper() for arg in args[3:]]
    db = b"0"
    while words:
        match words:
            case [b"REPLACE", *words]:
                pass
            case [b"DB", there, *words] if number(there, 32) is not None:
                db = there
            case _:
                return False
    return is_elsewhere(db)


def sorts_elsewhere(command: Command, server: ServerInfo) -> bytes | None:
    """What a node refuses of SORT: to read keys by a pattern, where that may be of another node's slots."""
    words = iter([arg or b"" for arg in command.args[2:]])
    for word in map(bytes.upper, words):
        if word in {b"BY", b"GET"}:
            pattern = next(words, None)
            if pattern is None:
                return None
            if _reads_elsewhere(word, pattern, command.args[1] or b"", server):
                why = _SOMEWHERE if server.version >= _BY_SLOT else b""
                return encode_error(
                    b"ERR %b option of SORT denied in Cluster mode%b." % (word, why)
                )
        elif not _is_option(command, word, words):
            return None
    return None


def _is_option(command: Command, word: bytes, words: Iterator[bytes]) -> bool:
    """Whether the server takes another option of SORT as it stands; what it takes of the words is taken off."""
    if word == b"STORE":
        return command.name == "SORT" and next(words, None) is not None
    if word == b"LIMIT":
        return all(number(next(words, b"")) is not None for _ in range(2))
    return word in _SORT


def _reads_elsewhere(word: bytes, pattern: bytes, key: bytes, server: ServerInfo) -> bool:
    if word == b"BY" and b"*" not in pattern:
        return False  # it does not sort at all
    if server.version < _BY_SLOT:
        return True
    return not (word == b"GET" and pattern == b"#") and _pattern_slot(pattern) != key_slot(key)


def _pattern_slot(pattern: bytes) -> int | None:
    """The slot of all keys that a pattern stands for, if that is one: what is special stands behind its tag, or nowhere."""
    special = re.search(rb"[*?\[\\]", pattern)
    if special is None:
        return key_slot(pattern)
    begin = pattern.find(b"{", 0, special.start())
    end = pattern.find(b"}", begin + 1, special.start())
    return key_slot(pattern) if 0 <= begin < end - 1 else None
