"""A hostile server: where the proxy dials because of what it says, and what that can cost."""

import socket
import threading

import pytest

from chaosproxy.net import cluster as cluster_module
from chaosproxy.net import route as route_module
from tests.proxying import serve_proxy, wait_for
from tests.security.upstream import hostile
from tests.wire import Wire

UNKNOWN = b"-ERR unknown command\r\n"


@pytest.fixture
def bait():
    """An address that nobody has named but the server; `visits` says who came."""
    visits = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept():
            while True:
                try:
                    visitor, _ = listening.accept()
                except OSError:
                    return
                visits.append(visitor)

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1], visits
        listening.shutdown(socket.SHUT_RDWR)
    for visitor in visits:
        visitor.close()


def test_a_redirection_is_not_followed(bait):
    """MOVED, ASK and READONLY with an address in it pass to the client as they are; the proxy itself goes nowhere."""
    port, visits = bait
    said = {
        b"GET": b"-MOVED 1 127.0.0.1:%d\r\n" % port,
        b"SET": b"-ASK 1 127.0.0.1:%d\r\n" % port,
        b"CLUSTER": b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port,
        b"SENTINEL": b"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05d\r\n" % port,
        b"ROLE": b"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:%d\r\n$9\r\nconnected\r\n:1\r\n" % port,
    }
    with (
        hostile(lambda words: said.get(words[0].upper(), UNKNOWN)) as server,
        serve_proxy(server.url) as proxy,
        proxy.connect() as wire,
    ):
        for name, answer in said.items():
            assert wire.raw(name, "x") == answer
        # Whatever it would do because of that, it would have done by the time of another round.
        with proxy.connect() as other:
            assert other.raw("PING") == UNKNOWN
    assert visits == []


def test_a_cluster_has_only_so_many_nodes(monkeypatch):
    """Each address that a cluster names gets a listener, up to a number; then the client is told to ask here again."""
    monkeypatch.setattr(route_module, "MOST", 5)
    monkeypatch.setattr(cluster_module, "MOST", 5)
    count = iter(range(1, 1000))

    def answer(words):
        if words[0].upper() == b"CLUSTER":
            line = b"%040d 127.0.0.1:%d@1 myself,master - 0 0 1 connected 0-16383\n" % (1, port)
            return b"$%d\r\n%s\r\n" % (len(line), line)
        if words[0].upper() == b"GET":
            return b"-MOVED 1 10.255.255.1:%d\r\n" % next(count)
        return UNKNOWN

    with hostile(answer) as server:
        port = server.port
        url = server.url.replace("redis", "redis+cluster")
        with serve_proxy(url) as proxy, proxy.connect() as wire:
            told = [wire.ask("GET", "x") for _ in range(20)]
            ports = [int(each.rpartition(":")[2]) for each in told]
            assert len(proxy.service.nodes) == 5
            assert len(set(ports[:4])) == 4
            assert set(ports[4:]) == {proxy.port}
            assert {each.split(" ")[2].partition(":")[0] for each in told} == {"127.0.0.1"}
            assert len(proxy.service._proxy.behind._cluster._directory._places) <= 6


def test_a_member_is_dialled(bait):
    """Who says `redis+cluster://` trusts that server with whom the proxy speaks: it dials what it calls a node."""
    port, visits = bait

    def answer(words):
        if words[0].upper() != b"CLUSTER":
            return UNKNOWN
        lines = b"".join(
            b"%040d 127.0.0.1:%d@1 %smaster - 0 0 1 connected %d-%d\n" % each
            for each in ((1, server.port, b"myself,", 0, 1), (2, port, b"", 2, 16383))
        )
        return b"$%d\r\n%s\r\n" % (len(lines), lines)

    with hostile(answer) as server, serve_proxy(server.url.replace("redis", "redis+cluster")):
        wait_for(lambda: visits, "a visit")


@pytest.mark.parametrize(
    "answer",
    [
        b"$-5\r\n",
        b"*9999999999999999999999\r\n",
        b"%" + b"9" * 50 + b"\r\n",
        b"$536870913\r\nx",
        b"*1\r\n" * 100_000,
        b":" + b"1" * 200_000,
        b"\x00\xff" * 5000 + b"\r\n",
        b"",
    ],
    ids=["negative", "many", "huge", "large", "deep", "long", "noise", "nothing"],
)
def test_nonsense(answer):
    """What a server says that is no reply costs its own connections at most: others are accepted, control answers."""
    with hostile(lambda _: answer) as server, serve_proxy(server.url) as proxy:
        with proxy.connect() as wire:
            wire.send("GET", "x")
            if answer:
                assert wire.socket.recv(2) == answer[:2]
            with Wire(proxy.port) as other:
                other.send("PING")
            assert proxy.get("/healthz")[0] == 200
            assert proxy.get("/connections")[0] == 200
            assert proxy.get("/metrics")[0] == 200
        assert proxy.metric("connections_total", result="crashed") == 0
