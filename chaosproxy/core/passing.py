"""What is here of an unfinished frame from the upstream: given as it comes, held, or more than may be held.

Takes what the framer has of it; gives the client what nobody has to see whole. What somebody wants whole is held up to
`max_buffer`. A larger one is held no more:

a reply              passes as it comes, and the rules that wanted the whole say so; of an EXEC that changes the connection only
                     what tells how is kept (`Watch`)
an EXEC put right    ends the connection, with an error: there is neither the server's array nor the client's to be given
the proxy's own      is let go as it comes, and whoever asked is told so (`TOO_LARGE`)
a push               passes as it comes, in a place of its own among the replies
"""

from typing import TYPE_CHECKING, Final

from chaosproxy.core import addresses
from chaosproxy.core.after import changes, drop, must_change, unpaced, works_of
from chaosproxy.core.effect import CloseClient, LimitReached, Told
from chaosproxy.core.line import Line
from chaosproxy.core.reply import LINE, ReplyFramer
from chaosproxy.core.resp import encode_error
from chaosproxy.core.slot import Slot, Work
from chaosproxy.core.syntax import CONFIRMATIONS, LINES, ProtocolError

if TYPE_CHECKING:
    from chaosproxy.core.returns import Returns

_ERROR: Final = ord("-")
_PUSH: Final = ord(">")
_ARRAY: Final = ord("*")
_LINES: Final = frozenset(LINES)
#: Which limit it is that was reached.
_LIMIT: Final = "reply"
#: Stands for an answer to a question of the proxy's own that nobody kept.
TOO_LARGE: Final = encode_error(b"CHAOSPROXY the answer is too large to be held")
#: What a client gets before its connection ends.
_EXEC: Final = encode_error(
    b"CHAOSPROXY EXEC was carried out, but its answer, in which a fault changes something, is larger than may be held"
)
_LARGE: Final = encode_error(b"CHAOSPROXY the answer is larger than may be held")
#: Why nothing is understood any more.
_UNTOLD: Final = "more than may be held of what cannot be told yet"
#: Said of a write that was swallowed in such an EXEC.
_UNSEEN: Final = "the answer to EXEC was too large to be held"
#: A reply in which addresses are put right is held up to this in any case, in bytes.
_ADDRESSES: Final = 16 << 20


class Watch:
    """An array that passes as it comes: of each element so far its kind, or all of it where it confirms a subscription."""

    __slots__ = ("_framer", "array")

    def __init__(self) -> None:
        self._framer: ReplyFramer | None = None
        self.array: list[bytes] = []

    def feed(self, raw: bytes) -> None:
        """More of it is here: at first all of its header, too."""
        if self._framer is None:
            self._framer = ReplyFramer()
            raw = raw[raw.index(b"\r\n", raw.index(b"*")) + 2 :]
        framer = self._framer
        framer.feed(raw)
        try:
            for frame in iter(framer.next, None):
                if frame.head in CONFIRMATIONS:
                    self.array.append(frame.raw)
                elif frame.kind != _PUSH:
                    self.array.append(bytes((frame.kind,)))
        except ProtocolError:  # attributes ahead of EXEC's array, which no server gives
            return
        if framer.partial > LINE:
            framer.cut_through()


def pass_partial(returns: "Returns", now: float) -> None:
    """Give what is here of an unfinished frame, if it is its turn and nobody has to see the whole, or it is too large for that."""
    line, framer = returns.line, returns.framer
    if not framer.partial:
        return
    slot = line.expect[0] if line.expect else None
    # The framer itself holds a line until it is longer than this.
    least = LINE if framer.kind in _LINES else 0
    large = framer.partial > max(least, line.world.max_buffer)
    if returns.push is not None or (large and _is_push(returns)):
        _pass_push(returns)
    elif slot is None:
        if large:
            understand_no_more(returns, now, _UNTOLD)
    elif slot.on_reply is not None:
        if large and framer.kind == _PUSH:
            understand_no_more(returns, now, _UNTOLD)
        elif large:
            framer.cut_through()
            if slot.whole:
                # Whoever asked will hear of it.
                slot.whole = False
                line.effects.append(LimitReached(_LIMIT))
    elif line.at_turn(slot):
        _pass_reply(returns, slot, now, large=large)


def weigh(returns: "Returns", slot: Slot) -> None:
    """So much is held that it may be this reply's, of which frames are still to come: let it go if it is."""
    most = returns.line.world.max_buffer
    if not slot.whole or sum(map(len, (*slot.parts, *slot.behind))) <= most:
        return
    if returns.line.at_turn(slot) and _let_go(returns, slot):
        returns.line.flush(slot)


# -- a reply that the client waits for


def _pass_reply(returns: "Returns", slot: Slot, now: float, *, large: bool) -> None:
    line, framer = returns.line, returns.framer
    kind = framer.kind
    limited = line.modes.protocol == 2 and (slot.confirms or line.modes.subscribed)
    if kind is None or kind == _PUSH or (kind == _ARRAY and limited):
        # A message, a confirmation, or what PING is answered while there may be such.
        if not large:
            return
        if kind != _ARRAY or framer.unfinished.head in CONFIRMATIONS:
            understand_no_more(returns, now, _UNTOLD)
            return
    if line.translate is not None and (kind == _ERROR or addresses.concerns(slot.args)):
        if framer.partial > max(_ADDRESSES, line.world.max_buffer):
            _end(returns, slot, _LARGE)
        return
    if slot.whole and not (large and _let_go(returns, slot)):
        return
    line.flush(slot)
    raw = framer.cut_through()
    if slot.watch is not None:
        slot.watch.feed(raw)
    line.give(raw)


def _let_go(returns: "Returns", slot: Slot) -> bool:
    """The rules that wanted the whole let it go, and say so; False if it cannot be given as it is: that is the line's end."""
    line = returns.line
    transaction = line.modes.transaction
    works: list[Work] = []
    if slot.name.upper == b"EXEC" and transaction is not None:
        changes = must_change(line, slot)
        works = works_of(transaction)
        for work in works:
            _is_over(line, work, "error" if changes else "ok")
        if changes or any(work.replaced for work in works):
            _end(returns, slot, _EXEC)
            return False
        if transaction.turns:
            slot.watch = Watch()
            for raw in slot.parts:
                slot.watch.feed(raw)
    if slot.work is not None and slot.work.replaced:
        _end(returns, slot, _LARGE)
        return False
    slot.whole = False
    slot.paces.clear()
    if works or slot.work is not None:
        line.effects.append(LimitReached(_LIMIT))
    if slot.work is not None:
        unpaced(line, slot.work)
        drop(line, slot.work, "too_large")
    return True


def _is_over(line: Line, work: Work, told: Told) -> None:
    """An element of an EXEC that was carried out is not looked at: write down what was done to it."""
    line.tell(work, "yes", told)
    if work.swallowed is not None and work.acted is None:
        chosen, how, _ = work.swallowed
        work.swallowed = None
        line.fire(chosen, work, "no", told, "fail", detail=f"{how}; {_UNSEEN}")
    drop(line, work, "too_large")


def _end(returns: "Returns", slot: Slot, error: bytes) -> None:
    """The client's connection ends with an error in the place of this reply, which is owed next."""
    line = returns.line
    line.effects.append(LimitReached(_LIMIT))
    if slot.work is not None:
        line.tell(slot.work, "yes", "error")
        drop(line, slot.work, "too_large")
    line.flush(slot, reply=False)
    line.give(error)
    line.closed = True
    line.effects.append(CloseClient("close"))


def understand_no_more(returns: "Returns", now: float, why: str) -> None:
    """It is too much to be held: from here on bytes pass as they come, or the line ends."""
    returns.line.effects.append(LimitReached(_LIMIT))
    go_raw_or_end(returns, now, why)


def go_raw_or_end(returns: "Returns", now: float, why: str) -> None:
    """From here on bytes pass as they come. Not if some of them would be ours, or some of the client's missing."""
    line = returns.line
    transaction = line.modes.transaction
    ours = any(slot.on_reply is not None for slot in line.expect)
    if ours or (transaction is not None and changes(transaction)):
        line.closed = True
        line.effects.append(CloseClient("close"))
    else:
        returns.go_raw(why, now)


# -- what nobody waits for


def _is_push(returns: "Returns") -> bool:
    """Whether what is unfinished answers nothing, and confirms nothing."""
    known = returns.framer.unfinished
    return returns.line.modes.unsolicited(known) and known.head not in CONFIRMATIONS


def _pass_push(returns: "Returns") -> None:
    """A push that is too large to be held passes as soon as nothing is ahead of it; rules do not see it."""
    line = returns.line
    if returns.push is None:
        owed = next((slot for slot in line.expect if slot.on_reply is None), None)
        if line.client_silent is not None or (line.slots and line.slots[0] is not owed):
            return
        if owed is not None:
            if owed.whole and owed.parts and not _let_go(returns, owed):
                return
            line.flush(owed)
        if line.engine.push_rules:
            line.effects.append(LimitReached(_LIMIT))
        returns.push = Slot(line.world.name(b""), (), 0.0)
        line.slots.appendleft(returns.push)
    if line.at_turn(returns.push):
        line.flush(returns.push)
        line.give(returns.framer.cut_through())
