"""What the server is: product, version and commands of real ones, and the shipped table where they do not tell."""

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.fault import ServerInfo
from chaosproxy.counts import Limits
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.loop import LoopThread
from chaosproxy.net.side import MOST, Side
from chaosproxy.net.survey import read_info, survey
from tests import servers
from tests.security.upstream import hostile


@pytest.fixture
def ask():
    loop = LoopThread()
    sides = []

    def go(port, username=None, password=None):
        dialler = Dialler(Address("127.0.0.1", port), None, 5.0)
        side = loop.call(lambda: Side(dialler, username, password, most=MOST, limits=Limits()))
        sides.append(side)
        return loop.run(survey(side), 20)

    yield go
    for side in sides:
        loop.call(side.close)
    loop.stop()


def test_real_servers(ask, server):
    """Product and version are right, and the table is this server's own."""
    found = ask(server.port)
    product = "Valkey" if server.name == "valkey9" else "Redis"
    assert (found.answered, found.table_problem) == (True, "")
    assert (found.server.product, found.server.version) == (product, server.version)
    assert len(found.table.specs) > 200
    assert (found.table.find((b"hexpire",)) is not None) == (server.version >= (7, 4))


def test_command_forbidden(ask, redis70):
    """An ACL that forbids COMMAND falls back to the table that ships, and says why."""
    redis70.ask("ACL", "SETUSER", "proxy", "on", ">secret", "~*", "+info")
    found = ask(redis70.port, "proxy", "secret")
    assert found.answered
    assert found.server == ServerInfo("Redis", redis70.version)
    assert found.table is CommandTable.bundled()
    assert "NOPERM" in found.table_problem


@pytest.mark.parametrize(
    "said",
    [
        b"#x\r\n",
        b"*1\r\n:x\r\n",
        b"%1\r\n*0\r\n:1\r\n",
        b"*1\r\n" * 5000 + b":1\r\n",
        b"*1\r\n*6\r\n$3\r\nget\r\n:99999999999999999999\r\n*0\r\n:1\r\n:1\r\n:1\r\n",
        b":1\r\n",
        b"$20\r\n" + b"x" * 20 + b"\r\n",
    ],
)
def test_nonsense(ask, said):
    """Whatever a server answers COMMAND with: the table that ships is used, and why is said."""
    version = b"# Server\r\nredis_version:7.0.15\r\n"
    info = b"$%d\r\n%s\r\n" % (len(version), version)
    with hostile(
        lambda words: {b"INFO": info, b"COMMAND": said}.get(words[0], b"+OK\r\n")
    ) as server:
        found = ask(server.port)
    assert found.server == ServerInfo("Redis", (7, 0, 15))
    assert found.table is CommandTable.bundled()
    assert found.table_problem.startswith("not a ")


def test_a_cluster(ask):
    """A node of a cluster says that it is one."""
    node = servers.start_cluster_node("redis70")
    try:
        assert ask(node.port).cluster
    finally:
        node.stop()


def test_nobody_there(ask, redis70):
    """A server that does not answer is told apart from one that does."""
    found = ask(redis70.port, "nobody", "wrong")
    assert not found.answered
    assert found.table is CommandTable.bundled()
    assert found.server == ServerInfo()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"# Server\r\nredis_version:8.2.3\r\n", ServerInfo("Redis", (8, 2, 3))),
        (
            b"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n",
            ServerInfo("Valkey", (9, 1, 2)),
        ),
        (b"redis_version:7.9.240-rc1\r\n", ServerInfo("Redis", (7, 9, 240))),
        (b"redis_version:" + b"9" * 5000 + b"\r\n", ServerInfo("Redis", (999_999_999,))),
        (b"-NOPERM no\r\n", ServerInfo()),
        (b"", ServerInfo()),
    ],
)
def test_info(text, expected):
    """INFO's text is read as far as it says something."""
    assert read_info(text) == expected
