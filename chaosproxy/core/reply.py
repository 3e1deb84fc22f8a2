"""Replies as bytes: where each one ends, and what an array is made of.

Takes an upstream's bytes in any pieces, gives reply frames that hold them as received; takes one
whole array, gives its elements.

A reply is skipped over, not decoded: one counter of values still owed does for any depth. A push
inside another reply is not an element of it: up to Redis 7.0 what EXEC's commands push to their own
client stands between the elements, and no header counts it. Only a push that confirms a
subscription, or its end, is the reply to a queued command.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from chaosproxy.core.syntax import (
    ARGUMENTS,
    ARRAYS,
    BLOBS,
    CONFIRMATIONS,
    LINES,
    NOTHING,
    WIDTH,
    ProtocolError,
    added,
    read_length,
)

#: A line longer than this is not held to see its end, in bytes.
LINE: Final = 65536
#: The first element of an aggregate is worth telling if it is shorter, in bytes.
HEAD: Final = 64

_SIMPLE: Final = ord("+")
_BULK: Final = ord("$")
_PUSH: Final = ord(">")
_ATTRIBUTE: Final = ord("|")
#: What the next value is looked at for: it may be the head of the frame, or of a push inside it.
_OF_FRAME: Final = 1
_OF_PUSH: Final = 2


@dataclass(slots=True)
class ReplyFrame:
    r"""One reply, push or message as it came; attributes belong to the value that follows them.

    `raw` is all its bytes; if it was cut through, only those not handed out, and `whole` is False.
    `kind` is the value's first byte, `header` its first line without `\r\n`, LINE bytes at most,
    `head` an aggregate's first element if that is a bulk or simple string under HEAD bytes.
    """

    raw: bytes
    kind: int
    head: bytes | None
    header: bytes
    whole: bool


class ReplyFramer:
    """Cuts an upstream's bytes into replies, holding and copying as little of them as it can.

    `feed` it, then call `next` until it gives None; everything else is about the unfinished frame
    behind the complete ones, so it is asked after that. After a ProtocolError or `rest` there are
    no more frames: what is fed is kept for `rest`.
    """

    __slots__ = (
        *("_ready", "_broken", "_ended", "_done", "_read", "_tail", "_given", "_cut"),
        *("_left", "_kind", "_header", "_head", "_look", "_skip", "_long", "_begun"),
    )

    def __init__(self) -> None:
        # Made when there is something to be in it: most connections are idle, and an empty one takes 760 bytes.
        self._ready: deque[ReplyFrame] | None = None
        self._broken: str | None = None
        self._ended = False
        # What is not handed out, in order: bytes read of the unfinished frame (how many: `_read`), and
        # the unread tail (a piece of a header, a line or a head) from `_given` on. `_cut`: some of it
        # was handed out.
        self._done = NOTHING
        self._read = 0
        self._tail = b""
        self._given = 0
        self._cut = False
        # The unfinished frame: values owed, the kind (0: not known yet), header and head of its
        # value, and what the next value is looked at for.
        self._left = 1
        self._kind = 0
        self._header = b""
        self._head: bytes | None = None
        self._look = 0
        # How many bytes of the value that was read last are still to come, or whether it is a line
        # whose end is not known; whether anything was read.
        self._skip = 0
        self._long = False
        self._begun = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they were received. Never raises."""
        if self._ended:
            self._keep(data)
        elif self._skip > len(data):
            self._skip -= len(data)
            self._keep(data)
        else:
            self._scan(self._tail + data if self._tail else data)

    def next(self) -> ReplyFrame | None:
        """Give the next complete frame, or None until more is fed.

        Raises ProtocolError, then and ever after, where the bytes are no reply; `rest` has them.
        """
        if (ready := self._ready) is not None:
            frame = ready.popleft()
            self._ready = ready or None
            return frame
        if self._broken is not None:
            raise ProtocolError(self._broken)
        return None

    @property
    def partial(self) -> int:
        """How many bytes are here that are in no complete frame and were not handed out."""
        return self._read + len(self._tail) - self._given

    @property
    def started(self) -> bool:
        """Whether a byte of an unfinished frame was seen, be it here or handed out."""
        return self._begun or bool(self._tail)

    @property
    def kind(self) -> int | None:
        """The unfinished frame's first byte behind its attributes, once that is seen."""
        if self._kind or self._left > 1 or not self._tail or self._tail[0] == _ATTRIBUTE:
            return self._kind or None
        return self._tail[0]

    @property
    def unfinished(self) -> ReplyFrame:
        """What is known of the unfinished frame, in a frame without bytes; its kind is 0 until its header is here."""
        return ReplyFrame(b"", self._kind, self._head, self._header, False)

    def cut_through(self) -> bytes:
        """Hand out what is here of the unfinished frame, which goes on being watched.

        Another call hands out what came since, and once the frame is complete `next` gives it with
        what was not handed out as `raw`.
        """
        if self._ended:
            return self.rest()
        out = b"".join((*self._done, self._tail[self._given :]))
        self._done, self._read = NOTHING, 0
        self._given = len(self._tail)
        self._cut = self.started
        return out

    def rest(self) -> bytes:
        """Hand out all that was not handed out, complete frames too. No frames come after this."""
        tail = self._tail[self._given :]
        out = b"".join((*(frame.raw for frame in self._ready or ()), *self._done, tail))
        self._ready = None
        self._done = NOTHING
        self._tail = b""
        self._read = self._given = self._kind = 0
        self._begun = False
        self._ended = True
        return out

    def _scan(self, buf: bytes) -> None:  # noqa: C901, PLR0915 - every reply: one loop, local names
        """Read `buf`, which begins with the tail or where a value goes on, as far as it goes."""
        end, find, array, bulk = len(buf), buf.find, ARRAYS.get, ARGUMENTS.get
        ready: deque[ReplyFrame] = deque() if self._ready is None else self._ready
        left, kind, header, head = self._left, self._kind, self._header, self._head
        look, long = self._look, self._long
        # Bytes before `begin` are handed out or in a frame, those before `pos` are read. `old`: the
        # first frame that completes here has something to it that `buf` does not tell.
        begin, pos = self._given, self._skip
        old = self._begun or self._cut
        if long:
            at = find(b"\r\n")
            long = at < 0
            pos = end - buf.endswith(b"\r") if long else at + 2
        try:
            while not long:
                if not left:
                    if pos > end:
                        break
                    frame = ReplyFrame(buf[begin:pos], kind, head, header, True)
                    if old:
                        self._complete(frame)
                    ready.append(frame)
                    begin, old, left, kind, head = pos, False, 1, 0, None
                if pos >= end:
                    break
                type_ = buf[pos]
                # The value that the frame is about; all others are in its attributes or inside it.
                own = not kind and left == 1 and type_ != _ATTRIBUTE
                if type_ in LINES:
                    at = find(b"\r\n", pos)
                    if at < 0:
                        if end - pos <= LINE:
                            break
                        long, at = True, end
                    if own:
                        kind, header = type_, buf[pos : min(at, pos + LINE)]
                    elif look:
                        text = buf[pos + 1 : at] if type_ == _SIMPLE and at - pos <= HEAD else None
                        if look == _OF_FRAME:
                            head = text
                        elif text in CONFIRMATIONS:
                            left -= 1
                        look = 0
                    pos = end - buf.endswith(b"\r") if long else at + 2
                    left -= 1
                elif type_ in BLOBS:
                    found = bulk(buf[pos : pos + 4]) or bulk(buf[pos : pos + 5])
                    found = found or read_length(buf, pos)
                    if found is None or pos + found[1] > end:
                        break
                    size, at = found[0], pos + found[1]
                    stop = at + size + 2 if size >= 0 else at
                    if own:
                        kind, header = type_, buf[pos : at - 2]
                    elif look:
                        short = type_ == _BULK and 0 <= size < HEAD
                        if short and stop > end:
                            break
                        text = buf[at : stop - 2] if short else None
                        if look == _OF_FRAME:
                            head = text
                        elif text in CONFIRMATIONS:
                            left -= 1
                        look = 0
                    pos = stop
                    left -= 1
                else:
                    found = array(buf[pos : pos + 4]) or read_length(buf, pos)
                    if found is None or pos + found[1] > end:
                        break
                    owed = max(0, found[0]) * WIDTH[type_]
                    look = 0
                    if own:
                        kind, header = type_, buf[pos : pos + found[1] - 2]
                        look = _OF_FRAME if owed else 0
                    elif type_ == _PUSH:
                        look = _OF_PUSH if owed else 0
                        left += 1
                    elif type_ == _ATTRIBUTE:
                        left += 1
                    left += owed - 1
                    pos += found[1]
        except ProtocolError as error:
            self._broken, self._ended = error.text, True
            self._ready = ready or None
            self._keep(buf[begin:])
            self._tail = b""
            self._given = 0
            return
        self._ready = ready or None
        self._left, self._kind, self._header, self._head = left, kind, header, head
        self._look, self._long = look, long
        self._skip = max(0, pos - end)
        self._given = max(0, begin - pos)
        self._tail = buf[pos:]
        if pos > begin:
            self._keep(buf[begin:pos])
        self._begun = pos > begin or old

    def _keep(self, data: bytes) -> None:
        self._done = added(self._done, data)
        self._read += len(data)

    def _complete(self, frame: ReplyFrame) -> None:
        """Complete a frame that has begun earlier, of which `raw` is what the last buffer has."""
        frame.raw = b"".join((*self._done, frame.raw))
        frame.whole = not self._cut
        self._done = NOTHING
        self._read = 0
        self._cut = False


def elements(raw: bytes) -> tuple[bytes, list[bytes], list[bytes]]:
    r"""Split one whole aggregate: its header, its elements, and the pushes that stand between them.

    The header is its first line with `\r\n`, behind its attributes if it has any; a map's elements
    are its keys and values in turn; an element's attributes belong to it. Each byte of `raw` is in
    exactly one of the parts. A null has no elements. Raises ProtocolError for anything else.
    """
    at = 0
    while raw[at : at + 1] == b"|":
        found = read_length(raw, at)
        if found is None:
            raise ProtocolError("an attribute of nothing")
        at = _behind(raw, at + found[1], 2 * found[0])
    found = read_length(raw, at) if raw[at : at + 1] and raw[at] in WIDTH else None
    if found is None:
        raise ProtocolError(f"{raw[:1]!r} begins no aggregate")
    parts: list[bytes] = []
    pushes: list[bytes] = []
    for frame in frames_of(raw[at + found[1] :]):
        aside = frame.kind == _PUSH and frame.head not in CONFIRMATIONS
        (pushes if aside else parts).append(frame.raw)
    if len(parts) != max(0, found[0]) * WIDTH[raw[at]]:
        raise ProtocolError(f"{len(parts)} elements behind {raw[:1]!r}")
    return raw[: at + found[1]], parts, pushes


def _behind(raw: bytes, pos: int, number: int) -> int:
    """Where so many values end that begin at `pos`, looking at hardly more than them; raises ProtocolError if they do not."""
    framer, piece, step = ReplyFramer(), b"*%d\r\n" % number, HEAD
    begin = pos - len(piece)
    framer.feed(piece)
    while (frame := framer.next()) is None:
        if pos >= len(raw):
            raise ProtocolError("an attribute of nothing")
        framer.feed(raw[pos : pos + step])
        pos, step = pos + step, 2 * step
    return begin + len(frame.raw)


def frames_of(raw: bytes) -> list[ReplyFrame]:
    """Cut bytes that are whole replies; raises ProtocolError if they are not."""
    framer = ReplyFramer()
    framer.feed(raw)
    frames = []
    while (frame := framer.next()) is not None:
        frames.append(frame)
    if framer.partial:
        raise ProtocolError("a reply that goes on")
    return frames
