"""The texts in a reply: its bulk and verbatim strings, however deep they stand.

Takes one whole raw reply and what is to become of each text; gives the reply with its lengths put right, everything else as it came.
"""

import re
from collections.abc import Callable
from typing import Final

_END: Final = b"\r\n"
#: What is followed by as many bytes as it says. Only the first two are texts: `!` is an error, `;` a piece of a text whose length
#: nobody knows yet.
_COUNTED: Final = frozenset(b"$=!;")
_TEXTS: Final = frozenset(b"$=")
#: A verbatim string's content begins with its format and a colon.
_FORMAT: Final = 4
#: One character of two to four bytes in UTF-8.
MULTIBYTE: Final = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
#: A byte that UTF-8 has nowhere.
_NEVER: Final = b"\xff"


def change_texts(raw: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Put in each text's place what `change` makes of it; `raw` itself if that changes nothing."""
    out: list[bytes] = []
    pos = 0
    changed = False
    while pos < len(raw):
        end = raw.find(_END, pos)
        if end < 0:  # no server's
            return raw
        head, kind = raw[pos:end], raw[pos]
        pos = end + 2
        size = int(head[1:]) if kind in _COUNTED and head[1:].isdigit() else -1
        if size < 0 or (kind == ord(";") and not size):
            out.append(head + _END)
            continue
        content = raw[pos : pos + size]
        pos += size + 2
        if kind in _TEXTS:
            skip = _FORMAT if kind == ord("=") else 0
            text = content[:skip] + change(content[skip:])
            changed = changed or text != content
            head, content = b"%c%d" % (kind, len(text)), text
        out.append(head + _END + content + _END)
    return b"".join(out) if changed else raw


def shortened(text: bytes, size: int) -> bytes:
    """The first `size` bytes of a text."""
    return text[:size]


def not_utf8(text: bytes) -> bytes:
    """The text with one byte replaced by one that UTF-8 has nowhere: the last one of its first character of several bytes, else its last."""
    found = MULTIBYTE.search(text)
    at = found.end() if found else len(text)
    return text[: at - 1] + _NEVER + text[at:] if text else text
