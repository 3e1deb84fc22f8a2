"""A process that may open no more files: who is here is served, who comes is turned away, and it costs next to nothing.

Takes a proxy in a process of its own, whose limit is lowered while it runs; gives what clients old and new meet.
"""

import asyncio
import itertools
import resource
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chaosproxy.net.address import Address, parse_upstream
from chaosproxy.net.descriptors import SPARE, Descriptors, affordable, allow_connections
from chaosproxy.net.plan import Plan
from chaosproxy.net.refusals import TOO_MANY
from tests.bench import usage
from tests.proxying import RunningProxy, start_proxy, wait_for

PING, PONG = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"


def client(proxy: RunningProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def ask(sock: socket.socket) -> bytes:
    """What a PING is answered; empty where the connection is ended instead."""
    try:
        sock.sendall(PING)
        return sock.recv(100)
    except ConnectionError:
        return b""


def allow(proxy: RunningProxy, more: int) -> None:
    """Let it have descriptors up to so many above the lowest one that is free, and none beyond."""
    pid = proxy.process.pid
    taken = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    free = next(number for number in itertools.count() if number not in taken)
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + more, hard))


def cpu(proxy: RunningProxy) -> float:
    return usage.parse_stat(Path(f"/proc/{proxy.process.pid}/stat").read_text()).cpu.total


@pytest.fixture(params=["uvloop", "asyncio"])
def proxy(request, redis70):
    with start_proxy(redis70.url, env={"CHAOSPROXY_LOOP": request.param}) as started:
        yield started


@pytest.fixture
def clients(proxy):
    found = [client(proxy) for _ in range(5)]
    assert [ask(each) for each in found] == [PONG] * 5
    yield found
    for each in found:
        each.close()


def test_one_that_comes_is_told_so(proxy, clients):
    """With hardly a descriptor left clients are told as Redis tells them, and it is counted and said, once."""
    allow(proxy, SPARE)
    for _ in range(3):
        with client(proxy) as late:
            assert ask(late) in (TOO_MANY, b"")
    assert [ask(each) for each in clients] == [PONG] * 5
    assert proxy.metric("limits_reached_total", limit="open_files") == 3
    assert proxy.metric("connections_total", result="max_clients") == 3
    clients.pop().close()
    allow(proxy, SPARE + 8)
    wait_for(lambda: proxy.metric("connections") == 4, "the one that left")
    with client(proxy) as late:
        assert ask(late) == PONG
    proxy.stop()
    assert proxy.stderr.count("may open no more files") == 1


def test_with_none_left_at_all_it_does_not_spin(proxy, clients):
    """Where not even accepting succeeds the others go on, the processor rests, and once there are some again all is well."""
    allow(proxy, 0)
    waiting = [socket.socket() for _ in range(20)]
    for each in waiting:
        each.setblocking(False)
        each.connect_ex(("127.0.0.1", proxy.port))
    before, began = cpu(proxy), time.monotonic()
    while time.monotonic() < began + 1.5:
        assert [ask(each) for each in clients] == [PONG] * 5
        time.sleep(0.05)
    assert cpu(proxy) - before < 0.75
    for each in waiting:
        each.close()
    allow(proxy, 200)
    with client(proxy) as late:
        assert ask(late) == PONG
    proxy.stop()
    assert len(proxy.stderr) < 20_000


def test_other_problems_are_the_loops(caplog):
    """What is no lack of descriptors is told as a loop tells it; a lack is counted each time, and said once."""
    counted = []
    descriptors = Descriptors(lambda: counted.append(1))
    loop = asyncio.new_event_loop()
    try:
        descriptors.watch(loop)
        lack = {"message": "socket.accept() out of system resource"}
        for context in (lack, {"message": "something else"}, {}, lack):
            loop.call_exception_handler(context)
    finally:
        loop.close()
    assert counted == [1, 1]
    said = [record.message for record in caplog.records]
    assert [text for text in said if "no more files" in text] == [
        "this process may open no more files (ulimit -n): new clients are turned away"
    ]
    assert "something else" in said


def test_open_files(caplog):
    """The limit of open files is raised for as many clients as it allows, and it is told how many those are."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert allow_connections(10) == 10
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        assert allow_connections(400) == 400
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 800
        most = allow_connections(10**9)
        assert most < 10**9
        assert 2 * most <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        plan = Plan(listen=Address(), upstream=parse_upstream("redis://127.0.0.1"))
        few, many = replace(plan, max_connections=10), replace(plan, max_connections=10**9)
        assert affordable(few) is few
        assert not caplog.text
        assert affordable(many) == replace(plan, max_connections=most)
        assert (
            f"at most {most} clients instead of 1000000000: this process may open no" in caplog.text
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
