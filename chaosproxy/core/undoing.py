"""Takes down what a failover may have to undo: before each write how its places are, afterwards that it was applied.

Takes the work at the head of a line, and what becomes of it; gives questions ahead of the write (on its own connection where
that is possible), a write that waits while another connection's is on its way to the same place, and the log's entries.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, cast

from chaosproxy.core import modes, swallow
from chaosproxy.core.command import Command
from chaosproxy.core.effect import LimitReached
from chaosproxy.core.failover import Failover
from chaosproxy.core.line import Line
from chaosproxy.core.lost import EVERYTHING, Place, Written
from chaosproxy.core.memory import MOST_KEYS
from chaosproxy.core.reach import SCRIPTS, SWEEPS, is_about_keys, touches_no_key
from chaosproxy.core.remembering import kept, questions, read, written_keys
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Slot, Work
from chaosproxy.core.undo import UndoLog

#: What they answer if they find nothing to do is 0.
_IN_VAIN: Final = frozenset({
    "COPY", "DEL", "EXPIRE", "EXPIREAT", "HDEL", "HSETNX", "LINSERT", "LPUSHX", "LREM", "MOVE", "MSETNX", "PERSIST", "PEXPIRE",
    "PEXPIREAT", "PFADD", "RENAMENX", "RPUSHX", "SADD", "SETNX", "SMOVE", "SREM", "UNLINK", "XACK", "XDEL", "XTRIM", "ZREM",
    "ZREMRANGEBYLEX", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE",
})  # fmt: skip
#: They end a transaction, and they choose a database.
_ENDS: Final = frozenset({b"EXEC", b"DISCARD", b"RESET"})
_TURNS: Final = frozenset({b"SELECT", b"RESET"})
_NULLS: Final = (b"*-1", b"$-1", b"_")
#: How often the side connection is asked, and has answered, before a command sent earlier has surely been met.
_SURELY: Final = 2


def ready(line: Line, work: Work, carried: Sequence[Work], now: float) -> bool:
    """Have it taken down what this is going to change; False while that is not known, or others change it.

    `carried`: of an EXEC, the works of its transaction.
    """
    if work.final is not None or not line.engine.failovers:
        return True
    transaction = line.modes.transaction
    if transaction is not None and work.name.upper not in modes.NEVER_QUEUED:
        work.watched = True  # to be found again when EXEC comes, and when that is answered
        return True
    works = [work]
    if transaction is not None and work.name.upper == b"EXEC":
        entries = [entry for entry in transaction.entries if not entry.absent]
        blind = any(entry.element is None for entry in entries)
        works = [*carried, work] if blind else list(carried)
    for live in line.engine.failovers:
        state = cast("Failover", live.state)
        if state.log is None:
            continue
        if state.records(now):
            if not _take_down(line, work, state.log, works, now):
                return False
        elif state.will_record(now) and swallow.waits(work.sent, queued=False):
            _stand_by(line, work, state.log)
    return not work.waiting


def _take_down(line: Line, work: Work, log: UndoLog, works: Sequence[Work], now: float) -> bool:
    if any(each is log for each, _ in work.undo):
        return True
    written = Written(line.connection)
    found = [_places(each) for each in works]
    if sum(len(each) for each, _ in found) > MOST_KEYS:
        line.effects.append(LimitReached("kept"))
        found = [([EVERYTHING], why or "too_large") if each else (each, why) for each, why in found]
    swapped = [db for each in works for db in _swapped(each.sent)]
    own = [place for each, _ in found for place in each]
    # What comes behind SWAPDB in a transaction, or waits for it, writes to what is in the other database before it.
    behind = [place for place in (*own, *log.waited_at(swapped)) if place != EVERYTHING]
    places = log.reach([*own, *((db, key) for _, key in behind for db in swapped)])
    if not places:
        return True
    aside = not line.takes_ours(keys=True) or any(
        db not in (line.db, EVERYTHING[0]) for db, _ in places
    )
    # Who gives a command of this line what it waits for may have to write to the same places.
    if line.blocking or (aside and line.expect):
        return False
    if not log.claim(written, places):
        return False
    work.undo.append((log, written))
    for each, (its, why_not) in zip(works, found, strict=True):
        if its:
            each.units.append((written, why_not))
    for place in log.missing(places):
        if place != EVERYTHING:
            written.images[place] = None
            _ask(line, work, written, place, now, aside=aside)
    return True


def _stand_by(
    line: Line, work: Work, log: UndoLog, places: Sequence[Place] = (), *, shared: bool = False
) -> None:
    """Nothing is taken down of it yet, and it may go on because of a write of which that is: then that one's images hold.

    `places`: of all that goes on with it. `shared`: others share its slot, of which only the name is known.
    """
    found, why_not = _places(work)
    if not found or any(each is log for each, _ in work.undo):
        return
    places = places or found
    images = dict.fromkeys(place for place in places if place != EVERYTHING)
    written = Written(line.connection, tuple(places), images=images, sent=True)
    written.blind = written.partly = shared
    work.undo.append((log, written))
    work.units.append((written, why_not))
    log.park(written)


def take_over(line: Line) -> None:
    """While all requests are held, as a profile comes into force: what waits at the server already may go on because of a later write.

    So may what was sent behind it.
    """
    if not (line.world.held and line.engine.failovers and is_waiting(line)):
        return
    found = [(slot, _work(line, slot)) for slot in _surely_carried_out(line)]
    places = tuple(dict.fromkeys(place for _, work in found for place in _places(work)[0]))
    for slot, work in found:
        if not _places(work)[0]:
            continue
        slot.work = work
        for live in line.engine.failovers:
            log = cast("Failover", live.state).log
            if log is not None:
                _stand_by(line, work, log, places, shared=slot.times > 1)


def _surely_carried_out(line: Line) -> list[Slot]:
    """What is unanswered, but for what a transaction queues: its EXEC speaks for that."""
    found, queues = [], False
    for slot in line.expect:
        upper = slot.name.upper
        if slot.on_reply is None and (not queues or upper == b"EXEC"):
            found.append(slot)
        queues = upper == b"MULTI" or (queues and upper not in _ENDS)
    return found


def _work(line: Line, slot: Slot) -> Work:
    """What is known of what was sent before any rule looked at it. In which database it is, once that may have changed, is not."""
    if slot.work is not None:
        return slot.work
    turned = any(each.name.upper in _TURNS for each in line.expect)
    command = _parsed(line, slot, alone=slot.times == 1 and not turned)
    return Work(line.where(command), slot.name, slot.args, b"", True, command)


def _parsed(line: Line, slot: Slot, *, alone: bool = True) -> Command:
    args = slot.args if alone and slot.args else (slot.name.upper,)
    return Command.parse(line.world.table, args, b"")


def _places(work: Work) -> tuple[list[Place], str]:
    """Where a command may write, and why it cannot be undone, if it cannot."""
    command, db = work.sent, work.exchange.db
    if command.name == "EXEC":
        return [
            EVERYTHING
        ], "queued_before"  # the profile came into force: what it changes nobody knows
    if command.spec is None or not command.spec.is_write or work.swallowed is not None:
        return [], ""
    if command.name in SWEEPS:
        return [EVERYTHING], "sweeps"
    if not is_about_keys(command.name):
        return [EVERYTHING], "no_keys"
    if command.name == "SWAPDB":
        return [EVERYTHING], ""
    if not work.whole:
        return [EVERYTHING], "too_large"
    places = [(db, key) for key in written_keys(command)]
    there = _elsewhere(command)
    if there is not None:
        moved = [(there, key) for _, key in places]
        places = places + moved if command.name == "MOVE" else moved
    if command.keys and not places:
        return [], ""  # SORT or GEORADIUS without STORE: it only reads them
    return (places, "") if places else ([EVERYTHING], "no_keys")


def _swapped(command: Command) -> list[int]:
    """The databases that a command swaps."""
    numbers = [_number(arg) for arg in command.args[1:3]] if command.name == "SWAPDB" else []
    return [number for number in numbers if number is not None]


def _elsewhere(command: Command) -> int | None:
    """The other database that a command writes to, if it names one."""
    args = command.args
    if command.name == "MOVE":
        return _number(args[2]) if len(args) > 2 else None
    if command.name == "COPY":
        for word, value in pairwise(args[3:]):
            if (word or b"").upper() == b"DB":
                return _number(value)
    return None


def _number(arg: bytes | None) -> int | None:
    return int(arg) if arg is not None and arg.isdigit() else None


def _ask(
    line: Line, work: Work, written: Written, place: Place, now: float, *, aside: bool
) -> None:
    db, key = place

    def answered(replies: Sequence[bytes] | None, then: float) -> None:
        del then
        work.waiting -= aside
        written.images[place] = None if replies is None else kept(line, work, read(replies))

    requests = questions(line, key)
    if aside:
        work.waiting += 1
        line.ask_side([encode_command(*request) for request in requests], db, answered)
    else:
        line.send_hidden(requests, now, answered)


def is_waiting(line: Line) -> bool:
    """Whether what is to be answered next is a command that may wait at the server for what others write."""
    if not line.blocking or line.modes.transaction is not None:
        return False
    return swallow.waits(_parsed(line, line.expect[0]), queued=False)


def surely_waits(line: Line) -> bool:
    """Whether that command surely waits there; where it is not known it is found out, and then the line goes on."""
    if not is_waiting(line):
        return False
    slot = line.expect[0]

    def waits() -> None:
        slot.parked = True

    if slot.parked is None:
        slot.parked = False
        _once_surely(line, waits, lambda: None)
    return slot.parked


def sent(line: Line, work: Work) -> None:
    """It is on its way to Redis. One that may wait there lets others write where it waits, as soon as it surely does."""
    for log, written in work.undo:
        written.sent = True
        if not written.waits and swallow.waits(work.sent, queued=False):
            _park(line, work, log, written)


def _park(line: Line, work: Work, log: UndoLog, written: Written) -> None:
    def waits() -> None:
        if work.undo and written.claimed:  # it has not been answered, and nobody is gone
            line.wake(log.park(written))

    # Once it is surely met, and then what it may have been answered is surely heard.
    _once_surely(line, waits, lambda: None, 2 * _SURELY)


def _once_surely(
    line: Line, do: Callable[[], None], on_gone: Callable[[], None], times: int = _SURELY
) -> None:
    """Do something once all that was sent before is surely met, or what Redis had said by now is surely heard."""

    def answered(replies: Sequence[bytes] | None, now: float) -> None:
        del replies, now
        if times > 1:
            _once_surely(line, do, on_gone, times - 1)
        else:
            do()

    line.ask_side([encode_command(b"PING")], 0, answered, on_gone=on_gone)


def settle(line: Line, work: Work, raw: bytes, now: float) -> None:
    """Redis has answered it (`raw`: the reply, or its header): whether it was applied is known."""
    for written, why_not in work.units:
        if why_not and (_acted(work.sent, raw) or work.sent.name in SCRIPTS):
            written.blind = written.blind or not touches_no_key(work.sent.name)
        if _acted(work.sent, raw) and why_not:
            written.kept.append((work.sent.name, why_not))
        elif _acted(work.sent, raw):
            written.writes.append((work.sent.name, written_keys(work.sent)))
            if (swapped := _swapped(work.sent))[1:]:
                written.swaps.append((swapped[0], swapped[1]))
        elif work.sent.name in SCRIPTS:
            # What it did before its error stays done.
            written.partly = True
    work.units.clear()
    for log, written in work.undo:
        if log.gives(written):
            # Who went on because of this has been answered too: that is heard first.
            log.applied(written, now)
            release = partial(_release, line, log, written)
            _once_surely(line, release, release)
        else:
            line.wake(log.end(written, now))
    work.undo.clear()


def _release(line: Line, log: UndoLog, written: Written) -> None:
    line.wake(log.release(written))


def _acted(command: Command, raw: bytes) -> bool:
    """Whether a write that was answered this may have changed anything."""
    if raw.startswith((b"-", b"!")):
        return False
    name, nothing = command.name, raw.startswith(_NULLS)
    words = {(arg or b"").upper() for arg in command.args[3:]} if name == "SET" else set()
    if b"GET" in words:
        # It tells what was there before, whether it has written or not.
        return nothing if b"NX" in words else not (nothing and b"XX" in words)
    if nothing:
        return name in SCRIPTS or name == "GETSET"
    return not (raw.rstrip() == b":0" and name in _IN_VAIN)
