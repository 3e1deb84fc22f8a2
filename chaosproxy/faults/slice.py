"""`slice`: a reply arrives in pieces."""

from dataclasses import dataclass

from chaosproxy.core.decision import Decision, Pieces, Position
from chaosproxy.core.fault import Context, Fault, fault
from chaosproxy.core.setting import Invalid, Kind, parse_each, setting
from chaosproxy.core.spots import HELP, SPOT, spots
from chaosproxy.core.units import COUNT, POSITIVE_DURATION, SIGNED_INT, whole

#: No reply is cut at more places than this.
MOST_CUTS = 10_000


def _split(value: object) -> tuple[int, ...] | str:
    if isinstance(value, str):
        spot: str = SPOT.parse(value)
        return spot
    if not isinstance(value, list):
        return (_offset(value),)
    if not value:
        raise Invalid("expected an offset, a list of offsets or a spot, got an empty list")
    return tuple(parse_each(lambda _, each: _offset(each), enumerate(value)))


def _offset(value: object) -> int:
    offset: int = SIGNED_INT.parse(value)
    if offset == 0:
        raise Invalid("0 cuts nothing off; offsets count bytes from 1, or from the end from -1")
    return offset


SPLIT = Kind(
    "offset, list of offsets, or spot",
    _split,
    {
        "anyOf": [
            SPOT.schema,
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

    Each piece is a packet of its own, and is read as one as long as the gap is some tens of milliseconds; nothing is lost or
    reordered.
    """

    positions = (Position.AFTER_APPLY,)
    outcome = "ok"
    on_pushes = True

    split: tuple[int, ...] | str | None = setting(
        SPLIT,
        "Where to cut: offsets into the reply in bytes (negative: from its end), or wherever there is a spot: "
        f"{HELP}.",
        default=None,
    )
    size: int | None = setting(
        whole("size", "a number of bytes from 1", 1),
        "Instead of split: pieces of so many bytes.",
        default=None,
    )
    most: int = setting(
        COUNT,
        "With a spot: at how many places at most; where there are more, evenly chosen ones.",
        default=10,
    )
    gap: float = setting(POSITIVE_DURATION, "How long between two pieces.", default="100ms")

    def check(self, at: Position) -> None:
        """One of the two says where."""
        del at
        if (self.split is None) == (self.size is None):
            raise Invalid("give exactly one of split and size")

    def decide(self, context: Context) -> Decision | None:
        """Find the places in this reply."""
        raw = context.reply or b""
        if self.size is not None:
            cuts = list(range(self.size, len(raw), self.size))
        elif isinstance(self.split, tuple):
            found = {offset if offset > 0 else len(raw) + offset for offset in self.split}
            cuts = sorted(cut for cut in found if 0 < cut < len(raw))
        else:
            cuts = _evenly(spots(raw, self.split or ""), self.most)
        return Pieces(tuple(cuts[:MOST_CUTS]), self.gap) if cuts else None


def _evenly(places: list[int], most: int) -> list[int]:
    """So many of the places, at most: the first of as many equal shares of them."""
    count = min(most, len(places))
    return [places[number * len(places) // count] for number in range(count)]
