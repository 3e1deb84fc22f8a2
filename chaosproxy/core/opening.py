"""How commands begin: what they have in common is found out once, and many of them are then taken for one.

Takes chunks of commands that begin alike; gives how many of them may pass as they are, and where those end.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from chaosproxy.core import strides
from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES
from chaosproxy.core.syntax import ARRAYS, read_argument, read_header
from chaosproxy.core.tally import Tally

if TYPE_CHECKING:
    from chaosproxy.core.world import Name, World

#: Takes how long replies took that may be waited for on purpose: nobody asks.
_UNTIMED: Final = Tally("")
#: What comes so often gets a pattern of its own.
OFTEN: Final = 64
_STAR: Final = ord("*")


class Opening:
    """How commands of the fast lane begin, as far as their name: `raw`, with `arguments` more to follow.

    `at` and `all` are the `match` and `findall` of its pattern (`strides.command`): of what is no such command `all` ends in what it
    is if `unkeyed`, else in nothing. They know short arguments only, and find nothing until the opening was seen `OFTEN`, once it is
    `over`, and where more than the key has to be seen. `timed` takes how long its commands took.
    """

    __slots__ = (
        "_key", "_long", "_seen", "all", "arguments", "at", "glance", "name", "raw", "sent", "size", "tally", "timed", "unkeyed",
    )  # fmt: skip

    def __init__(self, name: "Name", raw: bytes, arguments: int) -> None:
        self.name, self.raw, self.arguments = name, raw, arguments
        self.glance, self.tally, self.size = name.glance, name.tally, len(raw)
        self.sent = raw[-2 - len(name.upper) : -2]
        self.timed = _UNTIMED if name.blocking else name.tally
        self._seen = 0
        self.over()

    def over(self) -> None:
        """What is known of the name is not so any more."""
        # The argument that is a pattern's first group.
        self._key = 0
        self.unkeyed = True
        self._long: re.Pattern[bytes] | None = None
        self.at: Callable[[bytes, int], re.Match[bytes] | None] = self._learn
        self.all: Callable[..., list[bytes]] = _none

    def _learn(self, _data: bytes, _pos: int) -> None:
        """It has come once more."""
        self._seen += 1
        glance = self.glance
        quick = not self.name.blocking and (glance is None or glance.quick)
        if quick and self._seen == OFTEN and self.arguments <= strides.MOST_ARGUMENTS:
            self._key = glance.key_at if glance and glance.keyed else 0
            pattern = strides.command(self.raw, self.arguments, self._key)
            self.at, self.all = pattern.match, pattern.findall
            self.unkeyed = not 0 < self._key <= self.arguments

    def is_long(self, data: bytes, now: float) -> bool:
        """Whether a chunk is one command that begins so, of which only the last argument is long, and that the rules leave alone.

        False if that is not told so quickly, whatever the reason.
        """
        match, pos = self.ends_long(data, 0)
        return match is not None and pos == len(data) and self._alone(match, now)

    def alike(self, data: bytes, start: int, now: float) -> tuple[int, int]:
        """How many commands that begin so, all short, pass from a place on, and where they end; what rules count is counted.

        0 if that is not told so quickly, whatever the reason.
        """
        match, glance = self.at(data, start), self.glance
        if not match or (match.lastindex is None) is not self.unkeyed:
            return self._one(data, start, now)
        times, pos = 1, match.end()
        keys: Sequence[bytes] = () if self.unkeyed else match.groups()
        if pos < len(data) and data.startswith(self.raw, pos):
            found = self.all(data, start)
            if self.unkeyed:
                times, pos = len(found) - bool(found[-1]), len(data) - len(found[-1])
            else:
                keys, times = found, len(found) - (not found[-1])
                pos = len(data) if found[-1] else self._end(data, start, times)
        if glance is None:
            return times, pos
        free = glance.pass_over(keys, times, now)
        return free, pos if free == times else self._end(data, start, free)

    def _end(self, data: bytes, pos: int, times: int) -> int:
        """Where so many short commands end that begin here."""
        for _ in range(times):
            match = self.at(data, pos)
            pos = match.end() if match else pos
        return pos

    def ends_long(self, data: bytes, start: int) -> tuple[re.Match[bytes] | None, int]:
        """Whether a command begins here of which only the last argument is long; then its pattern's match, and where it ends."""
        if self._long is None:
            if self.all is _none or not 0 <= self._key < self.arguments:
                return None, start
            self._long = strides.long_command(self.raw, self.arguments, self._key)
        match = self._long.match(data, start)
        return match, match.end() + int(match[self._long.groups]) + 2 if match else start

    def _one(self, data: bytes, start: int, now: float) -> tuple[int, int]:
        """As `alike`, for one command that `ends_long`."""
        match, pos = self.ends_long(data, start)
        if match and pos <= len(data) and self._alone(match, now):
            return 1, pos
        return 0, start

    def _alone(self, match: re.Match[bytes], now: float) -> bool:
        """Whether the rules leave this one command alone; then that is counted."""
        glance, keys = self.glance, match.groups()[:1] if self._key else ()
        return glance is None or glance.pass_over(keys, 1, now) == 1


def read_opening(world: "World", data: bytes, pos: int) -> Opening | None:
    """Read a command as far as its name, and keep what is found; None if it is not for the fast lane."""
    if data[pos] != _STAR:
        return None
    header = ARRAYS.get(data[pos : pos + 4]) or read_header(data, pos)
    if header is None or header[0] <= 0 or pos + header[1] >= len(data):
        return None
    argument = read_argument(data, pos + header[1])
    if argument is None:
        return None
    begin = pos + header[1] + argument[1]
    end = begin + argument[0]
    if end > len(data):
        return None
    sent = data[begin:end]
    name = world.name(sent)
    # A slot without a name is a push's.
    if not name.upper or not (name.plain or name.glance):
        return None
    found = Opening(name, data[pos:end] + b"\r\n", header[0] - 1)
    if len(world.openings) < MOST_NAMES and len(sent) <= LONGEST_NAME:
        world.openings[data[pos:end]] = found
    return found


def _none(data: bytes, pos: int = 0) -> list[bytes]:
    return [data[pos:]]
