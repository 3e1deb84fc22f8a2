"""How a client's connection ends: by RST or FIN, and never before the bytes that were promised have arrived.

Takes an asyncio transport; gives calls back once its bytes are acknowledged, and ends it.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from chaosproxy.core.decision import How
    from chaosproxy.net.connection import Link

#: How long a client that is slow to acknowledge is waited for before a reset becomes a close, in seconds.
RESET_PATIENCE: Final = 10.0
#: How long the client's input is drained after our FIN, in seconds: closing a socket with unread
#: input makes the kernel send a reset, which can overtake the last reply.
LINGER: Final = 1.0
#: The same where nothing more is read from the client, so that little can be unread, in seconds.
BRIEFLY: Final = 0.05
#: The most seconds a client that reads nothing can keep its last bytes, and its connection, with us.
LINGER_MAX: Final = 30.0
#: A server behind TLS cannot be told that its client has nothing more to say; it is left once it is silent for so
#: many seconds.
TLS_SILENCE: Final = 1.0

_FIRST_POLL, _LAST_POLL = 0.0005, 0.05
_NO_LINGER = struct.pack("ii", 1, 0)
# The first byte of Linux's struct tcp_info is the state; this one means that there is no connection any more.
_TCP_CLOSE = 7
# In Linux's struct tcp_info, after 8 bytes, 24 words and two 64-bit rates: bytes ever acknowledged.
_BYTES_ACKED = struct.Struct("=120xQ")


def cut_off(link: "Link", how: "How") -> None:
    """End a client's connection from outside; of what faults had to do with it it is written down that nothing comes of it."""
    if link.relaying:
        link.tell(partial(link.conversation.cut, how))
    else:
        link.end(how)


def unacknowledged(sock: socket.socket | None) -> int:
    """Give how many bytes this TCP socket's peer has not acknowledged yet; 0 where that cannot be known, or it is closed (None)."""
    if sock is None or sys.platform != "linux" or sock.family == socket.AF_UNIX:
        # A unix socket's bytes are with the peer at once, and stay there when the socket is closed.
        return 0
    size = bytearray(4)
    try:
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, size)  # the same number as SIOCOUTQ
    except OSError:
        return 0
    return struct.unpack("i", size)[0]  # type: ignore[no-any-return]


class Flush:
    """Calls `done(flushed)` once every byte written to a transport has been acknowledged by its peer.

    Never from inside the constructor. `flushed` is False if that did not happen within `patience` seconds
    (None: no bound), or cannot any more; `cancel` when the transport is lost.
    """

    __slots__ = ("_acked", "_bound", "_delay", "_done", "_loop", "_timer", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        done: Callable[[bool], None],
        patience: float | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._done = done
        self._bound = None if patience is None else self._loop.time() + patience
        self._delay = _FIRST_POLL
        self._acked = -1
        self._timer: asyncio.Handle = self._loop.call_soon(self._poll)

    def cancel(self) -> None:
        """Forget it: `done` will not be called."""
        self._timer.cancel()

    def look(self) -> None:
        """See now: what its peer has sent just now has acknowledged what that had by then."""
        self._timer.cancel()
        self._poll()

    def _poll(self) -> None:
        if self._is_flushed():
            self._done(True)
        elif self._bound is not None and self._is_over(self._bound):
            self._done(False)
        else:
            self._timer = self._loop.call_later(self._delay, self._poll)
            self._delay = min(self._delay * 2, _LAST_POLL)

    def _is_over(self, bound: float) -> bool:
        # A peer that has ended its side is read no more, so that nobody would be told of its RST.
        return self._loop.time() >= bound or was_reset(self._transport)

    def _is_flushed(self) -> bool:
        sock: socket.socket | None = self._transport.get_extra_info("socket")
        if self._transport.get_write_buffer_size() or unacknowledged(sock):
            return False
        plain = self._transport.get_extra_info("sslcontext") is None
        if sock is None or plain or sys.platform != "linux":
            return True
        # Under TLS the transport below has a buffer that cannot be asked for. Had it held anything, the loop would have
        # written some of it since the last poll, for the socket had room: so nothing was acknowledged in between.
        acked: int = _BYTES_ACKED.unpack_from(
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size)
        )[0]
        before, self._acked = self._acked, acked
        return acked == before


def reset(transport: asyncio.Transport) -> None:
    """End the connection with a RST, now; what was written and not acknowledged is lost.

    A unix socket knows no RST: it is closed.
    """
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        with suppress(OSError):  # it may be gone already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


def was_reset(transport: asyncio.Transport) -> bool:
    """Whether the peer has ended the connection with a RST, though nobody reads; False where that cannot be known."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None:
        return True
    if sys.platform != "linux" or sock.family == socket.AF_UNIX:
        return False
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE
    except OSError:
        return True


class Farewell:
    """Ends a connection with FIN: what was written goes out first, input is drained for a moment, then it is closed.

    The moment is `linger` seconds, or up to LINGER where the client still sends: what would then be unread would end the
    connection with a reset, and who writes before he reads would never come to his last replies. The protocol calls `heard`
    for what the client sends, `heard_eof` when it has ended its side too, and `cancel` when the connection is lost.
    """

    __slots__ = ("_bound", "_heard", "_linger", "_loop", "_timer", "_transport", "_until")

    def __init__(self, transport: asyncio.Transport, *, eof: bool, linger: float = LINGER) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._bound = self._loop.time() + LINGER_MAX
        self._until = self._loop.time() + LINGER
        self._linger, self._heard = linger, False
        self._timer: asyncio.TimerHandle | None = None
        if eof or not transport.can_write_eof():
            # TLS has no half-close in Python; its close waits for the client's own for a moment.
            transport.close()
            self._timer = self._loop.call_later(LINGER_MAX, transport.abort)
        else:
            _write_eof(transport)
            self._timer = self._loop.call_later(linger, self._expire)

    def heard(self) -> None:
        """The client is still sending; that is not read."""
        self._heard = True

    def heard_eof(self) -> None:
        """The client has nothing more to say either."""
        self._transport.close()

    def cancel(self) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        now, heard = self._loop.time(), self._heard
        self._heard = False
        if self._is_read() and not (heard and now < self._until):
            self._transport.abort()
        elif now < self._bound:
            self._timer = self._loop.call_later(self._linger, self._expire)
        else:
            self._transport.abort()

    def _is_read(self) -> bool:
        """Whether the client's stack has all that was written, or never will: else the client is slow to read."""
        sock: socket.socket | None = self._transport.get_extra_info("socket")
        if was_reset(self._transport):
            return True
        return not (self._transport.get_write_buffer_size() or unacknowledged(sock))


class Finish:
    """Tells the server that nothing more will come, while its replies still do.

    Python's TLS cannot end one direction alone: there the connection is closed after a silence.
    """

    __slots__ = ("_loop", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None
        if transport.can_write_eof():
            _write_eof(transport)
        else:
            self._timer = self._loop.call_later(TLS_SILENCE, transport.close)

    def heard(self) -> None:
        """The server is still answering."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop.call_later(TLS_SILENCE, self._transport.close)

    def cancel(self) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _write_eof(transport: asyncio.Transport) -> None:
    try:
        transport.write_eof()
    except OSError:
        # The peer has reset the connection, and nobody has read that yet.
        transport.abort()
