"""The proxy as the only Sentinel there is: clients find the primary by it, and hear of a failover."""

import pytest
import redis
from redis.sentinel import Sentinel

from chaosproxy.net.address import Address
from tests.net.pairs import AT_ONCE, two_servers
from tests.proxying import serve_proxy, wait_for
from tests.servers import free_port, start_sentinel
from tests.wire import Wire, decode

CALLED = "\nfaults:\n- {fault: failover, name: gone, when: {trigger: manual}, style: %s}\n"
FREE = Address("127.0.0.1", 0)


@pytest.fixture
def serve_own(either_loop):
    """Start proxies that are a Sentinel for a service called mine."""
    started = []

    def start(url, style, **plan):
        proxy = serve_proxy(
            url,
            CALLED % style,
            sentinel_service="mine",
            listen_sentinel=FREE,
            # Nobody else is given it while a failover keeps everybody out.
            listen=Address("127.0.0.1", free_port()),
            **plan,
        )
        started.append(proxy)
        return proxy, proxy.service.sentinel.port

    yield start
    for proxy in started:
        proxy.stop()


def primary_of(wire):
    return int(wire.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine")[1])


def test_an_emulated_failover(serve_own, redis70):
    """With one server: the primary is said to be elsewhere, those who listen are told, and both addresses lead to it."""
    proxy, port = serve_own(redis70.url, "sentinel")
    with Wire(port) as client, Wire(port) as ear:
        before = primary_of(client)
        assert before == proxy.port
        assert client.ask("SENTINEL", "REPLICAS", "mine") == []
        assert ear.ask("PSUBSCRIBE", "*")[0] == b"psubscribe"
        proxy.service.trigger("gone")
        heard = [decode(each) for each in ear.read(4)]
        after = primary_of(client)
        assert [each[2] for each in heard] == [b"+sdown", b"+odown", b"+switch-master", b"+slave"]
        assert heard[2][3] == b"mine 127.0.0.1 %d 127.0.0.1 %d" % (before, after)
        assert after != before
        for each in (before, after):
            with Wire(each) as server:
                assert server.ask("SET", "k", each) == "OK"


def test_a_real_failover(serve_own):
    """With a standby: redis-py finds primary and replica by it, before and after, and its writes go to the right one."""
    with two_servers("redis70", *AT_ONCE) as two:
        style = "sentinel, outage: 50ms, rejoin: 100ms"
        proxy, port = serve_own(two[0].url, style, standby=two[1].url)
        sentinel = Sentinel([("127.0.0.1", port)], socket_timeout=30)
        primary = sentinel.master_for("mine", socket_timeout=30)
        replica = sentinel.slave_for("mine", socket_timeout=30)
        assert primary.set("k", "before")
        wait_for(lambda: tries(lambda: replica.get("k")) == b"before", "the replica")
        proxy.service.trigger("gone")
        wait_for(lambda: tries(lambda: primary.set("k", "after")), "the new primary")
        wait_for(lambda: two[1].ask("GET", "k") == b"after", "the write")
        wait_for(
            lambda: tries(lambda: replica.get("k")) == b"after", "the old primary as a replica"
        )
        assert two[0].ask("ROLE")[0] == b"slave"
        primary.close()
        replica.close()


def tries(what):
    """Do it as an application does that tries again."""
    try:
        return what()
    except redis.RedisError:
        return None


def test_a_restart_is_no_failover(serve_own, redis70):
    """The same server comes back: nothing is announced."""
    proxy, port = serve_own(redis70.url, "restart")
    with Wire(port) as client:
        before = primary_of(client)
        proxy.service.trigger("gone")
        wait_for(lambda: proxy.metric("failovers_total") == 1, "the restart")
        assert primary_of(client) == before


def test_its_ends(serve_own, redis70):
    """QUIT ends a connection after its reply, what is no request ends it with an error, and the proxy's end ends all."""
    proxy, port = serve_own(redis70.url, "sentinel")
    with Wire(port) as client:
        client.send("QUIT")
        assert client.read_to_end() == (b"+OK\r\n", "FIN")
    with Wire(port) as client:
        client.send_bytes(b"*1\r\n?\r\n")
        assert client.read_to_end()[0].startswith(b"-ERR Protocol error")
    with Wire(port) as client:
        assert client.ask("PING") == "PONG"
        proxy.stop()
        assert client.read_to_end()[0] == b""


def test_who_does_not_read(serve_own, redis70):
    """A client that asks for ever and reads nothing is let go."""
    _, port = serve_own(redis70.url, "sentinel")
    ping = b"*2\r\n$4\r\nPING\r\n$65536\r\n" + b"x" * 65536 + b"\r\n"
    with Wire(port) as client, pytest.raises((ConnectionResetError, BrokenPipeError)):
        client.send_bytes(ping * 2000)


ASKED = """
PING x y|ROLE x|GET x y|SENTINEL|SENTINEL nosuch|SENTINEL MASTERS x|SENTINEL MASTER|SENTINEL MASTER other|SENTINEL REPLICAS
SENTINEL GET-MASTER-ADDR-BY-NAME mine x|SENTINEL GET-MASTER-ADDR-BY-NAME other|SENTINEL CKQUORUM mine|SENTINEL CKQUORUM
SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *|SENTINEL FAILOVER other|SENTINEL FAILOVER mine|SENTINEL RESET other|SENTINEL RESET m*
SENTINEL FLUSHCONFIG|SENTINEL PENDING-SCRIPTS|SENTINEL MYID x|CLIENT GETNAME|CLIENT SETNAME a|CLIENT GETNAME|HELLO x|HELLO 4
HELLO 3 FOO|SUBSCRIBE|SUBSCRIBE a a|PING|PING x|PING x y|SENTINEL CKQUORUM mine|ROLE|GET x y|UNSUBSCRIBE a|ROLE|UNSUBSCRIBE
""".strip().replace("\n", "|").split("|")  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3])
def test_as_a_real_one(serve_own, redis70, protocol):
    """What is asked as it should be, and what is not, is answered to the letter."""
    _, port = serve_own(redis70.url, "sentinel")
    real = start_sentinel("redis70", f"sentinel monitor mine 127.0.0.1 {redis70.port} 1\n")
    try:
        with Wire(port, resp=protocol) as wire, real.connect(resp=protocol) as other:
            for text in ASKED:
                words = text.split()
                count = 1 if words[0] != "SUBSCRIBE" else max(1, len(words) - 1)
                said = []
                for each in (wire, other):
                    each.send(*words)
                    said.append(each.read(count))
                assert said[0] == said[1], text
    finally:
        real.stop()
