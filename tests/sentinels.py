"""A service with real Sentinels: a primary, two replicas, and three Sentinels that watch them.

Takes the name of a kind of server, gives a running Trio.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import servers
from tests.proxying import wait_for
from tests.servers import Server
from tests.wire import Arg, Wire

SERVICE = "mine"
#: How long a primary may be silent before it counts as down, and a failover may take, in milliseconds. On a busy machine they are
#: silent for a while; failovers are asked for.
DOWN_AFTER, FAILOVER = 20_000, 10_000
#: A Sentinel that was stopped for two seconds does nothing for thirty more: so many seconds may it all take.
PATIENCE = 150.0


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
        before, asked = self.primary, self.sentinels[0]

        def is_over() -> bool:
            # It refuses one, or gives it up, as long as somebody was kept from his work: then it is asked again.
            if self.primary is before and b"failover" not in _master(asked)[b"flags"]:
                asked.ask("SENTINEL", "FAILOVER", SERVICE)
            return self.agreed and self.primary is not before

        wait_for(is_over, "the failover", PATIENCE)
        return self.primary

    @property
    def agreed(self) -> bool:
        """Whether all Sentinels call the same server the primary, and it takes itself for one."""
        said = {
            each.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1] for each in self.sentinels
        }
        return len(said) == 1 and ask(self.primary, "ROLE")[0] == b"master"

    @property
    def settled(self) -> bool:
        """Whether the next failover can begin: all Sentinels agree, and know both replicas to be in order."""
        return self.agreed and all(map(_knows, self.sentinels))

    def strangers(self, proxy: int) -> list[str]:
        """Who is connected to a server's own port and is neither the proxy (a process), nor a Sentinel, nor a server.

        One that stays: what comes and goes just at the look may be one of ours that has ended.
        """
        found = self._look(proxy)
        for _ in range(2):
            if found:
                again = self._look(proxy)
                found = {peer: line for peer, line in again.items() if peer in found}
        return list(found.values())

    def _look(self, proxy: int) -> dict[int, str]:
        """Who is connected to a server's own port and is none of ours, by their ports."""
        pids = [proxy, *(each.pid for each in (*self.nodes, *self.sentinels))]
        ours = set().union(*map(sockets_of, pids))
        ours |= {each.control.socket.getsockname()[1] for each in self.nodes}
        found = {}
        for node in self.nodes:
            own, said = anew(node, _clients)
            for line in said.decode().splitlines():
                fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
                peer = int(fields["addr"].rpartition(":")[2])
                if peer not in {*ours, own} and not fields["name"].startswith("sentinel-"):
                    found[peer] = f"{node.port}: {line}"
        # Sentinels and servers connect anew now and then, perhaps between the two looks.
        ours = set().union(*map(sockets_of, pids))
        return {peer: line for peer, line in found.items() if peer not in ours}


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
    """Run one command on a connection of its own."""
    return anew(server, lambda wire: wire.ask(*args))


def anew(server: Server, use: Callable[[Wire], Any]) -> Any:
    """Use a connection of one's own, and another one where it ends: Sentinels end all that are open."""
    found: list[Any] = []

    def is_used() -> object:
        with suppress(ConnectionError, EOFError), server.connect() as wire:
            found.append(use(wire))
        return found

    wait_for(is_used, "a connection that stays")
    return found[0]


def _clients(wire: Wire) -> tuple[int, Any]:
    """The port of who asks, and a server's list of its clients."""
    return wire.socket.getsockname()[1], wire.ask("CLIENT", "LIST", "TYPE", "normal")


def _master(sentinel: Server) -> dict[bytes, bytes]:
    """What a Sentinel says of the primary."""
    said: Any = sentinel.ask("SENTINEL", "MASTER", SERVICE)
    return dict(zip(said[::2], said[1::2], strict=True))


def _knows(sentinel: Server) -> bool:
    fields = _master(sentinel)
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
