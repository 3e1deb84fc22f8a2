"""How a long run looks while it lasts: a live line on a terminal, a line now and then otherwise.

Takes a stream and functions that read the counts; gives commands and faults fired, beside what the command itself prints.
"""

import shutil
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final, TextIO

from chaosproxy.telling import printable

#: How often a line is written where there is no terminal, in seconds, while nothing new has fired.
QUIET: Final = 30.0
#: How long after a line the next one may come.
_PAUSE: Final = 5.0
_SAVE, _RESTORE, _CLEAR, _DIM, _PLAIN = "\x1b7", "\x1b8", "\x1b[K", "\x1b[2m", "\x1b[0m"


class Progress:
    """Says how far it is. `read` gives the commands so far and how often each fault has fired."""

    def __init__(self, stream: TextIO, read: Callable[[], tuple[int, Mapping[str, int]]]) -> None:
        self._stream = stream
        self._read = read
        self._live = stream.isatty()
        self._began = self._said = monotonic()
        self._fired: dict[str, int] = {}
        self._drawn = False

    def tick(self) -> None:
        """Some time has passed."""
        commands, fired = self._read()
        now = monotonic()
        if self._live:
            self._draw(self._line(commands, fired, now))
            return
        new = any(count and not self._fired.get(name) for name, count in fired.items())
        if now - self._said >= (_PAUSE if new else QUIET):
            self._said, self._fired = now, dict(fired)
            self._write(f"chaosproxy: {self._line(commands, fired, now)}\n")

    def end(self) -> None:
        """It is over: the live line goes."""
        if self._drawn:
            self._draw("")

    def _line(self, commands: int, fired: Mapping[str, int], now: float) -> str:
        counts = ", ".join(f"{printable(name)} {count}" for name, count in fired.items() if count)
        told = f"fired: {counts}" if counts else "nothing fired"
        return f"{now - self._began:.0f} s, {commands} commands, {told}"

    def _draw(self, text: str) -> None:
        """Write it at the right margin and go back: the command writes where it was, and over it where it must."""
        width = shutil.get_terminal_size().columns
        text = text[: max(0, width - 1)]
        start = max(1, width - len(text))
        self._drawn = bool(text)
        self._write(f"{_SAVE}\x1b[{start}G{_CLEAR}{_DIM}{text}{_PLAIN}{_RESTORE}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
