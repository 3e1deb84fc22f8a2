"""For probes and scrapers: alive, ready, and the numbers."""

from chaosproxy import __version__


def test_healthz(ask):
    """Alive is alive."""
    said = ask("GET", "/healthz")
    assert (said.status, said.headers["Content-Type"]) == (200, "application/json")
    assert said.json == {"status": "ok", "version": __version__}


def test_readyz(ask, backend):
    """Ready or not, and why not."""
    assert ask("GET", "/readyz").json == {"status": "ready"}
    backend.problem = "the server does not answer"
    said = ask("GET", "/readyz")
    assert said.status == 503
    assert said.json == {"status": "not ready", "problem": "the server does not answer"}


def test_metrics(ask):
    """In the format that was asked for; a query changes nothing."""
    said = ask("GET", "/metrics?x=1", Accept="application/openmetrics-text")
    assert (said.status, said.body) == (200, b"numbers\n")
    assert said.headers["Content-Type"] == "text/plain; accept=application/openmetrics-text"
