"""Cluster clients through the proxy: they never leave it, whatever the cluster does, and read what they wrote.

Takes a real cluster of three primaries and three replicas; gives proof by the nodes' own lists of their clients.
"""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import RedisCluster
from redis.exceptions import RedisClusterException, RedisError

from chaosproxy.core.command import key_slot
from chaosproxy.net.dial import Dialler
from tests import clusters
from tests.clients import installs
from tests.proxying import serve_proxy, wait_for

PROGRAMS = Path(__file__).parent.parent / "clients" / "programs"
HERE = installs.Install(Path.cwd(), (sys.executable,))
#: A migrating node is a client of the other one, a replica begins as one of its primary; so is who has said nothing yet.
NOT_CLIENTS = {"NULL", "restore-asking", "restore", "select", "ping", "replconf"}
#: All of a program's slots that one migration moves.
MOVED = key_slot(b"key:1")


@pytest.fixture(scope="module")
def cluster():
    with clusters.running(3, 3) as cluster:
        yield cluster


@pytest.fixture
def dialled(monkeypatch):
    """The ports of all sockets that the proxy has opened to servers."""
    ports = set()
    dial = Dialler.dial

    async def noted(self, factory):
        transport, protocol = await dial(self, factory)
        with suppress(OSError, TypeError):  # it may be closed already
            ports.add(transport.get_extra_info("sockname")[1])
        return transport, protocol

    monkeypatch.setattr(Dialler, "dial", noted)
    return ports


@contextmanager
def watched(cluster):
    """Collect, as long as it lasts, every client that any node has; gives them by port with their last command."""
    clients: dict[int, set[str]] = {}
    over = threading.Event()
    wires = [node.connect() for node in cluster.nodes]
    own = {wire.socket.getsockname()[1] for wire in wires}
    own |= {node.control.socket.getsockname()[1] for node in cluster.nodes}

    def look():
        for wire in wires:
            try:
                lines = wire.ask("CLIENT", "LIST").decode().splitlines()
            except (OSError, EOFError):
                continue  # it was killed
            for line in lines:
                said = dict(word.split("=", 1) for word in line.split())
                port = int(said["addr"].rpartition(":")[2])
                if port not in own and not set(said["flags"]) & set("MS"):
                    clients.setdefault(port, set()).add(said["cmd"])

    def watch():
        while not over.wait(0.05):
            look()
        look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield clients
    finally:
        over.set()
        thread.join()
        for wire in wires:
            wire.close()


def strangers(clients, dialled):
    """Who was a node's client and is not the proxy."""
    return {
        port: commands - NOT_CLIENTS
        for port, commands in clients.items()
        if port not in dialled and commands - NOT_CLIENTS
    }


def run(cluster, proxy, install, program, count, protocol):
    """Run a client; a third of the way a primary fails over, two thirds of the way a slot moves. Gives its result."""
    process = install.start(PROGRAMS / program, proxy.port, count, protocol, max(1, count // 30))
    done = [False, False]
    lines = []
    for line in process.stdout:
        lines.append(line)
        at = int(line.split()[1]) if line.startswith("at ") else -1
        if at >= count // 3 and not done[0]:
            done[0] = True
            cluster.fail_over(cluster.owner(key_slot(b"key:0")))
        if at >= 2 * count // 3 and not done[1]:
            done[1] = True
            source = cluster.owner(MOVED)
            target = next(
                cluster.owner(slot)
                for slot in (0, 6000, 16383)
                if cluster.owner(slot) is not source
            )
            cluster.migrate(MOVED, target, lambda: time.sleep(0.05))
    out, err = process.communicate()
    assert process.returncode == 0, f"{lines[-3:]}{out}{err}"
    assert done == [True, True]
    return json.loads((lines + out.splitlines())[-1])


def flushed(cluster):
    for node in cluster.nodes:
        node.ask("FLUSHALL")


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py(cluster, dialled, protocol):
    """A few hundred keys in redis-py's cluster client, in both protocols: right values, and nobody but the proxy at a node."""
    flushed(cluster)
    with serve_proxy(cluster.url) as proxy, watched(cluster) as clients:
        found = run(cluster, proxy, HERE, "cluster.py", 300, protocol)
        assert found["wrong"] == []
        nodes = proxy.service._loop.call(lambda: len(proxy.service._proxy.routes))
    assert nodes == 6
    assert strangers(clients, dialled) == {}
    assert len(set(clients) & dialled) > 6


def test_the_check_itself(cluster, dialled):
    """A client that does leave the proxy is found by the nodes' lists."""
    with serve_proxy(cluster.url) as proxy, watched(cluster) as clients:
        with RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as client:
            client.set("k", "v")
            # Others are noted meanwhile, so of what there is at one moment.
            wait_for(lambda: strangers(dict(clients), dialled), "the stranger to be found")
        assert proxy.port


WHOLE = {
    "redis-py 8.1.0, RESP2": (installs.python, "redis==8.1.0", "cluster.py", 2),
    "redis-py 8.1.0, RESP3": (installs.python, "redis==8.1.0", "cluster.py", 3),
    "ioredis 5.11.1": (installs.npm, "ioredis@5.11.1", "cluster_ioredis.cjs", 2),
    "npm redis 5.9.0": (installs.npm, "redis@5.9.0", "cluster_node_redis.cjs", 2),
}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WHOLE)
def test_ten_thousand_keys(cluster, dialled, name):
    """10,000 keys, a failover and a slot migration in the middle: no wrong value, nobody but the proxy at a node."""
    kind, requirement, program, protocol = WHOLE[name]
    flushed(cluster)
    install = kind(requirement)
    with serve_proxy(cluster.url) as proxy, watched(cluster) as clients:
        found = run(cluster, proxy, install, program, 10_000, protocol)
    print(name, found)
    assert (found["keys"], found["wrong"]) == (10_000, [])
    assert strangers(clients, dialled) == {}


@pytest.mark.skipif(
    not shutil.which("redis-cli"), reason="needs redis-cli: apt-get install redis-tools"
)
def test_redis_cli(cluster, dialled):
    """`redis-cli -c` follows redirections, and `--cluster check` finds the cluster whole, by the proxy's addresses alone."""
    flushed(cluster)
    with serve_proxy(cluster.url) as proxy, watched(cluster) as clients:

        def cli(*args):
            command = ["redis-cli", "-p", str(proxy.port), *args]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        for key in ("foo", "bar", "hello"):
            assert "OK" in cli("-c", "SET", key, f"value of {key}")
            assert f"value of {key}" in cli("-c", "GET", key)
        said = cli("--cluster", "check", f"127.0.0.1:{proxy.port}")
        assert "[OK] All 16384 slots covered." in said
        # As a word: nodes' names are made of digits, too.
        assert not {f"{node.port}" for node in cluster.nodes} & set(re.findall(r"\w+", said))
    assert strangers(clients, dialled) == {}


def test_a_primary_dies(dialled):
    """A primary is killed: its clients find the replica that takes over by way of the proxy."""
    timeout = ("--cluster-node-timeout", "4000")
    with (
        clusters.running(3, 3, "redis70", *timeout) as cluster,
        serve_proxy(cluster.url) as proxy,
        watched(cluster) as clients,
        RedisCluster(host="127.0.0.1", port=proxy.port) as client,
    ):
        dying = cluster.owner(key_slot(b"k"))
        client.set("k", "before")
        where = client.get_node_from_key("k")
        # Not for longer than the client itself waits for an answer.
        one = lambda: client.execute_command("WAIT", 1, 1000, target_nodes=where) == 1  # noqa: E731
        clusters.wait(one, "its replica to have it")
        dying.process.kill()
        dying.process.wait()

        def written():
            try:
                return client.set("k", "after")
            except (RedisError, RedisClusterException):
                return False

        clusters.wait(written, "the replica to take over")
        assert client.get("k") == b"after"
    assert strangers(clients, dialled) == {}
