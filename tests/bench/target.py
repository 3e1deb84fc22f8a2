"""What the proxy has to reach, as ratios within one run.

Takes a record, gives for each target the ratio measured, the limit and whether it is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.load import COMMANDS, LOADS
from tests.bench.record import Record

CALM = "chaos-calm"
UVLOOP = "relay-uvloop"
LOAD_NAMES = tuple(load.name for load in LOADS)


@dataclass(frozen=True, slots=True)
class Target:
    """One promise about speed or memory.

    Attributes:
        title: What is promised.
        scenario: Where it is measured.
        key: The figure's name in the samples.
        limit: The bound; for `at_least` from below, else from above.
        peer: Whose figure it is.
        against: Whose figure of the same round it is divided by; empty for the figure itself.
        unit: What one of the limit is, in the figure's own unit.
        at_least: Whether more is better.

    """

    title: str
    scenario: str
    key: str
    limit: float
    peer: str = CALM
    against: str = ""
    unit: float = 1.0
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target, and what became of it.

    Attributes:
        target: Which.
        values: What was measured, by part (`SET` and `GET` under load, else empty).
        reason: Why nothing was measured, when nothing was.

    """

    target: Target
    values: dict[str, float]
    reason: str = ""

    @property
    def word(self) -> str:
        """`pass`, `FAIL` or `not measured`: every part has to keep the limit."""
        if not self.values:
            return "not measured"
        if self.target.at_least:
            kept = min(self.values.values()) >= self.target.limit
        else:
            kept = max(self.values.values()) <= self.target.limit
        return "pass" if kept else "FAIL"


def _targets() -> Iterator[Target]:
    for other, limits in (("haproxy", (1.25, 1.8)), (UVLOOP, (1.1, 1.5))):
        for scenario, limit in zip(("p1", "p16"), limits, strict=True):
            yield Target(f"calm: CPU ÷ {other}", scenario, "cpu", limit, against=other)
    for other in ("toxiproxy", "redfi", "redfi-fork", "cae-resp-proxy"):
        for scenario in LOAD_NAMES:
            yield Target(f"calm: CPU ÷ {other}", scenario, "cpu", 1.0, against=other)
    for scenario in ("p16", "1mb"):
        yield Target("calm: CPU ÷ envoy-redis", scenario, "cpu", 1.0, against="envoy-redis")
    title = "calm: added p50 ÷ haproxy's"
    yield Target(title, "latency", "added50", 1.5, against="haproxy")
    for peer in ("chaos-nothing", "chaos-no-key"):
        for scenario in LOAD_NAMES:
            title = f"{peer.removeprefix('chaos-')}: CPU ÷ calm"
            yield Target(title, scenario, "cpu", 1.1, peer=peer, against=CALM)
    for scenario in LOAD_NAMES:
        title = "one-percent: CPU ÷ calm"
        yield Target(title, scenario, "cpu", 1.3, peer="chaos-one-percent", against=CALM)
    title = f"calm: throughput ÷ {UVLOOP}"
    yield Target(title, "1mb", "rate", 0.9, against=UVLOOP, at_least=True)
    for part in ("set", "get"):
        title = f"calm: MiB more while the huge value passes ({part.upper()})"
        yield Target(title, "huge", f"huge_{part}", 20.0, unit=1 << 20)
    yield Target("calm: MB with 5,000 idle connections", "memory", "idle5000", 60.0, unit=1e6)
    # 10,000 where the limit on open files lets a proxy have two for each.
    title = "calm: share accepted of the connections asked for"
    yield Target(title, "memory", "share", 1.0, at_least=True)
    yield Target("run: ms until it listens", "startup", "listens", 300.0, unit=1e-3)
    yield Target("--help: ms", "startup", "help", 150.0, unit=1e-3)


TARGETS = tuple(_targets())


def judge(record: Record, target: Target) -> Verdict:
    """What was measured of one target."""
    values = {}
    for part in COMMANDS if target.scenario in LOAD_NAMES else ("",):
        if target.against:
            value = record.ratio(target.peer, target.against, target.scenario, target.key, part)
        else:
            value = record.median(target.peer, target.scenario, target.key, part)
        if value is not None:
            values[part] = value / target.unit
    if values:
        return Verdict(target, values)
    for peer in filter(None, (target.peer, target.against)):
        if not record.measured(peer, target.scenario):
            return Verdict(target, {}, record.why_not(peer, target.scenario))
    return Verdict(target, {}, "no round has both")


def verdicts(record: Record) -> list[Verdict]:
    """All targets, in the order in which they are promised."""
    return [judge(record, target) for target in TARGETS]
