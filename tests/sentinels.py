"""A service with real Sentinels: a primary, two replicas, and three Sentinels that watch them.

Takes the name of a kind of server, gives a running Trio.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tests import servers
from tests.proxying import wait_for
from tests.servers import Server
from tests.wire import Arg

SERVICE = "mine"
#: How long a primary may be silent before it counts as down, and a failover may take, in milliseconds. On a busy machine they are
#: silent for a while; failovers are asked for.
DOWN_AFTER, FAILOVER = 20_000, 10_000
#: A Sentinel that was stopped for two seconds does nothing for thirty more: so many seconds may it all take, and so often a failover
#: that has not come about is asked for again.
PATIENCE, AGAIN = 150.0, 15.0


@dataclass
class Trio:
    """Three servers and three Sentinels; none of them listens beyond loopback."""

    nodes: list[Server]
    sentinels: list[Server]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    @property
    def primary(self) -> Server:
        """The one that the first Sentinel calls so."""
        reply = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(node for node in self.nodes if node.port == int(reply[1]))

    def fail_over(self) -> Server:
        """Have the Sentinels choose another primary; gives it once they all say so."""
        before, asked = self.primary, -AGAIN

        def done() -> bool:
            nonlocal asked
            if self.primary is not before:
                return self.agreed
            if (
                monotonic() >= asked + AGAIN
                and self.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE) == "OK"
            ):
                asked = monotonic()
            return False

        wait_for(done, "the failover", PATIENCE)
        return self.primary

    @property
    def agreed(self) -> bool:
        """Whether all Sentinels call the same server the primary, and it takes itself for one."""
        said = {
            each.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1] for each in self.sentinels
        }
        return len(said) == 1 and ask(self.primary, "ROLE")[0] == b"master"

    def strangers(self, proxy: int) -> list[str]:
        """Who is connected to a server's own port and is neither the proxy (a process), nor a Sentinel, nor a server."""
        pids = [proxy, *(each.pid for each in (*self.nodes, *self.sentinels))]
        ours = set().union(*map(sockets_of, pids))
        ours |= {each.control.socket.getsockname()[1] for each in self.nodes}
        found = []
        for node in self.nodes:
            with node.connect() as own:
                port = own.socket.getsockname()[1]
                lines = own.ask("CLIENT", "LIST", "TYPE", "normal").decode().splitlines()
            for line in lines:
                fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
                peer = int(fields["addr"].rpartition(":")[2])
                if peer not in {*ours, port} and not fields["name"].startswith("sentinel-"):
                    found.append((peer, f"{node.port}: {line}"))
        # Sentinels and servers connect anew now and then, perhaps between the two looks.
        ours = set().union(*map(sockets_of, pids))
        return [line for peer, line in found if peer not in ours]


def _start_sentinel(name: str, primary: Server) -> Server:
    return servers.start_sentinel(
        name,
        f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 2\n"
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER}\n"
        f"sentinel failover-timeout {SERVICE} {FAILOVER}\n",
    )


@contextmanager
def trio(name: str, *options: str) -> Iterator[Trio]:
    """Start them all, and wait until everybody knows everybody."""
    running: list[Server] = []
    at_once = ("--repl-diskless-sync-delay", "0", *options)
    try:
        primary = servers.start(name, *at_once)
        running.append(primary)
        of = ("--replicaof", f"127.0.0.1 {primary.port}")
        running += [servers.start(name, *at_once, *of), servers.start(name, *at_once, *of)]
        watchers = []
        for _ in range(3):
            watchers.append(_start_sentinel(name, primary))
            running.append(watchers[-1])
        found = Trio(running[:3], watchers)
        wait_for(lambda: all(_knows(each) for each in watchers), "the Sentinels to meet", PATIENCE)
        yield found
    finally:
        for server in running:
            server.stop()


def ask(server: Server, *args: Arg) -> Any:
    """Run one command on a connection of its own: Sentinels end all that are open."""
    with server.connect() as wire:
        return wire.ask(*args)


def _knows(sentinel: Server) -> bool:
    said: Any = sentinel.ask("SENTINEL", "MASTER", SERVICE)
    fields = dict(zip(said[::2], said[1::2], strict=True))
    replicas: Any = sentinel.ask("SENTINEL", "REPLICAS", SERVICE)
    linked = sum(b"ok" in each[each.index(b"master-link-status") + 1] for each in replicas)
    return fields[b"num-other-sentinels"] == b"2" and linked == 2


def sockets_of(pid: int) -> set[int]:
    """The local ports of a process's TCP connections: how its connections look from the other end."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = set()
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[9] in inodes:
            ports.add(int(words[1].rpartition(":")[2], 16))
    return ports
