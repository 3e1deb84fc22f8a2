"""A service with real Sentinels behind the proxy: its clients follow a failover, and never leave the proxy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from redis.sentinel import Sentinel

from chaosproxy.net.address import Address
from tests import servers
from tests.clients import installs
from tests.proxying import RunningProxy, serve_proxy, start_proxy, wait_for
from tests.sentinels import PATIENCE, SERVICE, Trio, ask, trio
from tests.wire import Wire, decode

#: Several waits of that length.
pytestmark = pytest.mark.timeout(600)

PROGRAMS = Path(installs.__file__).parent / "programs"


@pytest.fixture(scope="module", params=["redis70"])
def service(request) -> Iterator[Trio]:
    if reason := servers.available(request.param):
        pytest.skip(reason)
    with trio(request.param) as found:
        yield found


@contextmanager
def before(service: Trio, *args: str, profile: str = "calm") -> Iterator[tuple[RunningProxy, int]]:
    """A proxy in a process of its own before them; gives it and the port of its Sentinel."""
    # Nobody else is given it while a failover keeps everybody out.
    listen = ("--listen", f"127.0.0.1:{servers.free_port()}", "--listen-sentinel", "127.0.0.1:0")
    proxy = start_proxy(service.url, profile, *listen, *args)
    with proxy:
        yield proxy, proxy.sentinel


@pytest.mark.parametrize("resp", [2, 3])
def test_what_a_sentinel_says(service, resp):
    """Every server and Sentinel that it speaks of is the proxy's own address, and leads where it should."""
    real = {each.port for each in (*service.nodes, *service.sentinels)}
    with before(service) as (proxy, port), Wire(port, resp=resp) as client:
        host, primary = client.ask("SENTINEL", "get-master-addr-by-name", SERVICE)
        assert host == b"127.0.0.1"
        assert client.ask("SENTINEL", "get-master-addr-by-name", "other") is None
        said = b"".join(
            client.raw("SENTINEL", *words)
            for words in (
                ("masters",),
                ("master", SERVICE),
                ("replicas", SERVICE),
                ("sentinels", SERVICE),
                ("slaves", SERVICE),
            )
        )
        said += client.raw("INFO", "sentinel")
        assert not real & ports_in(said)
        replicas = client.ask("SENTINEL", "replicas", SERVICE)
        ports = {int(fields(each)[b"port"]) for each in replicas}
        assert len(ports) == 2
        for number, role in ((int(primary), b"master"), *((number, b"slave") for number in ports)):
            with Wire(number) as node:
                assert node.ask("ROLE")[0] == role
                assert node.ask("INFO", "server").partition(b"process_id:")[2].split()[0] in {
                    b"%d" % each.pid for each in service.nodes
                }
                assert not real & ports_in(node.raw("ROLE") + node.raw("INFO", "replication"))
        assert {
            int(fields(each)[b"port"]) for each in client.ask("SENTINEL", "sentinels", SERVICE)
        } == {port}
        assert client.ask("PING") == "PONG"
        with proxy.connect() as plain:
            assert plain.ask("ROLE")[0] == b"master"


#: What stands before a number that is a time, an offset or a part of a name, which may be the same number.
NAMES = rb"(?:time|timeout|milliseconds|offset|backlog_\w+|refresh|message|ping-sent|ping-reply|epoch|runid|replid2?)"
NO_PORT = re.compile(NAMES + rb"(?:\r\n\$\d+\r\n|:|=)\w+|(?:master|connected)\r\n:\d+")


def ports_in(said):
    """All words of a reply that are numbers, but those that are told under another name than a port's."""
    return {int(word) for word in re.findall(rb"\b\d+\b", NO_PORT.sub(b"", said))}


def fields(said):
    return said if isinstance(said, dict) else dict(zip(said[::2], said[1::2], strict=True))


def test_redis_py_follows_a_failover(service):
    """redis-py's Sentinel through the proxy: primary and replica, before a failover and after; nobody comes by another way."""
    with before(service) as (proxy, port):
        sentinel = Sentinel([("127.0.0.1", port)], socket_timeout=60)
        primary = sentinel.master_for(SERVICE, socket_timeout=60)
        replica = sentinel.slave_for(SERVICE, socket_timeout=60)
        assert primary.set("k", "before")
        wait_for(lambda: read(replica) == b"before", "the replica")
        strangers(service, proxy)
        with Wire(port) as ear:
            assert ear.ask("SUBSCRIBE", "+switch-master")[0] == b"subscribe"
            old, new = service.primary, service.fail_over()
            assert new is not old
            _, channel, text = decode(ear.read()[0])
        assert channel == b"+switch-master"
        words = text.split()
        assert words[0].decode() == SERVICE
        assert not {int(words[2]), int(words[4])} & {each.port for each in service.nodes}
        # Until it is demoted the old one takes writes too, which are gone then.
        wait_for(
            lambda: stored(primary, "after") and ask(new, "GET", "k") == b"after",
            "the new primary",
            PATIENCE,
        )
        wait_for(lambda: read(replica) == b"after", "a replica of the new primary", PATIENCE)
        strangers(service, proxy)
        wait_for(lambda: leads_to(proxy, new), "the first listener")
        primary.close()
        replica.close()


def test_a_fault_starts_a_failover(service):
    """A `failover` of style sentinel has the Sentinels make another server the primary; the proxy goes there."""
    profile = (
        "\nfaults:\n- {fault: failover, name: gone, style: sentinel, when: {trigger: manual}}\n"
    )
    wait_for(lambda: service.settled, "the last failover to be over", PATIENCE)
    listen = Address("127.0.0.1", servers.free_port())
    with serve_proxy(service.url, profile, listen=listen) as proxy:
        old = service.primary
        with proxy.connect() as client:
            assert client.ask("SET", "k", "before") == "OK"
            proxy.service.trigger("gone")
            assert client.read_to_end() == (b"", "RST")
        wait_for(lambda: proxy.metric("failovers_total") == 1, "the failover", PATIENCE)
        assert proxy.events()[-1]["detail"] == "switched; what was lost by it is not known"
        wait_for(lambda: service.agreed and service.primary is not old, "all Sentinels", PATIENCE)
        wait_for(lambda: leads_to(proxy, service.primary), "its own primary")
        with proxy.connect() as client:
            assert client.ask("ROLE")[0] == b"master"
            assert client.ask("SET", "k", "after") == "OK"
        assert ask(service.primary, "GET", "k") == b"after"


def test_who_leaves_the_proxy_is_found(service):
    """The servers' lists do show a client that comes by another way."""
    with before(service) as (proxy, _), service.primary.connect() as client:
        assert client.ask("CLIENT", "SETNAME", "stranger") == "OK"
        (line,) = service.strangers(proxy.process.pid)
        assert "name=stranger" in line


def leads_to(proxy, node):
    """Whether the proxy's first listener leads to that server."""
    try:
        with proxy.connect() as client:
            said = client.ask("INFO", "server")
    except (ConnectionError, EOFError):
        return False  # it is about to lead elsewhere
    return b"process_id:%d\r" % node.pid in said


def stored(primary, value):
    """Try to write, as an application does that has been told to try again."""
    try:
        return primary.set("k", value)
    except redis.RedisError:
        return False


def read(replica):
    try:
        return replica.get("k")
    except redis.RedisError:
        return None


def strangers(service, proxy):
    """Nobody is connected to a server but the proxy, the Sentinels, the other servers and the test's own helper."""
    assert service.strangers(proxy.process.pid) == []


@pytest.mark.soak
def test_ioredis_follows_a_failover(service):
    """The Sentinel client of ioredis, with a failover in the middle of its writes: it goes on, and never leaves the proxy."""
    try:
        ioredis = installs.npm("ioredis@5.11.1")
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    wait_for(lambda: service.settled, "the last failover to be over", PATIENCE)
    with before(service) as (proxy, port):
        process = ioredis.start(PROGRAMS / "sentinel_ioredis.cjs", port, SERVICE)
        try:
            assert process.stdout.readline() == "writing\n"
            strangers(service, proxy)
            new = service.fail_over()
            # What came by replication is no write of the client's here; what the old primary takes is gone once it is demoted.
            replicated = ask(new, "GET", "ioredis")
            wait_for(
                lambda: ask(new, "GET", "ioredis") != replicated,
                "its writes on the new primary",
                PATIENCE,
            )
            strangers(service, proxy)
            process.stdin.write("end\n")
            process.stdin.flush()
            said = installs.result(process)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        assert said["seen"] == "last"
        assert ask(new, "GET", "ioredis") == b"last"
        assert not set(said["ports"]) & {each.port for each in service.nodes}
