"""Wire scripts: what is said on which connection, in which order, as data.

Takes requests as bytes or words; gives frozen Scripts, which tests.transparency.play performs against any endpoint.
"""

from dataclasses import dataclass, replace
from typing import Literal

from tests.wire import encode

ALL_SERVERS = ("redis62", "redis70", "redis82", "valkey9")
SINCE_70 = ("redis70", "redis82", "valkey9")
SINCE_72 = ("redis82", "valkey9")

Mode = Literal["whole", "bytewise", "split"]
ALL_MODES: tuple[Mode, ...] = ("whole", "bytewise", "split")

Request = bytes | tuple[bytes | str | int, ...]
"""Bytes go out as they are. In a tuple, the word `$NAME` stands for what a Learn of that name found."""


@dataclass(frozen=True, slots=True)
class Say:
    """Send these requests in one go.

    With `settle` the next step waits until all that they cause has been seen; without it the next step follows at
    once (a FIN right behind the bytes, two connections racing nowhere).
    """

    who: str
    requests: tuple[Request, ...]
    settle: bool = True

    def raw(self, known: dict[str, bytes]) -> bytes:
        """The bytes to send, the learnt words put in."""
        return b"".join(
            request
            if isinstance(request, bytes)
            else encode(
                *(known.get(word[1:], word) if _is_name(word) else word for word in request)
            )
            for request in self.requests
        )


def _is_name(word: object) -> bool:
    return isinstance(word, str) and word.startswith("$")


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait until this has arrived on that connection: time passes on the server meanwhile."""

    who: str
    part: bytes


@dataclass(frozen=True, slots=True)
class Learn:
    """Ask for this connection's client id and keep it under a name, for later requests."""

    who: str
    name: str


@dataclass(frozen=True, slots=True)
class End:
    """The client ends its connection: `fin` says no more will come (and still reads), `close`, or `reset` (RST)."""

    who: str
    how: Literal["fin", "close", "reset"]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let time pass where nothing can be seen happening."""

    seconds: float


Step = Say | Hear | Learn | End | Sleep


@dataclass(frozen=True, slots=True)
class Script:
    """One row of the table: a conversation of one or more connections with a server.

    `resp`: the protocols in which it is performed (3: every connection says HELLO 3 first). `settings`: what CONFIG
    SET puts in force for it. `shows`: bytes that must be in what the clients get, on every server or on the named
    ones, so that the script is known to reach what it is about.
    """

    name: str
    steps: tuple[Step, ...]
    resp: tuple[int, ...] = (2, 3)
    servers: tuple[str, ...] = ALL_SERVERS
    modes: tuple[Mode, ...] = ALL_MODES
    settings: tuple[tuple[str, str], ...] = ()
    shows: bytes | dict[str, bytes] = b""
    only_calm: bool = False
    """Not through a proxy whose faults look at everything: the script says why it sees that they do."""

    def only(self, **changes: object) -> "Script":
        """The same script with some fields changed."""
        return replace(self, **changes)


def say(who: str, *requests: Request | str, settle: bool = True) -> Say:
    """Make a Say. A str holds commands: split at `; `, and each into words at its blanks."""
    split: list[Request] = []
    for request in requests:
        if isinstance(request, str):
            split += [tuple(command.split(" ")) for command in request.split("; ")]
        else:
            split.append(request)
    return Say(who, tuple(split), settle)


def one(name: str, *requests: Request | str, **fields: object) -> Script:
    """A script of one connection that says all this in one go."""
    return Script(name, (say("a", *requests),), **fields)


def alone(name: str, *turns: Request | str, **fields: object) -> Script:
    """A script of one connection that says these one after the other, each when the one before is answered."""
    return Script(name, tuple(say("a", turn) for turn in turns), **fields)
