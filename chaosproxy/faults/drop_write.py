"""`drop_write`: a write that has no effect."""

from dataclasses import dataclass
from typing import Literal, assert_never

from chaosproxy.core.decision import Answer, Cut, Decision, Position, Silence, Swallow
from chaosproxy.core.errors import error_reply
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import setting
from chaosproxy.core.units import choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class DropWrite(Fault):
    """The write has no effect, whatever the client is told.

    `tell: ok` answers with the reply the server would have given, inside MULTI too; the event's detail says how it was
    made. Commands that are no writes are left alone, and so are blocking ones that would wait. A client that caches the key (CLIENT
    TRACKING) may be told that it has changed, and finds it as it was; keyspace notifications may tell of the copies on which the reply
    was computed, in another database or with :chaosproxy: in their names.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "false ok / fail"
    writes_only = True

    tell: Literal["ok", "error", "nothing", "disconnect"] = setting(
        choice("tell", "ok", "error", "nothing", "disconnect"),
        "What the client is told: that it worked, an error, nothing at all, or the connection is reset.",
    )

    @property
    def needs_scratch(self) -> bool:
        """To tell ok is to have the server compute what it would have said."""
        return self.tell == "ok"

    def decide(self, context: Context) -> Decision | None:
        """Drop it, if it is a write."""
        spec = context.command.spec
        if spec is None or not spec.is_write:
            return None
        match self.tell:
            case "ok":
                return Swallow()
            case "error":
                text = f"ERR the write was dropped by the fault {context.fault}"
                return Answer(error_reply(text, context.server), refusal=True)
            case "nothing":
                return Silence("request")
            case "disconnect":
                return Cut("reset")
            case _:
                assert_never(self.tell)
