"""Proxies for tests: the real command line in a process of its own, or the same thing in this process, for speed.

Takes an upstream URL and a profile (a shipped name, a path, or YAML text), gives a RunningProxy.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self, TypeVar

from prometheus_client.parser import text_string_to_metric_families

from chaosproxy.core.replay import Recording
from chaosproxy.net import steer
from chaosproxy.net.address import Address, parse_address, parse_upstream
from chaosproxy.net.plan import Plan
from chaosproxy.profile import Source, find, load
from chaosproxy.service import Service, Settings
from tests import servers
from tests.wire import Wire

T = TypeVar("T")

#: The status with which a proxy says that its loop has no time.
BUSY = 503
#: The command line of a proxy that has time for every question, however late a busy machine lets it come to that.
PATIENT = "from chaosproxy import service; service._SOON = service._CHANGE = 60.0; from chaosproxy.cli import main; main()"

START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0
#: What a client meets where nobody listens; one that comes at the very moment in which a door is shut is reset.
TURNED_AWAY = (ConnectionRefusedError, ConnectionResetError)


@dataclass
class RunningProxy:
    """A proxy that accepts clients. `service` is None where it runs in a process of its own."""

    url: str
    port: int
    control: str | None
    seed: int
    service: Service | None = None
    process: "subprocess.Popen[bytes] | None" = None
    folder: Path | None = None
    #: The port of its Sentinel, 0: it has none.
    sentinel: int = 0
    stderr: str = ""
    _stop: Callable[[], None] = field(default=lambda: None, repr=False)
    _stopping: bool = False

    def connect(self, *, resp: int = 2) -> Wire:
        """Open a raw connection through it."""
        return Wire(self.port, resp=resp)

    def events(self, fault: str | None = None) -> list[dict[str, Any]]:
        """Everything that fired so far, or what one fault did."""
        self._settle()
        if self.service is not None:
            events = self.service.journal.events()
        else:
            assert self.folder is not None
            # What stands behind the last line end is still being written.
            lines = (self.folder / "events.jsonl").read_text().split("\n")[:-1]
            events = [json.loads(line) for line in lines[1:]]
        return [event for event in events if fault is None or event["fault"] == fault]

    def wait_events(self, count: int = 1, fault: str | None = None) -> list[dict[str, Any]]:
        """Wait until so many have fired, and give them all."""
        wait_for(lambda: len(self.events(fault)) >= count, f"{count} events")
        return self.events(fault)

    def received(
        self, wire: Wire, count: int, act: Callable[[], object]
    ) -> list[tuple[float, bytes]]:
        """What so many reads of a client give once `act` is done, and when: each is read as soon as the proxy has sent it.

        Only in this process: it is the proxy's loop that reads, which a busy machine keeps waiting no less than the proxy itself.
        """
        assert self.service is not None
        loop, found, over = self.service._loop, [], threading.Event()

        def readable() -> None:
            found.append((time.monotonic(), wire.socket.recv(1 << 16)))
            if len(found) == count or not found[-1][1]:
                loop.loop.remove_reader(wire.socket)
                over.set()

        loop.call(lambda: loop.loop.add_reader(wire.socket, readable))
        try:
            act()
            assert over.wait(START_TIMEOUT), f"{count} pieces, and there were {found}"
        finally:
            loop.call(lambda: loop.loop.remove_reader(wire.socket))
        assert found[-1][1], "it ended"
        return found

    def wait_held(self, count: int = 1) -> None:
        """Wait until a rule holds up something of so many clients: what is sent from now on comes behind that."""
        wait_for(lambda: self.metric("held_commands") == count, f"{count} to be held")

    def wait_clients(self, count: int = 1) -> None:
        """Wait until it has so many clients, however far each has got in."""
        wait_for(lambda: self.metric("connections") == count, f"{count} clients")

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of that name (without `chaosproxy_`) that carry these labels; 0 if there are none."""
        if self.service is not None:
            self._settle()
            text = self.service.metrics("")[1].decode()
        else:
            text = self.get("/metrics")[1]
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"chaosproxy_{name}" and labels.items() <= sample.labels.items()
        )

    def _settle(self) -> None:
        """Let the loop end what it is at: bytes leave before what they tell of is written down."""
        if self._stopping:
            return
        if self.service is not None:
            self.service._loop.settle(START_TIMEOUT)
        elif self.control is not None and self.process.poll() is None:
            # It is the loop that answers this, once it has time for it.
            with suppress(OSError, HTTPException):
                wait_for(lambda: self.get("/connections")[0] != BUSY, "its loop")

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Ask the control address; gives status and text."""
        assert self.control is not None
        request = urllib.request.Request(self.control + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=START_TIMEOUT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def use(self, profile: str, seed: int = 1) -> int:
        """Put another profile in force; only in this process. Gives its generation."""
        assert self.service is not None
        return self.service.use(load([source_of(profile)]), seed)

    def in_force(self, profile: str, look: Callable[[], T]) -> T:
        """Put a profile in force and look, before anything else can happen in the proxy; gives what was seen."""
        service = self.service
        assert service is not None
        loaded = load([source_of(profile)])

        def both() -> T:
            service._proxy.use(loaded, 1)
            return look()

        return service._loop.call(both)

    def signal(self, number: int) -> None:
        """Send a signal to the process of its own."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """End it; twice is once."""
        stop, self._stop = self._stop, lambda: None
        self._stopping = True
        stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_proxy(
    upstream: str,
    profile: str = "calm",
    *args: str,
    env: dict[str, str] | None = None,
    stdout: int | None = None,
    patient: bool = False,
) -> RunningProxy:
    """Run `chaosproxy run` in a process of its own, on a free port, with control and an events file.

    `args` are further options and win; `env` further variables, `stdout` a file of its own. The process must end with status 0.
    One that is `patient` never says that it is busy.
    """
    folder = tempfile.TemporaryDirectory(prefix="chaosproxy-test-")
    path = Path(folder.name)
    options = [
        *("--upstream", upstream, "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"),
        *("--profile", _as_file(profile, path), "--events", str(path / "events.jsonl")),
        *("--ready-file", str(path / "ready.json"), *args),
    ]
    log = path / "stderr"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                *(("-c", PATIENT) if patient else ("-m", "chaosproxy")),
                "run",
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=output,
            env=os.environ | {"PYTHONFAULTHANDLER": "1"} | (env or {}),
        )

    def stop() -> None:
        try:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            status = process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # then it says where it is
            status = process.wait()
        finally:
            proxy.stderr = log.read_text()
            folder.cleanup()
        assert status == 0, f"ended with {status}:\n{proxy.stderr}"

    proxy = RunningProxy("", 0, None, 0, process=process, folder=path, _stop=stop)
    ready = path / "ready.json"
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None, "the ready file")
        assert ready.exists(), f"it did not start:\n{log.read_text()}"
    except BaseException:
        process.kill()
        process.wait()
        folder.cleanup()
        raise
    said = json.loads(ready.read_text())
    proxy.url, proxy.control, proxy.seed = said["url"], said["control"], said["seed"]
    proxy.port = parse_address(said["listen"]).port
    if "sentinel" in said:
        proxy.sentinel = parse_address(said["sentinel"]).port
    return proxy


def at_its_own_port(server: servers.Server, profile: str = "calm") -> RunningProxy:
    """Serve at a port that nobody else is given while the proxy does not listen there."""
    return serve_proxy(server.url, profile, listen=Address("127.0.0.1", servers.free_port()))


def refused(port: int) -> bool:
    """Whether connecting itself fails."""
    try:
        socket.create_connection(("127.0.0.1", port), START_TIMEOUT).close()
    except TURNED_AWAY:
        return True
    return False


def serve_proxy(
    upstream: str,
    profile: str = "calm",
    *,
    seed: int = 1,
    recording: Recording | None = None,
    control_token: str | None = None,
    **plan: Any,
) -> RunningProxy:
    """Run a proxy in this process, in a thread of its own; `plan` are further fields of net.proxy.Plan."""
    if isinstance(plan.get("standby"), str):
        plan["standby"] = parse_upstream(plan["standby"])
    settings = Settings(
        plan=Plan(
            **{"listen": parse_address("127.0.0.1:0"), "upstream": parse_upstream(upstream)} | plan
        ),
        profile=load([source_of(profile)]),
        seed=seed,
        recording=recording,
        control=parse_address("127.0.0.1:0"),
        control_token=control_token,
    )
    service = Service(settings)
    # What a test asks is done, however long a busy machine keeps the loop from it.
    service._ask = lambda function: service._loop.call(function, START_TIMEOUT)
    service._gauges = lambda: service._ask(
        lambda: steer.gauges(service._proxy, service.journal.lost)
    )
    return RunningProxy(
        service.url,
        service.listen.port,
        service.control_url,
        seed,
        service,
        _stop=lambda: service.stop(1.0),
    )


def source_of(profile: str) -> Source:
    """A shipped name, a path, or YAML text."""
    return Source("test", profile.encode(), "test.yaml") if "\n" in profile else find(profile)


def _as_file(profile: str, folder: Path) -> str:
    if "\n" not in profile:
        return profile
    path = folder / "test.yaml"
    path.write_text(profile)
    return str(path)


def wait_for(done: Callable[[], object], what: str, timeout: float = START_TIMEOUT) -> None:
    """Wait until something holds; raises TimeoutError, saying what did not."""
    deadline = time.monotonic() + timeout
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout} s for {what}")
        time.sleep(0.005)
