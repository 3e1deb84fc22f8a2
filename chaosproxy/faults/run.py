"""`run`: other commands run on the server, right there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from chaosproxy.core.decision import Decision, Position, Run
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import COMMAND_LIST, choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommands(Fault):
    """These commands run on the server exactly before the command is forwarded, or after it was applied.

    Their replies are hidden. `{key}` stands for the key that matched. They run in the client's database.
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

    def names(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Those that it runs."""
        for number, words in enumerate(self.commands):
            yield ("commands", number, 0), words[0].decode("utf-8", "backslashreplace").upper()

    def decide(self, context: Context) -> Decision:
        """Run them."""
        del context
        return Run(self.commands, self.where)
