"""Takes down what keys are before each write, for the rules that answer from the past.

Takes the work at the head of a line; gives DUMP and PEXPIRETIME of the keys it writes to (before Redis 7.0 PTTL and TIME), ahead
of it on the same connection where that is possible, and keeps what they said once the write was applied.
"""

from collections.abc import Sequence
from typing import Final, cast

from chaosproxy.core import key_spec
from chaosproxy.core.command import Command
from chaosproxy.core.effect import LimitReached
from chaosproxy.core.line import Line
from chaosproxy.core.memory import COST, MOST_KEYS, Image, Memory, Taken
from chaosproxy.core.reach import SWEEPS
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Work
from chaosproxy.core.syntax import ProtocolError
from chaosproxy.core.value import decode

#: They change keys that they do not name: what is known of those holds no more.
_SWEEPS: Final = SWEEPS | {"SWAPDB"}


def written_keys(command: Command) -> tuple[bytes, ...]:
    """The keys that a write may change: not those it only reads, such as SUNIONSTORE's sources."""
    spec = command.spec
    if spec is None or not spec.is_write:
        return ()
    if command.name == "SORT":
        return command.keys[1:]
    writes = [each for each in spec.key_specs if each.writes]
    if not writes or len(writes) == len(spec.key_specs):
        return tuple(dict.fromkeys(command.keys))
    found = (command.args[index] for index in key_spec.positions(writes, command.args))
    return tuple(dict.fromkeys(key for key in found if key is not None))


def concerns(line: Line, work: Work) -> bool:
    """Whether something of what this command changes is to be remembered."""
    return bool(_places(line, work))


def _places(line: Line, work: Work) -> list[Taken]:
    if work.final is not None or not work.whole or not line.engine.rememberers:
        return []
    keys = written_keys(work.sent)
    if len(keys) > MOST_KEYS:
        return []
    return [
        Taken(cast("Memory", live.state), line.db, key)
        for live in line.engine.rememberers
        for key in keys
        if live.match.remembers(key, line.db)
    ]


def take_down(line: Line, work: Work, now: float, *, aside: bool) -> None:
    """Ask what the keys are: just ahead of the write, or `aside`, and the write waits for it."""
    for taken in _places(line, work):
        work.taken.append(taken)
        _ask(line, work, taken, now, aside=aside)


def _ask(line: Line, work: Work, taken: Taken, now: float, *, aside: bool) -> None:
    def answered(replies: Sequence[bytes] | None, then: float) -> None:
        del then
        work.waiting -= aside
        taken.image = None if replies is None else kept(line, work, read(replies))

    requests = questions(line, taken.key)
    if aside:
        work.waiting += 1
        line.ask_side([encode_command(*request) for request in requests], taken.db, answered)
    else:
        line.send_hidden(requests, now, answered)


def kept(line: Line, work: Work, image: Image | None) -> Image | None:
    """An image, unless there are too many already of this command's, or of all in its transaction."""
    holder = line.modes.transaction or work
    holder.held += 0 if image is None else COST + len(image.dump or b"")
    if holder.held <= line.world.max_buffer:
        return image
    line.effects.append(LimitReached("kept"))
    return None


def questions(line: Line, key: bytes) -> list[tuple[bytes, ...]]:
    """What asks how a key is."""
    old = line.world.server.version < (7,)
    ends = [(b"PTTL", key), (b"TIME",)] if old else [(b"PEXPIRETIME", key)]
    return [(b"DUMP", key), *ends]


def read(replies: Sequence[bytes]) -> Image | None:
    """What the server says of a key; None for what an ACL or the server refuses."""
    try:
        match [decode(raw) for raw in replies]:
            case [bytes() | None as dump, int(ends)]:
                return Image(dump, ends if ends >= 0 else None)
            case [bytes() | None as dump, int(left), [bytes(seconds), bytes(micros)]]:
                now = int(seconds) * 1000 + int(micros) // 1000
                return Image(dump, now + left if left >= 0 else None)
    except (ProtocolError, ValueError):  # no server's
        pass
    return None


def keep(line: Line, work: Work, raw: bytes, now: float) -> None:
    """The write was applied, as far as is known (`raw`: its reply, or the header of that): what was before it is the past now."""
    nothing = work.name.blocking and raw.startswith((b"*-1", b"$-1", b"_"))
    for taken in work.taken:
        if taken.image is not None and not nothing:
            taken.memory.keep(taken.db, taken.key, now, taken.image)
    work.taken.clear()
    if work.sent.name in _SWEEPS:
        db = work.exchange.db if work.sent.name == "FLUSHDB" else None
        for live in line.engine.rememberers:
            cast("Memory", live.state).forget(db)


def must_wait(line: Line, work: Work) -> bool:
    """Whether this reads a key that a write under way on this line will have changed: its past is known when that is answered."""
    spec = work.sent.spec
    if not line.engine.rememberers or spec is None or "readonly" not in spec.flags:
        return False
    keys = set(work.sent.keys)
    return any(
        taken.key in keys
        for slot in line.expect
        if slot.work is not None
        for taken in slot.work.taken
    )
