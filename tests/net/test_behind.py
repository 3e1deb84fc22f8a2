"""What stands behind a proxy: which side connection it has, and what its clients are told of servers."""

import asyncio
from types import SimpleNamespace

import pytest

from chaosproxy.core.lost import Lost
from chaosproxy.core.passing import TOO_LARGE
from chaosproxy.net import guided
from chaosproxy.net.address import Address
from chaosproxy.net.behind import Behind
from chaosproxy.net.pair_error import PairError
from chaosproxy.service import ServiceError
from tests import clusters, servers
from tests.net.scripted import ScriptedSentinel
from tests.proxying import serve_proxy, wait_for


def test_one_server(either_loop, redis70):
    """No standby, no Sentinel, no cluster, and what servers say stays as it is."""
    with serve_proxy(redis70.url) as proxy, proxy.connect() as client:
        behind = proxy.service._proxy.behind
        assert (behind.side, behind.sentinel, behind.cluster) == (None, None, None)
        assert behind.asked.name == "redis"
        assert proxy.service.nodes == {}
        redis70.ask("REPLICAOF", "127.0.0.1", redis70.port)
        assert client.ask("ROLE")[1:3] == [b"127.0.0.1", redis70.port]


def test_a_standby(either_loop, redis70, valkey9):
    """There is a way to it, which ends with the proxy."""
    with serve_proxy(redis70.url, standby=valkey9.url) as proxy:
        behind = proxy.service._proxy.behind
        reply = proxy.service._loop.run(behind.side.request(b"INFO", b"server"), 60)
        assert b"valkey_version" in reply
        assert b"name=chaosproxy" in valkey9.ask("CLIENT", "LIST")
    wait_for(lambda: b"name=chaosproxy" not in valkey9.ask("CLIENT", "LIST"), "its end")


def test_what_a_standby_may_say(either_loop, redis70, valkey9):
    """The user's limit holds on the way to it as elsewhere, where that is more than what is always allowed; what is over is counted."""
    size = 17 << 20
    valkey9.ask("SETRANGE", "long", size - 1, "x")
    for max_buffer, held in ((16 << 20, False), (18 << 20, True)):
        with serve_proxy(redis70.url, standby=valkey9.url, max_buffer=max_buffer) as proxy:
            side = proxy.service._proxy.behind.side
            reply = proxy.service._loop.run(side.request(b"GET", b"long"), 60)
            assert (len(reply) > size) if held else (reply == TOO_LARGE)
            assert proxy.metric("limits_reached_total", limit="reply") == (not held)


def test_sentinels(either_loop, redis70):
    """The first route is to the primary, and clients find a Sentinel: at a port of the kernel's where none is named."""
    sentinel = ScriptedSentinel(("127.0.0.1", redis70.port))
    try:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/mine"
        with serve_proxy(url) as proxy:
            assert proxy.service.sentinel.host == "127.0.0.1"
            assert proxy.service.sentinel.port
            with proxy.connect() as client:
                assert client.ask("PING") == "PONG"
        named = Address("127.0.0.1", servers.free_port())
        with serve_proxy(url, listen_sentinel=named) as proxy:
            assert proxy.service.sentinel == named
    finally:
        sentinel.close()


def test_a_cluster(either_loop):
    """A route for each node; a node that answers is asked what all are."""
    with clusters.running(2) as cluster:
        nobody = cluster.nodes[0].port
        cluster.nodes[0].stop()
        url = f"redis+cluster://127.0.0.1:{nobody},127.0.0.1:{cluster.nodes[1].port}"
        with serve_proxy(url) as proxy:
            behind = proxy.service._proxy.behind
            assert list(proxy.service.nodes) == ["node-1", "node-2"]
            wait_for(lambda: behind.asked.name == "node-2", "a node that answers")
            wait_for(lambda: proxy.service.unready() is None, "it to answer")


def test_a_port_that_is_taken(either_loop, redis70, monkeypatch):
    """The message names the listener that could not be had, not the first one."""
    monkeypatch.setattr(guided, "PATIENCE", 0.1)
    taken = Address("127.0.0.1", redis70.port)
    urls = (redis70.url, f"redis+sentinel://127.0.0.1:{servers.free_port()}/mine")
    for url, service in zip(urls, ("mine", ""), strict=True):
        with pytest.raises(ServiceError, match=f"cannot listen on {taken}: address already in use"):
            serve_proxy(url, sentinel_service=service, listen_sentinel=taken)


class Switching:
    """Two servers whose switches are over when the test says so; `begun` of them have."""

    def __init__(self) -> None:
        self.begun = 0
        self.over = asyncio.Semaphore(0)
        world = SimpleNamespace(engine="first", standby=True)
        plan = SimpleNamespace(standby=None)
        proxy = SimpleNamespace(plan=plan, world=world, links={}, moved=lambda: None)
        self.world, self.behind = world, Behind(proxy)
        self.behind._standby = self

    def mind(self) -> None:
        """Nothing has to be done about another profile."""

    async def switch(self, quiet):
        del quiet
        self.begun += 1
        await self.over.acquire()
        return Lost((), (), ())

    def task(self, what):
        return asyncio.get_running_loop().create_task(what)


async def _turns():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("engine", ["first", "another"])
def test_one_switch_after_the_other(engine):
    """Nobody is let in between two: they would be connected to a server that is the primary no more, and not be known as such.

    The one that had to wait is not made where its profile was replaced meanwhile.
    """

    async def run():
        servers_ = Switching()
        behind = servers_.behind
        first, second = (servers_.task(behind.switch(asyncio.sleep)) for _ in range(2))
        await _turns()
        client = servers_.task(behind.settled())
        await _turns()
        assert (servers_.begun, client.done()) == (1, False)
        servers_.world.engine = engine
        servers_.over.release()
        await _turns()
        assert first.done()
        if engine == "first":
            assert (servers_.begun, second.done(), client.done()) == (2, False, False)
            servers_.over.release()
            await _turns()
            assert second.result() == Lost((), (), ())
        else:
            with pytest.raises(PairError, match="another profile is in force"):
                second.result()
            assert servers_.begun == 1
        assert client.done()

    asyncio.run(run())
