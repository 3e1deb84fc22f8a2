r"""Where commands and replies end, found by regular expressions: for the short ones, of which there are most.

Takes how a command begins, or nothing for replies; gives compiled patterns. What one of them matches is just what the framers
read there; what it does not match may still be right (longer, or written otherwise), and is read in other ways.

A regular expression cannot count, but a number of few digits can be spelled out: a branch for each, which skips as many bytes
as it says. That is one step in C for what is a loop over headers in Python.
"""

import re
from functools import cache, lru_cache
from typing import Final

#: Values of fewer bytes are spelled out. Ten times as many would take ten times as long to compile.
LIMIT: Final = 256
#: Of commands with more arguments behind their name, each is read by itself.
MOST_ARGUMENTS: Final = 6
#: A chunk of more bytes is not taken for so many short ones together: what is left of it would be copied.
MOST_AT_ONCE: Final = 1 << 14
#: What most writes are answered, and as many of it as come together.
OK: Final = b"+OK\r\n"
OKS: Final = OK * 1024
#: What a key that is not there is answered.
NULL: Final = b"$-1\r\n"
END: Final = b"\r\n"
#: So few are written out one behind the other, which matches a little faster and compiles slower.
FEW: Final = 2


def _begins(most: int) -> list[bytes]:
    """What a bulk string begins with, by how many bytes it is in all, fewer than `most`; where none is of that size, too much."""
    begins = [bytes(most)] * most
    begins[len(NULL)] = NULL
    for length in range(most):
        begin = b"$%d\r\n" % length
        if (size := len(begin) + length + len(END)) < most:
            begins[size] = begin
    return begins


#: How a reply that is one bulk string, or a null, begins, by how many bytes it is in all; it ends in `END`.
BULKS: Final = tuple(_begins(2048))


def _lengths(digits: str) -> str:
    """Spell out a length that begins with these digits: the rest of the number, the line's end, and so many bytes."""
    number = int(digits)
    ends = rf"\r\n.{{{number}}}" if number else r"\r\n"
    if not 0 < number * 10 < LIMIT:
        return ends
    more = "|".join(
        f"{digit}{_lengths(digits + digit)}"
        for digit in "0123456789"
        if int(digits + digit) < LIMIT
    )
    return f"(?:{ends}|{more})"


#: A bulk string, whole.
_BULK: Final = r"\$(?:" + "|".join(d + _lengths(d) for d in "1234567890") + r")\r\n"

#: One reply, neither an error nor of several values.
_REPLY: Final = r"[+:_#,(][^\r\n]*+\r\n|" + _BULK + r"|\$-1\r\n"
#: Where a bulk string of some hundred bytes or more begins: how many they are.
_LENGTH: Final = r"\$([1-9]\d{2,8})\r\n"
#: Stands last in a pattern for `findall`: takes all that is left, so that nothing is searched, and tells what it is.
_REST: Final = "|(.+)"
_ANYTHING: Final = "|.+"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), re.DOTALL)


_replies: Final = _compiled(_REPLY + _REST)
#: Give an empty string for each such reply that a chunk begins with, then what is left of it, if anything is.
replies: Final = _replies.findall
_long_reply: Final = _compiled(_LENGTH).match


def is_reply(data: bytes) -> bool:
    """Whether bytes are one such reply and nothing else."""
    match = _replies.fullmatch(data)
    return match is not None and not match.lastindex


@cache
def _cutter() -> re.Pattern[bytes]:
    return _compiled(_REPLY + _ANYTHING)


def cut_replies(data: bytes) -> list[bytes]:
    """Give each such reply that a chunk begins with, as it came, then what is left of it, if anything is."""
    return _cutter().findall(data)


def is_long_reply(data: bytes) -> bool:
    """Whether bytes are one bulk string of some hundred bytes or more, and nothing else."""
    match = _long_reply(data)
    return match is not None and match.end() + int(match[1]) + 2 == len(data)


@lru_cache(maxsize=128)
def command(opening: bytes, arguments: int, key: int = 0) -> re.Pattern[bytes]:
    """Give the pattern of a whole command that begins so (its name included) and has so many more arguments.

    Its only group takes anything else: see `replies`. With a `key`, it is that argument as sent, the first one being 1; of
    anything else it is empty. Compiling takes some milliseconds: it is for what comes again and again.
    """
    rest = _ANYTHING if 0 < key <= arguments else _REST
    return _compiled(_begun(opening, arguments, key) + rest)


@lru_cache(maxsize=128)
def long_command(opening: bytes, arguments: int, key: int = 0) -> re.Pattern[bytes]:
    """As `command`, up to where the last argument begins, which is a long one: its length is the last group."""
    return _compiled(_begun(opening, arguments - 1, key) + _LENGTH)


def _begun(opening: bytes, arguments: int, key: int) -> str:
    parts = [_BULK] * arguments
    if 0 < key <= arguments:
        parts[key - 1] = f"({_BULK})"
    elif arguments > FEW:
        parts = [f"(?:{_BULK}){{{arguments}}}"]
    return "".join((re.escape(opening).decode("latin-1"), *parts))
