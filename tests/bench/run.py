"""The rounds: every peer in every scenario, in turn, with direct runs between them.

Takes peers, scenario names and sizes, gives a record; what it starts it stops.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import load, probe
from tests.bench.fleet import Fleet
from tests.bench.load import COMMANDS, LOADS, Load, LoadError
from tests.bench.peers import Peer
from tests.bench.probe import ProbeError
from tests.bench.process import HOST, ROOT, Program, StartError, start
from tests.bench.record import DIRECT, Failure, Record, Sample
from tests.bench.target import CALM

SCENARIOS = (*(each.name for each in LOADS), "latency", "memory", "huge", "startup")
# Memory hardly differs from round to round, and takes long to measure.
ONCE = ("memory", "huge")
# Direct runs stand among the peers, so that the machine's moods are theirs too.
DIRECT_EVERY = 4
# A peer that cannot do it costs its scenario, not the run.
PROBLEMS = (LoadError, ProbeError, StartError, OSError, subprocess.SubprocessError)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        rounds: How often.
        seconds: Length of one load.
        trips: Round trips of the latency probe, each way.
        huge: Bytes of the huge value.
        connections: Idle connections at most.

    """

    rounds: int
    seconds: float
    trips: int
    huge: int
    connections: int


@dataclass(slots=True)
class Bench:
    """A run in progress.

    Attributes:
        record: Where the samples go; read it at any time.
        folder: For configuration files and logs.
        size: How much is measured.
        redis_server: Path of the server.
        redis_benchmark: Path of the load generator.
        say: Told one line for each step.

    """

    record: Record
    folder: Path
    size: Size
    redis_server: str
    redis_benchmark: str
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr)

    def run(self, scenarios: Sequence[str]) -> None:
        """Measure; the record grows as it goes."""
        options = ["--save", "", "--appendonly", "no", "--maxclients", "19000", "--bind", HOST]
        options += ["--dir", str(self.folder), "--tcp-backlog", "4096"]
        redis, port = start(
            lambda port: [self.redis_server, "--port", str(port), *options],
            self.folder / "redis.log",
        )
        fleet = Fleet(self.folder, port)
        try:
            for number in range(1, self.size.rounds + 1):
                for scenario in scenarios:
                    if number > 1 and scenario in ONCE:
                        continue
                    began = time.monotonic()
                    self._scenario(number, scenario, fleet, redis)
                    spent = time.monotonic() - began
                    self.say(f"round {number}/{self.size.rounds} {scenario}: {spent:.0f} s")
                fleet.stop_all()
        finally:
            fleet.stop_all()
            redis.stop()

    def _scenario(self, number: int, scenario: str, fleet: Fleet, redis: Program) -> None:
        found = next((each for each in LOADS if each.name == scenario), None)
        # Another peer goes first in each round.
        first = (number - 1) % max(1, len(self.record.peers))
        for turn, peer in enumerate([*self.record.peers[first:], *self.record.peers[:first]]):
            failed = {each.peer for each in self.record.failures if each.scenario == scenario}
            if peer.name in failed:
                continue
            if found is not None and turn % DIRECT_EVERY == 0:
                self._load(number, found, DIRECT, None, redis, fleet.upstream)
            try:
                if found is not None:
                    program, port = fleet.get(peer)
                    self._load(number, found, peer.name, program, redis, port)
                elif scenario == "latency":
                    port = fleet.get(peer)[1]
                    values = probe.latency(fleet.upstream, port, self.size.trips)
                    self._add(number, peer.name, scenario, values)
                else:
                    self._add(number, peer.name, scenario, self._alone(scenario, peer, fleet))
            except PROBLEMS as error:
                reason = str(error) or type(error).__name__
                self.record.failures.append(Failure(peer.name, scenario, reason))
                self.say(f"{peer.name} failed in {scenario}: {reason}")
                fleet.stop(peer.name)

    def _add(
        self, number: int, peer: str, scenario: str, values: dict[str, float], part: str = ""
    ) -> None:
        self.record.samples.append(Sample(number, peer, scenario, part, values))

    def _load(
        self,
        number: int,
        what: Load,
        name: str,
        program: Program | None,
        redis: Program,
        port: int,
    ) -> None:
        for command in COMMANDS:
            values = load.run(
                self.redis_benchmark, port, what, command, program, redis, self.size.seconds
            )
            self._add(number, name, what.name, values, command)

    def _alone(self, scenario: str, peer: Peer, fleet: Fleet) -> dict[str, float]:
        """What is measured on a process that has done nothing before."""
        # The first time a program is read in, and those in Python are compiled, which takes time and leaves memory behind.
        fleet.fresh(peer)
        program, port, listens = fleet.fresh(peer)
        try:
            match scenario:
                case "memory":
                    return probe.idle(port, program, self.size.connections)
                case "huge":
                    return probe.huge(port, program, self.size.huge)
                case "startup" if peer.name == CALM:
                    return {"listens": listens, "help": seconds_to_help(peer, fleet)}
                case "startup":
                    return {"listens": listens}
                case _:
                    raise ValueError(f"no such scenario: {scenario}")
        finally:
            fleet.stop(peer.name)


def seconds_to_help(peer: Peer, fleet: Fleet) -> float:
    """Seconds that our `--help` takes."""
    words = peer.words(fleet.place(peer, 0))
    words = [*words[: words.index("run")], "--help"]
    began = time.monotonic()
    subprocess.run(words, capture_output=True, timeout=30, check=True, cwd=ROOT)
    return time.monotonic() - began
