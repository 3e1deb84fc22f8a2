"""A frame nobody asked for, as something rules can match: its kind as the command, its channel (or keys) as the keys.

Takes a push or message; gives the work that carries what was decided for it, or None.
"""

from chaosproxy.core.command import Command
from chaosproxy.core.line import Line
from chaosproxy.core.reply import ReplyFrame
from chaosproxy.core.slot import Work
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

#: Which element of a frame is its channel, where it is not the second.
_CHANNEL = {b"pmessage": 2}
#: The channel by which a client that speaks RESP2 learns of keys that have changed.
_INVALIDATED = b"__redis__:invalidate"


def push_work(line: Line, frame: ReplyFrame, now: float) -> Work | None:
    """Ask the rules for pushes; None if none of them acts on this frame."""
    command = as_command(frame.raw)
    exchange = line.where(command)
    exchange.push = True
    chosen = line.engine.select_push(exchange, now, line.effects)
    if not chosen:
        return None
    return Work(
        exchange, line.world.name(b""), (), frame.raw, whole=True, sent=command, after=chosen
    )


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
