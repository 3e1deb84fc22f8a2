"""The rolls of `when: chance`: each one depends on the seed, the rule's name, what is counted over and the match's number.

Takes what a rule counts over and a match's number; gives a number in [0, 1), or for how many matches none is below another.
"""

from hashlib import blake2b
from math import ceil
from struct import Struct
from typing import Final

#: So many rolls come of one hash, 64 bits each; a float has 53 of them.
_HASH: Final = Struct("<8Q")
_A_HASH: Final = 8
_UNUSED: Final = 11
_BIT: Final = 2.0**-53
#: So far ahead is looked for the next roll that is low enough, in matches.
_FAR: Final = 64


class Rolls:
    """One rule's rolls. `prefix` tells it from all others, the seed included."""

    __slots__ = ("_block", "_high", "_hit", "_low", "_prefix", "_rolls")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        # The rolls that were made last, and which they are.
        self._block: tuple[str, int] | None = None
        self._rolls: tuple[int, ...] = ()
        # The rolls of the matches from `_low` up to `_high` are too high.
        self._low = self._high = 0
        # Whether that of `_high` is known not to be.
        self._hit = False

    def roll(self, per: str, number: int) -> float:
        """Give the roll of one match, counted over `per`."""
        block, index = divmod(number, _A_HASH)
        return (self._hash(per, block)[index] >> _UNUSED) * _BIT

    def too_high(self, number: int, chance: float) -> int:
        """How many matches from this one on, of the whole fault, have rolls that are not below the chance, as far as is looked.

        The chance is the same in all calls.
        """
        if not self._low <= number <= self._high:
            self._low = self._high = number
            self._hit = False
        # A roll is its upper bits alone.
        enough = ceil(chance / _BIT) << _UNUSED
        while not self._hit and self._high - number < _FAR:
            block, index = divmod(self._high, _A_HASH)
            rolls = self._hash("", block)[index:]
            self._hit = min(rolls) < enough
            if self._hit:
                self._high += next(at for at, roll in enumerate(rolls) if roll < enough)
            else:
                self._high += len(rolls)
        return self._high - number

    def _hash(self, per: str, block: int) -> tuple[int, ...]:
        """The rolls of one hash; the last ones are kept."""
        if self._block != (per, block):
            self._block = per, block
            words = f"{self._prefix}{per}/{block}".encode()
            self._rolls = _HASH.unpack(blake2b(words).digest())
        return self._rolls
