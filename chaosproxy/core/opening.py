"""How commands begin: what they have in common is found out once, and many of them are then taken for one.

Takes chunks of commands that begin alike; gives how many of them may pass as they are, and where those end.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from chaosproxy.core import strides
from chaosproxy.core.engine import LONGEST_NAME, MOST_NAMES
from chaosproxy.core.syntax import ARRAYS, read_argument, read_header

if TYPE_CHECKING:
    from chaosproxy.core.world import Name, World

#: What comes so often gets a pattern of its own.
OFTEN: Final = 64
_STAR: Final = ord("*")


class Opening:
    """How commands of the fast lane begin, as far as their name: `raw`, with `arguments` more to follow.

    `whole`, `at` and `all` are the `fullmatch`, `match` and `findall` of its pattern (`strides.command`), whose last group is
    `rest`. They know short arguments only, and find nothing until the opening was seen `OFTEN` and once it is `over`.
    """

    __slots__ = (
        "_key", "_long", "_seen", "all", "arguments", "at", "glance", "name", "raw", "rest", "size", "tally", "whole",
    )  # fmt: skip

    def __init__(self, name: "Name", raw: bytes, arguments: int) -> None:
        self.name, self.raw, self.arguments = name, raw, arguments
        self.glance, self.tally, self.size = name.glance, name.tally, len(raw)
        self._seen = 0
        self.over()

    def over(self) -> None:
        """What is known of the name is not so any more."""
        self.rest = 1
        self._key = 0
        self._long: re.Pattern[bytes] | None = None
        self.whole: Callable[[bytes], re.Match[bytes] | None] = _nothing
        self.at: Callable[[bytes, int], re.Match[bytes] | None] = self._learn
        self.all: Callable[[bytes, int], list[Any]] = _none

    def _learn(self, _data: bytes, _pos: int) -> None:
        """It has come once more."""
        self._seen += 1
        if self._seen == OFTEN and self.arguments <= strides.MOST_ARGUMENTS:
            self._key = self.glance.key_at if self.glance and self.glance.keyed else 0
            pattern = strides.command(self.raw, self.arguments, self._key)
            self.whole, self.at, self.all = pattern.fullmatch, pattern.match, pattern.findall
            self.rest = pattern.groups

    def alone(self, match: re.Match[bytes], now: float) -> bool:
        """Whether the rules leave this one command alone; then that is counted."""
        glance = self.glance
        if glance is None:
            return True
        return glance.quick and glance.pass_over(match.groups()[: self.rest - 1], 1, now) == 1

    def alike(self, data: bytes, start: int, now: float) -> tuple[int, int]:
        """How many commands that begin so, all short, pass from a place on, and where they end; what rules count is counted.

        0 if that is not told so quickly, whatever the reason.
        """
        match, rest = self.at(data, start), self.rest
        glance = self.glance
        if glance and not glance.quick:
            return 0, start
        if not match or match.lastindex == rest:
            return self._one(data, start, now)
        times, pos = 1, match.end()
        keys: Sequence[bytes] = ()
        if pos < len(data) and data.startswith(self.raw, pos):
            found = self.all(data, start)
            left = found[-1] if rest == 1 else found[-1][1]
            times = len(found) - bool(left)
            pos = len(data) - len(left)
            if rest > 1:
                keys = [key for key, _ in found]
        elif rest > 1:
            keys = match.groups()[:1]
        if glance is None:
            return times, pos
        free = glance.pass_over(keys, times, now)
        if free < times:
            pos = start
            for _ in range(free):
                match = self.at(data, pos) or match
                pos = match.end()
        return free, pos

    def ends_long(self, data: bytes, start: int) -> tuple[re.Match[bytes] | None, int]:
        """Whether a command begins here of which only the last argument is long; then its pattern's match, and where it ends."""
        if self._long is None:
            if self.whole is _nothing or not 0 <= self._key < self.arguments:
                return None, start
            self._long = strides.long_command(self.raw, self.arguments, self._key)
        match = self._long.match(data, start)
        return match, match.end() + int(match[self._long.groups]) + 2 if match else start

    def _one(self, data: bytes, start: int, now: float) -> tuple[int, int]:
        """As `alike`, for one command that `ends_long`."""
        match, pos = self.ends_long(data, start)
        if match and pos <= len(data) and self.alone(match, now):
            return 1, pos
        return 0, start


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


def _nothing(_data: bytes) -> None:
    return None


def _none(data: bytes, pos: int) -> list[Any]:
    return [data[pos:]]
