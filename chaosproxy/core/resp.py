r"""Requests as bytes: where each one ends; and how we write the frames that we make ourselves.

Takes a client's bytes in any pieces, gives request frames that hold them as received; takes values, gives encoded frames.

The framer watches the stream as the server does: it looks for the `\r` of a header and steps over the byte behind it, steps over
the two bytes behind an argument, and checks neither. It enforces none of the server's settings. What servers do not take as a
command it does not guess at: it raises, and the connection goes on as raw bytes.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chaosproxy.core.syntax import (
    ARGUMENTS,
    ARRAYS,
    NOTHING,
    ProtocolError,
    added,
    read_argument,
    read_header,
    read_line,
    split_words,
)

#: In a frame that is cut through, longer arguments are not kept, in bytes.
KEEP: Final = 4096
#: In a frame that is cut through, no argument is kept any more after this many bytes of them.
KEEP_ALL: Final = 65536

_STAR: Final = ord("*")
#: The least that an argument takes: `$0\r\n\r\n`.
_LEAST: Final = 6


@dataclass(slots=True)
class RequestFrame:
    """One command as it came.

    `args` are its arguments, name first; one is None only if the frame was cut through and it was not kept. `raw` is the frame's
    bytes, and before them any that make no command; of a frame that was cut through, only what had not been handed out. `whole`
    is False if a part of the frame itself was handed out. `inline` tells a line of words from an array.
    """

    args: list[bytes | None]
    raw: bytes
    whole: bool
    inline: bool


class RequestFramer:
    """Cuts a client's bytes into requests, holding and copying as little of them as it can.

    `feed` it, then call `next` until it gives None; everything else is about the unfinished frame behind the complete ones, so it
    is asked after that. Bytes that make no command (empty lines, `*0`, `*-1`) become the front of the next frame's `raw`; until
    there is one they count in `partial`, not as `started`, and `cut_through` hands them out. After a ProtocolError or `rest` there
    are no more frames: what is fed is kept for `rest`.
    """

    __slots__ = (
        *("_ready", "_broken", "_ended", "_blank", "_done", "_tail", "_tail_size", "_given"),
        *("_args", "_left", "_size", "_need", "_lost", "_cut", "_checked", "_kept"),
    )

    def __init__(self) -> None:
        # Made when there is something to be in it: most connections are idle, and an empty one takes 760 bytes.
        self._ready: deque[RequestFrame] | None = None
        self._broken: str | None = None
        self._ended = self._lost = self._cut = False
        # What is not handed out, in order: bytes that make no command, bytes read of the unfinished frame, and the unread tail
        # from `_given` on. An argument that is still coming grows the tail piece by piece; they are joined once, when all of it is
        # there.
        self._blank = self._done = self._tail = NOTHING
        self._tail_size = self._given = 0
        # The unfinished frame: arguments read and owed, bytes read. Once an argument's header is
        # read: the bytes from the tail's start to the argument's end; `_lost`: it has lost some.
        self._args: list[bytes | None] | None = None
        self._left = self._size = self._need = 0
        # Once some of it was handed out (`_cut`): how many arguments were checked, and how many bytes of them are kept.
        self._checked = self._kept = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they were received. Never raises."""
        self._tail = added(self._tail, data)
        self._tail_size += len(data)
        if self._tail_size >= self._need and not self._ended:
            self._scan(data if len(self._tail) == 1 else b"".join(self._tail))

    def next(self) -> RequestFrame | None:
        """Give the next complete frame, or None until more is fed.

        Raises ProtocolError, then and ever after, where the bytes are no request; `rest` has them.
        """
        if (ready := self._ready) is not None:
            frame = ready.popleft()
            self._ready = ready or None
            return frame
        if self._broken is not None:
            raise ProtocolError(self._broken)
        return None

    def peek(self) -> RequestFrame | None:
        """Give the next complete frame without taking it, or None."""
        return None if self._ready is None else self._ready[0]

    @property
    def partial(self) -> int:
        """How many bytes are here that are in no complete frame and were not handed out."""
        read = sum(map(len, self._blank)) + sum(map(len, self._done))
        return read + self._tail_size - self._given

    @property
    def started(self) -> bool:
        """Whether a byte of an unfinished frame was seen, be it here or handed out."""
        return self._left > 0 or self._tail_size > 0

    @property
    def name(self) -> bytes | None:
        """The unfinished frame's first argument as sent, once it is known."""
        return self._args[0] if self._args else None

    @property
    def awaited(self) -> int:
        """How many bytes the argument takes that is coming in, its end included; 0 if that is not known."""
        return self._need

    def begun(self) -> tuple[Sequence[bytes | None], int]:
        """The unfinished frame's arguments as far as they are here, and how many it has."""
        return self._args or (), len(self._args or ()) + self._left

    def size_hint(self) -> int:
        """Give the unfinished frame's least size in bytes, by the lengths announced so far."""
        if self._need:
            return self._size + self._need + (self._left - 1) * _LEAST
        return self._size + max(self._tail_size, self._left * _LEAST)

    def cut_through(self) -> bytes:
        """Hand out what is here of the unfinished frame, and bytes before it that make no command.

        The frame goes on being watched: another call hands out what came since, and once it is complete `next` gives it with what
        was not handed out as `raw`. Arguments over KEEP bytes, and all after the first KEEP_ALL bytes, become None.
        """
        if self._ended:
            return self.rest()
        tail = b"".join(self._tail)
        out = b"".join((*self._blank, *self._done, tail[self._given :]))
        self._blank = self._done = NOTHING
        if self.started:
            self._cut = True
            self._let_go()
        if self._need > KEEP + 2:
            # This is how a value of 512 MB goes by: nothing of it stays.
            self._lost = True
            self._size += len(tail)
            self._need -= len(tail)
            tail = b""
        self._tail = [tail] if tail else NOTHING
        self._tail_size = self._given = len(tail)
        return out

    def rest(self) -> bytes:
        """Hand out all that was not handed out, complete frames too. No frames come after this."""
        tail = b"".join(self._tail)[self._given :]
        ready, self._ready = self._ready or (), None
        out = b"".join((*(frame.raw for frame in ready), *self._blank, *self._done, tail))
        self._blank = self._done = self._tail = NOTHING
        self._args = None
        self._tail_size = self._given = self._left = self._size = self._need = 0
        self._ended = True
        return out

    def _scan(self, buf: bytes) -> None:  # noqa: C901, PLR0915 - every command: one loop, all local
        """Read `buf`, which is the tail, up to the last complete element in it."""
        end, array, argument, ready = len(buf), ARRAYS.get, ARGUMENTS.get, self._ready or deque()
        args, left = self._args or [], self._left
        # Bytes before `begin` are handed out or in a frame, those before `pos` are read; `first` is
        # where the last frame that begins in `buf` does so. `old`: the first frame that completes
        # here has something to it that `buf` does not tell.
        begin, first, pos = self._given, -1, self._need
        old = bool(self._blank or self._done or self._cut)
        if pos:
            args.append(None if self._lost else buf[: pos - 2])
            left -= 1
            self._need, self._lost = 0, False
            if not left:
                ready.append(self._complete(args, buf[begin:pos], inline=False))
                begin, old, args = pos, False, []
        try:
            while pos < end:
                if left:
                    header = argument(buf[pos : pos + 4]) or argument(buf[pos : pos + 5])
                    if header is None:
                        header = read_argument(buf, pos)
                        if header is None:
                            break
                    at = pos + header[1]
                    stop = at + header[0]
                    if stop + 2 > end:
                        if at <= end:
                            pos, self._need = at, header[0] + 2
                        break
                    args.append(buf[at:stop])
                    pos = stop + 2
                    left -= 1
                    if left:
                        continue
                    if old:
                        ready.append(self._complete(args, buf[begin:pos], inline=False))
                    else:
                        ready.append(RequestFrame(args, buf[begin:pos], True, False))
                    begin, old, args = pos, False, []
                    continue
                first = pos
                if buf[pos] == _STAR:
                    header = array(buf[pos : pos + 4]) or read_header(buf, pos)
                    if header is None or pos + header[1] > end:
                        break
                    pos += header[1]
                    if header[0] > 0:
                        left = header[0]
                        continue
                else:
                    line = read_line(buf, pos)
                    if line is None:
                        break
                    pos += len(line) + 1
                    words = split_words(line)
                    if words:
                        ready.append(self._complete([*words], buf[begin:pos], inline=True))
                        begin, old = pos, False
                        continue
                # That made no command. What was handed out of it was a part of no frame.
                self._cut = False
        except ProtocolError as error:
            self._broken, self._ended = error.text, True
        self._args, self._left = args or None, left
        self._ready = ready or None
        self._keep(buf, begin, first, pos)

    def _keep(self, buf: bytes, begin: int, first: int, pos: int) -> None:
        """Keep what a scan leaves: bytes that make no command, of a frame, the unread tail."""
        start = pos
        if self._left:
            start = max(begin, first)
            self._size = pos - first if first >= 0 else self._size + pos
            if pos > start:
                self._done = added(self._done, buf[start:pos])
                self._let_go()
        if start > begin:
            self._blank = added(self._blank, buf[begin:start])
        if pos:
            self._given = 0
        self._tail = [buf[pos:]] if pos < len(buf) else NOTHING
        self._tail_size = len(buf) - pos

    def _complete(self, args: list[bytes | None], raw: bytes, *, inline: bool) -> RequestFrame:
        """Complete a frame that may have begun earlier; `raw` is what the last buffer has of it."""
        self._args = args
        self._let_go()
        raw = b"".join((*self._blank, *self._done, raw))
        self._blank = self._done = NOTHING
        frame = RequestFrame(args, raw, not self._cut, inline)
        self._args, self._cut = None, False
        self._size = self._checked = self._kept = 0
        return frame

    def _let_go(self) -> None:
        """Let go of the arguments that a frame does not keep once it is cut through."""
        args = self._args
        if not self._cut or args is None:
            return
        for index in range(self._checked, len(args)):
            length = len(args[index] or b"")
            if length > KEEP or self._kept >= KEEP_ALL:
                args[index] = None
            else:
                self._kept += length
        self._checked = len(args)


def encode_command(*args: bytes) -> bytes:
    """Write a command as an array of bulk strings."""
    return b"*%d\r\n" % len(args) + b"".join(map(encode_bulk, args))


_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")


def encode_simple(text: bytes) -> bytes:
    """Write a simple string; the bytes of a line break become blanks, as in servers."""
    return b"+%s\r\n" % text.translate(_ONE_LINE)


def encode_error(text: bytes) -> bytes:
    """Write an error, `text` with its code (`ERR …`); the bytes of a line break become blanks."""
    return b"-%s\r\n" % text.translate(_ONE_LINE)


def encode_integer(value: int) -> bytes:
    """Write an integer."""
    return b":%d\r\n" % value


def encode_bulk(value: bytes) -> bytes:
    """Write a bulk string."""
    return b"$%d\r\n%s\r\n" % (len(value), value)


def encode_null(protocol: int, kind: Literal["bulk", "array"] = "bulk") -> bytes:
    """Write RESP3's null, or in RESP2 the null that stands in place of a value of this kind."""
    if protocol >= 3:
        return b"_\r\n"
    return b"*-1\r\n" if kind == "array" else b"$-1\r\n"


def encode_array(elements: Sequence[bytes]) -> bytes:
    """Write an array of elements that are already encoded."""
    return b"*%d\r\n%s" % (len(elements), b"".join(elements))


def encode_map(protocol: int, pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Write a map of encoded keys and values; in RESP2 it is an array of both in turn."""
    items = [item for pair in pairs for item in pair]
    return encode_array(items) if protocol < 3 else b"%%%d\r\n%s" % (len(pairs), b"".join(items))
