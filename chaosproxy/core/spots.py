"""Places in a reply that a profile can name: where it is cut, or where the client gets no more of it.

Takes one whole raw reply; gives offsets in bytes from its start.
"""

import re
from itertools import accumulate
from typing import Any, Final, Literal

from chaosproxy.core.reply import elements, frames_of
from chaosproxy.core.setting import Invalid, setting
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.texts import MULTIBYTE
from chaosproxy.core.units import COUNT_OR_ZERO, SIGNED_INT, choice

INSIDE_MULTIBYTE: Final = "inside_multibyte"
BEFORE_CRLF: Final = "before_crlf"
INSIDE_HEADER: Final = "inside_header"
Spot = Literal["inside_multibyte", "before_crlf", "inside_header"]
SPOT: Final = choice("spot", INSIDE_MULTIBYTE, BEFORE_CRLF, INSIDE_HEADER)
#: What each spot is, for help texts.
HELP: Final = (
    "inside_multibyte (in the middle of a UTF-8 character of several bytes), before_crlf (between CR and LF), "
    "inside_header (between a type byte and its length)"
)
#: What is cut behind its first byte.
_AT: Final = {
    INSIDE_MULTIBYTE: MULTIBYTE,
    BEFORE_CRLF: re.compile(b"\r\n"),
    INSIDE_HEADER: re.compile(rb"[$*%~>=!|][0-9]+\r\n"),
}


def spots(raw: bytes, spot: str) -> list[int]:
    """All offsets of that spot."""
    return [found.start() + 1 for found in _AT[spot].finditer(raw)]


def ends(raw: bytes) -> list[int]:
    """Where each part of a reply ends: of an aggregate its header, then its elements; of several frames (confirmations) 0, then they.

    Of a single value that is no aggregate: nothing.
    """
    try:
        frames = [frame.raw for frame in frames_of(raw)]
        if len(frames) > 1:
            return list(accumulate(map(len, frames), initial=0))
        head, parts, _ = elements(raw)
    except ProtocolError:
        return []
    return list(accumulate(map(len, parts), initial=len(head)))


# What faults at mid_reply declare of a share: see `share`.


def share_in_bytes() -> Any:
    """Declare the setting `bytes`."""
    return setting(
        SIGNED_INT,
        "At mid_reply: how many bytes of the reply the client still gets; negative: all but so many. Left out: half.",
        default=None,
    )


def share_in_frames() -> Any:
    """Declare the setting `frames`."""
    return setting(
        COUNT_OR_ZERO,
        "Instead of bytes: how many elements of an array (EXEC's too), or confirmations of a SUBSCRIBE, it still gets whole.",
        default=None,
    )


def share_to_spot() -> Any:
    """Declare the setting `spot`."""
    return setting(
        SPOT, f"Instead of bytes: up to the first spot of that kind: {HELP}.", default=None
    )


def share(
    raw: bytes, count: int | None, frames: int | None, spot: str | None
) -> tuple[bool, int | None]:
    """How many bytes of a reply a client gets: whether there is such a place in it, and the offset (None: half, negative: from its end)."""
    if spot is not None:
        found = spots(raw, spot)
        return bool(found), found[0] if found else None
    if frames is not None:
        edges = ends(raw)
        return frames < len(edges) - 1, edges[frames] if frames < len(edges) else None
    return True, count


def check_share(*, middle: bool, count: int | None, frames: int | None, spot: str | None) -> None:
    """Raise Invalid unless at most one of the settings `bytes`, `frames` and `spot` is given, and that in the `middle` of a reply."""
    given = {"bytes": count, "frames": frames, "spot": spot}
    names = [name for name, value in given.items() if value is not None]
    if names and not middle:
        raise Invalid("goes with at: mid_reply", (names[0],))
    if len(names) > 1:
        raise Invalid("give at most one of bytes, frames and spot", (names[1],))
