"""The bench's pure parts: what /proc and redis-benchmark say, medians, verdicts, table, plot.

Takes texts and made-up samples, gives assertions.
"""

import os
import xml.etree.ElementTree as ET

import pytest

from tests.bench import load, peers, plot, probe, report, target, usage
from tests.bench.known import KNOWN, NAMES
from tests.bench.peers import Missing, Peer
from tests.bench.record import Failure, Record, Sample

STAT = (
    "4321 (a (b) c) S 1 4321 4300 0 -1 4194560 1 2 3 4 150 50 25 75 20 0 1 0 9 1000 200 "
    "18446744073709551615 1 1 0\n"
)
PEERS = [Peer(name, "", lambda _: []) for name in ("haproxy", "relay-uvloop", "chaos-calm")]


def made(scenario: str, key: str, part: str, **rounds: tuple[float, ...]) -> list[Sample]:
    """Samples of one figure: each peer's value round by round (`_` for `-` in its name)."""
    return [
        Sample(number, peer.replace("_", "-"), scenario, part, {key: value})
        for peer, values in rounds.items()
        for number, value in enumerate(values, 1)
    ]


def test_a_stat_line_is_read_past_any_process_name() -> None:
    """Spaces and brackets in the name shift nothing, and ended children's time is counted."""
    found = usage.parse_stat(STAT)
    assert (found.pid, found.session) == (4321, 4300)
    assert found.cpu == usage.Cpu(175 / usage.TICKS, 125 / usage.TICKS)
    assert found.cpu.total == pytest.approx(300 / usage.TICKS)


@pytest.mark.parametrize("text", ["", "12 (x", "12 (x) S 1 2"])
def test_what_is_no_stat_line_is_refused(text: str) -> None:
    """A short line is an error, not a process that used nothing."""
    with pytest.raises(ValueError, match="not a stat line"):
        usage.parse_stat(text)


def test_this_process_is_found_with_its_time_and_memory() -> None:
    """The kernel's own files are read: this session has this process, with time and memory."""
    mine = {found.pid: found.cpu for found in usage.processes(os.getsid(0))}
    assert mine[os.getpid()].total > 0
    # What it has at most may grow while it is asked.
    resident = usage.memory([os.getpid()], "VmRSS")
    assert usage.memory([os.getpid()], "VmHWM") >= resident > 1 << 20


def test_memory_and_busy_lines() -> None:
    """KB become bytes, an ended process has none; idle and waiting time is not busy."""
    assert usage.parse_status("Name:\tx\nVmHWM:\t  12 kB\nVmRSS:\t  7 kB\n", "VmRSS") == 7168
    assert usage.parse_status("Name:\tx\n", "VmRSS") == 0
    assert usage.parse_busy("cpu  1 2 3 1000 1000 4 5 6 0 0\ncpu0 9\n") == 21 / usage.TICKS


def test_rate_from_redis_benchmark() -> None:
    """The wanted command's line counts; without one the run is a failure that says what came."""
    text = '"test","rps","avg_latency_ms"\n"SET","65359.48","0.3"\n'
    assert load.parse_rate(text, "SET") == 65359.48
    with pytest.raises(load.LoadError, match=r"rps.*65359"):
        load.parse_rate(text, "GET")


def test_percentiles_are_values_that_were_seen() -> None:
    """The smallest value that the share of all does not pass, at both ends too."""
    values = [float(number) for number in range(1, 1001)]
    assert [probe.percentile(values, share) for share in (0, 0.5, 0.99, 0.999, 1)] == [
        *(1, 500, 990, 999, 1000)
    ]
    assert probe.percentile([7.0], 0.999) == 7.0


def test_ratios_are_taken_within_a_round() -> None:
    """A slow round is slow for both; a round that only one has does not count."""
    record = Record(samples=made("p1", "cpu", "SET", haproxy=(10, 30, 20), chaos_calm=(12, 36)))
    assert record.ratio("chaos-calm", "haproxy", "p1", "cpu", "SET") == pytest.approx(1.2)
    assert record.median("haproxy", "p1", "cpu", "SET") == 20
    assert record.ratio("haproxy", "nginx", "p1", "cpu", "SET") is None


def test_a_round_with_several_direct_runs_has_their_mean() -> None:
    """Direct runs stand before and after the peers: a peer is compared with their mean."""
    samples = [Sample(1, "direct", "p1", "SET", {"rate": rate}) for rate in (100.0, 300.0)]
    assert Record(samples=samples).values("direct", "p1", "rate", "SET") == {1: 200.0}


def test_a_target_is_kept_only_when_set_and_get_keep_it() -> None:
    """The worse of the two decides, from above and from below."""
    cpu = target.Target("t", "p1", "cpu", 1.25, against="haproxy")
    rate = target.Target("t", "1mb", "rate", 0.9, against="haproxy", at_least=True)
    record = Record(
        samples=[
            *made("p1", "cpu", "SET", haproxy=(10,), chaos_calm=(12,)),
            *made("p1", "cpu", "GET", haproxy=(10,), chaos_calm=(13,)),
            *made("1mb", "rate", "SET", haproxy=(10,), chaos_calm=(9.5,)),
            *made("1mb", "rate", "GET", haproxy=(10,), chaos_calm=(9.1,)),
        ]
    )
    assert target.judge(record, cpu).word == "FAIL"
    assert target.judge(record, cpu).values == pytest.approx({"SET": 1.2, "GET": 1.3})
    assert target.judge(record, rate).word == "pass"


def test_a_target_that_was_not_measured_says_why() -> None:
    """A missing peer, a failed one and one that was left out are told apart, never passed over."""
    record = Record(
        missing=[Missing("toxiproxy", "no build")],
        samples=made("p1", "cpu", "SET", chaos_calm=(12,)),
        failures=[Failure("haproxy", "p1", "it fell")],
    )
    reasons = {}
    for verdict in target.verdicts(record):
        assert verdict.word == "not measured"
        reasons[verdict.target.scenario, verdict.target.against] = verdict.reason
    assert reasons["p1", "toxiproxy"] == "toxiproxy is missing (no build)"
    assert reasons["p1", "haproxy"] == "haproxy failed (it fell)"
    assert reasons["p16", "haproxy"] == "chaos-calm was not measured in p16"


def test_a_table_has_a_cell_for_every_column() -> None:
    """Columns line up as Markdown wants them; a ragged row is our mistake and is refused."""
    assert report.table(["", "a"], [["x", "1"]]) == "|  | a |\n| :-- | --: |\n| x | 1 |"
    with pytest.raises(ValueError, match="2 columns, but a row of 1"):
        report.table(["", "a"], [["x"]])


def test_a_report_lacks_no_peer_target_or_reason() -> None:
    """Peers without a figure have dashes, and what is missing or failed is listed."""
    record = Record(
        peers=PEERS,
        missing=[Missing("nginx", "not installed")],
        samples=made("p1", "cpu", "SET", haproxy=(10,), chaos_calm=(12,)),
        failures=[Failure("relay-uvloop", "p1", "it fell")],
    )
    text = report.report(record, "About.", 64 << 20)
    assert "| calm: CPU ÷ haproxy, p1 | 1.20 SET | ≤ 1.25 | pass |" in text
    assert text.count("| relay-uvloop | - |") == 7
    assert "- nginx: missing: not installed" in text
    assert "- relay-uvloop: failed in p1: it fell" in text
    for promise in target.TARGETS:
        assert f"| {promise.title}, {promise.scenario} |" in text


def test_the_plot_is_xml_with_every_measured_peer() -> None:
    """The SVG parses, a name cannot break out of it, and the longest bar fits its panel."""
    record = Record(
        peers=[*PEERS, Peer("<&", "", lambda _: [])],
        samples=[
            Sample(1, "haproxy", "p1", "SET", {"cpu": 10.0, "user": 2.0}),
            Sample(1, "<&", "p1", "SET", {"cpu": 40.0, "user": 2.0}),
        ],
    )
    root = ET.fromstring(plot.plot(record))
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert {"haproxy", "<&", "10.0", "40.0"} <= set(texts)
    widths = [float(node.get("width", 0)) for node in root.iter() if node.tag.endswith("rect")]
    assert max(widths[1:]) == plot.WIDTH - plot.LABEL - plot.VALUE


def test_every_known_peer_is_found_or_missing_with_its_reason() -> None:
    """None is left out silently, and a path that is no program is said to be none."""
    given = {"toxiproxy": "/nowhere/toxiproxy"}
    found = {each.name: each for each in peers.choose(["toxiproxy", "relay-asyncio"], given)}
    assert found["toxiproxy"] == Missing(
        "toxiproxy",
        "/nowhere/toxiproxy is no program: install a build of Shopify/toxiproxy, "
        "or --peer toxiproxy=/path/to/it",
    )
    assert isinstance(found["relay-asyncio"], Peer)
    assert len(NAMES) == len(set(NAMES)) == len(KNOWN)


def test_a_version_is_the_number_only() -> None:
    """Where a program stands on this machine is nobody's business."""
    assert peers.number("/opt/envoy  version: 9e55/1.40.0/Clean/RELEASE") == "1.40.0"
    assert peers.number("This is nutcracker-0.5.0") == "0.5.0"
    assert peers.number("no idea") == ""


def test_an_unknown_peer_is_refused() -> None:
    """A misspelt name is an error; one with a whole command line is another peer."""
    with pytest.raises(ValueError, match="no such peer: haprxy"):
        peers.choose(["haprxy"], {})
    with pytest.raises(ValueError, match="whole command line"):
        peers.choose([], {"mine": "/bin/true"})
    line = "/bin/true {listen} {upstream}"
    assert [each.name for each in peers.choose(["relay-asyncio"], {"mine": line})] == [
        "relay-asyncio",
        "mine",
    ]
