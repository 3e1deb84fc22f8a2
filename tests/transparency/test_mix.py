"""A pool of connections and all they do at once, for a time: through the proxy as without it, each byte.

Takes two servers of a kind, one behind a proxy, twice: with nothing in force, and with faults that look at everything and act
on nothing. Gives proof that every reply and every push is the same, and that both servers have done the same.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.proxying import RunningProxy, start_proxy
from tests.transparency import twins

ARMED = Path(__file__).with_name("armed.yaml")


#: By what it is known that a scratch database may be used, before a transaction in which a rule may drop a write: hidden
#: commands on the client's own connection, under such a profile only.
GATE = (b"select", b"dbsize", b"copy", b"del")


@contextmanager
def stage(name: str, profile: str) -> Iterator[tuple[servers.Server, servers.Server, RunningProxy]]:
    """A server, its twin, and a proxy before the twin."""
    direct, twin = servers.start(name), servers.start(name)
    try:
        with start_proxy(twin.url, profile) as proxy:
            for server in (direct, twin):
                # What the proxy has asked at its start is its own.
                server.ask("CONFIG", "RESETSTAT")
            yield direct, twin, proxy
    finally:
        direct.stop()
        twin.stop()


def done(server: servers.Server, *, but: tuple[bytes, ...] = ()) -> dict[bytes, object]:
    """What a server has done: how often each command was called, refused and failed; and all its data."""
    stats = server.ask("INFO", "commandstats")
    found = re.findall(
        rb"cmdstat_([^:]+):calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)", stats
    )
    # Asked for by this helper.
    but = (*but, b"info", b"config|resetstat", b"debug")
    counts: dict[bytes, object] = {
        command: tuple(times) for command, *times in found if command not in but
    }
    return counts | {b"digest": server.ask("DEBUG", "DIGEST")}


def mix(name: str, pairs: int, seconds: float, seed: str) -> None:
    if reason := servers.available(name):
        pytest.skip(reason)
    with stage(name, "calm") as calm, stage(name, str(ARMED)) as armed:
        ways = [(direct.port, proxy.port) for direct, _, proxy in (calm, armed)]
        found = asyncio.run(twins.compare(seed, pairs, seconds, ways))
        assert not found.differences, "\n".join(found.differences)
        for (direct, twin, proxy), but in ((calm, ()), (armed, GATE)):
            assert done(twin, but=but) == done(direct, but=but)
            assert proxy.metric("protocol_errors_total") == 0
            assert proxy.metric("faults_fired_total") == 0
        print(
            f"{name}: {found.scenes} scenes, {found.frames} frames, {found.bytes >> 20} MiB,",
            f"{found.connections} connections",
        )
        assert found.scenes > pairs


@pytest.mark.parametrize("name", ["redis70", "valkey9"])
def test_some_seconds(name: str):
    """BLPOP, pub/sub, transactions, scripts, streams and the rest from 16 connections at once, in both protocols."""
    mix(name, 8, 5.0, "short")


@pytest.mark.soak
@pytest.mark.timeout(0)  # each frame has a time by which it has to come
@pytest.mark.parametrize("name", ["redis70", "valkey9"])
def test_for_minutes(name: str, mix_seconds: float):
    """The same from 48 connections, for ten minutes."""
    mix(name, 24, mix_seconds, "long")
