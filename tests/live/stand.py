"""One call made twice on the same data: straight to the server, and through a proxy that drops every write.

Takes a server and calls; gives what each way answered, how it was told, and whether anything has changed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from tests import servers
from tests.calls import SETUP, SETUP_NEWER, Call, writes
from tests.live import expected
from tests.live.expected import Real
from tests.live.more_calls import MORE_SETUP, ODD_SETUP
from tests.proxying import RunningProxy, at_its_own_port, wait_for
from tests.tools.make_command_table import command_reply
from tests.wire import Wire, decode, encode, reply_end

#: Keys that end so are left alone: a transaction can mix writes that are dropped with some that are not.
KEPT = "_"
DROP = """
faults:
  - {fault: drop_write, tell: ok}
"""
DROP_BUT_KEPT = f"""
faults:
  - {{fault: drop_write, match: {{keys: "*[^{KEPT}]"}}, tell: ok}}
"""

TEMPORARY = b":chaosproxy:"
#: So many of a test's failures are shown.
MOST = 30


@dataclass
class Stand:
    """A server with data and a proxy before it. On a cluster all keys but the odd ones share a hash tag."""

    server: servers.Server
    proxy: RunningProxy
    table: CommandTable
    failures: list[str] = field(default_factory=list)
    _real: dict[tuple[Call, int], Real] = field(default_factory=dict)
    _before: object = None

    # -- data

    def tagged(self, calls: Iterable[Call]) -> tuple[Call, ...]:
        """The calls, their keys in one hash slot if this is a cluster."""
        return tuple(map(self._tagged, calls)) if self.server.cluster else tuple(calls)

    def _tagged(self, call: Call) -> Call:
        words = list(words_of(call))
        for position in self.parse(call).key_positions:
            words[position] = b"{t}" + words[position]
        return tuple(words)

    def parse(self, call: Call) -> Command:
        return Command.parse(self.table, words_of(call), encode(*call))

    def fill(self, *more: Call) -> None:
        """Empty the server and put its data there."""
        data = (*SETUP, *SETUP_NEWER, *MORE_SETUP, *more)
        self.tell(("FLUSHALL",), ("FUNCTION", "FLUSH"), *self.tagged(data), *ODD_SETUP)
        self._before = None

    def writes(self) -> tuple[Call, ...]:
        """tests/calls.py's calls for this server, which are made with data of their own."""
        self._before = None
        return writes(self.server)

    def tell(self, *calls: Call) -> list[bytes]:
        """Make these calls on the server itself, in one go."""
        control = self.server.control
        control.send_bytes(b"".join(encode(*call) for call in calls))
        return control.read(len(calls))

    def state(self) -> dict[object, object]:
        """All there is: DEBUG DIGEST, the functions, and each key of each database with its DUMP and its end."""
        ask = self.server.ask
        # Before 7.0 only the time left can be asked for, and it runs down: of a thousand seconds.
        exact = self.server.version >= (7,)
        ends = "PEXPIRETIME" if exact else "TTL"
        found: dict[object, object] = {
            "digest": ask("DEBUG", "DIGEST"),
            "functions": ask("FUNCTION", "DUMP"),
        }
        for line in ask("INFO", "keyspace").splitlines():
            if not line.startswith(b"db"):
                continue
            db = int(line[2:].split(b":")[0])
            if db:
                ask("SELECT", db)
            keys = ask("KEYS", "*")
            raws = self.tell(*(call for key in keys for call in (("DUMP", key), (ends, key))))
            found |= {
                (db, key): (
                    raws[2 * n],
                    raws[2 * n + 1] if exact else int(raws[2 * n + 1][1:]) > 900,
                )
                for n, key in enumerate(keys)
            }
            if db:
                ask("SELECT", 0)
        return found

    # -- what the server says

    def real(self, call: Call, resp: int) -> Real:
        """Make the call on fresh data, twice: as it is, and alone in a transaction."""
        place = (call, resp)
        if place not in self._real:
            with self.server.connect(resp=resp) as client:
                self.fill()
                plain = client.raw(*call)
                self.fill()
                client.send_bytes(encode("MULTI") + encode(*call) + encode("EXEC"))
                _, queued, result = client.read(3)
            element = result.removeprefix(b"*1\r\n") if result[:1] == b"*" else b""
            self._real[place] = Real(plain, queued, element)
            self._before = None
        return self._real[place]

    def reason(self, call: Call, resp: int, **state: bool) -> str | None:
        """Why this call is left alone, `queued` or while `watching`; None if it is dropped."""
        real = self.real(call, resp)
        return expected.reason(self.parse(call), real, cluster=self.server.cluster, **state)

    def how(self, call: Call, *, refused: bool = False) -> str:
        """How the reply to a call that is dropped must have been made."""
        return expected.how(self.parse(call), cluster=self.server.cluster, refused=refused)

    def dropped(
        self, calls: Iterable[Call], resp: int, **state: bool
    ) -> list[tuple[Call, Real, str]]:
        """Those of the calls that are dropped, with what the server says and how the reply must have been made."""
        found = []
        for call in calls:
            if self.reason(call, resp, **state) is None:
                real = self.real(call, resp)
                refused = not any(state.values()) and real.queued[:1] == b"-"
                found.append((call, real, self.how(call, refused=refused)))
        return found

    def transaction(self, client: Wire, *calls: Call) -> list[bytes]:
        """Make these calls between MULTI and EXEC, in one go; give all replies but MULTI's."""
        client.send_bytes(b"".join(encode(*call) for call in (("MULTI",), *calls, ("EXEC",))))
        return client.read(len(calls) + 2)[1:]

    def compare(self, call: Call, real: bytes, told: bytes, resp: int) -> None:
        """The client was told what the server says; where that cannot be foreseen, something of its type."""
        cluster = self.server.cluster
        if not expected.is_told(self.parse(call), real, told, resp, cluster=cluster):
            self.fail(call, "real", real, "told", told)

    def compare_transaction(
        self, calls: Sequence[Call], reals: Sequence[Real], told: list[bytes], resp: int
    ) -> None:
        """The same for each command between MULTI and EXEC, when it was queued and when it was carried out."""
        queued, result = told[:-1], told[-1]
        if queued != [real.queued for real in reals]:
            self.fail(calls, "queued", queued, "really", [real.queued for real in reals])
        if any(real.queued[:1] == b"-" for real in reals):
            if not result.startswith(b"-EXECABORT"):
                self.fail(calls, "not aborted", result)
            return
        head = b"*%d\r\n" % len(calls)
        if not result.startswith(head):
            self.fail(calls, "EXEC", result)
            return
        start = len(head)
        for call, real in zip(calls, reals, strict=True):
            end = reply_end(result, start)
            self.compare(call, real.element, result[start:end], resp)
            start = end
        if start != len(result):
            self.fail(calls, "more than that", result[start:])

    # -- what is told

    @property
    def journal(self):
        assert self.proxy.service is not None
        return self.proxy.service.journal

    def use(self, profile: str) -> None:
        """Put a profile in force, counts from zero."""
        self.proxy.use(profile)

    def skipped(self) -> Counter[str]:
        """How many matches were let go so far, by reason."""
        assert self.proxy.service is not None
        self.proxy._settle()
        reasons: Counter[str] = Counter()
        for status in self.proxy.service.status():
            reasons.update(status["skipped"])
        return reasons

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within this block no event is heard of a key that is there: of copies only."""
        self.fill()
        with self.server.connect() as ear:
            self.server.ask("CONFIG", "SET", "notify-keyspace-events", "KA")
            ear.raw("PSUBSCRIBE", "__keyspace@*__:*")
            self._before = self.state()
            yield
            self.server.ask("CONFIG", "SET", "notify-keyspace-events", "")
            ear.send("PING")
            while (heard := decode(ear.read()[0]))[0] == b"pmessage":
                place, _, key = heard[2].partition(b"__:")
                if not (place.endswith(b"@15") or TEMPORARY in key or key.endswith(KEPT.encode())):
                    self.fail("heard", heard)

    @contextmanager
    def dropping(self, what: object, *how: str) -> Iterator[None]:
        """Within this block as many writes are dropped as `how` has items, each so, and nothing changes."""
        if self._before is None:
            self.fill()
            self._before = self.state()
        after = self.journal.last
        yield
        with suppress(TimeoutError):
            wait_for(lambda: self.journal.last >= after + len(how), "the events")
        events = self.journal.events(after)
        if sorted(event.get("detail", "") for event in events) != sorted(how):
            self.fail(what, "wanted", how, "got", events)
        for event in events:
            self._check(what, event)
        self.unchanged(what)

    def _check(self, what: object, event: dict[str, Any]) -> None:
        outcome = "fail" if event["told"] == "error" else "false_ok"
        if (event["applied"], event["outcome"]) != ("no", outcome):
            self.fail(what, event)

    @contextmanager
    def told(self, what: object) -> Iterator[list[dict[str, Any]]]:
        """Within this block one write is dropped and nothing changes; gives its event. None if it was left alone."""
        if self._before is None:
            self.fill()
            self._before = self.state()
        after, skipped = self.journal.last, sum(self.skipped().values())
        events: list[dict[str, Any]] = []
        yield events
        with suppress(TimeoutError):
            wait_for(
                lambda: self.journal.last > after or sum(self.skipped().values()) > skipped,
                "the event",
            )
        events += self.journal.events(after)
        for event in events:
            self._check(what, event)
        self.unchanged(what)

    def excused(
        self, call: Call, real: bytes, told: bytes, events: list[dict[str, Any]], resp: int
    ) -> None:
        """As `compare`; a reply that the event says was made up, and why, need only be of the command's type."""
        command = self.parse(call)
        if not any(
            expected.is_excused(command, real, told, event["detail"], resp) for event in events
        ):
            self.compare(call, real, told, resp)

    def unchanged(self, what: object) -> None:
        """All is as it was."""
        now = self.state()
        if now != self._before:
            changed = [n for n in now | self._before if now.get(n) != self._before.get(n)]
            self.fail(what, "has changed", changed)
            self._before = None

    def fail(self, *what: object) -> None:
        self.failures.append(" ".join(map(short, what)))

    def verdict(self) -> None:
        """All that went wrong, at once."""
        failures, self.failures = self.failures, []
        assert not failures, f"{len(failures)} failures:\n" + "\n".join(failures[:MOST])


def make_stand(name: str, cluster: bool) -> Stand:
    server = servers.start_cluster_node(name) if cluster else servers.start(name)
    live = CommandTable.from_reply(command_reply(server), CommandTable.bundled())
    return Stand(server, at_its_own_port(server, DROP), live)


def words_of(call: Call) -> tuple[bytes, ...]:
    return tuple(word if isinstance(word, bytes) else str(word).encode() for word in call)


def short(what: object) -> str:
    text = what if isinstance(what, str) else repr(what)
    return text if len(text) < 400 else f"{text[:380]} … ({len(text)})"
