"""A primary or its standby goes before, or as, one takes over from the other.

Takes a proxy in a process of its own before two real servers; gives proof that clients are told in bounded time, that a failover
which cannot be is called off and said to be, and that the proxy ends in time whatever it cannot put back.
"""

import signal
import time

import pytest

from tests import servers
from tests.proxying import start_proxy
from tests.unbreakable.stand import MISTAKE, until

FAILOVER = """
faults:
  - {fault: failover, style: sentinel, match: {commands: SET, keys: begin}, outage: 500ms, lose: {writes: 2}}
"""
#: What ending may take: replies that are waited for, and what is put back on two servers.
BOUND = 45.0


@pytest.fixture
def two():
    """A primary and what will be its standby."""
    made = [servers.start("redis70", "--repl-diskless-sync-delay", "0"), servers.start("redis70")]
    yield made
    for server in made:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
        server.stop()


def copies(standby) -> bool:
    return b"master_link_status:up" in standby.ask("INFO", "replication")


@pytest.mark.parametrize("begins", [False, True], ids=["calm", "failover"])
@pytest.mark.parametrize(
    ("which", "how"),
    [
        ("primary", signal.SIGKILL),
        ("standby", signal.SIGKILL),
        ("primary", signal.SIGSTOP),
        pytest.param("standby", signal.SIGSTOP, marks=pytest.mark.soak),
    ],
)
def test_one_goes(two, which, how, begins):
    """Who began the failover is answered or told; it is called off where it cannot be; the proxy ends with 0, in time."""
    primary, standby = two
    proxy = start_proxy(primary.url, FAILOVER, "--standby", standby.url)
    try:
        with proxy.connect() as client:
            assert client.ask("SET", "k", "v") == "OK"
            until(lambda: copies(standby), "the standby to copy")
            victim = primary if which == "primary" else standby
            victim.process.send_signal(how)
            if how == signal.SIGKILL:
                victim.process.wait()
            if begins:
                client.send("SET", "begin", "v")
                told = client.socket.recv(100) if which == "standby" else b""
                # Either it is cut off, as a failover begins, or answered once there can be none.
                assert told in {b"", b"+OK\r\n"}
                if told:
                    until(lambda: called_off(proxy), "it to be called off")
    except ConnectionResetError:
        assert begins
    began = time.monotonic()
    proxy.signal(signal.SIGTERM)
    assert proxy.process.wait(BOUND) == 0
    assert time.monotonic() - began < BOUND
    proxy.stop()
    assert not MISTAKE.search(proxy.stderr), proxy.stderr
    if which == "standby":
        assert "not everything is as it was: the standby" in proxy.stderr


def called_off(proxy) -> bool:
    return any(event.get("detail", "").startswith("called off") for event in proxy.events())
