"""The HTTP server: its socket, and the thread that looks after all of its connections.

Takes an address and a Backend; gives answers from threads of its own, while the data side does whatever it does.
"""

import socket
import threading

from chaosproxy.control.backend import Backend
from chaosproxy.control.guard import Guard
from chaosproxy.control.sockets import Sockets
from chaosproxy.net.address import Address
from chaosproxy.net.listener import share

#: How many connections the kernel keeps for us.
_BACKLOG = 128


class ControlServer:
    """A running HTTP server, until `stop`. Raises OSError if the address cannot be listened on.

    With a `token` every route but guard.OPEN_ROUTES wants `Authorization: Bearer TOKEN`.
    """

    def __init__(self, address: Address, backend: Backend, token: str | None) -> None:
        self.backend = backend
        self.guard = Guard(token, address.is_local)
        listening = _listen(address)
        self.address = Address(address.host, listening.getsockname()[1])
        self._sockets = Sockets(listening, self)
        self._thread = threading.Thread(
            target=self._sockets.run, name="chaosproxy-control", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Its URL, for this machine."""
        return f"http://{self.address.to_connect()}"

    def stop(self) -> None:
        """Answer nobody any more."""
        self._sockets.stop()
        self._thread.join()


def _listen(address: Address) -> socket.socket:
    found = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, *_, where = found[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        share(listening, shared=address.port > 0)
        listening.bind((str(where[0]), address.port))
        share(listening)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
