"""A frame nobody asked for, as something rules can match: its kind as the command, its channel (or keys) as the keys.

Takes a push or message, and what is owed to the client behind it; gives a slot of its own if a rule acts on it.
"""

from chaosproxy.core.after import apply_after, drop
from chaosproxy.core.command import Command
from chaosproxy.core.line import Line
from chaosproxy.core.reply import ReplyFrame, elements, frames_of
from chaosproxy.core.slot import Slot, Work
from chaosproxy.core.syntax import CONFIRMATIONS, ProtocolError
from chaosproxy.core.value import decode

#: Which element of a frame is its channel, where it is not the second.
_CHANNEL = {b"pmessage": 2}
#: The channel by which a client that speaks RESP2 learns of keys that have changed.
_INVALIDATED = b"__redis__:invalidate"


def meet_rules(line: Line, frame: ReplyFrame, owed: Slot | None, now: float) -> bool:
    """Let the rules for pushes act on a frame ahead of the rest of what is `owed`; False if none does."""
    command = as_command(frame.raw)
    exchange = line.where(command)
    exchange.push = True
    chosen = line.engine.select_push(exchange, now, line.effects)
    if not chosen:
        return False
    name = line.world.name(b"")
    work = Work(exchange, name, (), frame.raw, whole=True, sent=command, after=chosen)
    if owed is not None and _is_one(owed) and (owed.parts or frame.head in CONFIRMATIONS):
        drop(line, work, "in_reply")
        return False
    slot = Slot(name, (), now, work, parts=[frame.raw], whole=True, full=True)
    line.held += len(frame.raw)
    line.replace(slot, [apply_after(line, work, frame.raw, slot, now)])
    _put_before(line, owed, slot)
    return True


def let_out(line: Line, slot: Slot | None, frame: ReplyFrame) -> list[ReplyFrame]:
    """Take out of EXEC's array what its server says to the client in the middle of it (Redis up to 7.0).

    In one of ours the client would miss it; in its own the rules would.
    """
    if slot is None or slot.name.upper != b"EXEC" or not frame.whole:
        return []
    if not (slot.on_reply or line.engine.push_rules):
        return []
    try:
        header, parts, pushes = elements(frame.raw)
    except ProtocolError:  # it was not carried out
        return []
    if pushes:
        frame.raw = b"".join((header, *parts))
    return frames_of(b"".join(pushes))


def _is_one(slot: Slot) -> bool:
    """Whether what this slot's reply consists of has to leave together."""
    return slot.carried or (slot.work is not None and slot.work.looks_at_reply)


def _put_before(line: Line, owed: Slot | None, slot: Slot) -> None:
    """Give a push of its own slot its place: behind what came before it, ahead of the rest of what is owed next."""
    slots = line.slots
    if owed is None:
        slots.append(slot)
        return
    at = slots.index(owed)
    if owed.before or owed.parts:
        parts = [*owed.before, *owed.parts]
        slots.insert(at, Slot(slot.name, (), 0.0, parts=parts, full=True))
        owed.before, owed.parts = [], []
        at += 1
    slots.insert(at, slot)


def as_command(raw: bytes) -> Command:
    """A push as a command: `message` on one channel, `invalidate` of any number of keys."""
    try:
        values = decode(raw)
    except ProtocolError:  # no server's push
        values = None
    parts = values if isinstance(values, list) else []
    kind = parts[0] if parts and isinstance(parts[0], bytes) else b""
    at = _CHANNEL.get(kind, 1)
    about = parts[at] if len(parts) > at else None
    if kind == b"message" and about == _INVALIDATED:
        kind, about = b"invalidate", parts[-1]
    keys = about if isinstance(about, list) else [about]
    args = (kind, *(key for key in keys if isinstance(key, bytes)))
    name = kind.decode("utf-8", "backslashreplace")
    return Command(args, raw, None, name, tuple(range(1, len(args))))
