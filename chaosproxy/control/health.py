"""`/healthz`, `/readyz`, `/metrics`: for probes and scrapers, whoever they are.

Takes a Backend and a request; gives whether the proxy is alive, whether it can serve clients, and what it has counted.
"""

from http import HTTPStatus

from chaosproxy import __version__
from chaosproxy.control.answer import Answer, Request, as_json
from chaosproxy.control.backend import Backend


def healthz(backend: Backend, request: Request) -> Answer:
    """Alive."""
    del backend, request
    return as_json({"status": "ok", "version": __version__})


def readyz(backend: Backend, request: Request) -> Answer:
    """Ready, or why not."""
    del request
    problem = backend.unready()
    if problem is None:
        return as_json({"status": "ready"})
    status = {"status": "not ready", "problem": problem}
    return as_json(status, HTTPStatus.SERVICE_UNAVAILABLE)


def metrics(backend: Backend, request: Request) -> Answer:
    """All numbers, in the format that is accepted."""
    content_type, text = backend.metrics(request.headers.get("Accept", ""))
    return Answer(HTTPStatus.OK, text, content_type)
