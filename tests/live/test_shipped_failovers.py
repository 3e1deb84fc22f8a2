"""The shipped profiles of failovers do what they say: who is cut, who stays, what is refused, what is gone, and how it ends.

Takes real servers; gives each profile's story as one conversation.
"""

import time

import pytest

from tests.busy import within
from tests.proxying import TURNED_AWAY, at_its_own_port, wait_for
from tests.wire import WireError

READONLY = "READONLY You can't write against a read only replica."


def writes(wire, count=9):
    """So many writes, each acknowledged."""
    assert [wire.ask("RPUSH", "turns", number) for number in range(count)] == list(
        range(1, count + 1)
    )


def wait_in(wire, server):
    """Let a client wait in a command that is no write."""
    wire.send("XREAD", "BLOCK", "0", "STREAMS", "queue", "$")
    wait_for(lambda: b"blocked_clients:1" in server.ask("INFO", "clients"), "it to wait")


def connect(proxy):
    """A new connection, as soon as one is accepted."""
    while True:
        try:
            return proxy.connect()
        except TURNED_AWAY:
            time.sleep(0.01)


def outage(proxy, fault):
    """How many seconds it took from the beginning to the switch."""
    began, *_, switched = [event["t"] for event in proxy.events(fault) if _is_step(event)]
    return switched - began


def _is_step(event):
    return any(word in event.get("detail", "") for word in ("begins", "switched"))


def lost(proxy, fault):
    """What the events say is gone."""
    return [event["detail"] for event in proxy.events(fault) if event["applied"] == "undone"]


def test_sentinel_failover(any_server):
    """Everybody is reset, a blocked client too; after the outage all is there but the last three writes."""
    with at_its_own_port(any_server, "sentinel-failover") as proxy:
        with proxy.connect() as wire, proxy.connect() as idle, proxy.connect() as blocked:
            idle.ask("PING")
            wait_in(blocked, any_server)
            writes(wire)
            wire.send("RPUSH", "turns", 9)
            for each in (wire, idle, blocked):
                assert each.read_to_end() == (b"", "RST")
        wire = connect(proxy)
        with wire:
            assert wire.ask("LRANGE", "turns", 0, -1) == [b"%d" % number for number in range(6)]
            assert wire.ask("RPUSH", "turns", "back") == 7
        assert outage(proxy, "sentinel-failover") >= 1.5
        assert lost(proxy, "sentinel-failover") == ["switched, 3 writes undone: RPUSH x3"]


def test_managed_failover(any_server):
    """Who is connected hears READONLY for ever, and reads; who connects anew writes. Nothing is lost."""
    with at_its_own_port(any_server, "managed-failover") as proxy:
        with proxy.connect() as wire, proxy.connect() as blocked:
            wait_in(blocked, any_server)
            writes(wire)
            assert wire.ask("RPUSH", "turns", 9) == READONLY
            assert blocked.read()[0].startswith(b"-UNBLOCKED ")
            assert blocked.read_to_end() == (b"", "FIN")
            new = connect(proxy)
            with new:
                assert new.ask("RPUSH", "turns", 9) == 10
            for _ in range(3):
                assert wire.ask("RPUSH", "turns", 10) == READONLY
                assert wire.ask("LLEN", "turns") == 10
        assert outage(proxy, "managed-failover") >= 0.5
        assert lost(proxy, "managed-failover") == []


@within(1)
def test_cluster_failover(any_server):
    """It is down; then who was connected is told MOVED, and who connects anew finds all but the last three writes."""
    any_server.ask("FLUSHALL")
    with at_its_own_port(any_server, "cluster-failover") as proxy:
        with proxy.connect() as wire:
            writes(wire)
            assert wire.ask("RPUSH", "turns", 9) == "CLUSTERDOWN The cluster is down"
            assert wire.ask("GET", "turns") == "CLUSTERDOWN The cluster is down"
            assert wire.ask("PING") == "PONG"
            new = connect(proxy)
            with new:
                assert new.ask("LLEN", "turns") == 6
                assert new.ask("RPUSH", "turns", "back") == 7
            moved = wire.ask("LLEN", "turns")
            assert isinstance(moved, WireError)
            assert moved.split()[0] == "MOVED"
            assert moved.split()[2] == f"127.0.0.1:{proxy.port}"
        assert outage(proxy, "cluster-failover") >= 2
        assert lost(proxy, "cluster-failover") == ["switched, 3 writes undone: RPUSH x3"]


@pytest.mark.parametrize("resp", [2, 3])
@within(0.5)
def test_redis_restart(any_server, resp):
    """Everybody is reset; then LOADING to all but the handshake; then it is there, without the last second and the scripts."""
    any_server.ask("FLUSHALL")
    with at_its_own_port(any_server, "redis-restart") as proxy:
        with proxy.connect(resp=resp) as wire:
            sha = wire.ask("SCRIPT", "LOAD", "return 1").decode()
            writes(wire)
            wire.send("RPUSH", "turns", 9)
            assert wire.read_to_end() == (b"", "RST")
        wire = connect(proxy)
        with wire:
            assert wire.ask("CLIENT", "SETNAME", "app") == "OK"
            product = "Valkey" if any_server.name.startswith("valkey") else "Redis"
            assert wire.ask("GET", "k") == f"LOADING {product} is loading the dataset in memory"
            wait_for(lambda: wire.ask("PING") == "PONG", "the end of loading")
            assert wire.ask("EVALSHA", sha, 0).startswith("NOSCRIPT")
            kept = wire.ask("LLEN", "turns")
        assert outage(proxy, "redis-restart") >= 1
        (event,) = [
            event for event in proxy.events("redis-restart") if event["applied"] == "undone"
        ]
        last = max(
            event["t"] for event in proxy.events("redis-restart") if event["told"] == "error"
        )
        # It is three seconds; a machine that stalls asks later, or writes the last error down later.
        assert 1 < last - event["t"] < 8, "how long it was loading"
        # What was written in its last second: on a machine that is not busy all of it.
        (write,) = event["writes"]
        assert write == {"command": "RPUSH", "keys": ["turns"], "count": 9 - kept}
        assert kept < 9
