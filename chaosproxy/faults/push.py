"""`push`: frames nobody asked for are lost, late, doubled, or made up."""

from dataclasses import dataclass
from typing import Literal

from chaosproxy.core.decision import Answer, Beside, Decision, Delay, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.units import DURATION, TEXT, choice


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Push(Fault):
    """Pub/sub messages and client-side-cache invalidations are lost, late, doubled, or made up.

    Matches are those frames; `match: push` says which, left out it is all of them. Frames keep their place among replies.
    """

    positions = (Position.AFTER_APPLY,)
    outcome = "ok"
    subject = "push"

    do: Literal["drop", "delay", "duplicate", "inject"] = setting(
        choice("do", "drop", "delay", "duplicate", "inject"),
        "drop: it never arrives. delay: it arrives late. duplicate: twice. inject: another frame arrives ahead of it.",
    )
    delay: float | None = setting(DURATION, "With do: delay: how long.", default=None)
    frame: str | None = setting(
        TEXT, "With do: inject: the frame, in RESP, as a YAML string with \\r\\n.", default=None
    )

    def check(self, at: Position) -> None:
        """Each setting goes with what it is for."""
        del at
        for name, value, needs in (("delay", self.delay, "delay"), ("frame", self.frame, "inject")):
            if (value is not None) != (self.do == needs):
                raise Invalid(
                    f"{name} goes with do: {needs}, and do: {needs} needs it",
                    (name,) if value else ("do",),
                )

    def decide(self, context: Context) -> Decision:
        """Do it to this frame."""
        match self.do:
            case "drop":
                return Answer(b"")
            case "delay":
                return Delay(self.delay or 0.0)
            case "duplicate":
                return Beside(behind=context.reply or b"")
            case "inject":
                return Beside(ahead=(self.frame or "").encode())
