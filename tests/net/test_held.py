"""Clients that are not read: the end of their connection is seen all the same."""

import socket
from dataclasses import dataclass, field
from types import SimpleNamespace

from chaosproxy.counts import Limits
from chaosproxy.net.held import Held
from tests.proxying import wait_for
from tests.wire import Wire


@dataclass(eq=False)
class Link:
    """A link of which only the client's socket is real."""

    client: object
    relaying: bool = True
    conversation: object = field(default_factory=lambda: SimpleNamespace(client_paused=True))
    entrance: object = field(default_factory=lambda: SimpleNamespace(is_full=True))
    aborted: list[bool] = field(default_factory=list)

    def abort(self):
        self.aborted.append(True)


class Transport:
    """A transport of which only its socket is real."""

    def __init__(self, sock):
        self._sock = sock

    def get_extra_info(self, name):
        return self._sock if name == "socket" else None


def test_who_resets_is_seen(loop):
    """A client that resets its connection while it is not read is aborted; one that is read again is left alone."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        clients = [Wire(listening.getsockname()[1]) for _ in range(3)]
        accepted = [listening.accept()[0] for _ in clients]
    gone, read_again, patient = (Link(Transport(each)) for each in accepted)
    held = loop.call(lambda: Held(Limits()))
    for link in (gone, read_again, patient):
        loop.call(lambda link=link: held.add(link))
    loop.call(lambda: held.discard(read_again))
    for client in clients[:2]:
        client.reset()
    wait_for(lambda: gone.aborted, "the reset to be seen")
    assert (read_again.aborted, patient.aborted) == ([], [])
    patient.client = None  # it has gone by itself
    wait_for(lambda: patient.aborted, "the end to be seen")
    assert gone.aborted == [True]
    for each in (*accepted, clients[2]):
        each.close()


def test_why_is_counted(loop):
    """A limit of ours is counted, and which; a server that reads slowly, or one that waits for it, is none."""
    limits = Limits()
    held = loop.call(lambda: Held(limits))
    links = [Link(None), Link(None), Link(None, relaying=False), Link(None, relaying=False)]
    links[1].conversation.client_paused = links[3].entrance.is_full = False
    for link in links:
        loop.call(lambda link=link: held.add(link))
    counted = dict(limits.items())
    assert (counted["client"], counted["early"]) == (1, 1)
