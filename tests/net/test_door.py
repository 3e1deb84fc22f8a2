"""The door that nobody answers: refused means that nobody listens, for as long as was said and no longer."""

import threading
import time
from pathlib import Path

import pytest

from chaosproxy.net import steer
from chaosproxy.net.address import Address
from chaosproxy.profile import Source, load
from tests.busy import within
from tests.proxying import at_its_own_port, refused, serve_proxy, wait_for

REFUSE = "faults:\n- {fault: admit, new_connections: refuse, for: 400ms}\n"
REFUSE_LONG = "faults:\n- {fault: admit, new_connections: refuse, for: 60s}\n"
REFUSE_LATER = "faults:\n- {fault: admit, when: {from: 300ms}, new_connections: refuse, for: 60s}\n"


@pytest.fixture
def proxy(either_loop, redis70):
    with at_its_own_port(redis70) as proxy:
        yield proxy


def listens(proxy):
    """Whether it listens where clients connect."""
    return listens_at(proxy.port)


def listens_at(port):
    """Ask the kernel, without connecting: whoever connects at the moment of closing may be lost."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def test_shut_for_a_while(proxy):
    """Connecting fails at once and is written down; connections that are open stay; later the same port answers."""
    with proxy.connect() as old:
        assert old.ask("PING") == "PONG"
        began = time.monotonic()
        assert proxy.in_force(REFUSE, lambda: refused(proxy.port))
        assert old.ask("PING") == "PONG"
        wait_for(lambda: listens(proxy), "the door to open")
        assert time.monotonic() - began >= 0.39  # uvloop counts in milliseconds, and begins early
        with proxy.connect() as new:
            assert new.ask("PING") == "PONG"
    event = proxy.wait_events()[0]
    assert (event["type"], event["command"]) == ("admit", "(connect)")


def test_shut_later(proxy):
    """A rule with `from` shuts the door in its time."""
    assert proxy.in_force(REFUSE_LATER, lambda: listens(proxy))
    wait_for(lambda: not listens(proxy), "the door to shut")
    assert refused(proxy.port)


def test_another_profile_opens_it(proxy):
    """A switch opens the door at once."""
    proxy.use(REFUSE_LONG)
    assert refused(proxy.port)
    proxy.use("calm")
    wait_for(lambda: listens(proxy), "the door to open")


def test_switched_off_it_opens(proxy):
    """A rule that is switched off while it shuts the door opens it."""
    proxy.use(REFUSE_LONG)
    assert refused(proxy.port)
    proxy.service.enable("admit", False)
    wait_for(lambda: listens(proxy), "the door to open")


def test_shut_when_triggered(proxy):
    """A manual rule shuts the door at the request, for its time, as often as it is asked."""
    proxy.use(
        "faults:\n- {fault: admit, new_connections: refuse, for: 1s, when: {trigger: manual}}\n"
    )
    inner, loop = proxy.service._proxy, proxy.service._loop
    for _ in range(2):
        assert listens(proxy)
        # Before anything else can happen in the proxy.
        assert loop.call(lambda: steer.trigger(inner, "admit") and refused(proxy.port))
        wait_for(lambda: listens(proxy), "the door to open")
    assert len(proxy.wait_events(2)) == 2


@within(0.2)  # the door opens again by itself where the end comes late
def test_stop_behind_a_shut_door(either_loop, redis70):
    """A proxy that nobody can connect to ends like any other, and does not listen again, though it waits for longer than that."""
    proxy = at_its_own_port(redis70)
    with proxy.connect() as waiting:
        waiting.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in redis70.ask("CLIENT", "LIST"), "the request")
        proxy.use(REFUSE)
        stopping = threading.Thread(target=proxy.stop)
        stopping.start()
        seen = []
        while stopping.is_alive():
            seen.append(listens(proxy))
            stopping.join(0.01)
    assert not any(seen)
    assert refused(proxy.port)


def test_one_listener(either_loop, redis70):
    """A rule that names a listener shuts that one alone, though the door of all opens and shuts meanwhile; then it opens."""
    with serve_proxy(redis70.url, cluster_nodes=3) as proxy:
        ports = [here.port for here, _ in proxy.service.nodes.values()]
        rule = "{fault: admit, match: {connection: {listener: node-2}}, new_connections: refuse, for: 60s}"
        also = "{fault: admit, name: all, new_connections: refuse, for: 60s}"
        proxy.use(f"faults:\n- {rule}\n")
        assert [listens_at(port) for port in ports] == [True, False, True]
        proxy.use(f"faults:\n- {rule}\n- {also}\n")
        assert not any(map(listens_at, ports))
        proxy.service.enable("all", False)
        wait_for(lambda: listens_at(ports[0]) and listens_at(ports[2]), "the others' door to open")
        assert not listens_at(ports[1])
        proxy.use("calm")
        wait_for(lambda: listens_at(ports[1]), "the door to open")


def test_a_listener_that_comes_later(either_loop, redis70):
    """A door that is shut before there is a listener of that name is shut for it."""
    with serve_proxy(redis70.url) as proxy:
        proxy.use(
            "faults:\n- {fault: admit, match: {connection: {listener: late}}, new_connections: refuse, for: 60s}\n"
        )
        inner = proxy.service._proxy

        async def add():
            route = inner.route("late", Address("127.0.0.1", 0), Address("127.0.0.1", redis70.port))
            await inner.routes.add(route)
            return route

        route = proxy.service._loop.run(add())
        assert not route.listening
        proxy.use("calm")
        wait_for(lambda: route.listening, "the door to open")


def test_a_listener_that_is_not_there(either_loop, redis70, caplog):
    """A rule that waits for what comes by a listener that there is not is told of, at the start and at a switch."""
    rule = (
        "faults:\n- {fault: disconnect, match: {connection: {listener: NAME}}, at: after_apply}\n"
    )
    with serve_proxy(redis70.url, rule.replace("NAME", "node-2"), cluster_nodes=2) as proxy:
        proxy.use(rule.replace("NAME", "node-3"))
        proxy.use(rule.replace("NAME", "sentinel"))
    with serve_proxy(redis70.url, rule.replace("NAME", "reddis")):
        pass
    assert [r.message for r in caplog.records if "no listener" in r.message] == [
        "fault disconnect: no listener is called 'node-3'; did you mean 'node-2'?",
        "fault disconnect: no listener is called 'sentinel'; there is node-1, node-2",
        "fault disconnect: no listener is called 'reddis'; did you mean 'redis'?",
    ]


def test_a_listener_that_is_to_come(redis70, caplog):
    """Who puts a rule in force may know that there will be such a listener."""
    rule = "- {fault: disconnect, match: {connection: {listener: NAME}}, at: after_apply}\n"
    profile = load([Source("x", f"faults:\n{rule}{rule.replace('NAME', 'gone')}".encode(), "x")])
    with serve_proxy(redis70.url) as proxy:
        proxy.service.put(profile, None, ["NAME", "more"])
    (said,) = (r.message for r in caplog.records if "no listener" in r.message)
    assert said == "fault disconnect-2: no listener is called 'gone'; there is redis"
