"""What is to be expected of a dropped write: how its reply is made, why it may be left alone, what may differ from the server's.

Takes a Command and what the server itself says to it; gives an event's detail, a reason for a skip, or yes and no.
"""

from dataclasses import dataclass

from chaosproxy.core.command import Command
from chaosproxy.core.reply_shape import choose
from tests.shapes import fits

IN_SCRATCH = "reply computed in scratch database 15"
ON_KEYS = "reply computed on temporary keys"
MADE_UP = "reply made from the reply table"
REFUSED = "refused by the server"

#: No copy of a key can give these replies: the proxy makes them, right in type.
MADE_UP_FOR = {
    "FLUSHALL": "reaches beyond its keys",
    "FLUSHDB": "reaches beyond its keys",
    "SWAPDB": "reaches beyond its keys",
    "MOVE": "its other half is another database",
    "MIGRATE": "its other half is another server",
    "RESTORE-ASKING": "is meant for a slot on its way",
    "CLUSTER|FLUSHSLOT": "reaches beyond its keys",
    "FUNCTION|DELETE": "is about code, not keys",
    "FUNCTION|FLUSH": "is about code, not keys",
    "FUNCTION|LOAD": "is about code, not keys",
    "FUNCTION|RESTORE": "is about code, not keys",
}
#: Nor these: no server can copy what their module keeps.
UNCOPIED = {"VADD", "VREM", "VSETATTR"}
UNCOPIED_BECAUSE = f"{MADE_UP}: ERR not supported for this module key"
#: Errors that are known only where a copy could be made, or the command be tried.
UNKNOWABLE = (b"-NOGROUP", b"-WRONGTYPE", b"-NOPERM")

SCRIPTS = {"EVAL", "EVALSHA", "FCALL"}
BLOCKING = {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN"}
NOTHING = {b"*-1\r\n", b"$-1\r\n", b"_\r\n"}


@dataclass(frozen=True)
class Real:
    """What the server itself says to a call: as it is, and (queued, element of EXEC's array) in a transaction."""

    plain: bytes
    queued: bytes
    element: bytes


def reason(
    command: Command, real: Real, *, cluster: bool, queued: bool = False, watching: bool = False
) -> str | None:
    """Why this call is left alone; None if it is dropped."""
    if command.spec is None or not command.spec.is_write:
        return "not_applicable"
    if (queued or watching) and not command.keys and b"number of arg" in real.queued:
        return "refused"
    if command.name in SCRIPTS and (cluster or not command.keys):
        return "unknown_reply"
    blocks = command.name == "XREADGROUP" and b"BLOCK" in command.args
    if (command.name in BLOCKING or blocks) and not queued and real.element in NOTHING:
        return "blocking"
    return None


def how(command: Command, *, cluster: bool, refused: bool) -> str:
    """How the reply to a call that is dropped must have been made; `refused`: if nothing can be computed, it is asked for."""
    if command.name in UNCOPIED:
        return UNCOPIED_BECAUSE
    if is_made_up(command) or not command.keys:
        return REFUSED if refused else MADE_UP
    # Weights and objects are found beside the real keys only.
    patterns = command.name == "SORT" and {b"BY", b"GET"} & set(command.args[2:])
    return ON_KEYS if cluster or patterns else IN_SCRATCH


def is_made_up(command: Command) -> bool:
    """Whether no copy can give the reply."""
    if command.name == "COPY":
        return b"DB" in command.args
    return command.name in MADE_UP_FOR or command.name in UNCOPIED


def is_told(command: Command, real: bytes, told: bytes, resp: int, *, cluster: bool) -> bool:
    """Whether the client was told what the server says; where that cannot be foreseen, something of its type."""
    drawn = command.name == "SPOP" or (command.name == "XADD" and b"*" in command.args)
    made_up = is_made_up(command)
    # A cluster has one database, and says so only when the command is carried out.
    foreseen = real[:1] == b"-" and not (cluster and made_up)
    if told == real or foreseen or not (drawn or made_up):
        return told == real
    return is_of_type(command, told, resp)


def is_of_type(command: Command, told: bytes, resp: int) -> bool:
    """Whether this is a reply of the command's shape."""
    node = choose(command.spec.reply, command) if command.spec else None
    return node is not None and fits(node, told, resp)


def is_excused(command: Command, real: bytes, told: bytes, detail: str, resp: int) -> bool:
    """Whether the event says that the reply was made up, and it is of its type; and why, where the server would refuse."""
    if not detail.startswith(MADE_UP) or not is_of_type(command, told, resp):
        return False
    return real[:1] != b"-" or (detail != MADE_UP and real.startswith(UNKNOWABLE))
