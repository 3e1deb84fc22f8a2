"""Feeding bytes to a framer in every way they can arrive.

Takes bytes, gives the pieces they may come in; takes a framer and pieces, gives what it made of them.
"""

import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

from chaosproxy.core.syntax import ProtocolError


def every_cut(data: bytes) -> Iterator[list[bytes]]:
    """Whole, byte by byte, and every split in two."""
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    for at in range(1, len(data)):
        yield [data[:at], data[at:]]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Equal pieces, as reads of a socket give them."""
    for at in range(0, len(data), size):
        yield data[at : at + size]


def drain(framer: Any) -> tuple[list[Any], str | None]:
    """All complete frames, and what was not understood behind them."""
    frames = []
    try:
        while (frame := framer.next()) is not None:
            frames.append(frame)
    except ProtocolError as error:
        return frames, error.text
    return frames, None


def run(framer: Any, data: Iterable[bytes]) -> tuple[list[Any], str | None]:
    """Feed piece by piece, taking frames after each: all of them, and what was not understood."""
    frames: list[Any] = []
    error = None
    for piece in data:
        framer.feed(piece)
        more, error = drain(framer)
        frames += more
    return frames, error


def measured(framer: Any, data: Iterable[bytes]) -> tuple[list[Any], int, int]:
    """Feed and cut through: all frames, how many bytes were handed out, and the peak of memory in bytes."""
    frames: list[Any] = []
    out = 0
    tracemalloc.start()
    for piece in data:
        framer.feed(piece)
        frames += drain(framer)[0]
        out += len(framer.cut_through())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return frames, out + sum(len(frame.raw) for frame in frames), peak
