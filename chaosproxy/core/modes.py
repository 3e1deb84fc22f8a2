"""What a connection is to its server, and how many replies a command gets there: all that breaks "one request, one reply".

Takes commands and their replies in the server's order; gives the number of frames to expect and the state that follows.

The state here is *settled*: it changes only when a reply has come, never on the hope that one will. Since an entry of
the queue of expected replies is looked at only when everything before it has been answered, the state is exact at that
moment, however deep the client pipelines. The ways a command differs from "one request, one reply":

====================================  =========================================================================
SUBSCRIBE a b (and P…, S…)            one confirmation an argument; a single error for all of them
UNSUBSCRIBE (no argument)             one confirmation for each channel held, or one if there is none
CLIENT REPLY OFF, SKIP                no reply; then none at all, or none for the next command (even a MULTI)
MULTI … EXEC                          +QUEUED for each, one array; a queued SUBSCRIBE a b adds elements beyond its header
HELLO, RESET, SELECT, CLIENT SETNAME  one reply, and what later commands mean changes with it; queued, it changes at EXEC
WATCH, UNWATCH, EXEC, DISCARD         whether the client is watching keys (an EXEC of ours would end that)
MONITOR                               one reply, then lines nobody asked for
SYNC, PSYNC                           not RESP any more: the connection is handed over as raw bytes
POST, Host:                           nor is this: HTTP, at which the server ends the connection
QUIT, SHUTDOWN                        at most one reply, then the end
ASKING                                one reply; the next command, and only that, is meant for a migrating slot
CLIENT TRACKING, CLIENT CACHING       one reply; the server remembers what is read from then on, or by the next command
====================================  =========================================================================

Source: the Redis protocol specification, the pages of the commands named, and trials on Redis 6.2 to 8.2 and Valkey 9.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from chaosproxy.core import channels
from chaosproxy.core.channels import SUBSCRIBE, UNSUBSCRIBE, Channels
from chaosproxy.core.circumstances import STATES
from chaosproxy.core.reply import ReplyFrame
from chaosproxy.core.transaction import Entry, Transaction

Args = channels.Args

#: What servers know HTTP by: a browser sends it to any port that any page names, with a body of that page's choice. They end such
#: a connection at its first line or its second, so no rule may take these words for a command: what follows would be one.
HTTP: Final = frozenset({b"POST", b"HOST:"})
#: Replication streams are not RESP, and neither is HTTP.
RAW: Final = HTTP | {b"SYNC", b"PSYNC"}
#: Commands that are carried out at once even between MULTI and EXEC.
NEVER_QUEUED: Final = frozenset({b"MULTI", b"EXEC", b"DISCARD", b"WATCH", b"RESET", b"QUIT"})
#: What of the commands that change anything a connection may still send that subscribed in RESP2.
_WHILE_LIMITED: Final = SUBSCRIBE | UNSUBSCRIBE | {b"RESET", b"QUIT"}
#: Commands after which the same bytes can mean something else: a command that a fault looks at waits for their replies.
TURNING: Final = frozenset(
    SUBSCRIBE
    | UNSUBSCRIBE
    | NEVER_QUEUED
    | {b"CLIENT", b"HELLO", b"SELECT", b"AUTH", b"MONITOR", b"UNWATCH", b"ASKING", b"SHUTDOWN"}
)
#: What clients send to introduce themselves, before their first other command.
HANDSHAKE: Final = frozenset({b"HELLO", b"AUTH", b"CLIENT", b"SELECT", b"INFO", b"COMMAND"})

#: Most connections hold none: one for all, which nobody adds to.
_NO_CHANNELS: Final[Channels] = {}
_MONITOR_LINE = re.compile(rb"\+\d+\.\d{6} \[")


@dataclass(slots=True)
class Modes:
    """One connection's settled state, as its server has it."""

    protocol: int = 2
    db: int = 0
    name: bytes = b""
    user: bytes = b"default"
    transaction: Transaction | None = None
    watching: bool = False
    replies: bool = True
    skip: bool = False
    asking: bool = False
    tracking: bool = False
    caching: bool = False
    monitor: bool = False
    channels: Channels = field(default_factory=lambda: _NO_CHANNELS)

    @property
    def simple(self) -> bool:
        """Whether every command gets just one reply, and nothing else comes: no transaction, no suppression, no messages."""
        special = self.skip or self.asking or self.caching or self.monitor or self.subscribed
        return self.replies and self.transaction is None and not special

    @property
    def subscribed(self) -> bool:
        """Whether messages may come that nobody asked for."""
        return any(self.channels.values())

    @property
    def confirms_as(self) -> int:
        """The kind of frame that (un)subscriptions are confirmed with."""
        return ord("*") if self.protocol == 2 else ord(">")

    @property
    def limited(self) -> bool:
        """Whether the server refuses all commands but `_WHILE_LIMITED`: it subscribed in RESP2."""
        return self.protocol == 2 and self.subscribed

    @property
    def restricted(self) -> bool:
        """Whether it takes hardly any command: it subscribed in RESP2, or watches all commands."""
        return self.monitor or self.limited

    @property
    def answers(self) -> bool:
        """Whether the next command gets a reply at all."""
        return self.replies and not self.skip

    def states(self, *, blocking: int) -> tuple[str, ...]:
        """What the connection is in, in `circumstances.STATES`' words; `blocking`: how many commands may block it now."""
        return tuple(compress(STATES, (self.transaction, self.watching, self.subscribed, blocking)))

    def frames(self, name: bytes, args: Args) -> int:
        """How many frames answer this command now; `name` is its first argument in upper case."""
        if name == b"CLIENT" and self.transaction is None and not self.limited:
            word = reply_word(args)
            if word in (b"OFF", b"SKIP"):
                return 0
            if word == b"ON":
                return 1
        if not self.answers and not (name == b"RESET" and not self.skip):
            return 0
        if self.transaction is not None and name not in NEVER_QUEUED:
            return 1
        if name in SUBSCRIBE or name in UNSUBSCRIBE:
            return channels.confirmations(name, args, self.channels)
        # To a monitor MONITOR says nothing.
        return 0 if name == b"MONITOR" and self.monitor else 1

    def _queue(self, name: bytes, args: Args, reply: ReplyFrame | None, element: object) -> bool:
        """Note a command that the server queued; True if it was one."""
        transaction = self.transaction
        if transaction is None or name in NEVER_QUEUED:
            return False
        if reply is not None and reply.kind == ord("-"):
            return True
        if name in SUBSCRIBE or name in UNSUBSCRIBE:
            frames = channels.confirmations(name, args, transaction.channels)
            transaction.entries.append(Entry(frames, args, element))
            channels.follow(name, args, transaction.channels)
            return True
        transaction.entries.append(Entry(1, args if name in TURNING else None, element))
        if name == b"SELECT":
            transaction.db = _number(args, 1, transaction.db)
        return True

    def settle(
        self,
        name: bytes,
        args: Args,
        reply: ReplyFrame | None,
        element: object = None,
        array: Sequence[bytes] = (),
    ) -> None:
        """The server has answered this command (None: it does not answer now): what follows from it.

        `element` is kept with a command that was queued; `array` are the elements of EXEC's reply, if a queued command `turns`.
        """
        if not (name == b"ASKING" or (name == b"CLIENT" and self.skip)):
            self.asking = False
        self.caching = self.caching and name == b"CLIENT"
        skipped, self.skip = self.skip, False
        if self._queue(name, args, reply, element):
            return
        if name not in TURNING:
            return
        if name == b"EXEC":
            self._settle_exec(array, answered=reply is not None)
        elif reply is None and self.limited and name not in _WHILE_LIMITED:
            pass  # it was refused without a word
        elif reply is None and (name in SUBSCRIBE or name in UNSUBSCRIBE):
            # Servers from 7.0 on confirm it all the same, which changes nothing any more; before, nothing comes.
            channels.follow(name, args, self._own_channels())
        elif reply is None or reply.kind != ord("-") or (skipped and name == b"CLIENT"):
            self._turn(name, args, reply)

    def _settle_exec(self, array: Sequence[bytes], *, answered: bool) -> None:
        """EXEC was carried out or not, as its array says; where it is not answered, it is taken to have been."""
        transaction = self.transaction
        if transaction is None:
            return
        # Whatever the reply: an error of its own (MOVED, a wrong number of arguments) ends it too.
        self.transaction, self.watching = None, False
        for entry, share in zip(transaction.entries, transaction.shares(array), strict=True):
            mine = array[share.start : share.stop]
            if entry.args is None or (answered and (not mine or mine[0][:1] == b"-")):
                continue
            name = (entry.args[0] or b"").upper()
            if name in SUBSCRIBE or name in UNSUBSCRIBE:
                for raw in mine:
                    self.confirm(raw)
            else:
                self._turn(name, entry.args, None)

    def _turn(self, name: bytes, args: Args, reply: ReplyFrame | None) -> None:
        action = _TURNS.get(name)
        if action is not None:
            action(self, args, reply)

    def confirm(self, raw: bytes) -> None:
        """A (un)subscription has been confirmed, asked for or not."""
        channels.confirm(raw, self._own_channels())

    def _own_channels(self) -> Channels:
        self.channels = self.channels or {}
        return self.channels

    def unsolicited(self, frame: ReplyFrame) -> bool:
        """Whether this frame answers no command, unless it confirms one: messages, invalidations, MONITOR's lines."""
        match frame.kind:
            case 0x3E:  # ">"
                return True
            case 0x2A:  # "*"
                return self.protocol == 2 and self.subscribed and frame.head in channels.UNASKED
            case 0x2B:  # "+"
                return self.monitor and _MONITOR_LINE.match(frame.header) is not None
            case _:
                return False


def garbles(args: Args) -> bool:
    """Whether this, queued, makes EXEC's array announce more than it has, so that its end cannot be known."""
    name = (args[0] or b"").upper() if args else b""
    return name == b"CLIENT" and reply_word(args) in (b"OFF", b"SKIP")


def reply_word(args: Args) -> bytes | None:
    """ON, OFF or SKIP of CLIENT REPLY; None for any other command."""
    if len(args) == 3 and args[1] and args[2] and args[1].upper() == b"REPLY":
        word = args[2].upper()
        return word if word in (b"ON", b"OFF", b"SKIP") else None
    return None


def _number(args: Args, index: int, otherwise: int) -> int:
    try:
        return int(args[index] or b"")
    except (IndexError, ValueError):
        return otherwise


def _multi(modes: Modes, _args: Args, reply: ReplyFrame | None) -> None:
    if modes.transaction is None:
        held = {kind: dict(names) for kind, names in modes.channels.items()}
        modes.transaction = Transaction(modes.db, held, unanswered=reply is None)


def _discard(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    modes.transaction, modes.watching = None, False


def _watch(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    modes.watching = True


def _unwatch(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    modes.watching = False


def _select(modes: Modes, args: Args, _reply: ReplyFrame | None) -> None:
    modes.db = _number(args, 1, modes.db)


def _hello(modes: Modes, args: Args, reply: ReplyFrame | None) -> None:
    if reply is not None:
        modes.protocol = 3 if reply.kind == ord("%") else 2
    else:
        modes.protocol = _number(args, 1, modes.protocol)
    options = iter(args[2:])
    for word in options:
        match (word or b"").upper():
            case b"AUTH":  # a user may be called SETNAME
                modes.user = next(options, None) or b""
                next(options, None)
            case b"SETNAME":
                modes.name = next(options, None) or b""


def _auth(modes: Modes, args: Args, _reply: ReplyFrame | None) -> None:
    modes.user = (args[1] or b"") if len(args) > 2 else b"default"


def _client(modes: Modes, args: Args, _reply: ReplyFrame | None) -> None:
    match reply_word(args), [(arg or b"").upper() for arg in args[1:3]]:
        case b"OFF", _:
            modes.replies = False
        case b"ON", _:
            modes.replies = True
        case b"SKIP", _ if modes.replies:
            modes.skip = True
        case _, [b"SETNAME", _] if len(args) == 3:
            modes.name = args[2] or b""
        case _, [b"TRACKING", word]:
            modes.tracking = word == b"ON"
        case _, [b"CACHING", _]:
            modes.caching = True


def _reset(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    fresh = Modes()
    for slot in Modes.__slots__:
        setattr(modes, slot, getattr(fresh, slot))


def _monitor(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    modes.monitor = True


def _asking(modes: Modes, _args: Args, _reply: ReplyFrame | None) -> None:
    modes.asking = True


_TURNS: Final[dict[bytes, Callable[[Modes, Args, ReplyFrame | None], None]]] = {
    b"MULTI": _multi,
    b"DISCARD": _discard,
    b"WATCH": _watch,
    b"UNWATCH": _unwatch,
    b"SELECT": _select,
    b"HELLO": _hello,
    b"AUTH": _auth,
    b"CLIENT": _client,
    b"RESET": _reset,
    b"MONITOR": _monitor,
    b"ASKING": _asking,
}
