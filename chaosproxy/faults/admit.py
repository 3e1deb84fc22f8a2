"""`admit`: what a new connection meets."""

from dataclasses import dataclass

from chaosproxy.core.decision import Admit, Decision, Position
from chaosproxy.core.errors import error_reply
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.units import COUNT, POSITIVE_DURATION, TEXT, choice, record

_WORDS = choice("new_connections", "accept", "refuse", "reset", "accept_silent")
_ERROR = record(
    "{error: text}", '{error: "ERR max number of clients reached"}', {"error": TEXT}, dict
)


def _treatment(value: object) -> str | dict[str, str]:
    parsed: str | dict[str, str] = (_ERROR if isinstance(value, dict) else _WORDS).parse(value)
    return parsed


TREATMENT = Kind("word or {error: text}", _treatment, {"anyOf": [_WORDS.schema, _ERROR.schema]})


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitConnections(Fault):
    """What a new connection meets: it is refused, reset, accepted and never answered, told an error, or kept waiting.

    Matches are new connections; of `match` only `clients: {address: …}` and `connection` can be said of one. Connections that
    are open already stay as they are.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "fail"
    subject = "connection"

    new_connections: str | dict[str, str] = setting(
        TREATMENT,
        "accept: after `delay`. reset: accepted by the kernel, then RST. refuse: nobody listens, so connecting itself fails; "
        "where something picks among connections (match, nth, chance, limit, next, delay …) it is as reset. accept_silent: it "
        "is open and nothing ever comes. {error: text}: it is told this error (a code stands for the server's text) and closed.",
        default="accept",
    )
    limit: int | None = setting(
        COUNT, "Only while at least so many other connections are open.", default=None
    )
    delay: float | None = setting(
        POSITIVE_DURATION, "How long it is kept waiting first.", default=None
    )
    next: int | None = setting(
        COUNT,
        "Only the next so many connections, from when the rule is in force (or armed, or triggered).",
        default=None,
    )
    for_: float | None = setting(
        POSITIVE_DURATION,
        "For how long, from when the rule is in force (`from`, or when it was armed or triggered).",
        default=None,
        name="for",
    )

    def check(self, at: Position) -> None:
        """To accept at once is to do nothing."""
        del at
        if self.new_connections == "accept" and self.delay is None:
            raise Invalid("accept goes with delay, else nothing happens", ("new_connections",))

    @property
    def spans(self) -> bool:
        """A time, or the next so many: a request is for all of them."""
        return self.for_ is not None or self.next is not None

    def shuts_door(self) -> float | None:
        """Nobody listens if all connections are refused."""
        if self.new_connections != "refuse" or (self.limit or self.next or self.delay):
            return None
        return float("inf") if self.for_ is None else self.for_

    def decide(self, context: Context) -> Decision | None:
        """What this connection meets; nothing if it is not among the next ones, too late, or there is room."""
        if self.for_ is not None and context.now - context.armed_at >= self.for_:
            return None
        if self.limit is not None and context.open_connections < self.limit:
            return None
        if self.next is not None and context.fired >= self.next:
            return None
        treatment, delay = self.new_connections, self.delay or 0.0
        if isinstance(treatment, dict):
            return Admit("error", delay, error_reply(treatment["error"], context.server))
        return Admit(treatment, delay)
