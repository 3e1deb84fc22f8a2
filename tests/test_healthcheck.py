"""The container's health check, asked of real HTTP servers on this machine.

Takes nothing; gives proof that its exit status is the proxy's state, and that it asks where the proxy listens.
"""

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, SOCK_STREAM, socket
from threading import Thread

import pytest

from chaosproxy import healthcheck
from tests.busy import within


class Control(ThreadingHTTPServer):
    """Answers every request with `status`, or hangs up, and remembers the paths."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1"):
        super().__init__((host, 0), Handler)
        self.status: int | None = 200
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        return self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    server: Control

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.status is not None:
            self.send_response(self.server.status)
            self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def control() -> Iterator[Control]:
    with Control() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", ""])
def test_alive(control, host):
    """A proxy that answers 200 is alive, also when its address says "every interface"."""
    assert healthcheck.main({"CHAOSPROXY_CONTROL": f"{host}:{control.port}"}) is None
    assert control.asked == ["/healthz"]


def test_default_is_the_command_lines_default(monkeypatch):
    """Without a setting it asks where `chaosproxy run` listens without one."""
    asked = []

    class Refusing:
        def __init__(self, host, port, timeout):
            asked.append((host, port, timeout > 0))

        def request(self, *_):
            raise ConnectionRefusedError

        def close(self):
            pass

    monkeypatch.setattr(healthcheck, "HTTPConnection", Refusing)
    for environment in ({}, {"CHAOSPROXY_CONTROL": ""}):
        assert healthcheck.main(environment) == (
            "http://127.0.0.1:9380/healthz: ConnectionRefusedError"
        )
    assert asked == [("127.0.0.1", 9380, True)] * 2


def test_not_alive(control):
    """Anything but 200, a hang-up and a closed port are each a reason, never a traceback."""
    address = f"127.0.0.1:{control.port}"
    control.status = 503
    assert healthcheck.main({"CHAOSPROXY_CONTROL": address}) == (
        f"http://{address}/healthz answered 503"
    )
    control.status = None
    assert "without response" in str(healthcheck.main({"CHAOSPROXY_CONTROL": address}))
    with socket(AF_INET, SOCK_STREAM) as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        assert "refused" in str(healthcheck.main({"CHAOSPROXY_CONTROL": address}))


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("off", "nothing to ask"),
        ("127.0.0.1", "CHAOSPROXY_CONTROL=127.0.0.1: expected HOST:PORT"),
        ("127.0.0.1:http", "CHAOSPROXY_CONTROL=127.0.0.1:http: "),
        ("::1:9380", "CHAOSPROXY_CONTROL=::1:9380: an IPv6 address stands in brackets"),
    ],
)
def test_an_address_that_cannot_be_asked(address, reason):
    """An address that is off, or is none, is named in the reason."""
    assert reason in str(healthcheck.main({"CHAOSPROXY_CONTROL": address}))


@within(0.5)
def test_as_the_container_runs_it(control):
    """The exit status of `python -m chaosproxy.healthcheck` is 0 or 1, the reason goes to stderr."""
    command = [sys.executable, "-m", "chaosproxy.healthcheck"]
    environment = {"CHAOSPROXY_CONTROL": f":{control.port}"}
    control.status = 200
    alive = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (alive.returncode, alive.stdout, alive.stderr) == (0, "", "")
    control.status = 500
    dead = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (dead.returncode, dead.stdout) == (1, "")
    assert dead.stderr == f"http://127.0.0.1:{control.port}/healthz answered 500\n"
