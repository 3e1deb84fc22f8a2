"""A cluster behind the proxy: a listener for each node, addresses that lead back to the proxy, nodes that come and go."""

import re
import socket
from dataclasses import replace

import pytest

from chaosproxy.net import cluster as cluster_module
from chaosproxy.net.address import Address
from chaosproxy.net.pair_error import PairError
from chaosproxy.net.tls import upstream_context
from chaosproxy.service import ServiceError
from tests import clusters, servers
from tests.proxying import serve_proxy, wait_for
from tests.wire import Wire

SECOND = """
faults:
- {fault: reply, match: {commands: PING, connection: {listener: node-2}}, at: before_forward, value: two}
"""


@pytest.fixture(scope="module")
def cluster():
    """Two primaries; who adds to it takes it away again."""
    with clusters.running(2) as cluster:
        yield cluster


def routes(proxy):
    """Each route's name with the port it listens on and the port it dials."""
    found = proxy.service._loop.call(lambda: list(proxy.service._proxy.routes))
    return {each.name: (each.address.port, each.dialler.address.port) for each in found}


def look(proxy):
    """Have it look now who belongs to the cluster."""
    proxy.service._loop.run(proxy.service._proxy.behind.cluster.look())


def slots(wire):
    """The host and port of each range's primary, as a client is told."""
    return [(host.decode(), port) for _, _, (host, port, *_) in wire.ask("CLUSTER", "SLOTS")]


def moved(wire):
    """Where a client is sent for the first and the last slot, None: nowhere."""
    found = []
    for key in ("{460}", "{2927}"):
        said = re.fullmatch(rb"-MOVED \d+ (\S*):(\d+)\r\n", wire.raw("GET", key))
        found.append(said and (said[1].decode(), int(said[2])))
    return found


def test_a_listener_for_each_node(cluster, serve_here):
    """The node of the URL is node-1 and listens where was said; what clients are told leads to the listeners."""
    proxy = serve_here(cluster.url)
    found = routes(proxy)
    assert list(found) == ["node-1", "node-2"]
    assert [target for _, target in found.values()] == [node.port for node in cluster.nodes]
    assert found["node-1"][0] == proxy.port
    listening = [("127.0.0.1", port) for port, _ in found.values()]
    for port, _ in found.values():
        with Wire(port) as wire:
            assert slots(wire) == listening
            assert {place for place in moved(wire) if place} <= set(listening)
    wait_for(lambda: proxy.service.unready() is None, "it to answer")
    assert proxy.service.survey.server.version >= (7, 0)


def test_matching_by_node(cluster, serve_here):
    """A rule may speak of one node's listener."""
    proxy = serve_here(cluster.url, SECOND)
    said = []
    for port, _ in routes(proxy).values():
        with Wire(port) as wire:
            said.append(wire.ask("PING"))
    assert said == ["PONG", b"two"]


def test_consecutive_ports(cluster, serve_here):
    """With a port given, nodes listen at that and those behind it; what is announced is told in their place."""
    first, proxy = consecutive(serve_here, cluster.url, announce=Address("proxy.example", 17000))
    assert [port for port, _ in routes(proxy).values()] == [first, first + 1]
    with proxy.connect() as wire:
        assert slots(wire) == [("proxy.example", 17000), ("proxy.example", 17001)]
    proxy = serve_here(cluster.url, announce=Address("proxy.example", 0))
    with proxy.connect() as wire:
        assert slots(wire) == [("proxy.example", port) for port, _ in routes(proxy).values()]


def test_a_mistake_of_ours(cluster, serve_here, monkeypatch, caplog):
    """It is logged once, and the cluster is followed all the same."""
    monkeypatch.setattr(cluster_module, "POLL", 0.01)
    proxy = serve_here(cluster.url)
    inner, looks = proxy.service._proxy.behind.cluster, []

    async def look():
        looks.append(1)
        raise RuntimeError("a mistake")

    monkeypatch.setattr(inner, "look", look)
    wait_for(lambda: len(looks) >= 3, "more looks")
    mistakes = [record for record in caplog.records if record.name == "chaosproxy.cluster"]
    assert [record.message for record in mistakes if record.exc_info] == ["a mistake in chaosproxy"]
    monkeypatch.undo()


def consecutive(serve_here, url, **plan):
    """Start a proxy at a port that has another free one behind it; gives the port, and the proxy."""
    taken = []
    for _ in range(20):
        first = servers.free_port()
        try:
            return first, serve_here(url, listen=Address("127.0.0.1", first), **plan)
        except ServiceError as error:
            taken.append(str(error))  # one of them is somebody else's
    raise AssertionError(f"no two free ports in a row: {taken}")


def test_seeds(cluster, serve_here, monkeypatch):
    """Any of the URL's nodes may be asked; the order there is theirs, under whatever name, and one that is down is kept."""
    # It looks when it is told to.
    monkeypatch.setattr(cluster_module, "POLL", 600.0)
    one, two = (node.port for node in cluster.nodes)
    down = servers.free_port()
    proxy = serve_here(f"redis+cluster://localhost:{down},localhost:{two},127.0.0.1:{two}")
    assert [target for _, target in routes(proxy).values()] == [down, two, one]
    with Wire(routes(proxy)["node-2"][0]) as wire:
        assert [port for _, port in slots(wire)] == [
            routes(proxy)[name][0] for name in ("node-3", "node-2")
        ]
    assert proxy.service.unready() is not None
    look(proxy)
    wait_for(lambda: proxy.service.unready() is None, "it to answer")


def test_nobody_answers(serve_here):
    """It listens for the nodes of the URL though none of them is there."""
    ports = [servers.free_port() for _ in range(2)]
    proxy = serve_here("redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports))
    assert [target for _, target in routes(proxy).values()] == ports
    look(proxy)
    assert len(routes(proxy)) == 2
    with proxy.connect() as wire:
        assert wire.read_to_end() == (b"", "FIN")


def test_a_node_that_is_no_cluster(serve_here, redis70):
    """A server without a cluster is served as it is, and nothing of it is changed."""
    proxy = serve_here(f"redis+cluster://127.0.0.1:{redis70.port}")
    with proxy.connect() as wire:
        assert wire.raw("CLUSTER", "SLOTS").startswith(b"-ERR This instance has cluster support")
        assert wire.ask("SET", "k", "v") == "OK"
    look(proxy)
    assert len(routes(proxy)) == 1


def test_nodes_come_and_go(serve_here, monkeypatch):
    """A node that joins gets a listener, one that leaves loses it, and gets the same again when it returns."""
    with clusters.running(1) as cluster:
        proxy = serve_here(cluster.url)
        assert list(routes(proxy)) == ["node-1"]
        other = servers.start("redis70", cluster=True)
        try:
            meet(cluster.nodes[0], other)
            wait_for(lambda: len(routes(proxy)) == 2, "the new node's listener", 60)
            port, target = routes(proxy)["node-2"]
            assert target == other.port
            with Wire(port) as wire:
                assert wire.ask("CLUSTER", "MYID") == other.ask("CLUSTER", "MYID")
            other_id = other.ask("CLUSTER", "MYID")
            assert cluster.nodes[0].ask("CLUSTER", "FORGET", other_id) == "OK"
            other.ask("CLUSTER", "RESET")
            wait_for(lambda: len(routes(proxy)) == 1, "the listener's end", 60)
            other.ask("CLUSTER", "RESET", "HARD")
            meet(cluster.nodes[0], other)
            wait_for(lambda: routes(proxy).get("node-2") == (port, target), "its return", 60)
        finally:
            other.stop()


def meet(one, other):
    """Have a node know another, with an address and not only by a handshake."""
    one.ask("CLUSTER", "MEET", "127.0.0.1", other.port)
    line = re.compile(rf"^\w+ 127.0.0.1:{other.port}@\S+ master", re.MULTILINE)
    wait_for(lambda: line.search(one.ask("CLUSTER", "NODES").decode()), "the handshake")


def test_sent_to_a_node_that_is_not_known_yet(serve_here):
    """A redirection to a node that nobody has looked for yet leads to a listener that is there already."""
    with clusters.running(2) as cluster:
        first = cluster.nodes[0]
        proxy = serve_here(cluster.url)
        inner = proxy.service._proxy

        def forget():
            inner.behind.cluster.stop()
            inner.routes.remove("node-2")

        proxy.service._loop.call(forget)
        with proxy.connect() as wire:
            (place,) = [place for place in moved(wire) if place]
            with Wire(place[1]) as there:
                assert there.ask("CLUSTER", "MYID") == cluster.nodes[1].ask("CLUSTER", "MYID")
        assert first.port != place[1]


def test_a_port_that_cannot_be_had(cluster, serve_here, caplog):
    """Where no listener can be had the client is sent where it is already: it never leaves the proxy."""
    first, proxy = consecutive(serve_here, cluster.url)
    inner = proxy.service._proxy
    proxy.service._loop.call(inner.behind.cluster.stop)
    proxy.service._loop.call(lambda: inner.routes.remove("node-2"))
    with socket.create_server(("127.0.0.1", first + 1)), proxy.connect() as wire:
        for _ in range(2):
            assert [place for place in moved(wire) if place] == [("127.0.0.1", first)]
    said = f"node-2: cannot listen on 127.0.0.1:{first + 1}: "
    assert [r.message.startswith(said) for r in caplog.records if "listen" in r.message] == [True]


def test_a_node_that_has_moved(cluster, serve_here):
    """A node that the others see at another address than the one that is dialled, and that answers no more, is dialled there."""
    two = cluster.nodes[1].port
    proxy = serve_here(cluster.url)
    inner = proxy.service._proxy
    dead = servers.free_port()

    def send_elsewhere():
        inner.behind.cluster.stop()
        route = inner.routes["node-2"]
        route.retarget(replace(route.dialler, address=Address("127.0.0.1", dead)))

    proxy.service._loop.call(send_elsewhere)
    assert routes(proxy)["node-2"][1] == dead
    look(proxy)
    assert routes(proxy)["node-2"][1] == two
    with Wire(routes(proxy)["node-2"][0]) as wire:
        assert wire.ask("PING") == "PONG"


def test_host_names(serve_here):
    """Nodes that are called by names, or not at all, are the same nodes."""
    with clusters.running(2) as cluster:
        cluster.nodes[1].ask("CONFIG", "SET", "cluster-announce-hostname", "localhost")
        wait_for(
            lambda: b",localhost" in cluster.nodes[0].ask("CLUSTER", "NODES"),
            "the name to be known",
        )
        proxy = serve_here(cluster.url)
        two = routes(proxy)["node-2"][0]
        for kind, host in (("hostname", "127.0.0.1"), ("unknown-endpoint", None)):
            cluster.nodes[0].ask("CONFIG", "SET", "cluster-preferred-endpoint-type", kind)
            with proxy.connect() as wire:
                (place,) = [place for place in moved(wire) if place]
                assert place == (host or "", two)
                reply = wire.ask("CLUSTER", "SLOTS")
                node = next(node for _, _, node in reply if node[1] == two)
                assert node[0] == (host and host.encode())
                assert b"localhost" not in node[3]
        assert list(routes(proxy)) == ["node-1", "node-2"]


def test_tls(serve_here, certificates, monkeypatch):
    """A cluster that speaks TLS, with plain ports beside: its nodes are known by both, and their clients may speak plain."""
    c = certificates
    nodes, secure = [], []
    try:
        for _ in range(2):
            secure.append(port := servers.free_port())
            options = [
                *("--tls-port", str(port), "--tls-cluster", "yes", "--tls-replication", "yes"),
                *("--tls-cert-file", str(c.cert), "--tls-key-file", str(c.key)),
                *("--tls-ca-cert-file", str(c.ca), "--tls-auth-clients", "no"),
            ]
            nodes.append(servers.start("redis70", *options, cluster=True))
        for number, node in enumerate(nodes):
            node.ask("CLUSTER", "ADDSLOTSRANGE", 8192 * number, 8192 * number + 8191)
        nodes[1].ask("CLUSTER", "MEET", "127.0.0.1", secure[0])
        clusters.wait(clusters.Cluster(nodes).agree, "the cluster to serve")
        tls = upstream_context(c.ca, None, None, insecure=False)
        proxy = serve_here(f"rediss+cluster://localhost:{secure[0]}", upstream_tls=tls)
        assert [target for _, target in routes(proxy).values()] == secure
        listening = [port for port, _ in routes(proxy).values()]
        with proxy.connect() as wire:
            assert [port for _, port in slots(wire)] == listening
            shards = [dict(pairs(shard)) for shard in wire.ask("CLUSTER", "SHARDS")]
            told = [dict(pairs(node)) for shard in shards for node in shard[b"nodes"]]
            assert sorted(node[b"port"] for node in told) == sorted(listening)
            assert [node[b"port"] for node in told] == [node[b"tls-port"] for node in told]
        assert len(routes(proxy)) == 2
    finally:
        for node in nodes:
            node.stop()


def pairs(flat):
    return zip(flat[::2], flat[1::2], strict=True)


@pytest.mark.parametrize("name", servers.NAMES)
def test_every_server(name):
    """What any server says of a cluster says the same through the proxy, but for the ports, which are all the proxy's."""
    if reason := servers.available(name):
        pytest.skip(reason)
    with clusters.running(1, 1, name) as cluster, serve_proxy(cluster.url) as proxy:
        ports = {str(here): str(there) for here, there in routes(proxy).values()}
        primary = cluster.nodes[0].ask("CLUSTER", "MYID").decode()
        asked = ["SLOTS", "SHARDS", "NODES", f"REPLICAS {primary}", f"SLAVES {primary}", "LINKS"]
        commands = [f"CLUSTER {words}" for words in asked] + ["ROLE", "INFO replication"]
        for resp in (2, 3):
            for node, (port, _) in zip(cluster.nodes, routes(proxy).values(), strict=True):
                with Wire(port, resp=resp) as wire, node.connect(resp=resp) as direct:
                    for command in commands:
                        said, wanted = said_both_ways(wire, direct, command.split(), ports.values())
                        assert not set(ports.values()) & set(re.findall(r"\b\d+\b", said))
                        back = re.sub(r"\b\d+\b", lambda found: ports.get(found[0], found[0]), said)
                        assert only(back, ports.values()) == wanted


def said_both_ways(wire, direct, words, ports):
    """What is said by way of the proxy, and what the server says before and after that: a link may have come or gone meanwhile."""
    for _ in range(20):
        before = only(repr(direct.ask(*words)), ports)
        said = repr(wire.ask(*words))
        if only(repr(direct.ask(*words)), ports) == before:
            break
    return said, before


def only(said, ports):
    """A text of which, of all numbers, only these are left: times and offsets change while one looks."""
    return re.sub(r"\b\d+\b", lambda found: found[0] if found[0] in ports else "#", said)


FAIL_OVER = """
faults:
- {fault: failover, match: {commands: ECHO, connection: {listener: LISTENER}}, when: {nth: 1}, style: STYLE}
"""


def fail_over(proxy, listener, style="cluster"):
    """Have a rule begin a failover at that listener; gives what its events say."""
    before = len(proxy.events())
    proxy.use(FAIL_OVER.replace("LISTENER", listener).replace("STYLE", style))
    with Wire(routes(proxy)[listener][0]) as wire:
        assert wire.ask("ECHO", "x") == b"x"
    return [event["detail"] for event in proxy.wait_events(before + 2)[before:]]


def test_a_failover_is_the_clusters_own(serve_here):
    """`failover` has a real replica take over from the primary behind the listener it names; other styles are called off."""
    with clusters.running(2, 2) as cluster:
        proxy = serve_here(cluster.url)
        primary, replica = cluster.nodes[1], cluster.nodes[3]
        listeners = {port: name for name, (_, port) in routes(proxy).items()}
        begins, done = fail_over(proxy, listeners[primary.port])
        assert begins == "failover begins"
        assert done == f"{listeners[replica.port]} has taken over from {listeners[primary.port]}"
        clusters.wait(cluster.agree, "all to agree")
        assert (replica.ask("ROLE")[0], primary.ask("ROLE")[0]) == (b"master", b"slave")
        assert proxy.metric("failovers_total") == 1
        said = fail_over(proxy, listeners[primary.port])[1]
        assert said == f"called off: {listeners[primary.port]} is no primary that has a replica"
        said = fail_over(proxy, listeners[replica.port], "sentinel")[1]
        assert said.startswith("called off: a cluster's nodes fail over by themselves")


class Scripted:
    """A replica's side connection: it is given one answer after the other to CLUSTER FAILOVER, and takes over once it is asked so often."""

    def __init__(self, answers, takes):
        self.answers, self.takes, self.asked = list(answers), takes, 0

    async def request(self, *words):
        if words[0] == b"ROLE":
            role = b"master" if self.asked >= self.takes else b"slave"
            return b"*1\r\n$%d\r\n%s\r\n" % (len(role), role)
        self.asked += 1
        return self.answers.pop(0)

    def close(self):
        pass


@pytest.mark.parametrize(
    ("answers", "takes", "asked", "error"),
    [
        ([b"+OK\r\n"], 1, 1, None),
        ([b"+OK\r\n", b"+OK\r\n", b"+OK\r\n"], 3, 3, None),
        ([b"+OK\r\n", b"-ERR You should send CLUSTER FAILOVER to a replica\r\n"], 2, 2, None),
        ([b"-ERR Master is down or failed\r\n"], 1, 1, "Master is down"),
        ([b"+OK\r\n", None], 9, 2, "no answer"),
    ],
)
def test_a_replica_is_asked_again(cluster, serve_here, monkeypatch, answers, takes, asked, error):
    """It gives up after a while, as on a busy machine; not sooner, as a second request would begin anew what is under way."""
    monkeypatch.setattr(cluster_module, "_AGAIN", 0.05)
    proxy = serve_here(cluster.url)
    inner, loop = proxy.service._proxy.behind.cluster, proxy.service._loop
    side = Scripted(answers, takes)
    monkeypatch.setattr(proxy.service._proxy.routes.get("node-2"), "side", side)
    if error is None:
        loop.run(inner._take_over("node-2"))
    else:
        with pytest.raises(PairError, match=error):
            loop.run(inner._take_over("node-2"))
    assert side.asked == asked
