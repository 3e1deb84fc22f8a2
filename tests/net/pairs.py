"""Two real servers and what the proxy makes of them, for tests.

Takes two running servers; gives a Pair in a loop of its own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.counts import Limits
from chaosproxy.net.address import parse_upstream
from chaosproxy.net.dial import Dialler
from chaosproxy.net.loop import LoopThread
from chaosproxy.net.pair import Node, Pair
from chaosproxy.net.side import MOST, Side
from tests import servers
from tests.proxying import wait_for
from tests.servers import Server

#: A replica that comes is served at once, and so is a test.
AT_ONCE = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")


@contextmanager
def two_servers(kind: str, *options: str) -> Iterator[list[Server]]:
    """Two of a kind that know nothing of each other, as long as it lasts; skips where there is none."""
    if reason := servers.available(kind):
        pytest.skip(reason)
    with ExitStack() as stack:
        two = []
        for _ in range(2):
            two.append(servers.start(kind, *options))
            stack.callback(two[-1].stop)
        yield two


def node(name: str, url: str, tls: Any = None) -> Node:
    upstream = parse_upstream(url)
    dialler = Dialler(upstream.address, tls, 5.0)
    side = Side(dialler, upstream.username, upstream.password, most=MOST, limits=Limits())
    return Node(name, upstream, dialler, side)


async def _make(primary: Node, standby: Node, disposable: bool) -> Pair:
    return Pair(primary, standby, CommandTable.bundled, disposable=disposable)


def make_pair(
    loop: LoopThread,
    primary: Server | str,
    standby: Server | str,
    *,
    disposable: bool = False,
    tls: Any = None,
) -> Pair:
    """A pair that is not attached yet."""
    urls = [each if isinstance(each, str) else each.url for each in (primary, standby)]
    nodes = node("upstream", urls[0], tls), node("standby", urls[1], tls)
    return loop.run(_make(*nodes, disposable), 5)


async def nothing() -> None:
    """Nobody has to be waited for."""


def info(server: Server) -> dict[str, str]:
    """What it says of replication."""
    lines = server.ask("INFO", "replication").decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def wait_equal(standby: Server, primary: Server) -> None:
    """Wait until a standby has all that its primary has."""
    wait_for(
        lambda: (
            info(standby).get("master_link_status") == "up"
            and info(standby)["slave_repl_offset"] == info(primary)["master_repl_offset"]
        ),
        "the standby to have it all",
    )
