"""`failover`: the primary goes, and another takes over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, cast

from chaosproxy.core.command import key_slot
from chaosproxy.core.decision import Answer, Decision, Position
from chaosproxy.core.errors import error_reply
from chaosproxy.core.failover import (
    CutOff,
    Failover,
    Lose,
    Phase,
    Refusal,
    Rejoin,
    Step,
    Switch,
    Unblock,
    refuses,
)
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.scalar import closest, expected
from chaosproxy.core.setting import Invalid, Kind, parse_each, setting
from chaosproxy.core.undo import UndoLog
from chaosproxy.core.units import COUNT, POSITIVE_DURATION, choice, record

_HOW = choice("how", "reset", "close")
_WORDS: Final[dict[str, Step]] = {"switch": Switch(), "unblock": Unblock(), "rejoin": Rejoin()}
_PHASES: Final[dict[str, Callable[[float], Phase]]] = {
    "wait": Phase,
    "hold": lambda seconds: Phase(seconds, held=True),
    "refuse": lambda seconds: Phase(seconds, "refuse"),
    "reset_new": lambda seconds: Phase(seconds, "reset"),
    "readonly": lambda seconds: Phase(seconds, refusal="READONLY"),
    "masterdown": lambda seconds: Phase(seconds, refusal="MASTERDOWN"),
    "clusterdown": lambda seconds: Phase(seconds, refusal="CLUSTERDOWN"),
    "loading": lambda seconds: Phase(seconds, refusal="LOADING"),
}
_STEP_NAMES: Final = (*_WORDS, "cut", *_PHASES)
_WHAT: Final = "a step such as switch, {cut: reset}, {refuse: 1s} or {readonly: 2s}"


def _step(value: object) -> Step:
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        raise expected(_WHAT, value, closest(value, _WORDS))
    if not isinstance(value, dict) or len(value) != 1:
        raise expected(_WHAT, value)
    ((name, part),) = value.items()
    try:
        if name == "cut":
            return CutOff(_HOW.parse(part))
        if name in _PHASES:
            return _PHASES[name](POSITIVE_DURATION.parse(part))
    except Invalid as wrong:
        raise wrong.under(name) from None
    if name in _WORDS:
        raise Invalid(f"'{name}' takes nothing: write it as a word", (name,), at_key=True)
    near = closest(name, _STEP_NAMES)
    raise Invalid(f"unknown step '{name}', expected {_WHAT}", (name,), suggestion=near, at_key=True)


def _steps(value: object) -> tuple[Step, ...]:
    if not isinstance(value, list) or not value:
        raise expected("a list of steps such as [{refuse: 1s}, switch]", value)
    return tuple(parse_each(lambda _, each: _step(each), enumerate(value)))


def _one(name: str, schema: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


STEPS: Final = Kind(
    "list of steps",
    _steps,
    {
        "type": "array",
        "minItems": 1,
        "items": {
            "anyOf": [
                {"enum": list(_WORDS)},
                _one("cut", _HOW.schema),
                *(_one(name, POSITIVE_DURATION.schema) for name in _PHASES),
            ]
        },
    },
)


def _lose(**parts: object) -> Lose:
    if len(parts) != 1:
        raise Invalid("give one of for and writes")
    return Lose(cast("float | None", parts.get("for")), cast("int | None", parts.get("writes")))


LOSE: Final = record(
    "{for: duration}, {writes: count}",
    "{for: 800ms} or {writes: 3}",
    {"for": POSITIVE_DURATION, "writes": COUNT},
    _lose,
)


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryFailsOver(Fault):
    """The primary goes and another takes over: old connections, new ones and acknowledged writes each meet their fate.

    It begins by itself when the rule comes into force, at `from`, once it is armed or on request; where `match` or `when` pick
    among exchanges, with the exchange they pick, which is the first to meet it. What is unanswered then is answered first;
    what comes while a step is carried out waits. Everybody meets it, whatever `match` says.

    With one server behind the proxy the switch is emulated: the writes of the lost window are readable until then, and undone
    then: value, type and end of their keys, a transaction as a whole. For that the proxy asks what a key is just before each
    write to it (DUMP, PEXPIRETIME, with the client's own rights) and puts it back (RESTORE, with its own); two connections
    that write to one key do so one after the other meanwhile. Not undone, and written down as that: FLUSHALL, FLUSHDB, what
    scripts do to keys they do not declare, functions, requests larger than the buffer, keys the user may not DUMP, what was
    queued in a transaction before the profile came into force. What was written before one of those that may have changed any key
    stays with it, and is written down as built_on. What does not pass through the proxy is not known. Reads on old connections see the
    same server.

    With a standby (--standby, or --upstream embedded) it is real, but for style restart. The standby copies the primary by way of
    the proxy, which holds the replication link back (`lag`, `lose`) and cuts it: as the failover begins, or at the switch where
    nothing says how far it lags. At the switch the standby is promoted, new connections go there, and what had not crossed is gone. Old
    connections stay with the old primary and read what that has; their writes are refused by the proxy.

    With a cluster (--upstream redis+cluster://) style cluster has a replica take over by CLUSTER FAILOVER, and nothing else: of
    the primary behind the listener that `match` names, or of any. Other styles are called off: nodes fail over by themselves.
    """

    positions = (Position.BEFORE_FORWARD,)
    outcome = "fail / false ok"

    style: Literal["sentinel", "cluster", "managed", "restart", "steps"] = setting(
        choice("style", "sentinel", "cluster", "managed", "restart", "steps"),
        "What clients of such a deployment see. sentinel: the primary crashes, its connections are reset, nobody accepts, then "
        "the new primary does. managed: an endpoint's address moves; old connections stay and answer READONLY. cluster: old "
        "connections stay; they answer CLUSTERDOWN until the switch, then MOVED. restart: the same server comes back. steps: "
        "as `steps` says.",
    )
    steps: tuple[Step, ...] | None = setting(
        STEPS,
        "With style steps, one after the other. {cut: reset} or {cut: close}: all connections end. unblock: blocked clients are "
        "told UNBLOCKED and closed. {refuse: 1s}: for so long nobody listens, {reset_new: 1s}: new connections are reset. "
        "{readonly: 2s}, {loading: 500ms}, {masterdown: 1s}, {clusterdown: 1s}: for so long commands get that error, those that "
        "a server in that state refuses. {hold: 250ms}: commands wait. {wait: 1s}: all is as it was. switch: the new primary "
        "takes over; what is lost is gone, and connections open by now are to the old one, which answers READONLY; who still waits in "
        "BLPOP is told UNBLOCKED. rejoin: "
        "those connections are closed.",
        default=None,
    )
    lag: float | None = setting(
        POSITIVE_DURATION,
        "With a real standby: how far its replication link is held back. With one server, and no `lose`: as lose: {for: …}.",
        default=None,
    )
    lose: Lose | None = setting(
        LOSE,
        "Acknowledged writes that the new primary never received. {for: 800ms}: those applied since so long before the failover "
        "began; {writes: 3}: the last so many before the switch, of all connections, whole transactions only. What an earlier "
        "failover with a `lose` has left is not lost.",
        default=None,
    )
    old_connections: Literal["keep", "reset"] | None = setting(
        choice("old_connections", "keep", "reset"),
        "keep: those that are open stay, with the old primary, which refuses writes (READONLY; cluster: MOVED). reset: they are "
        "reset as it begins. Left out: keep for managed and cluster, reset for sentinel and restart.",
        default=None,
    )
    outage: float | None = setting(
        POSITIVE_DURATION, "How long nobody accepts before the switch.", default=None
    )
    loading: float | None = setting(
        POSITIVE_DURATION,
        "How long after the switch commands get LOADING, all but those that a loading server answers (HELLO, AUTH, CLIENT …).",
        default=None,
    )
    blocked_clients: Literal["UNBLOCKED", "reset"] | None = setting(
        choice("blocked_clients", "UNBLOCKED", "reset"),
        "Who waits in BLPOP and the like as it begins is told UNBLOCKED and closed, or reset. Left out: UNBLOCKED where "
        "connections are kept.",
        default=None,
    )
    rejoin: float | None = setting(
        POSITIVE_DURATION,
        "How long after the switch the old primary comes back as a replica: connections to it are closed then. Left out: never.",
        default=None,
    )

    def check(self, at: Position) -> None:
        """What is written out by hand is in the steps; a restart has no old primary."""
        del at
        if (self.style == "steps") != (self.steps is not None):
            raise Invalid(
                "style: steps and steps: […] go together", ("steps",) if self.steps else ()
            )
        if self.steps is not None:
            for name in ("old_connections", "outage", "loading", "blocked_clients", "rejoin"):
                if getattr(self, name) is not None:
                    raise Invalid("is a step, with style: steps", (name,), at_key=True)
            switches = self.steps.count(Switch())
            if switches > 1:
                raise Invalid("there can be one switch only", ("steps",))
            if self.lose is not None and not switches:
                raise Invalid("nothing is lost without a switch among the steps", ("lose",))
        if self.style == "restart" and self.old_connections == "keep":
            raise Invalid("a server that restarts keeps no connection", ("old_connections",))
        if self.rejoin is not None and self.loading is not None and self.rejoin < self.loading:
            raise Invalid("comes after loading", ("rejoin",))

    @property
    def standby(self) -> Literal["uses", "needs"] | None:
        """The other server, if there is one; a server that comes back needs none."""
        return None if self.style == "restart" else "uses"

    @property
    def loses(self) -> Lose | None:
        """What is lost: as it is said, or as far as the replica lags."""
        return self.lose or (None if self.lag is None else Lose(seconds=self.lag))

    @property
    def keeps(self) -> bool:
        """Whether connections that are open stay, with the old primary."""
        return (self.old_connections or _KEPT[self.style]) == "keep"

    def program(self) -> tuple[Step, ...]:
        """The steps, in their order."""
        if self.steps is not None:
            return self.steps
        steps: list[Step] = []
        if self.blocked_clients is not None or self.keeps:
            steps.append(Unblock(told=self.blocked_clients != "reset"))
        if not self.keeps:
            steps.append(CutOff("reset"))
        if self.outage is not None:
            steps.append(Phase(self.outage, "refuse", self._meanwhile))
        steps.append(Switch())
        if self.loading is not None:
            steps.append(Phase(self.loading, refusal="LOADING"))
        if self.rejoin is not None:
            rest = self.rejoin - (self.loading or 0.0)
            steps += [Phase(rest), Rejoin()]
        return tuple(steps)

    @property
    def _meanwhile(self) -> Refusal:
        """What those who stay are refused with until the switch."""
        if not self.keeps:
            return ""
        return "CLUSTERDOWN" if self.style == "cluster" else "READONLY"

    @property
    def _afterwards(self) -> Refusal | None:
        """What those who stayed are refused with after it."""
        if self.style == "restart":
            return None
        return "MOVED" if self.style == "cluster" else "READONLY"

    def new_state(self) -> Failover:
        """Where it stands."""
        loses = self.loses
        log = None if loses is None else UndoLog(loses.seconds, loses.writes)
        return Failover(self.program(), self._afterwards, loses, log)

    def decide(self, context: Context) -> Decision | None:
        """Refuse what the server that this connection is to refuses now."""
        state = cast("Failover", context.state)
        command = context.command
        code = refuses(state.refusal(context.opened), command.spec, context.carried)
        if not code:
            return None
        slot = key_slot(command.keys[0]) if command.keys else 0
        raw = error_reply(code, context.server, slot=slot, address=context.address)
        return Answer(raw, refusal=True)


_KEPT: Final = {
    "sentinel": "reset", "cluster": "keep", "managed": "keep", "restart": "reset", "steps": "keep",
}  # fmt: skip
