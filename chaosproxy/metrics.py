"""Prometheus metrics, read from plain numbers when somebody asks: the only place that knows prometheus-client.

Takes Counts, tallies and a view of the connections; gives the text of /metrics in the format the scraper accepts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from chaosproxy import __version__
from chaosproxy.core.tally import Histogram, Tally
from chaosproxy.counts import Counts, Gauges


class Metrics:
    """All metrics of one proxy. Nothing is counted here, so it can be read from any thread at any time."""

    def __init__(
        self, counts: Counts, tallies: Mapping[str, Tally], gauges: Callable[[], Gauges]
    ) -> None:
        self._text, self._openmetrics = CollectorRegistry(), CollectorRegistry()
        self._text.register(_Reader(counts, tallies, gauges, CounterMetricFamily))
        self._openmetrics.register(_Reader(counts, tallies, gauges, _untyped_total))

    def render(self, accept: str) -> tuple[str, bytes]:
        """Give the content type and the text, in the format that the Accept header asks for."""
        encode, content_type = choose_encoder(accept)
        openmetrics = content_type.startswith("application/openmetrics-text")
        return content_type, encode(self._openmetrics if openmetrics else self._text)


class _Reader(Collector):
    """Reads everything; `clashing` makes the counter whose name a gauge has too, without `_total`."""

    def __init__(
        self,
        counts: Counts,
        tallies: Mapping[str, Tally],
        gauges: Callable[[], Gauges],
        clashing: type[CounterMetricFamily] | Callable[..., UnknownMetricFamily],
    ) -> None:
        self._clashing = clashing
        self._counts = counts
        self._tallies = tallies
        self._gauges = gauges

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: there is one reader and one registry."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read everything, each dict in one `copy`: the data path goes on counting, even while items are listed (see `counts`)."""
        yield from self._commands()
        yield from self._faults()
        yield from self._connections()

    def _commands(self) -> Iterator[Metric]:
        tallies = [tally for tally in list(self._tallies.values()) if tally.count]
        yield _counter(
            "commands",
            "Commands received, by name; `other`: unknown to the server's table.",
            ["command"],
            [((tally.name,), tally.count) for tally in tallies],
        )
        family = HistogramMetricFamily(
            "chaosproxy_upstream_seconds",
            "From a command's forwarding to its whole reply, in seconds; not of commands that block, nor of those queued in a transaction.",
            labels=["command"],
        )
        for tally in tallies:
            times = tally.histogram
            if any(times.buckets):
                family.add_metric([tally.name], _cumulative(times), times.sum)
        yield family

    def _faults(self) -> Iterator[Metric]:
        counts = self._counts
        # Last what comes first, so that nothing has become of a match that is not there.
        skipped, fired = counts.skipped, counts.fired.copy()
        matched = counts.matched
        yield _counter(
            "faults_matched",
            "Exchanges for which a fault's match held.",
            ["profile", "fault", "type"],
            matched.items(),
        )
        yield _counter(
            "faults_fired",
            "Exchanges that a fault acted on.",
            ["profile", "fault", "type", "command", "position", "outcome"],
            fired.items(),
        )
        yield _counter(
            "faults_skipped",
            "Matching exchanges that a fault left alone, by reason.",
            ["profile", "fault", "reason"],
            skipped.items(),
        )
        yield _counter(
            "keys_touched",
            "Keys changed behind the application's back.",
            ["fault", "how"],
            counts.keys_touched.copy().items(),
        )
        yield _counter("failovers", "Switches to a new primary.", [], [((), counts.failovers)])
        family = HistogramMetricFamily(
            "chaosproxy_injected_delay_seconds", "Delay added to an exchange.", labels=["fault"]
        )
        for fault, delays in counts.delays.copy().items():
            family.add_metric([fault], _cumulative(delays), delays.sum)
        yield family

    def _connections(self) -> Iterator[Metric]:
        counts, now = self._counts, self._gauges()
        yield _gauge("connections", "Client connections open.", now.connections)
        yield _gauge("held_commands", "Commands held back by faults.", now.held_commands)
        yield _gauge("buffered_bytes", "Bytes held back by faults.", now.buffered_bytes)
        family = self._clashing(
            "chaosproxy_connections",
            "Client connections, by what became of them.",
            labels=["result"],
        )
        for result, count in counts.connections.copy().items():
            family.add_metric([result], count)
        yield family
        yield _counter(
            "bytes",
            "Bytes received and sent, by side.",
            ["direction"],
            [
                (("from_client",), counts.from_client),
                (("to_upstream",), counts.to_upstream),
                (("from_upstream",), counts.from_upstream),
                (("to_client",), counts.to_client),
            ],
        )
        yield _counter(
            "upstream_errors",
            "Connections to the server that could not be made or broke.",
            ["reason"],
            [((reason,), count) for reason, count in counts.upstream_errors.copy().items()],
        )
        up = GaugeMetricFamily(
            "chaosproxy_upstream_up",
            "1: the last client at this listener was connected to its server; 0: it could not be.",
            labels=["listener"],
        )
        for listener, connected in now.upstream_up.items():
            up.add_metric([listener], connected)
        yield up
        yield _counter(
            "protocol_errors",
            "Connections that went on as raw bytes, by the side that was not understood.",
            ["side"],
            # Also those that there are none of: else the first one is no increase to Prometheus.
            [((side,), counts.protocol_errors[side]) for side in ("client", "upstream")],
        )
        yield _counter(
            "limits_reached",
            "Times that a limit was reached, by which.",
            ["limit"],
            [((limit,), times) for limit, times in counts.limits.items()],
        )
        yield _counter(
            "events_lost",
            "Events that could not be written to the file.",
            [],
            [((), now.events_lost)],
        )
        yield _info(
            "profile_info",
            "The profile in force.",
            {"profile": now.profile, "seed": str(now.seed), "generation": str(now.generation)},
        )
        yield _info("build_info", "What is running.", {"version": __version__})


def _untyped_total(name: str, documentation: str, labels: Sequence[str]) -> UnknownMetricFamily:
    """In OpenMetrics a counter's name has no `_total`, and no two families may share a name."""
    return UnknownMetricFamily(f"{name}_total", documentation, labels=labels)


def _counter(
    name: str,
    documentation: str,
    labels: Sequence[str],
    values: Iterable[tuple[tuple[str, ...], int]],
) -> Metric:
    family = CounterMetricFamily(f"chaosproxy_{name}", documentation, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(f"chaosproxy_{name}", documentation, value=value)


def _info(name: str, documentation: str, labels: Mapping[str, str]) -> Metric:
    family = GaugeMetricFamily(f"chaosproxy_{name}", documentation, labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family


def _cumulative(times: Histogram) -> list[tuple[str, float]]:
    names = [*map(str, times.bounds), "+Inf"]
    return list(zip(names, accumulate(times.buckets), strict=True))
