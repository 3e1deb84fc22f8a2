"""Nearly all that ioredis and npm redis can be asked to do, through the proxy and directly: each reply is the same.

Neither package carries its tests. The programs have every family of commands, pipelines, transactions, pub/sub, waiting
commands, scripts, functions, streams, invalidations, scans, a crowd of connections and a lost one; on a server, on a cluster and by
way of Sentinels; in RESP2 and RESP3.
"""

from pathlib import Path
from typing import Any

import pytest

from tests import clusters, sentinels, servers
from tests.clients import installs
from tests.proxying import start_proxy
from tests.servers import Server

pytestmark = [pytest.mark.suites, pytest.mark.timeout(600)]

PROGRAMS = Path(installs.__file__).parent / "programs"
ARMED = str(Path(__file__).parent.parent / "transparency" / "armed.yaml")
RUN_TIMEOUT = 240.0
CLIENTS = {
    "ioredis 5.11.1, RESP2": ("ioredis@5.11.1", "wide_ioredis.cjs", 2),
    "ioredis 6.0.0, RESP2": ("ioredis@6.0.0", "wide_ioredis.cjs", 2),
    "ioredis 6.0.0, RESP3": ("ioredis@6.0.0", "wide_ioredis.cjs", 3),
    "npm redis 5.9.0, RESP2": ("redis@5.9.0", "wide_node_redis.cjs", 2),
    "npm redis 5.9.0, RESP3": ("redis@5.9.0", "wide_node_redis.cjs", 3),
}
#: How many things a run must at least have got, told by the family's or part's name: a run that did nothing is equal to itself.
PARTS = {"strings", "streams", "scripts", "channels", "waiting", "watched", "shapes", "commands"}


def replies(name: str, kind: str, nodes: list[Server], port: int) -> dict[str, Any]:
    """Run a client's program against a port, its servers empty before; give all that it got."""
    requirement, program, protocol = CLIENTS[name]
    try:
        client = installs.npm(requirement)
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    for node in nodes:
        for command in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")):
            sentinels.ask(node, *command)  # a replica refuses some
    words = (kind, port, protocol, sentinels.SERVICE)
    said = client.run(PROGRAMS / program, *words, timeout=RUN_TIMEOUT)
    assert said["version"] == requirement.rpartition("@")[2]
    got = said["got"]
    assert got.keys() >= PARTS
    assert got["crowd"] == []
    return got


def differing(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two results differ: the path to each place and what is there."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = list(one | other)
        return [d for k in keys for d in differing(one.get(k), other.get(k), f"{path}.{k}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for at, (a, b) in pairs for d in differing(a, b, f"{path}[{at}]")]
    return [] if one == other else [(path, one, other)]


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("kind", ["redis70", "valkey9"])
def test_a_server(name: str, kind: str):
    """On a server of its own: direct, through a proxy that does nothing, and through one that looks at everything."""
    server = servers.start(kind)
    try:
        direct = replies(name, "alone", [server], server.port)
        for profile in ("calm", ARMED):
            with start_proxy(server.url, profile) as proxy:
                assert differing(direct, replies(name, "alone", [server], proxy.port)) == []
                assert proxy.metric("protocol_errors_total") == 0
    finally:
        server.stop()


@pytest.fixture(scope="module")
def cluster():
    with clusters.running(3, 3) as cluster:
        yield cluster


@pytest.mark.parametrize("name", CLIENTS)
def test_a_cluster(cluster, name: str):
    """On a cluster of three primaries and three replicas."""
    direct = replies(name, "cluster", cluster.nodes, cluster.nodes[0].port)
    for profile in ("calm", ARMED):
        with start_proxy(cluster.url, profile) as proxy:
            assert differing(direct, replies(name, "cluster", cluster.nodes, proxy.port)) == []
            assert proxy.metric("protocol_errors_total") == 0


@pytest.fixture(scope="module")
def trio():
    with sentinels.trio("redis70") as trio:
        yield trio


@pytest.mark.parametrize("name", CLIENTS)
def test_by_way_of_sentinels(trio, name: str):
    """On a primary that three Sentinels name."""
    direct = replies(name, "sentinel", trio.nodes, trio.sentinels[0].port)
    for profile in ("calm", ARMED):
        with start_proxy(trio.url, profile, "--listen-sentinel", "127.0.0.1:0") as proxy:
            got = replies(name, "sentinel", trio.nodes, proxy.sentinel)
            assert differing(direct, got) == []
            assert proxy.metric("protocol_errors_total") == 0
