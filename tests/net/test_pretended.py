"""One server as a cluster of several nodes, for clients that know what a cluster is."""

import pytest
from redis import RedisCluster

from chaosproxy.net.address import Address
from tests.proxying import serve_proxy, wait_for
from tests.servers import start_cluster_node
from tests.wire import Wire

MOVING = """
faults:
- {fault: reply, name: moved, match: {keys: "key:*"}, when: {every: 10}, at: before_forward, error: MOVED}
- {fault: reply, name: ask, match: {keys: "key:*"}, when: {every: 7}, at: before_forward, error: ASK}
- {fault: reply, name: split, match: {keys: "key:*"}, when: {every: 11}, at: before_forward, error: TRYAGAIN}
"""


@pytest.fixture
def proxy(either_loop, redis70):
    with serve_proxy(redis70.url, cluster_nodes=3) as proxy:
        yield proxy


def test_nodes(proxy, redis70):
    """Each node has a listener and its share of the slots; all of them lead to the one server."""
    nodes = proxy.service.nodes
    assert list(nodes) == ["node-1", "node-2", "node-3"]
    assert {there.port for _, there in nodes.values()} == {redis70.port}
    wait_for(lambda: proxy.service.unready() is None, "it to answer")
    assert not proxy.service.bypassed
    ports = [here.port for here, _ in nodes.values()]
    for number, port in enumerate(ports):
        with Wire(port) as wire:
            told = wire.ask("CLUSTER", "SLOTS")
            assert [(node[0], node[1]) for _, _, node in told] == [(b"127.0.0.1", p) for p in ports]
            assert wire.ask("CLUSTER", "MYID") == told[number][2][2]


@pytest.mark.parametrize("protocol", ["2", "3"])
def test_what_the_server_says_of_itself(either_loop, server, protocol):
    """That it is a node of a cluster, in each server's own words."""
    with serve_proxy(server.url, cluster_nodes=2) as proxy, proxy.connect() as wire:
        said = wire.ask("HELLO", protocol)
        told = dict(zip(said[::2], said[1::2], strict=True)) if protocol == "2" else said
        assert told[b"mode"] == b"cluster"
        text = wire.ask("INFO")
        assert b"_mode:cluster\r\n" in text
        assert b"\r\ncluster_enabled:1\r\n" in text


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_cluster_client(proxy, redis70, protocol):
    """A cluster client finds its keys through slots that move, redirections, and refusals; everything is in the one server."""
    proxy.use(MOVING)
    with RedisCluster(
        host="127.0.0.1", port=proxy.port, protocol=protocol, decode_responses=True
    ) as client:
        for number in range(200):
            client.set(f"key:{number}", number)
            assert client.get(f"key:{number}") == str(number)
    assert redis70.ask("DBSIZE") == 200
    for fault in ("moved", "ask", "split"):
        assert proxy.events(fault)
    with proxy.connect() as wire:
        assert len(wire.ask("CLUSTER", "SLOTS")) > 3


def test_announced(either_loop, redis70):
    """What is announced is told in the place of where the nodes listen."""
    announce = Address("proxy.example", 0)
    with serve_proxy(redis70.url, cluster_nodes=2, announce=announce) as proxy:
        ports = [here.port for here, _ in proxy.service.nodes.values()]
        with proxy.connect() as wire:
            told = [node[:2] for _, _, node in wire.ask("CLUSTER", "SLOTS")]
            assert told == [[b"proxy.example", port] for port in ports]


def test_a_listener_that_has_gone(proxy):
    """A client of a node that is none any more is served as the server serves it."""
    inner = proxy.service._proxy
    route = inner.routes["node-3"]
    proxy.service._loop.call(lambda: inner.routes.remove("node-3"))
    assert inner.behind._pretended.seat(route, "127.0.0.1") is None


@pytest.mark.parametrize("protocol", [2, 3])
def test_as_a_real_node(either_loop, server, protocol):
    """What is asked about keys of slots, and what is refused, is answered as each server does that is a cluster's node."""
    keys = [("SET", "foo", "1"), ("SET", "{foo}2", "1"), ("RPUSH", "l", "1", "2")]
    asked = [
        *(f"CLUSTER COUNTKEYSINSLOT {slot}" for slot in ("12182", "0", "16384", "x")),
        *(f"CLUSTER GETKEYSINSLOT {numbers}" for numbers in ("0 1", "16384 1", "0 -1", "0 x")),
        *(f"CLUSTER {question} nobody" for question in ("REPLICAS", "COUNT-FAILURE-REPORTS")),
        *(f"SORT l {rest}" for rest in ("BY w*", "BY nosort", "GET {l}*", "FOO BY w*", "GET x")),
        *("CLUSTER FAILOVER", "REPLICAOF NO ONE", "FAILOVER", "SELECT x", "COPY l {l} DB x"),
    ]
    node = start_cluster_node(server.name)
    try:
        with serve_proxy(server.url, cluster_nodes=1) as proxy, node.connect(resp=protocol) as real:
            wait_for(lambda: proxy.service.survey.answered, "it to know the server")
            with proxy.connect(resp=protocol) as wire:
                for command in (*keys, *map(str.split, asked)):
                    assert wire.raw(*command) == real.raw(*command), command
                both = [each.ask("CLUSTER", "GETKEYSINSLOT", 12182, 9) for each in (wire, real)]
                assert sorted(both[0]) == sorted(both[1]) == [b"foo", b"{foo}2"]
    finally:
        node.stop()
