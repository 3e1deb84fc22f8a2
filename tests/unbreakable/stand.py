"""A proxy in a process of its own before a server that can be killed, stopped, and started again on its port.

Takes a kind of server; gives what both say of themselves, and whether the proxy is as it was before.
"""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import servers
from tests.proxying import RunningProxy, start_proxy, wait_for

#: Within so many seconds whoever is waited for is there or gone, on a machine that has much else to do.
BOUND = 60.0
#: What in a log says that something went wrong in chaosproxy itself.
MISTAKE = re.compile(r"Traceback|a mistake in chaosproxy|Exception|never retrieved|never awaited")


@dataclass
class Stand:
    """The two of them. `server` is whichever one runs, or ran last."""

    kind: str
    options: tuple[str, ...]
    port: int
    server: servers.Server
    proxy: RunningProxy
    #: How many files the proxy has open when nobody is connected.
    files: int = 0
    #: Numbers of the events that earlier uses have left.
    last: int = 0
    _stopped: bool = field(default=False)

    # -- the server

    def kill(self) -> None:
        """SIGKILL."""
        self._stopped = False
        self.server.process.kill()
        self.server.process.wait()

    def pause(self) -> None:
        """SIGSTOP: its sockets are open and nobody is behind them."""
        self.server.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: _state(self.server.pid) == "T", "the server to stop")
        self._stopped = True

    def go_on(self) -> None:
        """SIGCONT."""
        self.server.process.send_signal(signal.SIGCONT)
        self._stopped = False

    def restart(self) -> None:
        """Start one on the port that the last one had."""
        self.server.stop()
        self.server = servers.start_on(self.port, self.kind, *self.options)

    def mend(self) -> None:
        """Whatever was done to it: it runs, and is empty."""
        if self._stopped:
            self.go_on()
        if self.server.process.poll() is not None:
            self.restart()
        self.server.ask("FLUSHALL")

    # -- the proxy

    @property
    def pid(self) -> int:
        assert self.proxy.process is not None
        return self.proxy.process.pid

    def put(self, profile: str) -> None:
        """Put a profile in force, by its text or a shipped one's name; who was connected stays so."""
        what = {"yaml": profile} if "\n" in profile else {"name": profile}
        request = urllib.request.Request(
            f"{self.proxy.control}/profile",
            json.dumps(what | {"seed": 1}).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def events(self) -> list[dict[str, Any]]:
        """What has fired since the last `settle`, as its file has it."""
        return [event for event in self.proxy.events() if event["n"] > self.last]

    def ready(self) -> bool:
        """Whether /readyz says so."""
        return self.proxy.get("/readyz")[0] == 200

    def now(self) -> dict[str, float]:
        """The gauges."""
        names = ("connections", "held_commands", "buffered_bytes")
        return {name: self.proxy.metric(name) for name in names}

    def open_files(self) -> int:
        """How many files, sockets among them, the proxy has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def log(self) -> str:
        """What it has said so far."""
        assert self.proxy.folder is not None
        return (self.proxy.folder / "stderr").read_text()

    def settle(self) -> None:
        """Nobody is connected any more: there is nothing left of those who were, and it serves the next one.

        Fails where a gauge does not go back to 0, a socket stays open, or chaosproxy made a mistake.
        """
        try:
            wait_for(lambda: not any(self.now().values()), "nobody to be left", BOUND)
            wait_for(self.ready, "readiness", BOUND)
            with self.proxy.connect() as client:
                assert client.ask("PING") == "PONG"
            wait_for(lambda: not any(self.now().values()), "nobody to be left", BOUND)
            if not self.files:
                self.files = self.open_files()
            wait_for(lambda: self.open_files() <= self.files, "its files to be closed", BOUND)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.now()}, {self.open_files()} files") from None
        assert self.proxy.metric("connections_total", result="crashed") == 0
        assert not MISTAKE.search(self.log()), self.log()
        events = self.proxy.events()
        assert [event["n"] for event in events] == list(range(1, len(events) + 1))
        self.last = len(events)

    def end(self) -> None:
        """End both."""
        try:
            self.proxy.stop()
        finally:
            if self._stopped:
                self.go_on()
            self.server.stop()
        assert not MISTAKE.search(self.proxy.stderr), self.proxy.stderr


def start(kind: str, *options: str, proxy: tuple[str, ...] = (), profile: str = "calm") -> Stand:
    """Start both. Raises Unavailable."""
    port = servers.free_port()
    server = servers.start_on(port, kind, *options)
    stand = Stand(kind, options, port, server, start_before(server, profile, *proxy))
    stand.settle()
    return stand


def start_before(server: servers.Server, profile: str = "calm", *options: str) -> RunningProxy:
    """Start a proxy at a port that nobody else is given while it does not listen there."""
    listen = f"127.0.0.1:{servers.free_port()}"
    return start_proxy(server.url, profile, "--listen", listen, *options)


def _state(pid: int) -> str:
    """What /proc says of a process: R, S, T (stopped), Z …."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    wait_for(holds, what, BOUND)


def running(pid: int) -> bool:
    """Whether this process runs; one that has ended and waits for its parent does not."""
    try:
        return _state(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def own(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *own(child)]
    return found


def environ(**more: str) -> dict[str, str]:
    """This process's environment, and more."""
    return os.environ | more
