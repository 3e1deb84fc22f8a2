"""`push`: frames nobody asked for are lost, late, doubled, or made up."""

from dataclasses import dataclass
from typing import Literal

from chaosproxy.core.decision import Answer, Beside, Decision, Delay, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.reply import ReplyFramer
from chaosproxy.core.scalar import expected
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.units import POSITIVE_DURATION, TEXT, choice


def _frames(value: object) -> bytes:
    text: str = TEXT.parse(value)
    raw = text.encode("utf-8", "surrogatepass")
    framer = ReplyFramer()
    framer.feed(raw)
    try:
        count = sum(1 for _ in iter(framer.next, None))
    except ProtocolError:
        count = 0
    if not count or framer.partial:
        raise expected("whole RESP frames, each line with its \\r\\n", value)
    return raw


FRAMES = Kind(
    "RESP frames",
    _frames,
    {"type": "string", "pattern": r"^[-+:$*_#,(!=%~>|][\s\S]*\r\n$"},
)


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Push(Fault):
    """Pub/sub messages and client-side-cache invalidations are lost, late, doubled, or made up.

    Matches are those frames; `match: push` says which, left out it is all of them. Frames keep their place among replies.
    """

    positions = (Position.AFTER_APPLY,)
    outcome = "ok"
    subject = "push"
    on_pushes = True

    do: Literal["drop", "delay", "duplicate", "inject"] = setting(
        choice("do", "drop", "delay", "duplicate", "inject"),
        "drop: it never arrives. delay: it arrives late. duplicate: twice. inject: another frame arrives ahead of it.",
    )
    delay: float | None = setting(POSITIVE_DURATION, "With do: delay: how long.", default=None)
    frame: bytes | None = setting(
        FRAMES,
        'With do: inject: the frame, or several, in RESP: ">2\\r\\n+invalidate\\r\\n_\\r\\n".',
        default=None,
    )

    def check(self, at: Position) -> None:
        """Each setting goes with what it is for."""
        del at
        for name, value, needs in (("delay", self.delay, "delay"), ("frame", self.frame, "inject")):
            if self.do == needs and value is None:
                raise Invalid(f"{needs} goes with the setting {name}", ("do",))
            if self.do != needs and value is not None:
                raise Invalid(f"goes with do: {needs}", (name,))

    def decide(self, context: Context) -> Decision:
        """Do it to this frame."""
        match self.do:
            case "drop":
                return Answer(b"")
            case "delay":
                return Delay(self.delay or 0.0)
            case "duplicate":
                return Beside(behind=context.reply or b"")
            case _:
                return Beside(ahead=self.frame or b"")
