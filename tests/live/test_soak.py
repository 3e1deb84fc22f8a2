"""Soak: many connections under load while one profile follows the other, and what must be so all the time and afterwards.

Takes a real server, a proxy that tells what it holds, and clients that know whose every reply is; gives proof that nothing
leaks, that nobody is stuck or given somebody else's reply, and that what was counted, written down and told is one thing.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chaosproxy import faults
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.fault import FAULTS
from chaosproxy.counts import OTHER
from chaosproxy.journal import KEPT
from chaosproxy.profile import Source, load
from tests import servers
from tests.live import soak_profiles
from tests.proxying import wait_for

faults.register()

ROOT = Path(__file__).resolve().parent.parent.parent
#: No profile holds anything up for longer than it is in force; beyond that, how long a busy machine may take, in seconds.
SLACK = 15.0
#: How long control may take, in seconds: a second, and what a busy machine adds.
CONTROL = 30.0
#: How late a client may notice on a busy machine that it was cut off, in seconds.
LATE = 3.0
#: How often it may say that it is asked at a bad time.
MOST_BUSY = 20
#: Side connections: one a database and protocol, and those that come after a loss.
MOST_SIDE = 8
#: So much more may be resident at the end than after every profile was in force once, in bytes.
MOST_GROWTH = 32 << 20
#: What share of the time goes by before it is first looked what the proxy holds.
WARM = 0.4
#: What is looked at of what it holds, and of these what must not differ at all.
HELD = ("tasks", "threads", "files", "sockets", "resident", "objects")
SAME = ("tasks", "threads", "files", "sockets")
#: Faults that let everybody go on by themselves, for comparing what is told of them.
BOOKS = (
    "books",
    {
        "name": "books",
        "yaml": """
faults:
- {fault: latency, name: late, match: {commands: '@read'}, at: after_apply, delay: 5ms, when: {chance: 20%}}
- {fault: reply, name: told, match: {commands: [INCR, RPUSH]}, at: before_forward, error: OOM, when: {every: 5}}
- {fault: drop_write, name: lost, match: {commands: SET}, tell: ok, when: {chance: 20%}}
- {fault: disconnect, name: cut, at: mid_reply, when: {every: 40}}
""",
    },
)
KNOWN = CommandTable.bundled().specs
#: So many more of one class there may be: what is remembered of commands and faults, not of connections or profiles.
MOST_MORE = 40


@dataclass
class Process:
    """A helper in a process of its own, spoken to in lines."""

    process: "subprocess.Popen[str]"

    @classmethod
    @contextmanager
    def running(cls, module: str, *args: object) -> "Iterator[Process]":
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, args)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield cls(process)
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def say(self, word: str) -> None:
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return json.loads(line)

    def ask(self, word: str) -> dict[str, Any]:
        self.say(word)
        return self.hear()


@dataclass
class Soak:
    """The proxy, the clients, and the names under which profiles were in force."""

    proxy: Process
    clients: Process
    control: str
    events: Path
    names: dict[int, str] = field(default_factory=dict)
    switches: int = 0
    #: From when on a profile was in force, and whether it may cut off anybody.
    spans: list[tuple[float, bool]] = field(default_factory=list)
    slowest: float = 0.0
    busy: int = 0
    seen: int = 0

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Ask the control API; an answer is always JSON or text, and comes in time.

        That the data side is busy is an answer too: on a machine that has too much to do it is asked again.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        asked = Request(self.control + path, data, headers, method=method)
        began = time.monotonic()
        try:
            with urlopen(asked, timeout=CONTROL) as answer:
                text = answer.read().decode()
                kind = answer.headers["Content-Type"]
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or self.busy > MOST_BUSY:
                    log = "\n".join(self.proxy.ask("")["errors"])
                    raise AssertionError(f"{method} {path}: {error.read()!r}\n{log}") from None
            self.busy += 1
            return self.api(method, path, body)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return json.loads(text) if kind.startswith("application/json") else text

    def written(self) -> list[dict[str, Any]]:
        """Every event, as the file has them."""
        return [json.loads(line) for line in self.events.read_text().splitlines()[1:]]

    def put(self, name: str, body: dict[str, Any]) -> None:
        """Put a profile in force; what its predecessor had done by then has been written down."""
        said = self.api("PUT", "/profile", body)
        assert said["name"] == name
        self.names[said["generation"]] = name
        self.switches += 1
        self.spans.append((time.monotonic(), soak_profiles.cuts(body)))

    def calm(self) -> None:
        said = self.api("DELETE", "/profile")
        self.names[said["generation"]] = "calm"
        self.spans.append((time.monotonic(), False))

    def look_at_events(self) -> None:
        """Follow them, as somebody does who looks on."""
        said = self.api("GET", f"/events?after={self.seen}")
        numbers = [event["n"] for event in said["events"]]
        assert numbers == list(range(said["last"] - len(numbers) + 1, said["last"] + 1))
        assert said["last"] - said["dropped"] <= KEPT
        self.seen = said["last"]

    def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Every sample, by its name without `chaosproxy_` and its labels."""
        return {
            (
                sample.name.removeprefix("chaosproxy_"),
                tuple(sorted(sample.labels.items())),
            ): sample.value
            for family in text_string_to_metric_families(self.api("GET", "/metrics"))
            for sample in family.samples
        }

    def by_label(self, name: str, *labels: str) -> Counter[tuple[str, ...]]:
        """Sums of the samples of that name, by these labels."""
        sums: Counter[tuple[str, ...]] = Counter()
        for (sample, found), value in self.metrics().items():
            if sample == name:
                sums[tuple(dict(found)[label] for label in labels)] += int(value)
        return sums

    def gauge(self, name: str) -> float:
        return self.metrics()[name, ()]

    def settle(self) -> dict[str, Any]:
        """Calm, and all clients at rest: who was held up has gone on, who was cut off is back or will be."""
        self.calm()
        said = self.clients.ask("settle")
        assert not said["wrong"], "\n".join(said["wrong"])
        return said

    def strict(self, rounds: int) -> None:
        """Under calm every reply is exact, nobody is cut off, and what is counted is what was sent."""
        before, commands = self.clients.ask("settle"), self.by_label("commands_total", "command")
        moved = self.by_label("bytes_total", "direction")
        said = self.clients.ask(f"strict {rounds}")
        assert not said["wrong"], "\n".join(said["wrong"])
        sent = Counter(said["sent"])
        sent.subtract(before["sent"])
        heard = Counter(said["heard"])
        heard.subtract(before["heard"])
        counted = self.by_label("commands_total", "command")
        counted.subtract(commands)
        assert sent == heard
        assert {name: times for (name,), times in counted.items() if times} == +sent
        moved_now = self.by_label("bytes_total", "direction")
        moved_now.subtract(moved)
        assert moved_now["from_client",] == moved_now["to_upstream",] > 0
        assert moved_now["from_upstream",] == moved_now["to_client",] > 0

    def counted(self) -> None:
        """Each command that was answered was counted, and none that was not sent, whatever came between."""
        said = self.clients.ask("settle")
        counts = {
            name: times for (name,), times in self.by_label("commands_total", "command").items()
        }
        assert counts.keys() == said["sent"].keys()
        for name, sent in said["sent"].items():
            # Who is turned away at the door is told so before anything was asked, and takes it for the first answer.
            heard = 0 if name in ("HELLO", "CLIENT") else said["heard"].get(name, 0)
            assert heard <= counts[name] <= sent, name

    def cut_off_by_faults(self, cuts: list[float], late: float) -> None:
        """Nobody was cut off but under a profile that does so, or so many seconds after it."""
        ends = [begun for begun, _ in self.spans[1:]]
        allowed = [
            (begun, end + late)
            for (begun, cuts), end in zip(self.spans, ends, strict=False)
            if cuts
        ]
        # A little before it was told, it was in force.
        strange = [at for at in cuts if not any(a - 1 < at < b for a, b in allowed)]
        assert not strange, [round(at - self.spans[0][0], 2) for at in strange]

    def holdings(self) -> dict[str, Any]:
        """What the proxy holds without clients and without kept events."""
        said = self.clients.ask("close")
        assert said["open"] == 0
        for name in ("connections", "held_commands", "buffered_bytes"):
            wait_for(lambda name=name: self.gauge(name) == 0, f"no {name}")
        assert self.api("GET", "/connections") == {"connections": []}
        self.api("DELETE", "/events")
        # One task is the one that counts them; who was answered last may still be being closed.
        wait_for(lambda: self.proxy.ask("")["tasks"] <= 1, "its tasks to end")
        found = self.proxy.ask("")
        assert found["errors"] == []
        while (again := self.proxy.ask("")) and any(again[name] < found[name] for name in SAME):
            found = again
        return found


@contextmanager
def soaking(folder: Path, pairs: int, seed: str, patience: float, rest: float) -> Iterator[Soak]:
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    server = servers.start("valkey9", "--maxclients", "20000")
    events = folder / "events.jsonl"
    try:
        # Nobody else is given it while a fault keeps everybody out.
        port = servers.free_port()
        with Process.running("tests.live.watched", server.url, events, port) as proxy:
            where = proxy.hear()
            args = (where["port"], pairs, seed, patience, rest)
            with Process.running("tests.live.soak_load", *args) as clients:
                soak = Soak(proxy, clients, where["control"], events)
                soak.names[1] = "calm"
                yield soak

                def clients() -> list[bytes]:
                    return server.ask("CLIENT", "LIST").splitlines()

                def side() -> int:
                    return sum(b"name=chaosproxy" in line for line in clients())

                # The helper's own; those that are being closed may still be there.
                wait_for(lambda: len(clients()) - side() == 1, "the last client to be gone")
                assert side() <= MOST_SIDE
    finally:
        server.stop()


def soak(
    folder: Path,
    *,
    pairs: int,
    seconds: float,
    every: float,
    rest: float,
    seed: str,
    late: float = LATE,
) -> None:
    """All of it: so many pairs of connections, for so long, another profile every so often."""
    patience = every + SLACK
    with soaking(folder, pairs, seed, patience, rest) as it:
        profiles = soak_profiles.turns(seed)
        it.strict(2)
        before: dict[str, Any] | None = None
        it.clients.say("go")
        end, next_look = time.monotonic() + seconds, 0.0
        while time.monotonic() < end:
            due = time.monotonic() + every
            it.put(*next(profiles))
            if time.monotonic() > next_look:
                # Somebody looks on all the while.
                next_look = time.monotonic() + 2
                it.metrics()
                assert len(it.api("GET", "/connections")["connections"]) <= 4 * pairs
                it.look_at_events()
            if before is None and end - due < (1 - WARM) * seconds:
                # Whatever is kept for good is there.
                it.settle()
                before = it.holdings()
                it.clients.say("go")
            time.sleep(max(0.0, due - time.monotonic()))
        said = it.settle()
        it.strict(3)
        assert said["unserved"] == []
        it.counted()
        it.cut_off_by_faults(said["cuts"], every + late)
        told(it)
        events = books(it)
        after = it.holdings()

        def is_no_more() -> bool:
            """What was asked last may still be ending; what leaks does not end."""
            after.update(it.proxy.ask(""))
            return all(after[name] <= before[name] for name in SAME)

        assert before is not None
        with suppress(TimeoutError):
            wait_for(is_no_more, "no more to be held than before")
        print(
            f"{said['rounds']} rounds, {sum(said['sent'].values())} commands, {len(said['cuts'])} cut off,",
            f"{it.switches} profiles, {events} events, control in {it.slowest:.2f} s at most, busy {it.busy} times;",
            *(f"{name} {before[name]} -> {after[name]}," for name in HELD),
        )
        assert all(after[name] <= before[name] for name in SAME)
        assert after["resident"] - before["resident"] < MOST_GROWTH
        grown = Counter(after["classes"])
        grown.subtract(before["classes"])
        assert {name: more for name, more in grown.items() if more > MOST_MORE} == {}


def told(it: Soak) -> None:
    """What control tells of the profile in force, while nothing is under way, is what the metrics and the events say."""
    it.put(*BOOKS)
    said = it.clients.ask("rounds 12")
    assert not said["wrong"], "\n".join(said["wrong"])
    in_force = it.api("GET", "/profile")
    status = {fault["name"]: fault for fault in in_force["faults"]}
    matched = it.by_label("faults_matched_total", "profile", "fault")
    fired = it.by_label("faults_fired_total", "profile", "fault")
    skipped = it.by_label("faults_skipped_total", "profile", "fault", "reason")
    events = Counter(
        event["fault"] for event in it.written() if event["generation"] == in_force["generation"]
    )
    assert len(status) == 4
    for name, fault in status.items():
        assert fault["fired"] == fired["books", name] == events[name] > 0
        assert fault["matched"] == matched["books", name]
        reasons = {
            why: times
            for (of, it_is, why), times in skipped.items()
            if (of, it_is) == ("books", name)
        }
        assert fault["skipped"] == reasons
        assert fault["matched"] == fault["fired"] + sum(reasons.values())
    it.settle()


def books(it: Soak) -> int:
    """What was written down, what was counted and what control tells are one thing; gives how many events there are."""
    events = it.written()
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    fired = Counter(
        (
            it.names[event["generation"]],
            event["fault"],
            event["type"],
            # What is no command of the server's is counted as one word.
            event["command"] if event["command"] in KNOWN else OTHER,
            event["position"],
            event["outcome"],
        )
        for event in events
    )
    labels = ("profile", "fault", "type", "command", "position", "outcome")
    assert it.by_label("faults_fired_total", *labels) == fired
    acted = it.by_label("faults_fired_total", "profile", "fault")
    # A match has become one or the other, and nothing was said of what never matched.
    assert it.by_label("faults_matched_total", "profile", "fault") == acted + it.by_label(
        "faults_skipped_total", "profile", "fault"
    )
    kept = it.api("GET", "/events")
    assert kept["events"] == events[-len(kept["events"]) :]
    assert kept["last"] == len(events) == kept["dropped"] + len(kept["events"])
    assert it.gauge("events_lost_total") == 0
    assert it.by_label("protocol_errors_total", "side").total() == 0
    return len(events)


def test_every_fault_is_soaked():
    """Every fault is in a nasty profile, at each of its positions, and each such profile can be loaded."""
    soaked = {name: set() for name in FAULTS}
    for number, text in enumerate(soak_profiles.RULES):
        name, body = soak_profiles.nasty(number, Random(1), [text])
        source = Source(name, body["yaml"].encode(), name)
        (rule,) = load([source], table=CommandTable.bundled()).rules
        soaked[rule.fault.type].add(rule.at)
    for name, fault in FAULTS.items():
        assert soaked[name] == set(fault.positions), name


def test_short(tmp_path):
    """A quarter of a minute of it, with few connections."""
    soak(tmp_path, pairs=12, seconds=14, every=0.25, rest=0.03, seed="short", late=10.0)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_ten_minutes(tmp_path):
    """An hour's load in ten minutes: 200 connections, every profile again and again, two seconds each."""
    soak(tmp_path, pairs=100, seconds=600, every=2.0, rest=0.25, seed="long")
