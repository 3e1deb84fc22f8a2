"""Nothing between client and server: each wire script gives the same bytes and the same end through the proxy as direct.

Takes the scripts of tests/transparency/scripts_*; gives their proof on four servers, in RESP2 and RESP3, sent in one
piece, byte by byte and cut at random; through a proxy that does nothing, and through one whose faults look at
everything and act on nothing.

Masked, and nothing else: MONITOR's timestamps and addresses, client ids (HELLO, CLIENT ID, tracking-redir-broken).
"""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import RunningProxy, start_proxy
from tests.transparency import scripts_cluster
from tests.transparency.play import Transcript, perform
from tests.transparency.script import ALL_MODES, Mode, Script
from tests.transparency.table import BY_NAME, SCRIPTS

ARMED = Path(__file__).with_name("armed.yaml")
PROFILES = ("calm", "armed")

#: What is performed by default. The whole product takes minutes and is there for the asking (`-m matrix`).
RUNS: dict[str, tuple[tuple[str, Mode], ...]] = {
    "redis62": (("calm", "whole"), ("armed", "split")),
    "redis70": (("calm", "whole"), ("calm", "split"), ("armed", "bytewise")),
    "redis82": (("armed", "whole"), ("calm", "split")),
    "valkey9": (("calm", "whole"), ("calm", "bytewise"), ("armed", "whole"), ("armed", "split")),
}
ALL_RUNS = tuple((profile, mode) for profile in PROFILES for mode in ALL_MODES)
IDS_SPENT = 1000


@dataclass(slots=True)
class Stage:
    """One server, the proxies before it, and what the scripts gave without them."""

    server: servers.Server
    proxies: dict[str, RunningProxy]
    direct: dict[tuple[str, int], Transcript] = field(default_factory=dict)
    changed: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, server: servers.Server) -> "Stage":
        """Spend the server's small client ids, so that an id cannot be taken for a count, and put proxies before it."""
        for _ in range(IDS_SPENT):
            server.connect().close()
        armed = start_proxy(server.url, str(ARMED))
        return cls(server, {"calm": start_proxy(server.url, "calm"), "armed": armed})

    def prepare(self, script: Script) -> None:
        """Empty the server, and put this script's settings in force."""
        for name, value in self.changed.items():
            self.set(name, value)
        self.changed.clear()
        for command in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")):
            self.server.ask(*command)
        for name, value in script.settings:
            self.changed[name] = self.server.ask("CONFIG", "GET", name)[1]
            self.set(name, value)

    def set(self, name: str, value: object) -> None:
        assert self.server.ask("CONFIG", "SET", name, value) == "OK", name

    def perform_direct(self, script: Script, resp: int) -> Transcript:
        key = (script.name, resp)
        if key not in self.direct:
            self.prepare(script)
            self.direct[key] = perform(script, self.server.port, resp=resp, mode="whole")
        return self.direct[key]

    def stop(self) -> None:
        for proxy in self.proxies.values():
            proxy.stop()
        self.server.stop()


@pytest.fixture(scope="module")
def stage_of() -> Iterator[Callable[[str], Stage]]:
    """Give a function that gives the stage of a server: it and its proxies run as long as the module is tested."""
    stages: dict[str, Stage] = {}
    begun: set[str] = set()

    def give(name: str) -> Stage:
        if name not in stages:
            # It fails once, and not again for each script.
            assert name not in begun, (
                f"{name} could not be started with its proxies: see the first failure"
            )
            reason = servers.available(name)
            if reason is not None:
                pytest.skip(reason)
            begun.add(name)
            # Timeouts are noticed at its heartbeat: a faster one makes shorter tests.
            stages[name] = Stage.of(servers.start(name, "--hz", "100"))
        return stages[name]

    yield give
    for stage in stages.values():
        stage.stop()


def cases() -> list:
    """Every script on every server it is for, in each protocol; a server's ones stand together."""
    return [
        pytest.param(name, resp, script.name, id=f"{name}-resp{resp}-{script.name}")
        for name in servers.NAMES
        for script in SCRIPTS
        if name in script.servers
        for resp in script.resp
    ]


@pytest.mark.parametrize(("server_name", "resp", "script_name"), cases())
def test_same_bytes_and_end(stage_of, server_name: str, resp: int, script_name: str) -> None:
    """Through the proxy every client gets what it gets without: each byte, and FIN or RST."""
    compare(stage_of(server_name), BY_NAME[script_name], resp, RUNS[server_name])


@pytest.mark.parametrize("server_name", ["redis70", "redis82", "valkey9"])
def test_same_bytes_and_end_on_a_cluster_node(server_name: str) -> None:
    """A cluster's node says more unasked: subscriptions end with their slots, and who waits is let go."""
    reason = servers.available(server_name)
    if reason is not None:
        pytest.skip(reason)
    stage = Stage.of(servers.start_cluster_node(server_name, "--hz", "100"))
    try:
        for script in scripts_cluster.SCRIPTS:
            for resp in script.resp:
                compare(stage, script, resp, ALL_RUNS)
    finally:
        stage.stop()


@pytest.mark.matrix
@pytest.mark.parametrize(("server_name", "resp", "script_name"), cases())
def test_same_bytes_and_end_in_every_way(
    stage_of, server_name: str, resp: int, script_name: str
) -> None:
    """The same in each way of sending, through each proxy."""
    compare(stage_of(server_name), BY_NAME[script_name], resp, ALL_RUNS)


@pytest.mark.matrix
@pytest.mark.parametrize(("server_name", "resp", "script_name"), cases())
def test_how_it_is_sent_makes_no_difference_to_the_server(
    stage_of, server_name: str, resp: int, script_name: str
) -> None:
    """The comparison is fair: without a proxy too, each way of sending gives what one piece gives."""
    stage, script = stage_of(server_name), BY_NAME[script_name]
    whole = stage.perform_direct(script, resp)
    for mode in script.modes:
        stage.prepare(script)
        again = perform(script, stage.server.port, resp=resp, mode=mode, expected=whole)
        assert again.lines == whole.lines, f"sent {mode}"


def compare(stage: Stage, script: Script, resp: int, runs: tuple[tuple[str, Mode], ...]) -> None:
    direct = stage.perform_direct(script, resp)
    shows = (
        script.shows
        if isinstance(script.shows, bytes)
        else script.shows.get(stage.server.name, b"")
    )
    assert direct.contains(shows), (
        f"the script does not reach what it is about: {direct.readable()}"
    )
    # A half-closed connection is always ended by the server: all that it had to say has been heard.
    assert all(end != "open" for _, end in direct.lines.values()), direct.readable()
    for profile, mode in runs:
        if mode not in script.modes or (script.only_calm and profile != "calm"):
            continue
        stage.prepare(script)
        port = stage.proxies[profile].port
        through = perform(script, port, resp=resp, mode=mode, expected=direct)
        if through.lines != direct.lines:
            diff = difflib.unified_diff(direct.readable(), through.readable(), "direct", "proxy")
            pytest.fail(
                f"{script.name}, through the {profile} proxy, sent {mode}:\n" + "\n".join(diff)
            )
