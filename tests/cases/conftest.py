"""A place to play a case: a real server, a proxy in front of it, and clients in the versions that went wrong.

Takes a profile and a client's program; gives what it said, what is on the server and what fired, the same five times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaosproxy.net.address import Address
from chaosproxy.profile import load
from tests import servers
from tests.clients import installs
from tests.clients.installs import Install
from tests.proxying import RunningProxy, serve_proxy, source_of

SCRIPTS = Path(__file__).parent / "scripts"
RUNS = 5
SEED = 1


@dataclass(frozen=True)
class Run:
    """One run: the program's result, what `look` found on the server, and which (fault, command, applied) there were."""

    said: Any
    found: Any
    fired: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Stage:
    """A server and a proxy in front of it."""

    server: servers.Server
    proxy: RunningProxy

    def play(
        self,
        profile: str,
        install: Install,
        script: str,
        *args: object,
        before: list[tuple[Any, ...]] | None = None,
        look: Callable[[servers.Server], Any] = lambda _: None,
        sets: tuple[str, ...] = (),
        when_ready: bool = False,
    ) -> Run:
        """Play a case five times from the start, and give what came out of it: each time the same.

        `profile` is YAML or a shipped name, `sets` is what `--set` would change of it. The program gets the proxy's port, the
        server's own port and `args`. `before` are commands for the server, `look` what to read from it afterwards.
        `when_ready`: the profile comes into force when the program says "ready" and waits for a line.
        """
        loaded = load([source_of(profile)], overrides=sets)
        played = []
        for _ in range(RUNS):
            self.server.ask("FLUSHALL")
            self.server.ask("SCRIPT", "FLUSH")
            for command in before or []:
                self.server.ask(*command)
            played.append(self._once(loaded, install, script, args, look, when_ready))
        assert [run for run in played if run != played[0]] == [], "not always the same"
        return played[0]

    def _once(self, profile, install, script, args, look, when_ready) -> Run:
        generation = 0 if when_ready else self.proxy.service.use(profile, SEED)
        program = install.start(SCRIPTS / script, self.proxy.port, self.server.port, *args)
        if when_ready:
            assert program.stdout.readline() == "ready\n", program.communicate()
            generation = self.proxy.service.use(profile, SEED)
            program.stdin.write("\n")
            program.stdin.flush()
        said = installs.result(program)
        found = look(self.server)
        # What is still held goes now, or never: what was done to it is written down then.
        self.proxy.use("calm")
        events = [event for event in self.proxy.events() if event["generation"] == generation]
        # Each once: how often a client that waits at random tries again is not the same each time.
        fired = dict.fromkeys(
            (event["fault"], event["command"], event["applied"]) for event in events
        )
        return Run(said, found, list(fired))


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """Give one server and one proxy to all cases of this worker."""
    # Clients come to it while nobody listens there: nobody else may be given the port then.
    yield from _stage(listen=Address("127.0.0.1", servers.free_port()))


@pytest.fixture
def cluster() -> Iterator[Stage]:
    """Give a server that appears as a cluster: what has moved in it stays where it is, so each case has its own."""
    yield from _stage(cluster_nodes=3)


def _stage(**plan: Any) -> Iterator[Stage]:
    name = "redis82"
    reason = servers.available(name)
    if reason is not None:
        pytest.skip(reason)
    server = servers.start(name)
    try:
        with serve_proxy(server.url, **plan) as proxy:
            yield Stage(server, proxy)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def python() -> Callable[..., Install]:
    """Give installs.python; what cannot be had skips the test."""
    return _or_skip(installs.python)


@pytest.fixture(scope="session")
def npm() -> Callable[..., Install]:
    """Give installs.npm; what cannot be had skips the test."""
    return _or_skip(installs.npm)


def _or_skip(install: Callable[..., Install]) -> Callable[..., Install]:
    def installed(*what: str) -> Install:
        try:
            return install(*what)
        except installs.Unavailable as reason:
            pytest.skip(str(reason))

    return installed
