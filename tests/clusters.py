"""Real clusters for the tests: servers of `tests.servers`, joined by hand, with slots, replicas and failovers.

Takes how many primaries and replicas; gives a running Cluster that can be asked, failed over and resharded.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests import servers
from tests.servers import SLOTS, Server

#: Milliseconds after which a node is given up; a busy machine is slow, and nothing here waits for it.
NODE_TIMEOUT = "15000"
#: Seconds that joining and agreeing may take.
PATIENCE = 120.0
#: A node gives a failover that it was asked for up after five seconds, however busy the machine is: then it is asked again.
AGAIN = 6.0


@dataclass
class Cluster:
    """Nodes that know each other; `nodes` is in the order in which they were started, primaries first."""

    nodes: list[Server]

    @property
    def url(self) -> str:
        """What the proxy is started with."""
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def ids(self) -> dict[str, Server]:
        """Each node by its id."""
        return {node.ask("CLUSTER", "MYID").decode(): node for node in self.nodes}

    def owner(self, slot: int) -> Server:
        """The primary that serves a slot, as the first node sees it."""
        for low, high, (_, port, *_), *_ in self.nodes[0].ask("CLUSTER", "SLOTS"):
            if low <= slot <= high:
                return next(node for node in self.nodes if node.port == port)
        raise LookupError(slot)

    def replica_of(self, primary: Server) -> Server:
        """One of a primary's replicas."""
        me = primary.ask("CLUSTER", "MYID").decode()
        for line in primary.ask("CLUSTER", "NODES").decode().splitlines():
            words = line.split()
            if words[3] == me:
                return self.ids()[words[0]]
        raise LookupError(primary.port)

    def fail_over(self, primary: Server) -> Server:
        """Have a replica of a primary take over, and wait until all agree; gives the new primary."""
        replica = self.replica_of(primary)
        wait(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"), "its link")
        asked = -AGAIN

        def taken_over() -> bool:
            nonlocal asked
            if replica.ask("ROLE")[0] == b"master":
                return True
            if time.monotonic() >= asked + AGAIN:
                asked = time.monotonic()
                replica.ask("CLUSTER", "FAILOVER")
            return False

        wait(taken_over, "the replica to take over")
        wait(self.agree, "all to agree")
        return replica

    def migrate(self, slot: int, target: Server, step: Callable[[], None] = lambda: None) -> None:
        """Move a slot with its keys to another primary, a few keys at a time; `step` is called in between."""
        source = self.owner(slot)
        ids = {server.port: id_ for id_, server in self.ids().items()}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
        step()
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 2):
            told = source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10000, "KEYS", *keys)
            assert told in {"OK", "NOKEY"}, told
            step()
        for node in (target, source, *self.nodes):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
        wait(lambda: self.owner(slot) is target and self.agree(), "all to agree")

    def agree(self) -> bool:
        """Whether all nodes serve, and see the same primaries, replicas and slots."""
        if any(b"cluster_state:ok" not in node.ask("CLUSTER", "INFO") for node in self.nodes):
            return False
        views = [
            sorted((words[0], words[3], words[8:]) for words in map(str.split, text.splitlines()))
            for text in (node.ask("CLUSTER", "NODES").decode() for node in self.nodes)
        ]
        return all(view == views[0] for view in views)


def wait(done: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.02)


@contextmanager
def running(
    primaries: int = 3, replicas: int = 0, name: str = "redis70", *options: str
) -> Iterator[Cluster]:
    """Start a cluster: `replicas` of the primaries have one replica each."""
    nodes: list[Server] = []
    try:
        for _ in range(primaries + replicas):
            timeout = ("--cluster-node-timeout", NODE_TIMEOUT, "--repl-diskless-sync-delay", "0")
            nodes.append(servers.start(name, *timeout, *options, cluster=True))
        cluster = Cluster(nodes)
        share = [SLOTS * n // primaries for n in range(primaries + 1)]
        for number, node in enumerate(nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < primaries:
                slots = range(share[number], share[number + 1])
                if node.version < (7,):
                    node.ask("CLUSTER", "ADDSLOTS", *slots)
                else:
                    node.ask("CLUSTER", "ADDSLOTSRANGE", slots[0], slots[-1])
            if number:
                node.ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        known = f"cluster_known_nodes:{len(nodes)}".encode()
        wait(lambda: all(known in node.ask("CLUSTER", "INFO") for node in nodes), "all to meet")
        ids = list(cluster.ids())
        for number in range(replicas):
            node = nodes[primaries + number]
            wait(lambda node=node, n=number: node.ask("CLUSTER", "REPLICATE", ids[n]) == "OK", "it")
        wait(cluster.agree, "the cluster to serve")
        for node in nodes[primaries:]:
            wait(lambda n=node: b"master_link_status:up" in n.ask("INFO", "replication"), "a link")
        yield cluster
    finally:
        for node in nodes:
            node.stop()
