"""A client that speaks bytes: what a test sends is what goes out, what it reads is what came in.

Takes a port and requests, gives raw replies one by one, or all bytes up to FIN or RST. It frames
replies by its own few lines, so that it does not share a mistake with the code under test.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Self

TIMEOUT = 30.0

Arg = bytes | str | int | float
End = Literal["FIN", "RST"]


def encode(*args: Arg) -> bytes:
    """Encode one command as the array of bulk strings that clients send."""
    words = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Incomplete(Exception):  # noqa: N818 - a signal, not a mistake
    """The bytes end before the reply does."""


def reply_end(data: bytes, start: int = 0) -> int:
    """Give the index just after the reply that begins at `start`; raises Incomplete."""
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        raise Incomplete
    kind, after = data[start : start + 1], line_end + 2
    if kind in b"+-:_#,(":
        return after
    count = int(data[start + 1 : line_end])
    if kind in b"$=!":
        end = after + count + 2 if count >= 0 else after
        if end > len(data):
            raise Incomplete
        return end
    # An attribute is followed by the value it is about.
    items = {b"*": count, b"~": count, b">": count, b"%": 2 * count, b"|": 2 * count + 1}[kind]
    for _ in range(items):
        after = reply_end(data, after)
    return after


def first_of(data: bytes) -> tuple[bytes, bytes]:
    """Give the first whole reply, or nothing as long as there is none, and what is left."""
    try:
        end = reply_end(data)
    except Incomplete:
        end = 0
    return data[:end], data[end:]


def decode(data: bytes) -> Any:
    """Decode one whole reply: str for simple strings, WireError for errors, dicts for maps."""
    value, end = _decode(data, 0)
    assert end == len(data), f"more than one reply: {data!r:.200}"
    return value


class WireError(str):
    """An error reply's text, without the leading minus."""

    __slots__ = ()


def _decode(data: bytes, start: int) -> tuple[Any, int]:
    line_end = data.index(b"\r\n", start)
    kind, line, after = data[start : start + 1], data[start + 1 : line_end], line_end + 2
    match kind:
        case b"+":
            return line.decode(), after
        case b"-":
            return WireError(line.decode()), after
        case b":" | b"(":
            return int(line), after
        case b"," | b"#" | b"_":
            plain = {b",": float, b"#": lambda flag: flag == b"t", b"_": lambda _: None}
            return plain[kind](line), after
    count = int(line)
    if count < 0:
        return None, after
    if kind in b"$=!":
        end = after + count
        text = data[after:end]
        return (WireError(text.decode()) if kind == b"!" else text), end + 2
    values = []
    for _ in range(count * 2 if kind in b"%|" else count):
        value, after = _decode(data, after)
        values.append(value)
    if kind == b"|":
        return _decode(data, after)
    if kind == b"%":
        return dict(zip(values[::2], values[1::2], strict=True)), after
    return values, after


class Wire:
    """One connection, blocking, with a deadline on every read."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", resp: int = 2) -> None:
        self.socket = socket.create_connection((host, port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        if resp == 3:
            self.raw("HELLO", 3)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, *args: Arg) -> None:
        """Send one command."""
        self.socket.sendall(encode(*args))

    def send_bytes(self, data: bytes, *, step: int = 0) -> None:
        """Send bytes as they are; with `step`, in pieces of so many, each a packet of its own."""
        for start in range(0, len(data), step or len(data) or 1):
            self.socket.sendall(data[start : start + (step or len(data))])

    def read(self, count: int = 1) -> list[bytes]:
        """Read that many whole replies (pushes count), each as its raw bytes."""
        replies = []
        while len(replies) < count:
            reply, self.buffer = first_of(self.buffer)
            if reply:
                replies.append(reply)
                continue
            more = self.socket.recv(1 << 20)
            if not more:
                raise EOFError(f"{len(replies)} of {count} replies, then FIN")
            self.buffer += more
        return replies

    def raw(self, *args: Arg) -> bytes:
        """Send one command and give its reply's raw bytes."""
        self.send(*args)
        return self.read()[0]

    def ask(self, *args: Arg) -> Any:
        """Send one command and give its decoded reply."""
        return decode(self.raw(*args))

    def read_to_end(self) -> tuple[bytes, End]:
        """Read until the other side ends the connection, and say how it did."""
        data, self.buffer = self.buffer, b""
        while True:
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return data, "RST"
            if not more:
                return data, "FIN"
            data += more

    def silent(self, seconds: float) -> bool:
        """Whether nothing at all arrives for so long, neither bytes nor an end."""
        if self.buffer:
            return False
        self.socket.settimeout(seconds)
        try:
            self.buffer += self.socket.recv(1 << 20)
        except TimeoutError:
            return True
        else:
            return False
        finally:
            self.socket.settimeout(TIMEOUT)

    def finish(self) -> None:
        """Say that nothing more will be sent (FIN) while still reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()


@contextmanager
def connected(port: int, count: int, *, resp: int = 2) -> Iterator[list[Wire]]:
    """Open that many connections, and close them all."""
    wires: list[Wire] = []
    try:
        wires += [Wire(port, resp=resp) for _ in range(count)]
        yield wires
    finally:
        for wire in wires:
            wire.close()


def talk(port: int, data: bytes, *, step: int = 0, finish: bool = True) -> tuple[bytes, End]:
    """Send bytes on a connection of their own and give everything that comes back, and the end.

    With `finish` the client's side is closed after the bytes, as `printf … | nc` does; without it
    the other side must end the connection.
    """
    with Wire(port) as wire:
        try:
            wire.send_bytes(data, step=step)
            if finish:
                wire.finish()
        except (BrokenPipeError, ConnectionResetError):
            # The other side ended it before it had all: what it said is still to be read.
            pass
        except OSError as error:
            if error.errno != 107:  # ENOTCONN: reset before our FIN
                raise
        return wire.read_to_end()
