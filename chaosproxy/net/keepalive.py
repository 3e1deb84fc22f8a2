"""Has the kernel find out who is gone without a word: a machine that lost its power or its network says no goodbye.

Takes a socket; gives it Redis's own patience with a peer that is silent (its `tcp-keepalive`).
"""

import socket
from typing import Final, Protocol

#: So many seconds of silence, then so many probes, so many seconds apart.
IDLE: Final = 300
PROBES: Final = 3
BETWEEN: Final = 100


class Settable(Protocol):
    """A socket as loops give it: not each of them is one of the standard library's."""

    @property
    def family(self) -> int:
        """The address family."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option."""


def keep_alive(sock: Settable | None) -> None:
    """Have the peer probed; those who are accepted on a listening socket inherit it. A unix socket's is always known.

    None, which loops give for a socket that is closed by now, has no peer any more.
    """
    if sock is None or sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("KEEPIDLE", IDLE), ("KEEPINTVL", BETWEEN), ("KEEPCNT", PROBES)):
        # Not every system has all of them.
        if (option := getattr(socket, f"TCP_{name}", None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
