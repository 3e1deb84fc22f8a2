"""A replication stream on its way from a primary to its standby, cut where commands and transactions end.

Takes the bytes of both directions; gives pieces to pass on, each with its replication offset and what it writes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chaosproxy.core import swallow
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.resp import RequestFrame, RequestFramer
from chaosproxy.core.swallow import SCRATCH_DB
from chaosproxy.core.syntax import ProtocolError

#: How much of what a standby says is looked at for its PSYNC, in bytes: passwords, names, and that.
_HANDSHAKE: Final = 1 << 16
#: Longer lines are no replies of a handshake.
_LINE: Final = 1 << 16
_MARK: Final = 40

_PSYNC: Final = re.compile(
    rb"\*3\r\n\$5\r\nPSYNC\r\n\$\d+\r\n[^\r]*\r\n\$\d+\r\n(-?\d+)\r\n", re.IGNORECASE
)
_FULL: Final = re.compile(rb"\+FULLRESYNC \S+ (\d+)")


@dataclass(frozen=True, slots=True)
class Write:
    """One command that changes data, as the primary told its replica: not always in the client's own words."""

    db: int
    command: str
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that cross as a whole. `end` is the replication offset behind them, None before there is one.

    Handshake and snapshot have none and write nothing; of the commands behind them each piece is one command or a whole
    transaction. What the proxy itself computes on copies, for faults that answer in Redis's place, is no write of anybody.
    """

    raw: bytes
    end: int | None = None
    writes: tuple[Write, ...] = ()


class ReplicationStream:
    """One connection of a standby to its primary. `start` is the offset before its first command, `end` that behind the last.

    Once `lost`, what comes is no replication stream that is understood: it is passed on as it comes, without offsets. `db`
    is the database selected where an earlier connection of the same standby left off.
    """

    def __init__(self, table: CommandTable, db: int = 0) -> None:
        self._table = table
        self.db = db
        self.start: int | None = None
        self.end: int | None = None
        self.lost = False
        self._asked = b""
        self._stage: Literal["handshake", "snapshot", "commands"] = "handshake"
        self._buffer = b""
        # Of a snapshot: how many bytes are still to come, or the mark that ends it; both unknown at first.
        self._left: int | None = None
        self._mark = b""
        self._framer = RequestFramer()
        self._unit: list[RequestFrame] = []
        self._queued = False

    @property
    def synced(self) -> bool:
        """Whether the snapshot, if there was one, is over, and commands follow."""
        return self._stage == "commands" and not self.lost

    def ask(self, data: bytes) -> None:
        """The standby says something to its primary."""
        if self._stage == "handshake":
            self._asked = (self._asked + data)[-_HANDSHAKE:]

    def feed(self, data: bytes) -> list[Piece]:
        """The primary says something; gives what is complete by now, in order. Never raises."""
        pieces: list[Piece] = []
        while data and not self.lost and self._stage != "commands":
            data = (
                self._greet(data, pieces)
                if self._stage == "handshake"
                else self._skip(data, pieces)
            )
        if self.lost:
            if data:
                pieces.append(Piece(data))
        elif data:
            self._framer.feed(data)
            self._cut(pieces)
        return pieces

    def _greet(self, data: bytes, pieces: list[Piece]) -> bytes:
        """Pass on the lines of the handshake; what follows the last of them is given back."""
        line, newline, rest = data.partition(b"\n")
        pieces.append(Piece(line + newline))
        self._buffer += line
        if not newline:
            self.lost = len(self._buffer) > _LINE
            return b""
        line, self._buffer = self._buffer, b""
        if (full := _FULL.match(line)) is not None:
            self.start = self.end = int(full[1])
            self.db = 0
            self._stage = "snapshot"
        elif line.startswith(b"+CONTINUE"):
            wanted = _PSYNC.findall(self._asked)
            self.lost = not wanted
            # It asks for the first byte that it has not got.
            self.start = self.end = int(wanted[-1]) - 1 if wanted else None
            self._stage = "commands"
        elif line.startswith(b"$"):
            # Somebody has said SYNC: there are no offsets then.
            self.lost = True
        return rest

    def _skip(self, data: bytes, pieces: list[Piece]) -> bytes:
        """Pass on the snapshot; what follows it is given back."""
        if self._left is None and not self._mark:
            line, newline, rest = data.partition(b"\n")
            pieces.append(Piece(line + newline))
            self._buffer += line
            if newline:
                line, self._buffer = self._buffer.strip(), b""
                if line.startswith(b"$EOF:") and len(line) == 5 + _MARK:
                    self._mark = line[5:]
                elif line[:1] == b"$" and line[1:].isdigit():
                    self._left = int(line[1:])
                    self._end_snapshot(over=not self._left)
                elif line:  # an empty line says that the primary is still there
                    self.lost = True
            else:
                self.lost = len(self._buffer) > _LINE
            return rest
        if self._left is not None:
            taken, rest = data[: self._left], data[self._left :]
            self._left -= len(taken)
            self._end_snapshot(over=not self._left)
        else:
            # The mark may have begun in what came before.
            seen = self._buffer + data
            at = seen.find(self._mark)
            taken = data if at < 0 else data[: at + _MARK - len(self._buffer)]
            rest = data[len(taken) :]
            self._buffer = seen[-(_MARK - 1) :]
            self._end_snapshot(over=at >= 0)
        pieces.append(Piece(taken))
        return rest

    def _end_snapshot(self, *, over: bool) -> None:
        if over:
            self._stage, self._left, self._mark, self._buffer = "commands", None, b"", b""

    def _cut(self, pieces: list[Piece]) -> None:
        """Give commands one by one, transactions as a whole."""
        try:
            while (frame := self._framer.next()) is not None:
                self._unit.append(frame)
                word = (frame.args[0] or b"").upper()
                if word == b"MULTI":
                    self._queued = True
                elif word == b"EXEC":
                    self._queued = False
                if not self._queued:
                    pieces.append(self._piece())
        except ProtocolError:
            self.lost = True
            raw = b"".join(frame.raw for frame in self._unit) + self._framer.rest()
            pieces.append(Piece(raw))

    def _piece(self) -> Piece:
        unit, self._unit = self._unit, []
        writes: list[tuple[int, Command]] = []
        for frame in unit:
            command = Command.parse(self._table, frame.args, frame.raw)
            if command.name == "SELECT" and (frame.args[-1] or b"").isdigit():
                self.db = int(frame.args[-1] or b"")
            elif command.name not in _OF_THE_LINK and (
                command.spec is None or command.spec.is_write
            ):
                writes.append((self.db, command))
        raw = b"".join(frame.raw for frame in unit)
        self.end = (self.end or 0) + len(raw)
        return Piece(
            raw, self.end, tuple(_others(writes) if len(unit) > 1 else map(_write, writes))
        )


#: What a primary tells its replica, and no client has said.
_OF_THE_LINK: Final = frozenset({"PING", "REPLCONF", "REPLCONF|GETACK", "SELECT", "MULTI", "EXEC"})
_REMOVING: Final = frozenset({"DEL", "UNLINK"})


def _others(writes: Sequence[tuple[int, Command]]) -> Iterator[Write]:
    """Of the writes of a transaction those that are not on the proxy's own copies, which come and go in it."""
    last: dict[bytes, str] = {}
    copies: set[bytes] = set()
    for db, command in writes:
        if _copies_aside(command):
            copies.update(command.keys)
        elif db == SCRATCH_DB:
            last.update(dict.fromkeys(command.keys, command.name))
            copies.update(command.keys if command.name == "RESTORE" else ())
    copies.update(key for key, name in last.items() if name in _REMOVING)
    for db, command in writes:
        aside = db == SCRATCH_DB and not copies.isdisjoint(command.keys)
        temporary = any(swallow.TEMPORARY in key for key in command.keys)
        if not (aside or temporary or _copies_aside(command)):
            yield _write((db, command))


def _copies_aside(command: Command) -> bool:
    words = command.args[3:5]
    return command.name == "COPY" and words == (b"DB", b"%d" % SCRATCH_DB)


def _write(what: tuple[int, Command]) -> Write:
    db, command = what
    return Write(db, command.name, command.keys)
