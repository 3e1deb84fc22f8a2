"""`run`: other commands run on the server, right there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from chaosproxy.core.decision import Decision, Position, Run
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import COMMAND_LIST, choice

#: What leaves a connection another one than it was.
_OF_CONNECTIONS: Final = frozenset(
    (
        "AUTH", "HELLO", "RESET", "QUIT", "SELECT", "WATCH", "UNWATCH", "ASKING", "READONLY", "READWRITE",
        "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE",
        "MONITOR", "SYNC", "PSYNC", "REPLCONF",
        "CLIENT REPLY", "CLIENT TRACKING", "CLIENT CACHING", "CLIENT SETNAME", "CLIENT SETINFO", "CLIENT NO-EVICT", "CLIENT NO-TOUCH",
    )
)  # fmt: skip


#: Where the timeout of a command that waits stands: the others have it last.
_SECOND: Final = frozenset((b"BLMPOP", b"BZMPOP"))
_WAIT: Final = _SECOND | {b"BLPOP", b"BRPOP", b"BZPOPMIN", b"BZPOPMAX", b"BLMOVE", b"BRPOPLPUSH"}


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommands(Fault):
    """These commands run on the server exactly before the command is forwarded, or after it was applied.

    Their replies are hidden. `{key}` stands for the key that matched. They run in the client's database. None may change the
    connection that it runs on (SELECT, SUBSCRIBE, HELLO …) or wait without a timeout (BLPOP q 0), and a MULTI needs its EXEC.
    """

    positions = (Position.BEFORE_FORWARD, Position.AFTER_APPLY, Position.AFTER_REPLY)
    outcome = "ok"

    commands: tuple[tuple[bytes, ...], ...] = setting(
        COMMAND_LIST, "A list of commands, each a list of words: [[SCRIPT, FLUSH]]."
    )

    where: Literal["upstream", "standby"] = setting(
        choice("where", "upstream", "standby"),
        "Which server they run on: the one behind the proxy, or the standby (--standby), on a connection of the proxy's own.",
        default="upstream",
    )

    @property
    def standby(self) -> Literal["uses", "needs"] | None:
        """There must be one where it is to run there."""
        return "needs" if self.where == "standby" else None

    def check(self, at: Position) -> None:
        """Nothing may change the connection that it runs on: the client's own, or one that others use as well."""
        del at
        begun: int | None = None
        for number, words in enumerate(self.commands):
            first = words[: 2 if words[0].upper() == b"CLIENT" else 1]
            name = b" ".join(first).upper().decode("latin-1")
            if name[:1] == "@" or "|" in name:
                sent = ", ".join(name.strip("@").split("|"))
                raise Invalid(
                    "expected a command's own name", ("commands", number, 0), suggestion=sent
                )
            if name in _OF_CONNECTIONS:
                raise Invalid(
                    f"{name} changes the connection that it runs on, which is not the fault's own",
                    ("commands", number, 0),
                )
            if name == "MULTI":
                begun = number
            elif name in {"EXEC", "DISCARD"}:
                begun = None
            elif begun is None and _waits_for_good([word.upper() for word in words]):
                raise Invalid(
                    f"{name} may wait for good, and whatever comes behind it too; give it a timeout, or a command that does not wait",
                    ("commands", number, 0),
                )
        if begun is not None:
            raise Invalid("MULTI needs its EXEC among these commands", ("commands", begun, 0))

    def names(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Those that it runs."""
        for number, words in enumerate(self.commands):
            yield ("commands", number, 0), words[0].decode("utf-8", "backslashreplace").upper()

    def decide(self, context: Context) -> Decision:
        """Run them."""
        del context
        return Run(self.commands, self.where)


def _waits_for_good(words: list[bytes]) -> bool:
    """Whether a command, in capital letters, may wait without an end: its timeout is 0."""
    name = words[0]
    if name in {b"XREAD", b"XREADGROUP"}:
        options = words[: words.index(b"STREAMS")] if b"STREAMS" in words else words
        timeout = options[options.index(b"BLOCK") + 1 :][:1] if b"BLOCK" in options else []
    elif name in {b"WAIT", b"WAITAOF"}:
        # For nobody it does not wait.
        timeout = words[-1:] if any(each.strip(b"0") for each in words[1:-1]) else []
    elif name in _WAIT:
        timeout = words[1:2] if name in _SECOND else words[-1:]
    else:
        return False
    return any(not each.strip(b"0.") and b"0" in each for each in timeout)
