"""Which channels a connection holds, and how many frames confirm that it takes or leaves some.

Takes (UN)SUBSCRIBE commands and their confirmations; gives numbers of frames, and keeps the channels held.
"""

from collections.abc import Sequence
from typing import Final

from chaosproxy.core.reply import elements
from chaosproxy.core.syntax import CONFIRMATIONS, ProtocolError
from chaosproxy.core.value import decode

Args = Sequence[bytes | None]
#: By kind (SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE): the channels held, as they stand in confirmations.
Channels = dict[bytes, dict[bytes, None]]

SUBSCRIBE: Final = frozenset({b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"})
UNSUBSCRIBE: Final = frozenset({b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE"})
#: How frames nobody asked for begin in RESP2. A slot that moves away ends shard subscriptions without being asked.
UNASKED: Final = CONFIRMATIONS | {b"message", b"pmessage", b"smessage"}


def confirmations(name: bytes, args: Args, held: Channels) -> int:
    """How many frames confirm this (un)subscription where these channels are held."""
    if len(args) > 1:
        return len(args) - 1
    return 1 if name in SUBSCRIBE else max(1, len(held.get(_kind(name), ())))


def confirm(raw: bytes, held: Channels) -> None:
    """A (un)subscription has been confirmed, asked for or not (a slot that moved away ends shard subscriptions)."""
    try:
        parts = elements(raw)[1]
        kind = decode(parts[0]) if len(parts) > 1 else None
    except ProtocolError:
        return
    if not isinstance(kind, bytes):  # no server's confirmation
        return
    names = held.setdefault(_kind(kind.upper()), {})
    if b"unsub" in kind:
        names.pop(parts[1], None)
    else:
        names[parts[1]] = None


def follow(name: bytes, args: Args, held: Channels) -> None:
    """Do to these channels what a queued (un)subscription will do to the connection's."""
    names = held.setdefault(_kind(name), {})
    if name in UNSUBSCRIBE and len(args) == 1:
        names.clear()
    for arg in args[1:]:
        channel = b"$%d\r\n%s\r\n" % (len(arg or b""), arg or b"")
        if name in SUBSCRIBE:
            names[channel] = None
        else:
            names.pop(channel, None)


def _kind(name: bytes) -> bytes:
    """SUBSCRIBE and UNSUBSCRIBE count the same channels; patterns and shard channels are counted apart."""
    return name.replace(b"UNSUB", b"SUB")
