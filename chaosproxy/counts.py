"""What a proxy has counted: plain numbers, so that counting costs the data path next to nothing.

Takes effects as they happen; gives numbers that `metrics.py` reads whenever somebody asks. Who reads a dict in another thread takes
its `copy` first, which nothing comes between; items are listed one by one, and collecting garbage meanwhile may let others add some.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from chaosproxy.core.effect import Fired, KeysTouched, LimitReached, Matched, ProtocolFault, Skipped
from chaosproxy.core.tally import Histogram

#: Upper bounds of the injected delay's histogram, in seconds; the last bucket is +Inf.
DELAY_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: So many different profile and fault names are told apart: they come from users, through the control API too.
MOST_NAMES: Final = 500
OTHER: Final = "other"

#: Every limit there is, by its name in the metrics, and what it means that it was reached.
LIMITS: Final = {
    "connections": "a client too many was turned away",
    "open_files": "a client was turned away because this process may open no more files",
    "early": "a client was not read until its connection to the server was there",
    "client": "a client was not read because its requests are held up, or too many are unanswered",
    "server": "a server was not read because its replies are held up",
    "reply": "a reply that somebody wanted whole was not held, as it was too large",
    "kept": "what faults keep of a connection's commands was too much: a key's image, a copy, a queued command",
    "control_connections": "a connection of the control address was closed for a newer one, or turned away",
    "control_head": "a request had too many or too long header lines",
    "control_body": "a request announced a body too large",
    "control_time": "a request did not come, or its answer was not read, in time",
    "control_bytes": "requests and answers together were too large",
    "control_waiting": "too many waited for events",
    "toxiproxy": "a proxy too many of Toxiproxy's",
}

#: What has happened: all that is counted, and of which `Fired` is an event too.
#: Gives how many matches were not told of, and how many of these were left alone, by reason.
Unsaid = Callable[[], tuple[int, dict[str, int]]]
Countable = Matched | Skipped | Fired | KeysTouched | ProtocolFault | LimitReached


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is now: connections, commands held back, bytes held back, and the profile in force.

    `upstream_up`: by listener, whether the last client that came there was connected to its server.
    """

    connections: int
    held_commands: int
    buffered_bytes: int
    profile: str
    seed: int
    generation: int
    events_lost: int
    upstream_up: Mapping[str, bool]


class Limits:
    """How often each limit was reached. From any thread."""

    __slots__ = ("_lock", "_times")

    def __init__(self) -> None:
        self._times = dict.fromkeys(LIMITS, 0)
        self._lock = Lock()

    def reached(self, limit: str, again: bool = True) -> None:
        """It was reached once more, unless it was not."""
        with self._lock:
            self._times[limit] += again

    def items(self) -> list[tuple[str, int]]:
        """Give each limit and how often it was reached."""
        return list(self._times.items())


class Counts:
    """Everything counted. Keys are the metrics' label values, in their order, bounded in number.

    Bytes are those on the application's side of TLS. `passed_up` and `passed_down` went on as they came; `read_…` and
    `written_…` are all others.
    """

    __slots__ = (
        "_lock",
        "_matched",
        "_names",
        "_skipped",
        "_unsaid",
        "connections",
        "delays",
        "failovers",
        "fired",
        "keys_touched",
        "limits",
        "passed_down",
        "passed_up",
        "protocol_errors",
        "read_client",
        "read_upstream",
        "upstream_errors",
        "written_client",
        "written_upstream",
    )

    def __init__(self) -> None:
        self.passed_up = self.passed_down = 0
        self.read_client = self.read_upstream = self.written_client = self.written_upstream = 0
        self.failovers = 0
        self.limits = Limits()
        self.connections: Counter[str] = Counter()
        self.upstream_errors: Counter[str] = Counter()
        self.protocol_errors: Counter[str] = Counter()
        self._matched: Counter[tuple[str, str, str]] = Counter()
        self.fired: Counter[tuple[str, str, str, str, str, str]] = Counter()
        self._skipped: Counter[tuple[str, str, str, str]] = Counter()
        self.keys_touched: Counter[tuple[str, str]] = Counter()
        self.delays: dict[str, Histogram] = {}
        self._names: set[str] = set()
        # Who knows of matches of the rules in force that they do not tell of: by profile, fault and type.
        self._unsaid: list[tuple[tuple[str, str, str], Unsaid]] = []
        # Who reads is in another thread.
        self._lock = Lock()

    def declare(
        self,
        profile: str,
        faults: Mapping[str, str],
        unsaid: Mapping[str, Unsaid] | None = None,
    ) -> None:
        """A profile comes into force: its faults (name -> type) are shown from now on, with 0 where nothing happened.

        `unsaid`: by fault, what gives how many matches it has not told of, and how many of them it has left alone, by reason.
        """
        with self._lock:
            self._matched, self._skipped = self._all()
            self._unsaid = [
                ((self._name(profile), self._name(name), faults[name]), unsaid_of)
                for name, unsaid_of in (unsaid or {}).items()
            ]
        for name, type_ in faults.items():
            self._matched[self._name(profile), self._name(name), type_] += 0

    @property
    def from_client(self) -> int:
        """Bytes received from clients."""
        return self.read_client + self.passed_up

    @property
    def to_upstream(self) -> int:
        """Bytes sent to servers for clients."""
        return self.written_upstream + self.passed_up

    @property
    def from_upstream(self) -> int:
        """Bytes received from servers for clients."""
        return self.read_upstream + self.passed_down

    @property
    def to_client(self) -> int:
        """Bytes sent to clients."""
        return self.written_client + self.passed_down

    @property
    def matched(self) -> Counter[tuple[str, str, str]]:
        """Exchanges for which a fault's match held: profile, fault, type."""
        with self._lock:
            return self._all()[0]

    @property
    def skipped(self) -> Counter[tuple[str, str, str]]:
        """Matching exchanges that a fault left alone: profile, fault, reason."""
        found: Counter[tuple[str, str, str]] = Counter()
        for (profile, fault, _, reason), times in self.left_alone.items():
            found[profile, fault, reason] += times
        return found

    @property
    def left_alone(self) -> Counter[tuple[str, str, str, str]]:
        """The same by type too: profile, fault, type, reason. A profile that is put anew may have another fault of a name."""
        with self._lock:
            return self._all()[1]

    def _all(self) -> tuple[Counter[tuple[str, str, str]], Counter[tuple[str, str, str, str]]]:
        """What was told of and what was not, together."""
        matched, skipped = self._matched.copy(), self._skipped.copy()
        for (profile, fault, type_), unsaid in self._unsaid:
            times, left = unsaid()
            matched[profile, fault, type_] += times
            for reason, times in left.items():
                skipped[profile, fault, type_, reason] += times
        return matched, skipped

    def count(
        self,
        effect: Countable,
        profile: str,
        type_: str,
        known: Container[str],
    ) -> None:
        """Count what a conversation of the `profile` in force says has happened.

        `type_` is the type of the fault that the effect names; a command not in `known` counts as `other`.
        """
        match effect:
            case Matched(fault):
                self._matched[self._name(profile), self._name(fault), type_] += 1
            case Skipped(fault, reason):
                self._skipped[self._name(profile), self._name(fault), type_, reason] += 1
            case Fired():
                fault = self._name(effect.fault)
                command = effect.command if effect.command in known else OTHER
                key = (
                    self._name(profile),
                    fault,
                    effect.type,
                    command,
                    effect.position,
                    effect.outcome,
                )
                self.fired[key] += 1
                if effect.delay is not None:
                    self.delays.setdefault(fault, Histogram(DELAY_BUCKETS)).observe(effect.delay)
            case KeysTouched(fault, how, count):
                self.keys_touched[self._name(fault), how] += count
            case ProtocolFault(side):
                self.protocol_errors[side] += 1
            case LimitReached(limit):
                self.limits.reached(limit)

    def totals(self) -> list[dict[str, Any]]:
        """Give each fault of each profile that has been in force: name, type, matched, fired, skipped. From any thread."""
        fired, skipped = self.fired.copy(), self.left_alone
        return [
            {
                "profile": profile,
                "name": name,
                "type": type_,
                "matched": matched,
                "fired": sum(
                    count for key, count in fired.items() if key[:3] == (profile, name, type_)
                ),
                "skipped": {
                    reason: count
                    for (*of, reason), count in skipped.items()
                    if of == [profile, name, type_]
                },
            }
            for (profile, name, type_), matched in self.matched.items()
        ]

    def fired_by_name(self) -> Counter[str]:
        """Give how often faults of each name have fired, of all profiles that have been in force. From any thread."""
        found: Counter[str] = Counter()
        for (_, name, *_), count in self.fired.copy().items():
            found[name] += count
        return found

    def _name(self, name: str) -> str:
        """Give a label for a name that users choose."""
        if name not in self._names:
            if len(self._names) >= MOST_NAMES:
                return OTHER
            self._names.add(name)
        return name
