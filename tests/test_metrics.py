"""Metrics as a scraper sees them: the promised names, right in both formats, and current at each scrape."""

import shutil
import subprocess
from collections import Counter

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from chaosproxy import __version__
from chaosproxy.core.effect import KeysTouched, Matched, ProtocolFault, Skipped
from chaosproxy.core.tally import Tally
from chaosproxy.counts import Counts, Gauges
from chaosproxy.metrics import Metrics
from tests import collecting
from tests.test_counts import Busy
from tests.test_journal import FIRED

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def counts():
    return something_of_each()


def something_of_each():
    """Counts in which everything that can happen has happened."""
    counts = Counts()
    counts.read_client, counts.written_client = 10, 20
    counts.connections["accepted"] = 3
    counts.upstream_errors["refused"] = 1
    for effect in (
        Matched("lost-ack"),
        Skipped("lost-ack", "nth"),
        FIRED,
        KeysTouched("gone", "expired", 3),
        ProtocolFault("client", "what?"),
    ):
        counts.count(effect, "demo", "disconnect", {"RPUSH"})
    return counts


@pytest.fixture
def metrics(counts):
    return shown(counts)


def shown(counts):
    """Metrics of these counts, and of a proxy in the middle of its work."""
    tally = Tally("RPUSH")
    tally.count = 2
    tally.took(0.0003)
    tally.took(20.0)
    gauges = Gauges(
        1,
        2,
        300,
        profile='de"mo',
        seed=7,
        generation=4,
        events_lost=0,
        upstream_up={"redis": True, "node-2": False},
    )
    return Metrics(counts, {"RPUSH": tally, "GET": Tally("GET")}, lambda: gauges)


def table():
    """All metrics in Markdown: name, labels, and what the scraper is told of it."""
    rows = []
    for family in parse_text(shown(something_of_each()).render("")[1].decode()):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = dict.fromkeys(label for sample in family.samples for label in sample.labels)
        told = ", ".join(f"`{label}`" for label in labels if label != "le")
        kind = "" if family.type == "counter" else f" ({family.type})"
        rows.append(f"| `{name}`{kind} | {told} | {family.documentation} |\n")
    return "".join(["| metric | by | what |\n", "| --- | --- | --- |\n", *rows])


def key(name, *labels):
    return name, frozenset(labels)


def samples(metrics, accept=""):
    content_type, text = metrics.render(accept)
    parse = parse_openmetrics if "openmetrics" in content_type else parse_text
    return {
        key(sample.name, *sample.labels.items()): sample.value
        for family in parse(text.decode())
        for sample in family.samples
    }


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS])
def test_everything_is_there(metrics, accept):
    """Each number under the name and labels that are promised, in either format."""
    found = samples(metrics, accept)
    fault = ("profile", "demo"), ("fault", "lost-ack")
    fired = ("command", "RPUSH"), ("position", "after_apply"), ("outcome", "unknown")
    p = "chaosproxy_"
    expected = {
        key(p + "commands_total", ("command", "RPUSH")): 2,
        key(p + "faults_matched_total", *fault, ("type", "disconnect")): 1,
        key(p + "faults_fired_total", *fault, ("type", "disconnect"), *fired): 1,
        key(p + "faults_skipped_total", *fault, ("reason", "nth")): 1,
        key(p + "injected_delay_seconds_count", ("fault", "lost-ack")): 1,
        key(p + "injected_delay_seconds_sum", ("fault", "lost-ack")): 0.25,
        key(p + "injected_delay_seconds_bucket", ("fault", "lost-ack"), ("le", "0.1")): 0,
        key(p + "injected_delay_seconds_bucket", ("fault", "lost-ack"), ("le", "0.25")): 1,
        key(p + "upstream_seconds_bucket", ("command", "RPUSH"), ("le", "0.0005")): 1,
        key(p + "upstream_seconds_bucket", ("command", "RPUSH"), ("le", "10.0")): 1,
        key(p + "upstream_seconds_bucket", ("command", "RPUSH"), ("le", "+Inf")): 2,
        key(p + "upstream_seconds_count", ("command", "RPUSH")): 2,
        key(p + "held_commands"): 2,
        key(p + "keys_touched_total", ("fault", "gone"), ("how", "expired")): 3,
        key(p + "connections"): 1,
        key(p + "connections_total", ("result", "accepted")): 3,
        key(p + "bytes_total", ("direction", "from_client")): 10,
        key(p + "bytes_total", ("direction", "to_client")): 20,
        key(p + "buffered_bytes"): 300,
        key(p + "upstream_errors_total", ("reason", "refused")): 1,
        key(p + "upstream_up", ("listener", "redis")): 1,
        key(p + "upstream_up", ("listener", "node-2")): 0,
        key(p + "protocol_errors_total", ("side", "client")): 1,
        # An alert is raised by the first one: it is an increase of what was 0.
        key(p + "protocol_errors_total", ("side", "upstream")): 0,
        key(p + "events_lost_total"): 0,
        key(p + "profile_info", ("profile", 'de"mo'), ("seed", "7"), ("generation", "4")): 1,
        key(p + "build_info", ("version", __version__)): 1,
    }
    assert expected.items() <= found.items()
    # A command the table knows and nobody sent makes no time series.
    assert not [labels for _, labels in found if ("command", "GET") in labels]


def test_counted_as_it_happens(metrics, counts):
    """What is counted is there at the very next scrape."""
    labels = ("profile", "demo"), ("fault", "lost-ack"), ("type", "disconnect")
    matched = key("chaosproxy_faults_matched_total", *labels)
    before = samples(metrics)[matched]
    counts.count(Matched("lost-ack"), "demo", "disconnect", {"RPUSH"})
    assert samples(metrics)[matched] == before + 1


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_counted_while_it_is_read(accept):
    """Whatever is new between any two of a scrape's steps, it fails by none, and shows nothing that became of a match without the match."""
    counts = Busy()

    def more():
        counts.happens()
        new = f"new-{counts.connections.total()}"
        counts.count(KeysTouched(new, "expired", 1), "demo", "expire_key", ())
        for each in (counts.connections, counts.upstream_errors, counts.protocol_errors):
            each[new] += 1

    for _ in range(3 * collecting.OFTEN):
        more()
    metrics = shown(counts)
    with collecting.meanwhile(more):
        text = metrics.render(accept)[1].decode()
    sums = Counter()
    for family in (parse_openmetrics if accept else parse_text)(text):
        for sample in family.samples:
            sums[sample.name, sample.labels.get("fault")] += sample.value
    faults = {fault for _, fault in sums if fault is not None}
    assert len(faults) > 3 * collecting.OFTEN
    for fault in faults:
        matched, *become = (
            sums[f"chaosproxy_faults_{what}_total", fault]
            for what in ("matched", "fired", "skipped")
        )
        assert sum(become) <= matched


def test_content_types(metrics):
    """OpenMetrics only for those who ask for it."""
    assert metrics.render("")[0].startswith("text/plain")
    assert metrics.render(OPENMETRICS)[0].startswith("application/openmetrics-text")
    assert metrics.render(OPENMETRICS)[1].endswith(b"# EOF\n")


def test_promtool(metrics):
    """Prometheus's own linter has nothing to say."""
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool; on Debian: apt-get install prometheus")
    said = subprocess.run(
        ["promtool", "check", "metrics"],
        input=metrics.render("")[1],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (said.returncode, said.stdout + said.stderr) == (0, b"")
