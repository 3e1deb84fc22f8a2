"""A whole proxy as one object: what it says of itself, and how it fails to start."""

import socket
import threading
from dataclasses import replace
from time import monotonic

import pytest

from chaosproxy.net.address import Address, parse_address, parse_upstream
from chaosproxy.net.loop import BusyError
from chaosproxy.net.plan import Plan
from chaosproxy.profile import Source, find, load
from chaosproxy.service import Service, ServiceError, Settings
from tests.busy import measured
from tests.proxying import wait_for
from tests.wire import Wire


def settings(upstream, **more):
    plan = Plan(listen=parse_address("127.0.0.1:0"), upstream=parse_upstream(upstream))
    return Settings(
        **{"plan": plan, "profile": load([find("calm")]), "seed": 7} | more,
    )


@pytest.fixture
def start():
    """Start services; all are stopped in the end."""
    started = []

    def make(*args, **kwargs):
        started.append(Service(settings(*args, **kwargs)))
        return started[-1]

    yield make
    for service in started:
        service.stop(0)


def test_what_it_says(start, redis70):
    """Addresses, profile, seed and server are those in force."""
    service = start(redis70.url, control=Address("127.0.0.1", 0))
    assert service.url == f"redis://127.0.0.1:{service.listen.port}"
    assert service.control_url.startswith("http://127.0.0.1:")
    assert (service.profile.name, service.seed, service.generation) == ("calm", 7, 1)
    assert service.survey.server.version == (7, 0, 15)
    wait_for(lambda: service.unready() is None, "its answer")
    assert b"chaosproxy_build_info" in service.metrics("")[1]
    assert service.status() == []
    assert start(redis70.url).control_url is None


def test_use(start, redis70):
    """When `use` returns the profile is in force: the next command of an open connection meets it."""
    service = start(redis70.url)
    with Wire(service.listen.port) as client:
        assert client.ask("PING") == "PONG"
        assert service.use(load([find("lost-ack")]), 3) == 2
        assert (service.profile.name, service.seed, service.generation) == ("lost-ack", 3, 2)
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    (status,) = service.status()
    assert (status["name"], status["matched"], status["fired"]) == ("lost-ack", 1, 1)
    assert [event["generation"] for event in service.journal.events(wait=60)] == [2]


def test_each_is_told_of_its_own(start, redis70, monkeypatch):
    """Of two changes at once the second begins once the first has been told what it has put in force."""
    service = start(redis70.url)
    told, tried = service.in_force, threading.Event()
    other = threading.Thread(target=lambda: (tried.set(), service.use(load([find("calm")]), 4)))

    def in_force():
        if service.generation == 2:
            other.start()
            assert tried.wait(60)
            other.join(0.1)
        return told()

    monkeypatch.setattr(service, "in_force", in_force)
    answer = service.put(load([find("lost-ack")]), 3)
    assert (answer["name"], answer["seed"], answer["generation"]) == ("lost-ack", 3, 2)
    other.join(60)
    assert told()["generation"] == 3


def test_answers_while_the_loop_is_busy(start, redis70, monkeypatch):
    """Whatever keeps the loop busy: within a second there is an answer, with the last numbers that are known."""
    service = start(redis70.url)
    first = service.metrics("")[1]
    assert b"chaosproxy_connections 0.0" in first
    release, busy = threading.Event(), threading.Event()

    def block():
        busy.set()
        release.wait(100)

    service._loop.loop.call_soon_threadsafe(block)
    assert busy.wait(60)
    with measured() as machine:
        began = monotonic()
        assert b"chaosproxy_connections 0.0" in service.metrics("")[1]
        assert service.unready() is not None
        assert monotonic() - began < 2.5 + machine.lost
    monkeypatch.setattr("chaosproxy.service._CHANGE", 0.05)
    for change in (
        lambda: service.put(load([find("lost-ack")]), 3),
        lambda: service.add_listener("other", "127.0.0.1:0", f"127.0.0.1:{redis70.port}"),
        lambda: service.remove_listener("redis"),
        service.connections,
    ):
        with pytest.raises(BusyError):
            change()
    release.set()
    wait_for(lambda: service.unready() is None, "the loop to be free")
    # What was refused was not done later.
    assert (service.in_force()["name"], service.profile.name, service.generation) == (
        "calm",
        "calm",
        1,
    )
    assert [route.name for route in service._proxy.routes] == ["redis"]
    assert service.put(load([find("lost-ack")]), 3)["generation"] == 2


@pytest.mark.parametrize("which", ["listen", "port", "path", "control", "events"])
def test_cannot_start(redis70, tmp_path, which):
    """What is in the way is named, and nothing is left running."""
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        plan = Plan(listen=address, upstream=parse_upstream(redis70.url))
        gone = tmp_path / "gone" / "events"
        more, said = {
            "listen": ({"plan": plan}, f"cannot listen on {address}: address already in use"),
            "port": (
                {"plan": replace(plan, cluster_nodes=2, listen=Address("127.0.0.1", 65535))},
                "cannot listen on 127.0.0.1:65536: cannot assign requested address",
            ),
            "path": (
                {"plan": replace(plan, listen=Address(path="x" * 200))},
                f"cannot listen on unix:{'x' * 200}: af_unix path too long",
            ),
            "control": (
                {"control": address},
                f"cannot listen on {address} for control: address already in use",
            ),
            "events": (
                {"events": str(gone)},
                f"cannot write events to {gone}: no such file or directory",
            ),
        }[which]
        with pytest.raises(ServiceError) as caught:
            Service(settings(redis70.url, **more))
    assert str(caught.value) == said
    wait_for(lambda: threading.active_count() <= before, "its threads to end")


def test_strangers(start, redis70):
    """What a profile speaks of and is not there: a command of another server's, a second server, a listener."""
    service = start(redis70.url)
    new = (
        "faults: [{fault: latency, match: {commands: [GET, HEXPIRE]}, at: after_apply, delay: 1ms}]"
    )
    two = "faults: [{fault: run, name: there, commands: [[PING]], where: standby, at: after_apply}]"
    for text, said in (
        (new, "unknown command HEXPIRE"),
        (two, "fault 'there' needs a second server"),
    ):
        (stranger,) = service.strangers([Source("x", text.encode(), "x.yaml")], ())
        assert said in stranger
    assert service.strangers([find("lost-ack")], ()) == []
    there = (
        "faults: [{fault: disconnect, match: {connection: {listener: reddis}}, at: after_apply}]"
    )
    source = Source("x", there.encode(), "x.yaml")
    service.put(load([source]), None)
    (stranger,) = service.strangers([source], ())
    assert stranger == "fault disconnect: no listener is called 'reddis'; did you mean 'redis'?"


def test_listeners(start, redis70):
    """One more listener with a server of its own, and without it again; what cannot be is told."""
    service = start(redis70.url)
    where = service.add_listener("more", "127.0.0.1:0", f"127.0.0.1:{redis70.port}")
    with Wire(int(where.rpartition(":")[2])) as client:
        assert client.ask("PING") == "PONG"
        service.remove_listener("more")
        assert client.read_to_end() == (b"", "FIN")
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        service.add_listener("more", "127.0.0.1:0", "nowhere:x")
    with pytest.raises(OSError, match="in use"):
        service.add_listener("more", str(service.listen), f"127.0.0.1:{redis70.port}")


def test_until_they_have_left(start, redis70):
    """As long as somebody is connected, but not for ever."""
    service = start(redis70.url)
    with Wire(service.listen.port) as client:
        client.ask("PING")
        began = monotonic()
        service.wait_until_left(0.2)
        assert monotonic() - began >= 0.2
        threading.Timer(0.1, client.close).start()
        service.wait_until_left(20)
        assert monotonic() - began < 15
