"""Lines for a file, or for a pipe whose reader takes its time: each arrives whole or not at all, and none holds up who writes it.

Takes a path and lines; gives them to the file in order, and the number of those that there was no room for.
"""

import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Final

#: So many lines wait for a reader who does not read; then they are lost.
MOST: Final = 10_000
#: How long the last lines wait for their reader in the end, in seconds.
LAST: Final = 1.0
_STDOUT: Final = 1

_log = logging.getLogger("chaosproxy.lines")


class Lines:
    """A file over what it held, or stdout (`-`), that begins with `first`. Raises OSError if that cannot be written.

    A disk that is full is tried again with each line; `lost` counts those that did not get there.
    """

    def __init__(self, path: str, first: bytes) -> None:
        self._name = path
        self.lost = 0
        #: What is still to be written of a line, and how much of it the file has.
        self._rest, self._begun = b"", 0
        self._file = (
            os.dup(_STDOUT)
            if path == "-"
            else os.open(Path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        )
        try:
            while first:
                first = first[os.write(self._file, first) :]
        except BaseException:
            os.close(self._file)
            raise
        self._aside = _Aside(self._write) if _may_block(self._file) else None

    def write(self, line: bytes) -> None:
        """Write a line, or count it as lost: neither a full disk nor a slow reader stops anybody."""
        if self._aside is None:
            self._write(line)
        elif not self._aside.write(line):
            self._lose("nobody reads them")

    def close(self) -> None:
        """Close it; a line that has only begun is taken back."""
        if self._aside is not None and (left := self._aside.close()):
            # Who does not read keeps the file open: closing it now could give its number to another one.
            self.lost += left
            return
        self._complete()
        if self._rest:
            self._lose("no space")
            with suppress(OSError):  # it may be no file that has a length
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                os.ftruncate(self._file, end - self._begun)
        os.close(self._file)

    def _write(self, line: bytes) -> None:
        # What a disk took only half of comes first once there is room, so that no line is ever torn.
        why = self._complete()
        if self._rest:
            self._lose(why)
            return
        self._rest, self._begun = line, 0
        why = self._complete()
        if self._rest and not self._begun:
            self._rest = b""
            self._lose(why)

    def _complete(self) -> str:
        """Write what is left of a line; gives why that is not possible now, if it is not."""
        try:
            while self._rest:
                written = os.write(self._file, self._rest)
                self._rest, self._begun = self._rest[written:], self._begun + written
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _lose(self, why: str) -> None:
        self.lost += 1
        if self.lost == 1:
            _log.error("events are being lost: %s: %s", self._name, why)


class _Aside:
    """Writes in a thread of its own, where writing may wait for somebody."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._write = write
        self._thread = Thread(target=self._run, name="chaosproxy-lines", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> bool:
        """Have a line written in its turn; False if too many wait already."""
        if self._queue.qsize() >= MOST:
            return False
        self._queue.put(line)
        return True

    def close(self) -> int:
        """Wait a moment for the last lines; gives how many are left."""
        self._queue.put(None)
        self._thread.join(LAST)
        # The one that is being written is in the queue no more, and the end is.
        return self._queue.qsize() if self._thread.is_alive() else 0

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            self._write(line)


def _may_block(file: int) -> bool:
    """Whether writing waits for somebody: a pipe, a socket, a terminal that is held."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)
