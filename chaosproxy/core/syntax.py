r"""The small print of RESP: the headers with lengths and the words of inline commands.

Takes the bytes where a header or a line begins, gives what servers read there; raises ProtocolError
where they read nothing.
"""

import re
from typing import Final

#: The longest header: a type byte, the 20 characters of a 64-bit number, and `\r`.
HEADER: Final = 22
#: The longest line that servers take as an inline command in any pieces, in bytes without its `\n`.
INLINE: Final = 65536
#: The types of reply that are one line, those that are a length and so many bytes, and those that
#: are a count and so many values, or so many times two.
LINES: Final = b"+-:_#,("
BLOBS: Final = b"$=!"
WIDTH: Final = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}
#: How the pushes begin that are replies: each confirms one channel, pattern or shard channel.
CONFIRMATIONS: Final = frozenset(
    (b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe")
)

#: Most connections are idle: what is empty in their framers is this list, which nothing is added to but by `added`.
NOTHING: Final[list[bytes]] = []


class ProtocolError(Exception):
    """Bytes that make no sense to us; `text` says what was not understood, and quotes no more than a type byte: the log has it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def added(pieces: list[bytes], piece: bytes) -> list[bytes]:
    """Add a piece to a list, or to a new one where there is nothing yet; gives the list."""
    if pieces:
        pieces.append(piece)
        return pieces
    return [piece]


def _short_headers(kind: bytes) -> dict[bytes, tuple[int, int]]:
    headers = [(n, b"%s%d\r\n" % (kind, n)) for n in range(1000)]
    return {header[: 4 if n < 100 else 5]: (n, len(header)) for n, header in headers}


#: What nearly all headers begin with, in 4 or else 5 bytes, and what `read_header` reads in them:
#: this makes a framer in Python fast. The last byte of such a header may not be there yet.
ARRAYS: Final = _short_headers(b"*")
ARGUMENTS: Final = _short_headers(b"$")


def read_header(buf: bytes, pos: int) -> tuple[int, int] | None:
    r"""Give the number in the header at `pos` and the header's size, or None if it goes on.

    Its end is `\r` and one more byte, whatever that is; its number has 64 bits and is written in
    the one way servers write and accept. Raises ProtocolError for anything else.
    """
    at = buf.find(b"\r", pos, pos + HEADER)
    if at < 0 and len(buf) - pos < HEADER:
        return None
    digits = buf[pos + 1 : max(at, pos + 1)]
    try:
        value = int(digits)
    except ValueError:
        value = 0
    if b"%d" % value != digits or not -(2**63) <= value < 2**63:
        raise ProtocolError(f"invalid length behind {buf[pos : pos + 1]!r}")
    return (value, at + 2 - pos) if at + 2 <= len(buf) else None


def read_argument(buf: bytes, pos: int) -> tuple[int, int] | None:
    """Read what must be the header of a request's argument, as `read_header` does."""
    if buf[pos] != ord("$"):
        raise ProtocolError(f"expected '$', got {buf[pos : pos + 1]!r}")
    header = read_header(buf, pos)
    if header is not None and header[0] < 0:
        raise ProtocolError(f"an argument of {header[0]} bytes")
    return header


def read_length(buf: bytes, pos: int) -> tuple[int, int] | None:
    """Read what must be the header of a reply that is not one line; -1 stands for null."""
    type_ = buf[pos]
    if type_ not in BLOBS and type_ not in WIDTH:
        raise ProtocolError(f"no reply begins with {buf[pos : pos + 1]!r}")
    header = read_header(buf, pos)
    if header is not None and header[0] < (0 if type_ == ord("|") else -1):
        raise ProtocolError(f"a reply of {header[0]} bytes or elements")
    return header


def read_line(buf: bytes, pos: int) -> bytes | None:
    r"""Give the inline command at `pos` without its `\n`, or None if it goes on.

    Raises ProtocolError for what servers read no further: a line that is too long, or one with a
    NUL, up to which they look for the newline for ever.
    """
    at = buf.find(b"\n", pos, pos + INLINE + 1)
    line = buf[pos : pos + INLINE + 1 if at < 0 else at]
    if b"\0" in line or len(line) > INLINE:
        raise ProtocolError("an inline command with a NUL or without an end")
    return None if at < 0 else line


# A start without quotes, then perhaps one quoted part, up to a blank. Behind a closing quote Redis
# wants a blank or the end, where \v and \f count too; Valkey 9 takes anything and goes on with the
# word. It also leaves out every \xff. What they read differently is not understood here.
_WORD: Final = re.compile(
    rb"""
    ( [^ \t\r\n"']*+ )
    (?: " ( (?: [^"\\] | \\. )*+ ) " | ' ( (?: [^'\\] | \\' | \\(?!') )*+ ) ' )?+
    (?! [^ \t\r\n] )
    [ \t\r\n\v\f]*+
    """,
    re.DOTALL | re.VERBOSE,
)
_SPECIAL: Final = re.compile(rb"[\"'\v\f\xff]")
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split_words(line: bytes) -> list[bytes]:
    r"""Split an inline command into words; raises ProtocolError if servers do not agree on them.

    Double quotes know `\n \r \t \b \a \xHH` and `\` before any other byte, single quotes only `\'`.
    """
    if not _SPECIAL.search(line):
        return line.split()
    if b"\xff" in line:
        raise ProtocolError("a byte 255 in an inline command")
    words = []
    pos = len(line) - len(line.lstrip())
    while pos < len(line):
        word = _WORD.match(line, pos)
        if word is None:
            raise ProtocolError("unbalanced quotes in request")
        plain, double, single = word.groups(b"")
        words.append(plain + _ESCAPE.sub(_unescape, double) + single.replace(rb"\'", b"'"))
        pos = word.end()
    return words


def _unescape(escape: re.Match[bytes]) -> bytes:
    digits, char = escape.groups(b"")
    return bytes([int(digits, 16)]) if digits else _ESCAPED.get(char, char)
