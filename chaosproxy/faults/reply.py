"""`reply`: another answer than the server's."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaosproxy.core import reply_maker
from chaosproxy.core.command import key_slot
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Answer, Decision, Position
from chaosproxy.core.errors import TEXTS, error_reply
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.resp import encode_bulk, encode_integer, encode_null
from chaosproxy.core.scalar import expected, shown
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.texts import change_texts, not_utf8, shortened
from chaosproxy.core.units import FLAG, SIZE, TEXT


def _value(value: object) -> bytes | int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 63) <= value < 1 << 63:
            raise Invalid(f"expected an integer of 64 bits, as Redis has them, got {shown(value)}")
        return value
    if isinstance(value, str):
        # A lone surrogate, which YAML and JSON can escape, must not crash the loader.
        return value.encode("utf-8", "surrogatepass")
    raise expected("null, empty, an integer or a text", value)


VALUE = Kind(
    "value",
    _value,
    {"type": ["null", "integer", "string"], "minimum": -(1 << 63), "maximum": (1 << 63) - 1},
)
NOTHING = object()


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Fault):
    """Answer instead of Redis (before_forward), or put another answer in place of its own (after_apply).

    Exactly one of `error`, `value`, `miss`, `truncate` and `invalid_utf8` is given; the last two change the server's own answer
    (after_apply). A queued command refused with an error makes EXEC answer
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
    truncate: int | None = setting(
        SIZE,
        "How many bytes are left of each text in the reply, however deep it stands; the reply is a whole one all the same.",
        default=None,
    )
    invalid_utf8: bool = setting(
        FLAG,
        "true: of each text in the reply one byte becomes 0xFF, which UTF-8 has nowhere: the last byte of its first character "
        "of several bytes, or of the text if it has none.",
        default=False,
    )

    def check(self, at: Position) -> None:
        """One of them, and only one; there has to be a reply to change."""
        cut = self.truncate is not None
        given = [
            self.error is not None,
            self.value is not NOTHING,
            self.miss,
            cut,
            self.invalid_utf8,
        ]
        if sum(given) != 1:
            raise Invalid("give exactly one of error, value, miss, truncate and invalid_utf8")
        if at is not Position.AFTER_APPLY and (cut or self.invalid_utf8):
            name = "truncate" if cut else "invalid_utf8"
            raise Invalid("goes with at: after_apply; earlier there is no reply to change", (name,))

    def idle_on(self, specs: Sequence[CommandSpec]) -> str:
        """None of them has an answer of its own for keys that are not there."""
        if not self.miss or any(spec.miss for spec in specs):
            return ""
        return "answers as for an absent key and none of these has such an answer"

    def decide(self, context: Context) -> Decision | None:
        """Make the answer, in the client's protocol."""
        command = context.command
        if self.truncate is not None or self.invalid_utf8:
            return self._changed(context.reply or b"")
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

    def _changed(self, raw: bytes) -> Decision | None:
        """The server's answer with other texts in it; None if nothing in it changes."""
        size = self.truncate
        made = change_texts(raw, not_utf8 if size is None else lambda text: shortened(text, size))
        return None if made is raw else Answer(made)
