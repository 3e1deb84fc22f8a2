"""Fixtures of the control API's tests: a server before a proxy that is none, and one that asks it.

Takes nothing; gives `serve`, `backend` and `ask`, and the browser of the page's tests.
"""

import pytest

from chaosproxy.control import sockets, visitor
from chaosproxy.control.server import ControlServer
from chaosproxy.net.address import Address
from tests.chromium import browser  # noqa: F401 - a fixture
from tests.control.asking import Backend, request


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Whoever is slow is waited for, as is one who is late because the machine is: tests of what happens to them say so."""
    for module, name in (
        (sockets, "PATIENCE"),
        (visitor, "PATIENCE"),
        (sockets, "UNREAD"),
        (sockets, "LINGER"),
    ):
        monkeypatch.setattr(module, name, 60.0)


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def serve(backend):
    """Start a control server; gives it. All are stopped in the end."""
    started = []

    def start(token=None, host="127.0.0.1"):
        started.append(ControlServer(Address(host, 0), backend, token))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def ask(serve):
    """Ask a server of its own: method, path, a body, headers."""
    server = serve()
    return lambda *args, **headers: request(server, *args, **headers)
