"""The door that nobody answers: refused means that nobody listens, for as long as was said and no longer."""

import socket
import time
from pathlib import Path

import pytest

from tests.proxying import serve_proxy, wait_for

REFUSE = "faults:\n- {fault: admit, new_connections: refuse, for: 400ms}\n"
REFUSE_LONG = "faults:\n- {fault: admit, new_connections: refuse, for: 60s}\n"
REFUSE_LATER = (
    "faults:\n- {fault: admit, when: {from: 300ms}, new_connections: refuse, for: 900ms}\n"
)


@pytest.fixture
def proxy(either_loop, redis70):
    with serve_proxy(redis70.url) as proxy:
        yield proxy


def listens(proxy):
    """Ask the kernel, without connecting: whoever connects at the moment of closing may be lost."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{proxy.port:04X}") and row[3] == "0A" for row in rows)


def is_open(proxy):
    try:
        socket.create_connection(("127.0.0.1", proxy.port), 10).close()
    except ConnectionRefusedError:
        return False
    return True


def test_shut_for_a_while(proxy):
    """Connecting fails at once and is written down; connections that are open stay; later the same port answers."""
    with proxy.connect() as old:
        assert old.ask("PING") == "PONG"
        began = time.monotonic()
        proxy.use(REFUSE)
        assert not is_open(proxy)
        assert old.ask("PING") == "PONG"
        wait_for(lambda: listens(proxy), "the door to open")
        assert time.monotonic() - began >= 0.4
        with proxy.connect() as new:
            assert new.ask("PING") == "PONG"
    event = proxy.wait_events()[0]
    assert (event["type"], event["command"]) == ("admit", "(connect)")


def test_shut_later(proxy):
    """A rule with `from` shuts the door in its time."""
    proxy.use(REFUSE_LATER)
    assert listens(proxy)
    wait_for(lambda: not listens(proxy), "the door to shut")
    assert not is_open(proxy)
    wait_for(lambda: listens(proxy), "the door to open")


def test_another_profile_opens_it(proxy):
    """A switch opens the door at once."""
    proxy.use(REFUSE_LONG)
    assert not is_open(proxy)
    proxy.use("calm")
    wait_for(lambda: listens(proxy), "the door to open", timeout=5)


def test_switched_off_it_opens(proxy):
    """A rule that is switched off while it shuts the door opens it."""
    proxy.use(REFUSE_LONG)
    assert not is_open(proxy)
    proxy.service.enable("admit", False)
    wait_for(lambda: listens(proxy), "the door to open", timeout=5)


def test_shut_when_triggered(proxy):
    """A manual rule shuts the door at the request, for its time, as often as it is asked."""
    proxy.use(
        "faults:\n- {fault: admit, new_connections: refuse, for: 300ms, when: {trigger: manual}}\n"
    )
    for _ in range(2):
        assert listens(proxy)
        proxy.service.trigger("admit")
        assert not is_open(proxy)
        wait_for(lambda: listens(proxy), "the door to open")
    assert len(proxy.wait_events(2)) == 2


def test_stop_behind_a_shut_door(either_loop, redis70):
    """A proxy that nobody can connect to ends like any other, and does not listen again."""
    proxy = serve_proxy(redis70.url)
    proxy.use(REFUSE)
    proxy.stop()
    time.sleep(0.5)
    assert not is_open(proxy)
