"""`slice`: a reply arrives in pieces."""

import re
from dataclasses import dataclass

from chaosproxy.core.decision import Decision, Pieces, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, Kind, setting
from chaosproxy.core.units import DURATION, SIGNED_INT, choice, whole

INSIDE_MULTIBYTE = "inside_multibyte"
BEFORE_CRLF = "before_crlf"
INSIDE_HEADER = "inside_header"

_SPOTS = choice("spot", INSIDE_MULTIBYTE, BEFORE_CRLF, INSIDE_HEADER)
#: One character of two to four bytes in UTF-8.
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_HEADER = re.compile(rb"[$*%~>=!|][0-9]+\r\n")
#: No reply is cut into more pieces than this.
MOST_PIECES = 10_000


def _split(value: object) -> tuple[int, ...] | str:
    if isinstance(value, str):
        spot: str = _SPOTS.parse(value)
        return spot
    values = value if isinstance(value, list) else [value]
    if not values:
        raise Invalid("expected an offset, a list of offsets or a spot, got an empty list")
    offsets = []
    for index, each in enumerate(values):
        try:
            offset: int = SIGNED_INT.parse(each)
        except Invalid as wrong:
            raise (wrong.under(index) if isinstance(value, list) else wrong) from None
        if offset == 0:
            raise Invalid("0 cuts nothing off; offsets count bytes from 1, or from the end from -1")
        offsets.append(offset)
    return tuple(offsets)


SPLIT = Kind(
    "offset, list of offsets, or spot",
    _split,
    {
        "anyOf": [
            _SPOTS.schema,
            {**SIGNED_INT.schema, "not": {"const": 0}},
            {"type": "array", "items": {**SIGNED_INT.schema, "not": {"const": 0}}, "minItems": 1},
        ]
    },
    "bytes",
)


@fault
@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Fault):
    """A reply (or, with `match: push`, a push) is delivered in pieces.

    Each piece is a packet of its own as long as the gap is some tens of milliseconds; nothing is lost or reordered.
    """

    positions = (Position.AFTER_APPLY,)
    outcome = "ok"

    split: tuple[int, ...] | str | None = setting(
        SPLIT,
        "Where to cut: offsets into the reply in bytes (negative: from its end), or every inside_multibyte (in the middle of "
        "each UTF-8 character of several bytes), before_crlf (between each CR and its LF), inside_header (in the middle of "
        "each length).",
        default=None,
    )
    size: int | None = setting(
        whole("size", "a number of bytes from 1", 1),
        "Instead of split: pieces of so many bytes.",
        default=None,
    )
    gap: float = setting(DURATION, "How long between two pieces.", default="100ms")

    def check(self, at: Position) -> None:
        """One of the two says where."""
        del at
        if (self.split is None) == (self.size is None):
            raise Invalid("give exactly one of split and size")

    def decide(self, context: Context) -> Decision | None:
        """Find the places in this reply."""
        raw = context.reply or b""
        cuts = sorted({cut for cut in self._cuts(raw) if 0 < cut < len(raw)})[:MOST_PIECES]
        return Pieces(tuple(cuts), self.gap) if cuts else None

    def _cuts(self, raw: bytes) -> list[int]:
        if self.size is not None:
            return list(range(self.size, len(raw), self.size))
        match self.split:
            case "inside_multibyte":
                return [found.start() + 1 for found in _MULTIBYTE.finditer(raw)]
            case "before_crlf":
                return [found.start() + 1 for found in re.finditer(b"\r\n", raw)]
            case "inside_header":
                return [found.start() + 1 for found in _HEADER.finditer(raw)]
            case tuple() as offsets:
                return [offset if offset > 0 else len(raw) + offset for offset in offsets]
            case _:
                return []
