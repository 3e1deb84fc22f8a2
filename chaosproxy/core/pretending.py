"""One server that pretends to be a cluster: what a node of one would answer by itself, the proxy answers.

Takes the command at the head of a line; gives the answer, or None where the server's own is the right one.

A node answers CLUSTER's questions, sends away who asks for a slot of another node (MOVED), refuses keys of several slots at once,
also in one transaction, and knows one database only; that it is a node of a cluster stands in the server's own INFO and HELLO. ASKING opens it for one command. A slot moves when a fault tells a client so (`error: MOVED`).
"""

from chaosproxy.core import modes, node, slot_map
from chaosproxy.core.after import apply_after, drop
from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.decision import Answer, NoRenewal, Past, Swallow
from chaosproxy.core.ending import REFUSED, hidden, insert, local
from chaosproxy.core.errors import TEXTS
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.line import Line
from chaosproxy.core.resp import encode_command, encode_error
from chaosproxy.core.slot import Element, Work
from chaosproxy.core.slot_map import Seat, SlotMap

_OK = Answer(b"+OK\r\n")
#: A command that names another database is queued, and then it has this in EXEC's array.
_NO_OTHER = {
    what: Answer(encode_error(b"ERR %b is not allowed in cluster mode" % what))
    for what in (b"SELECT", b"SWAPDB", b"MOVE", b"Copying to another database")
}

_NO_REPLICAOF = Answer(encode_error(b"ERR REPLICAOF not allowed in cluster mode."))
_NO_FAILOVER = Answer(
    encode_error(b"ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.")
)


def answers(line: Line, work: Work, now: float) -> bool:
    """Answer the command at the head in the server's place, if a node would; False: it goes on."""
    seat = line.seat
    if seat is None or seat.slots is None or not work.whole:
        return False
    if work.final is not None and not isinstance(work.final[1], Swallow | NoRenewal | Past):
        return False
    found = _answer(seat, seat.slots, work.exchange.command, line)
    if found is None:
        _let_by(line, work)
        return False
    if work.final is not None:
        # Nothing is swallowed or taken from the past where the server would not have carried it out.
        line.skip(work.final[0], "refused")
        work.final = None
    _give(line, work, found, now)
    line.head = None
    return True


def _let_by(line: Line, work: Work) -> None:
    """The server answers it, or what is asked in its place, and what it says is put right."""
    work.retold = slot_map.RETOLD.get(work.name.upper)
    listed = None if line.modes.limited else node.listing(work.args)
    if listed is not None:
        work.retold, work.replaced = listed, True
        work.args, work.raw = node.KEYS, encode_command(*node.KEYS)
        work.sent = Command.parse(line.world.table, work.args, work.raw)


def _answer(seat: Seat, slots: SlotMap, command: Command, line: Line) -> Answer | None:
    state = line.modes
    asking, seat.asking = seat.asking, False
    queued = state.transaction is not None
    if not queued:
        seat.queued, seat.spoiled = frozenset(), False
    if command.spec is not None and not command.spec.takes(len(command.args)):
        seat.spoiled = True
        return None
    # Who subscribed in RESP2 is sent to another node by this one, and refused all else by the server.
    own = None if state.limited else _own(seat, slots, command, state.protocol)
    if own is not None:
        return own
    wanted = frozenset(map(key_slot, (*command.keys, *_shard_channels(command))))
    if queued and command.name == "EXEC":
        wanted = seat.queued
    found = _sent_away(seat, slots, wanted, asking=asking)
    if found is not None or command.spec is None:
        seat.spoiled = True
    elif not seat.spoiled and command.name != "WATCH":
        seat.queued |= wanted
    return found or (None if state.limited else _elsewhere(command, line.world.server))


def _sent_away(
    seat: Seat, slots: SlotMap, wanted: frozenset[int], *, asking: bool
) -> Answer | None:
    """What a node refuses that is about these slots."""
    if len(wanted) > 1:
        return Answer(encode_error(TEXTS["CROSSSLOT"].encode()), refusal=True)
    for slot in wanted:
        owner = slots.owner(slot)
        if owner != seat.node and not asking:
            return Answer(
                encode_error(f"MOVED {slot} {seat.address(owner)}".encode()), refusal=True
            )
    return None


def _own(seat: Seat, slots: SlotMap, command: Command, protocol: int) -> Answer | None:
    """What a node answers by itself, whoever has which slot."""
    words = [(arg or b"").upper() for arg in command.args[:3]]
    match words:
        case [b"ASKING"]:
            seat.asking = True
            return _OK
        case [b"READONLY" | b"READWRITE"]:
            return _OK
        case [b"SELECT", db] if node.is_elsewhere(db):
            return _NO_OTHER[b"SELECT"]
        case [b"SWAPDB", *_]:
            return _NO_OTHER[b"SWAPDB"]
        case [b"REPLICAOF" | b"SLAVEOF", *_]:
            return _NO_REPLICAOF
        case [b"FAILOVER", *_]:
            return _NO_FAILOVER
        case [b"CLUSTER", _, *_]:
            raw = node.told(seat, slots, command.args, protocol)
            return None if raw is None else Answer(raw)
    return None


def _elsewhere(command: Command, server: ServerInfo) -> Answer | None:
    """What reaches for another database, or for keys that nobody names, with a key of this node."""
    match command.name:
        case "MOVE":
            return _NO_OTHER[b"MOVE"]
        case "COPY" if node.copies_elsewhere(command.args):
            return _NO_OTHER[b"Copying to another database"]
        case "SORT" | "SORT_RO":
            raw = node.sorts_elsewhere(command, server)
            return None if raw is None else Answer(raw)
    return None


def _shard_channels(command: Command) -> tuple[bytes, ...]:
    """The channels that belong to slots, as keys do."""
    last = {"SSUBSCRIBE": None, "SUNSUBSCRIBE": None, "SPUBLISH": 2}.get(command.name, 1)
    return tuple(arg or b"" for arg in command.args[1:last])


def _give(line: Line, work: Work, answer: Answer, now: float) -> None:
    """Give the client a node's answer, as if the server had given it: rules that look at replies look at this one too."""
    transaction = line.modes.transaction
    if transaction is not None and work.name.upper == b"EXEC":
        hidden(line, (b"DISCARD",), now)
    if transaction is not None and work.name.upper not in modes.NEVER_QUEUED:
        raw = answer.raw
        if answer.refusal:
            hidden(line, REFUSED, now, Element(hidden=True))
        else:
            insert(transaction, raw)
            raw = b"+QUEUED\r\n"
        local(line, work, raw, now)
        line.tell(work, "no", "error" if answer.raw[:1] == b"-" else "ok")
        drop(line, work, "refused" if answer.refusal else "not_applicable")
    elif local(line, work, answer.raw, now):
        slot = line.slots[-1]
        line.replace(slot, [apply_after(line, work, answer.raw, slot, now)])
    else:
        line.tell(work, "unknown", None)
        drop(line, work, "no_reply")
