"""A proxy whose first route goes where a scripted Sentinel says: found, followed, and waited for."""

import pytest

from chaosproxy.net import guided as guided_module
from chaosproxy.net.address import Address
from tests.net.pairs import two_servers
from tests.net.scripted import ScriptedSentinel
from tests.proxying import serve_proxy, wait_for
from tests.wire import Wire


@pytest.fixture(scope="module")
def two():
    """Two servers that know nothing of each other."""
    with two_servers("redis70") as two:
        yield two


@pytest.fixture
def sentinel(two):
    for server in two:
        server.reset()
    sentinel = ScriptedSentinel(("127.0.0.1", two[0].port), (two[1].port,))
    yield sentinel
    sentinel.close()


@pytest.fixture
def guided(either_loop, sentinel):
    """A proxy that it guides."""
    free = Address("127.0.0.1", 0)
    with serve_proxy(
        f"redis+sentinel://127.0.0.1:{sentinel.port}/mine", listen_sentinel=free
    ) as proxy:
        yield proxy


def pid(wire):
    return int(wire.ask("INFO", "server").partition(b"process_id:")[2].split()[0])


def test_the_first_route(guided, two, sentinel):
    """It goes to the primary, and after a failover to the other one; who is connected stays where it is."""
    with guided.connect() as before:
        assert pid(before) == two[0].pid
        sentinel.primary, sentinel.replicas = ("127.0.0.1", two[1].port), (two[0].port,)
        sentinel.push("message", "+switch-master", "x")

        def moved():
            with guided.connect() as client:
                return pid(client) == two[1].pid

        wait_for(moved, "the other primary")
        assert pid(before) == two[0].pid
        wait_for(lambda: guided.service.unready() is None, "it to answer")
        assert before.ask("SET", "k", "v") == "OK"


def test_each_server(guided, two):
    """Each has a listener of its own, which stays with it; what servers say of each other is translated."""
    with Wire(guided.service.sentinel.port) as client:
        _, port = client.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine")
        (replica,) = client.ask("SENTINEL", "REPLICAS", "mine")
    two[1].ask("REPLICAOF", "127.0.0.1", two[0].port)
    with Wire(int(replica[3])) as node:
        assert pid(node) == two[1].pid
        assert node.ask("ROLE")[1:3] == [b"127.0.0.1", int(port)]
    two[1].ask("REPLICAOF", "NO", "ONE")


def test_nobody_knows_the_primary(either_loop, two, sentinel, caplog, monkeypatch):
    """Clients are turned away until a Sentinel says where it is."""
    monkeypatch.setattr(guided_module, "PATIENCE", 1.0)
    sentinel.answers["SENTINEL GET-MASTER-ADDR-BY-NAME"] = b"*-1\r\n"
    free = Address("127.0.0.1", 0)
    with serve_proxy(
        f"redis+sentinel://127.0.0.1:{sentinel.port}/mine", listen_sentinel=free
    ) as proxy:
        with proxy.connect() as client:
            client.send("PING")
            assert client.read_to_end()[0] == b""
        assert "no Sentinel has said which server is the primary" in caplog.text
        assert "it is not known yet where the server is" in caplog.text
        del sentinel.answers["SENTINEL GET-MASTER-ADDR-BY-NAME"]

        wait_for(lambda: proxy.service.unready() is None, "the primary")
        with proxy.connect() as client:
            assert pid(client) == two[0].pid
