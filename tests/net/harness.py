"""A proxy whose conversations are scripted, between real sockets: what `net/` does, without what `core/` decides.

Takes a script (what to do about each thing that happens); gives clients' and the server's ends as blocking sockets.
"""

import socket
from collections.abc import Callable
from time import monotonic
from types import SimpleNamespace
from typing import Any

from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.effect import CloseClient, HalfClose
from chaosproxy.core.fault import ServerInfo
from chaosproxy.journal import Journal
from chaosproxy.net import proxy as proxy_module
from chaosproxy.net.address import Address, Upstream
from chaosproxy.net.loop import LoopThread
from chaosproxy.net.plan import Plan
from chaosproxy.net.proxy import Proxy
from chaosproxy.net.survey import Survey
from chaosproxy.profile import find, load
from tests.proxying import wait_for
from tests.servers import free_port
from tests.wire import Wire

TIMEOUT = 30.0


class Talk:
    """A conversation that does what the test says: `script(talk, what, data)` is called for everything."""

    script: Callable[["Talk", str, Any], None]
    #: Everything is received: a lane that is never open.
    lane = SimpleNamespace(
        **dict.fromkeys(("requests", "replies", "others"), lambda data, now: False),
        **dict.fromkeys(("join", "close"), lambda: None),
    )

    def __init__(
        self, world, connection: int, address: str, now: float, listener: str, **how: Any
    ) -> None:
        del world, now, listener, how
        self.connection = connection
        self.address = address
        self.out_client: list[bytes] = []
        self.out_upstream: list[bytes] = []
        self.effects: list[Any] = []
        self.due: float | None = None
        self.client_paused = self.upstream_paused = self.busy = False
        self.buffered = 0
        self.raw = self.holding = False
        self.heard: list[str] = []

    def _happened(self, what: str, data: Any = None) -> None:
        self.heard.append(what)
        self.script(self, what, data)

    def clogged(self, clogged):
        return False

    def receive_from_client(self, data, now):
        self._happened("client", data)

    def receive_from_upstream(self, data, now):
        self._happened("upstream", data)

    def client_eof(self, now):
        self._happened("client_eof")

    def client_gone(self, now):
        self._happened("client_gone")

    def upstream_eof(self, now):
        self._happened("upstream_eof")

    def upstream_gone(self, now):
        self._happened("upstream_gone")

    def flushed(self, now):
        self._happened("flushed")

    def wake(self, now):
        self.due, due = None, self.due
        self._happened("wake", (due, now))

    def side_answer(self, token, replies, now):
        self._happened("side_answer", (token, replies))

    def cut(self, how, now):
        self._happened("cut", how)

    def switch(self, now):
        self._happened("switch")

    def matches_client(self, rule):
        return rule == self.address

    def describe(self):
        return {"waiting_replies": 0}


def relay(talk: Talk, what: str, data: Any) -> None:
    """Do what a conversation without faults does."""
    match what:
        case "client":
            talk.out_upstream.append(data)
        case "upstream":
            talk.out_client.append(data)
        case "client_eof":
            talk.effects.append(HalfClose("upstream"))
        case "upstream_eof" | "upstream_gone":
            talk.effects.append(HalfClose("client"))
        case "cut":
            talk.effects.append(CloseClient(data))


class Harness:
    """One proxy in a loop of its own, one listening socket as its server. The newest conversation is `talk`."""

    def __init__(self, monkeypatch, **plan: Any) -> None:
        self.talks: list[Talk] = []
        self._ends: list[Wire | socket.socket] = []
        self.script: Callable[[Talk, str, Any], None] = relay

        def play(talk: Talk, what: str, data: Any) -> None:
            # The one in force now: a test may replace it at any time.
            self.script(talk, what, data)

        def make(*args: Any, **more: Any) -> Talk:
            talk = Talk(*args, **more)
            talk.script = play
            self.talks.append(talk)
            return talk

        async def no_survey(side) -> Survey:
            return Survey(True, ServerInfo(), CommandTable.bundled())

        monkeypatch.setattr(proxy_module, "Conversation", make)
        monkeypatch.setattr(proxy_module, "survey", no_survey)
        # Nobody else is given its port while it does not listen there.
        port = free_port()
        self.server = socket.create_server(("127.0.0.1", port))
        self.server.settimeout(TIMEOUT)
        given = Plan(
            **{"listen": Address("127.0.0.1", 0), "upstream": Upstream(Address("127.0.0.1", port))}
            | plan
        )
        self.loop = LoopThread()
        self.journal = Journal(monotonic())
        self.proxy = self.loop.call(lambda: Proxy(given, load([find("calm")]), 1, self.journal))
        self.loop.run(self.proxy.start(), TIMEOUT)
        self.port = self.proxy.address.port

    @property
    def talk(self) -> Talk:
        return self.talks[-1]

    def client(self) -> Wire:
        client = Wire(self.port)
        self._ends.append(client)
        return client

    def accept(self) -> socket.socket:
        """Give the proxy's next connection, as the server sees it."""
        upstream, _ = self.server.accept()
        upstream.settimeout(TIMEOUT)
        self._ends.append(upstream)
        return upstream

    def pair(self) -> tuple[Wire, socket.socket]:
        """A client that is connected all the way: both ends."""
        client = self.client()
        upstream = self.accept()
        link = self.proxy.links[self.talk.connection]
        wait_for(lambda: link.relaying, "the link")
        return client, upstream

    @property
    def links(self) -> list[Any]:
        return list(self.proxy.links.values())

    def in_loop(self, function: Callable[[], Any]) -> Any:
        return self.loop.call(function, TIMEOUT)

    def close(self) -> None:
        for end in self._ends:
            end.close()
        self.loop.run(self.proxy.stop(0), TIMEOUT)
        self.loop.stop()
        self.server.close()


def receive_all(sock: socket.socket, count: int) -> bytes:
    """Read exactly so many bytes."""
    data = bytearray()
    while len(data) < count:
        more = sock.recv(count - len(data))
        assert more, f"{len(data)} of {count} bytes, then FIN"
        data += more
    return bytes(data)


def send_until_full(sock: socket.socket, most: int) -> int:
    """Send until the other side takes no more for a moment, or `most` bytes are gone; give how many."""
    sock.settimeout(0.3)
    sent = 0
    try:
        while sent < most:
            sent += sock.send(bytes(min(1 << 16, most - sent)))
    except TimeoutError:
        pass
    finally:
        sock.settimeout(TIMEOUT)
    return sent
