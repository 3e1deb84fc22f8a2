"""Redis' glob, as KEYS, SCAN MATCH and PSUBSCRIBE understand it.

Takes a pattern and a value, both bytes; gives whether the whole value matches.

`*` any run, `?` one byte, `[abc]` `[a-z]` `[^a]` one of a class, and a backslash takes the next
byte as it is, in a class too. Nothing is malformed: a class that is never closed goes on to the end, a
range the wrong way round is turned, a last lone backslash is itself. Bytes count as
0 to 255. A lone `*` matches the empty value too, though Redis' own matcher says no to it: it is asked
about clients without a name.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

#: No glob is longer, in bytes: for each byte of a value so many of a pattern may have to be looked at.
LONGEST: Final = 256
_BACKSLASH = 0x5C


def glob_match(pattern: bytes, value: bytes) -> bool:
    """Whether `value` as a whole matches `pattern`.

    Linear in the value for each star: patterns come from a profile, values from anybody.
    """
    return compiled(pattern).match(value) is not None


@lru_cache(maxsize=1024)
def compiled(pattern: bytes) -> re.Pattern[bytes]:
    """The pattern as a regular expression that matches at the start and holds for the whole."""
    runs = _runs(pattern)
    if len(runs) == 1:
        return re.compile(runs[0] + rb"\Z", re.DOTALL)
    first, *middle, last = runs
    # The first place where a run between two stars fits is as good as any later one, so what a star
    # took is never given back (an atomic group): no pattern makes matching explode.
    found = b"".join(rb"(?>.*?" + run + b")" for run in middle if run)
    return re.compile(first + found + b".*" + last + rb"\Z", re.DOTALL)


def _runs(pattern: bytes) -> list[bytes]:
    """What stands between the stars, each as an expression that takes a fixed number of bytes."""
    runs = [b""]
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        if byte == ord("*"):
            runs.append(b"")
        elif byte == ord("?"):
            runs[-1] += b"."
        elif byte == ord("["):
            taken, at = _class(pattern, at + 1)
            runs[-1] += taken
        else:
            if byte == _BACKSLASH and at + 1 < len(pattern):
                at += 1
            runs[-1] += re.escape(pattern[at : at + 1])
        at += 1
    return runs


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """The class that opens before `at`, and where it ends (at its `]`, or at the pattern's end)."""
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(pattern) and pattern[at] != ord("]"):
        if pattern[at] == _BACKSLASH and at + 1 < len(pattern):
            at += 1
            members.add(pattern[at])
        elif at + 2 < len(pattern) and pattern[at + 1] == ord("-"):
            low, high = sorted((pattern[at], pattern[at + 2]))
            members.update(range(low, high + 1))
            at += 2
        else:
            members.add(pattern[at])
        at += 1
    if negated:
        members = set(range(256)) - members
    if not members:
        return rb"(?!)", at
    return b"[" + b"".join(_ranges(members)) + b"]", at


def _ranges(members: set[int]) -> Iterable[bytes]:
    """The members in as few ranges as there are: a class of all bytes but one is compiled as fast as one of two."""
    start = None
    for member in sorted(members):
        if start is None:
            start = member
        if member + 1 not in members:
            yield b"\\x%02x-\\x%02x" % (start, member)
            start = None
