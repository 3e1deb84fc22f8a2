"""`reply`: another answer than the server's."""

from dataclasses import dataclass

from chaosproxy.core import reply_maker
from chaosproxy.core.command import key_slot
from chaosproxy.core.decision import Answer, Decision, Position
from chaosproxy.core.errors import TEXTS, error_reply
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.resp import encode_bulk, encode_integer, encode_null
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.units import FLAG, TEXT


def _value(value: object) -> bytes | int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str):
        # A lone surrogate, which YAML and JSON can escape, must not crash the loader.
        return value.encode("utf-8", "surrogatepass")
    raise Invalid(f"expected null, empty, an integer or a text, got {value!r}")


VALUE = Kind("value", _value, {"type": ["null", "integer", "string"]})
NOTHING = object()


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Fault):
    """Answer instead of Redis (before_forward), or put another answer in place of its own (after_apply).

    Exactly one of `error`, `value` and `miss` is given. A queued command refused with an error makes EXEC answer
    EXECABORT, as it would have; one answered otherwise gives its value as its element of EXEC's array.
    """

    positions = (Position.BEFORE_FORWARD, Position.AFTER_APPLY)
    outcome = "per position"

    error: str | None = setting(
        TEXT,
        f"A code, for the server's exact text ({', '.join(TEXTS)}), or a text of your own.",
        default=None,
    )
    value: bytes | int | None = setting(
        VALUE,
        "null, '' (an empty string), an integer or a text.",
        default=None,
        absent=NOTHING,
    )
    miss: bool = setting(
        FLAG, "true: what the command answers for keys that are not there.", default=False
    )

    def check(self, at: Position) -> None:
        """One of the three, and only one."""
        del at
        given = [self.error is not None, self.value is not NOTHING, self.miss]
        if sum(given) != 1:
            raise Invalid("give exactly one of error, value and miss")

    def decide(self, context: Context) -> Decision | None:
        """Make the answer, in the client's protocol."""
        command = context.command
        if self.error is not None:
            key = command.keys[0] if command.keys else b""
            raw = error_reply(
                self.error,
                context.server,
                command=command.name,
                key=key,
                slot=key_slot(key),
                address=context.address,
            )
            return Answer(raw, refusal=True)
        if self.miss:
            made = reply_maker.miss(command, context.protocol)
            return None if made is None else Answer(made)
        match self.value:
            case None:
                return Answer(encode_null(context.protocol))
            case int():
                return Answer(encode_integer(self.value))
            case _:
                return Answer(encode_bulk(self.value))
