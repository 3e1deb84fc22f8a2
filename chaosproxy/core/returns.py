"""From the upstream to the client: each reply finds its slot, meets what was decided for it, and leaves in its turn.

Takes the upstream's bytes; gives the client's bytes. Replies settle `modes` in the server's order and leave in the client's.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice

from chaosproxy.core import addresses, modes, passing, remembering, undoing
from chaosproxy.core.after import abandon, apply_after, drop, rebuild_exec
from chaosproxy.core.effect import ProtocolFault
from chaosproxy.core.framers import NO_REPLIES, own
from chaosproxy.core.leaving import Leaving
from chaosproxy.core.line import Line
from chaosproxy.core.memory import COST
from chaosproxy.core.pushes import let_out, meet_rules
from chaosproxy.core.reply import ReplyFrame, elements
from chaosproxy.core.slot import Element, Slot, Work
from chaosproxy.core.strides import cut_replies, is_reply
from chaosproxy.core.syntax import CONFIRMATIONS, ProtocolError
from chaosproxy.core.transaction import MOST_QUEUED, Transaction

_ERROR = ord("-")
_PUSH = ord(">")
_ARRAY = ord("*")


class Returns:
    """The upstream's side of one line."""

    __slots__ = ("_kept", "framer", "leaving", "line", "push")

    def __init__(self, line: Line) -> None:
        self.line, self.framer = line, NO_REPLIES
        self.leaving = Leaving(line, self)
        #: The place of a push that passes as it comes.
        self.push: Slot | None = None
        # What was held when the connection went raw, in order.
        self._kept: Sequence[bytes] = ()

    def receive(self, data: bytes, now: float) -> None:
        """Bytes have come from the upstream."""
        self.framer = own(self.framer)
        shared = any(slot.times > 1 for slot in islice(self.line.expect, 2))
        if shared and not self.framer.started:
            data = self._share_out(data, now)
        self.framer.feed(data)
        self.drain(now)

    def _share_out(self, data: bytes, now: float) -> bytes:
        """Give short replies to the commands that share a slot, several at once; gives what is left to be read.

        The last one of such a slot is read as all others are: something may follow from it.
        """
        line, framer = self.line, self.framer
        found = cut_replies(data)
        if is_reply(found[-1]):
            found.append(b"")
        at, end = 0, len(found) - 1
        while at < end and not (line.closed or line.raw):
            self.look(now)
            slot = line.expect[0] if line.expect else None
            if slot is not None and (number := min(slot.owed_commands - 1, end - at)):
                slot.frames = slot.owed_commands - number
                self._add(slot, b"".join(found[at : at + number]))
                self._share_taken(slot, number, now)
            else:
                number = 1
                framer.feed(found[at])
                for frame in iter(framer.next, None):
                    self._take(frame, now)
            at += number
        return b"".join(found[at:])

    def _share_taken(self, slot: Slot, number: int, now: float) -> None:
        """So many of the commands that share a slot were answered, and others were not."""
        slot.name.tally.took(now - slot.since, number)
        if not slot.parts:
            slot.times = slot.owed_commands

    def drain(self, now: float) -> None:
        """Take every reply that is whole, and give what can be given."""
        line = self.line
        while not (line.closed or line.raw):
            self.look(now)
            try:
                frame = self.framer.next()
            except ProtocolError as error:
                self.go_raw(error.text, now)
                break
            if frame is None:
                break
            self._take(frame, now)
        if line.closed:
            return
        if line.raw:
            if line.client_silent is None:
                self._pass_on()
        else:
            self.leaving.release(now)
            passing.pass_partial(self, now)

    def _pass_on(self) -> None:
        """What comes from here on is not for us to understand."""
        line = self.line
        kept, self._kept = self._kept, ()
        line.held -= sum(map(len, kept))
        raw = b"".join((*kept, own(self.framer).rest()))
        if raw:
            line.give(raw)

    # -- which slot a frame belongs to

    def look(self, now: float) -> None:
        """See what the next expected slot expects; slots that get no reply leave at once."""
        line = self.line
        while line.expect:
            slot = line.expect[0]
            if slot.frames is None:
                slot.frames = line.modes.frames(slot.name.upper, slot.args)
                slot.whole = self._needs_whole(slot)
            if slot.frames > 0:
                return
            line.answered()
            self._complete(slot, None, now)

    def _needs_whole(self, slot: Slot) -> bool:
        if slot.on_reply is not None:
            return True
        line, element = self.line, slot.element
        transaction = line.modes.transaction
        if element is not None and (transaction is None or transaction.unanswered):
            return True  # it may be carried out at once
        if slot.name.upper == b"EXEC" and transaction is not None:
            if transaction.turns or transaction.looked_at or line.engine.push_rules:
                return True
        elif transaction is not None and slot.name.upper not in modes.NEVER_QUEUED:
            return bool(slot.paces)
        return slot.work is not None and slot.work.looks_at_reply

    def _take(self, frame: ReplyFrame, now: float) -> None:
        line = self.line
        if self.push is not None:
            push, self.push = self.push, None
            self._add(push, frame.raw)
            push.full = True
            return
        slot = line.expect[0] if line.expect else None
        if line.translate is not None and frame.whole:
            args = slot.args if slot is not None else ()
            frame.raw = addresses.in_frame(line.translate, args, frame)
        for aside in let_out(line, slot, frame):
            self._unsolicited(aside, now)
        # A HELLO before it in the same transaction may have made it a push already.
        confirmation = frame.head in CONFIRMATIONS and frame.kind in (line.modes.confirms_as, _PUSH)
        asked = confirmation and slot is not None and self._asks_for(slot, frame.head)
        unasked = not asked and (line.modes.unsolicited(frame) or (confirmation and slot is None))
        if confirmation and (asked or unasked):
            line.modes.confirm(frame.raw)
        if slot is None or unasked:
            self._unsolicited(frame, now)
            if not unasked and frame.kind != _ERROR:  # errors may come unasked, before a close
                self.go_raw(f"a reply nobody asked for: {frame.header[:40]!r}", now)
            return
        if not (asked and line.engine.push_rules and meet_rules(line, frame, slot, now)):
            self._add(slot, frame.raw)
        self._count(slot, frame)
        if slot.times > 1 and slot.frames:
            self._share_taken(slot, 1, now)
        if not slot.frames:
            line.answered()
            self._complete(slot, frame, now)

    def _asks_for(self, slot: Slot, kind: bytes | None) -> bool:
        """Whether this slot's reply has confirmations of this kind."""
        transaction = self.line.modes.transaction
        if transaction is None:
            return slot.confirms and slot.name.upper.lower() == kind
        return slot.carried and transaction.asks_for(kind)

    def _count(self, slot: Slot, frame: ReplyFrame) -> None:
        """One more frame of this slot's reply is here: see whether that was the last."""
        slot.frames = (slot.frames or 1) - 1
        if frame.kind == _ERROR and slot.confirms:
            slot.frames = 0
        elif slot.name.upper == b"EXEC" and not slot.carried:
            # If not, what was queued was not carried out.
            slot.carried = frame.kind == _ARRAY and frame.header[1:2] != b"-"
        transaction = self.line.modes.transaction
        if slot.carried and transaction is not None and transaction.overflows:
            if slot.watch is not None:
                array = slot.watch.array
            else:
                array = [*elements(slot.parts[0])[1], *slot.parts[1:]]
            slot.frames = transaction.missing(array)

    def _add(self, slot: Slot, raw: bytes) -> None:
        """Bytes of a slot's reply: to the client at once, if it is its turn and nobody has to see the whole."""
        line = self.line
        if slot.watch is not None:
            slot.watch.feed(raw)
        if not slot.whole and line.at_turn(slot):
            line.give(raw)
            return
        slot.parts.append(raw)
        line.held += len(raw)
        if line.held > line.world.max_buffer and slot.frames != 1:
            passing.weigh(self, slot)

    def _unsolicited(self, frame: ReplyFrame, now: float) -> None:
        """A frame nobody asked for keeps its place in the stream: ahead of the next reply that is owed to the client."""
        line = self.line
        raw = frame.raw
        slot = next((each for each in line.expect if each.on_reply is None), None)
        if line.engine.push_rules and frame.kind in b">*" and meet_rules(line, frame, slot, now):
            return
        line.held += len(raw)
        if slot is None:
            line.slots.append(Slot(line.world.name(b""), (), 0.0, parts=[raw], full=True))
        elif slot.parts and slot.whole:
            slot.behind.append(raw)
            passing.weigh(self, slot)
        elif slot.parts:
            slot.parts.append(raw)
        else:
            slot.before.append(raw)
            if line.at_turn(slot):
                line.flush(slot)

    def go_raw(self, text: str, now: float) -> None:
        """Hand over everything as it came, and understand no more; what was whole before still meets its rules."""
        line = self.line
        self.leaving.release(now)
        if line.closed:
            return
        line.effects.append(ProtocolFault("upstream", text))
        self._kept, self.push = self.leaving.hand_over("raw"), None
        line.raw = True
        line.expect.clear()
        line.turning = line.blocking = 0

    # -- a reply is whole

    def _complete(self, slot: Slot, frame: ReplyFrame | None, now: float) -> None:
        """All frames of a slot are here (None: it gets none): settle what follows from them."""
        line = self.line
        upper = slot.name.upper
        begun = line.modes.transaction
        transaction = self._transaction(upper, frame)
        queued = transaction is not None and upper not in modes.NEVER_QUEUED
        element = slot.element
        if transaction is not None and queued:
            element = self._noted(transaction, slot)
        array: list[bytes] = []
        if slot.watch is not None:
            array = slot.watch.array
        elif transaction is not None and slot.carried and slot.whole:
            array = rebuild_exec(line, slot, transaction, now)
        line.modes.settle(upper, slot.args, frame, element, array)
        if begun and line.modes.transaction is not begun and not slot.carried:
            abandon(line, begun, "aborted")
        slot.full = True
        if slot.on_reply is not None:
            raw = b"".join(slot.parts)
            line.held -= len(raw)
            slot.on_reply(raw if slot.whole else passing.TOO_LARGE, now)
            return
        if frame is not None and not slot.name.blocking and not queued:
            slot.name.tally.took(now - slot.since)
        if slot.work is not None:
            self._act(slot, slot.work, frame, queued, now)
        if transaction is not None and queued and len(transaction.entries) > MOST_QUEUED:
            passing.understand_no_more(self, now, "more queued commands than are counted")
        elif queued and frame is not None and frame.kind != _ERROR and modes.garbles(slot.args):
            why = "CLIENT REPLY in a transaction: EXEC's array will lack elements"
            passing.go_raw_or_end(self, now, why)

    def _transaction(self, upper: bytes, frame: ReplyFrame | None) -> Transaction | None:
        """The transaction that is under way: none if its MULTI, which was not answered, was refused, since this was carried out at once."""
        state = self.line.modes
        told = frame is not None and frame.kind != _ERROR and frame.header != b"+QUEUED"
        unsure = state.transaction is not None and state.transaction.unanswered
        if unsure and told and upper not in modes.NEVER_QUEUED:
            state.transaction = None
        return state.transaction

    def _noted(self, transaction: Transaction, slot: Slot) -> Element | None:
        """What is kept with a queued command: what was decided for it, unless there is too much of that already."""
        line, element, work = self.line, slot.element, slot.work
        if work is not None and element is None and transaction.held > line.world.max_buffer:
            line.tell(work, "unknown", "ok")
            drop(line, work, "too_large")
        elif work is not None:
            transaction.held += len(work.raw) + COST
            element = element or Element(work=work)
        if line.translate is not None and addresses.concerns(slot.args):
            element = element or Element()
            element.change = element.change or partial(
                addresses.translated, slot.args, translate=line.translate
            )
        return element

    def _act(
        self, slot: Slot, work: Work, frame: ReplyFrame | None, queued: bool, now: float
    ) -> None:
        """Do what was decided for this exchange's reply, unless it was only queued."""
        line = self.line
        if frame is None:
            line.tell(work, "unknown", None)
            remembering.keep(line, work, b"", now)
            undoing.settle(line, work, b"", now)
            drop(line, work, "no_reply")
        elif not queued:
            raw = given = b"".join(slot.parts) if slot.whole else frame.header
            if slot.element is not None and slot.element.change is not None:
                raw = slot.element.change(raw)  # it was to be queued
            changed = apply_after(line, work, raw, slot, now)
            if changed is not given:
                line.replace(slot, [changed])
        elif frame.kind == _ERROR:
            line.tell(work, "no", "error")
            if work.swallowed is not None:
                chosen, how, _ = work.swallowed
                line.fire(chosen, work, "no", "error", "fail", detail=how)
                work.swallowed = None
            drop(line, work, "refused")
