"""The listener for Sentinel where there is no real one: the proxy itself says which server is the primary.

Takes clients, and the routes of the service; gives them answers, and a message when a failover has moved the primary.

The primary is said to be behind one of two listeners, and to have moved to the other one at a failover; both lead to whichever
server is the primary, so nobody is left with one that is not.
"""

import asyncio
from typing import Final, cast

from chaosproxy.core.resp import RequestFramer
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.net.reception import Reception, own_host
from chaosproxy.net.route import Route
from chaosproxy.topology.own_sentinel import Service, Visitor, messages

#: A client that does not read what it is told is let go once so much waits for it, in bytes.
_MOST: Final = 1 << 20
#: No request to a Sentinel is longer, in bytes.
_LONGEST: Final = 1 << 16


class OwnSentinel:
    """The Sentinel of one service. `primaries`: the two routes to the primary, first the one that is spoken of."""

    def __init__(self, name: str, primaries: tuple[Route, Route], replicas: list[Route]) -> None:
        self._name = name.encode()
        self._primaries = primaries
        self._replicas = replicas
        self.reception: Reception[_Client] = Reception(lambda: _Client(self))

    def moved(self) -> None:
        """Another server is the primary: from here on it is behind the other listener, and whoever listens is told."""
        old, new = self._primaries
        self._primaries = new, old
        for client in list(self.reception.guests):
            places = [(client.host, route.address.port) for route in (old, new)]
            for channel, text in messages(self._name, places[0], places[1]):
                client.hear(channel, text)

    def service(self, host: bytes) -> Service:
        """What a client is told that reaches this machine as `host`."""
        primary = host, self._primaries[0].address.port
        return Service(self._name, primary, [(host, each.address.port) for each in self._replicas])


class _Client(asyncio.Protocol):
    """One client, as asyncio sees it."""

    def __init__(self, sentinel: OwnSentinel) -> None:
        self._sentinel = sentinel
        self._framer = RequestFramer()
        self._visitor = Visitor()
        self._transport: asyncio.Transport | None = None
        self.host = b"127.0.0.1"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.host = own_host(transport).encode()
        self._sentinel.reception.admit(self, transport)

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)
        try:
            while (frame := self._framer.next()) is not None:
                words = [word or b"" for word in frame.args]
                self._say(self._visitor.answer(words, self._sentinel.service(self.host)))
                if self._visitor.leaving:
                    self.end()
                    return
        except ProtocolError as error:
            self._refuse(error.text)
            return
        if self._framer.size_hint() > _LONGEST:
            self._refuse("too long for a question to a Sentinel")

    def _refuse(self, why: str) -> None:
        self._say(b"-ERR Protocol error: %s\r\n" % why.encode())
        self.end()

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._sentinel.reception.guests.discard(self)

    def hear(self, channel: bytes, text: bytes) -> None:
        """It is told, if it listens."""
        self._say(self._visitor.hears(channel, text))

    def _say(self, data: bytes) -> None:
        if self._transport is not None and data:
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > _MOST:
                self._transport.abort()

    def end(self) -> None:
        """The connection ends, after all that was said."""
        if self._transport is not None:
            self._transport.close()
