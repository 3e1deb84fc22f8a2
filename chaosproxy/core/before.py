"""What happens to an exchange before Redis sees it: what was decided adds up, and is carried out stage by stage.

Takes the work at the head of a line and the rules chosen for it; gives what goes ahead of the request, the request in the form
it goes out, and what follows it.
"""

from collections.abc import Sequence
from typing import assert_never, cast

from chaosproxy.core import modes, swallow
from chaosproxy.core.barrier import Barrier, Ticket
from chaosproxy.core.command import Command
from chaosproxy.core.decision import (
    Admit,
    Answer,
    Beside,
    Cut,
    Decision,
    Delay,
    Evict,
    Hold,
    Pace,
    Past,
    Pieces,
    Position,
    Repeat,
    Rewrite,
    Run,
    Silence,
    Swallow,
)
from chaosproxy.core.engine import Chosen
from chaosproxy.core.evicting import evict
from chaosproxy.core.line import Line
from chaosproxy.core.memory import Memory
from chaosproxy.core.repeating import repeat_behind
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Slot, Told, Work
from chaosproxy.core.value import ErrorReply, decode, errors_in

MAX_REACHED = "let go because max was reached"


def fold(line: Line, work: Work, chosen: list[Chosen], now: float) -> None:
    """Add up what was decided, in profile order: delays sum, the first final decision ends the chain."""
    queued = line.modes.transaction is not None and work.name.upper not in modes.NEVER_QUEUED
    delay = 0.0
    for each in chosen:
        if each.at is not Position.BEFORE_FORWARD:
            work.after.append(each)
        elif work.final is not None:
            line.skip(each, "ended")
        elif not work.whole:
            line.skip(each, "too_large")
        else:
            decision = line.decide(each, work.exchange, command=work.sent, queued=queued)
            delay += _note(line, work, each, decision)
    work.due = now + delay if delay else 0.0


def _note(line: Line, work: Work, chosen: Chosen, decision: Decision | None) -> float:
    """Keep one decision for when its time comes; give the delay it adds."""
    match decision:
        case None | Pieces() | Beside() | Admit():
            line.skip(chosen, "not_applicable")
        case Delay(seconds):
            work.told.append(Told(chosen, delay=seconds))
            return seconds
        case Run() | Evict():
            work.runs.append((chosen, decision))
        case Hold(limit):
            work.holds.append((chosen, limit))
        case Rewrite(args, detail):
            work.args, work.raw = list(args), encode_command(*args)
            work.sent = Command.parse(line.world.table, args, work.raw)
            work.told.append(Told(chosen, detail=detail))
            line.touched(chosen, "ttl", 1)
        case Repeat():
            if line.asking or swallow.waits(work.sent, queued=line.modes.transaction is not None):
                line.skip(chosen, "not_applicable")
            else:
                work.repeats.append((chosen, decision))
        case Pace():
            bucket = decision.requests or decision.replies
            rate = f"{bucket.rate:g} bytes a second" if bucket is not None else ""
            told = Told(chosen, detail=rate)
            work.told.append(told)
            work.paces.append((told, decision))
        case Answer() | Swallow() | Cut() | Silence() | Past():
            work.final = (chosen, decision)
        case _:
            assert_never(decision)
    return 0.0


# -- barriers


def enter_barriers(line: Line, work: Work, now: float) -> None:
    """Take a place at each barrier."""
    for chosen, limit in work.holds:
        barrier = cast("Barrier", chosen.live.state)
        random = line.random(chosen)
        ticket = Ticket(work.exchange, chosen.key, random, since=now, due=now + limit)
        work.tickets.append((chosen, barrier, ticket))
        line.wake(barrier.join(ticket))


def held(work: Work, now: float) -> bool:
    """Whether a barrier still holds it; `work.due` is when the next of them gives up."""
    waiting = [ticket.due for _, _, ticket in work.tickets if not ticket.open and now < ticket.due]
    work.due = min(waiting, default=0.0)
    return bool(waiting)


def pass_barriers(line: Line, work: Work, now: float, why: str = MAX_REACHED) -> None:
    """It goes on: note why, for the events. Where nothing opened a barrier it waits there no more."""
    opened = []
    for chosen, barrier, ticket in work.tickets:
        detail = ticket.why if ticket.open else why
        work.told.append(Told(chosen, delay=min(now, ticket.due) - ticket.since, detail=detail))
        if ticket.open:
            opened.append((chosen, barrier, ticket))
        else:
            line.wake(barrier.leave(ticket))
    work.tickets = opened


# -- what goes ahead of the request


def run_before(line: Line, work: Work, now: float) -> None:
    """Carry out what is to run exactly before this command, on its own connection where that is possible."""
    for chosen, run in work.runs:
        told = Told(chosen)
        work.told.append(told)
        if isinstance(run, Evict):
            _evict(line, work, chosen, told)
        else:
            _run(line, work, chosen, run, told, now)
    _remember(line, work, now)


def _run(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line, work: Work, chosen: Chosen, run: Run, told: Told, now: float
) -> None:
    requests = run.requests(chosen.key)
    work.settle = max(work.settle, run.settle)
    here = line.takes_ours and run.where == "upstream"
    # What follows on the same connection comes after it anyway.
    awaited = not here or bool(run.settle)
    work.waiting += awaited

    def done(replies: Sequence[bytes] | None, then: float) -> None:
        del then
        work.waiting -= awaited
        _ran(line, work, told, run.touch, None if replies is None else errors_in(replies))

    if here:
        line.send_hidden(requests, now, done)
    else:
        raws = [encode_command(*request) for request in requests]
        line.ask_side(raws, work.exchange.db, done, run.where)


def _evict(line: Line, work: Work, chosen: Chosen, told: Told) -> None:
    work.waiting += 1

    def done(detail: str | None) -> None:
        work.waiting -= 1
        _ran(line, work, told, "evicted", detail)

    evict(line, chosen.key or b"", work.exchange.db, done)


def _ran(line: Line, work: Work, told: Told, touch: str, detail: str | None) -> None:
    """What was to run has run; None: it could not, and nothing is told of it."""
    if detail is not None:
        told.detail = detail
        line.touched(told.chosen, touch, 1 if told.chosen.key is not None else 0)
    elif any(each is told for each in work.told):  # not if it is told already, as unknown
        work.told = [each for each in work.told if each is not told]
        line.skip(told.chosen, "side_connection")


def _remember(line: Line, work: Work, now: float) -> None:
    """Keep what a key was before this write, for the rules that answer from the past."""
    spec = work.sent.spec
    if spec is None or not spec.is_write or not work.whole:
        return
    for live in line.engine.rememberers:
        memory = live.state
        if not isinstance(memory, Memory):
            continue
        for key in dict.fromkeys(work.sent.keys):
            if live.match.remembers(key, line.db):
                _keep_image(line, work, memory, key, now)


def _keep_image(line: Line, work: Work, memory: Memory, key: bytes, now: float) -> None:
    db = line.db

    def dumped(replies: Sequence[bytes] | None, then: float) -> None:
        if not here:
            work.waiting -= 1
        value = decode(replies[0]) if replies else ErrorReply(b"")
        if value is None or isinstance(value, bytes):
            memory.keep(db, key, then, value)

    here = line.takes_ours
    if here:
        line.send_hidden([(b"DUMP", key)], now, dumped)
    else:
        work.waiting += 1
        line.ask_side([encode_command(b"DUMP", key)], db, dumped)


# -- the request itself, and what follows it


def pace(line: Line, work: Work, now: float) -> bool:
    """Let the request pass no faster than its buckets do; False while it has to wait.

    One that goes nowhere in the end takes as long, and not a byte of it leaves.
    """
    buckets = [each.requests for _, each in work.paces if each.requests is not None]
    if not buckets:
        return True
    if not work.pieces:
        pieces = [work.raw] if work.final is not None else buckets[0].pieces(work.raw)
        work.pieces.extend(pieces)
        work.due = max(bucket.take(len(work.pieces[0]), now) for bucket in buckets)
    while now >= work.due:
        if len(work.pieces) == 1:
            work.raw = work.pieces.popleft()
            return True
        line.out_upstream.append(work.pieces.popleft())
        work.due = max(bucket.take(len(work.pieces[0]), work.due) for bucket in buckets)
    return False


def forward(line: Line, work: Work, now: float) -> None:
    """The request goes to Redis; its reply has a slot from here on."""
    slot = Slot(work.name, work.args, now, work if work.matters else None)
    slot.paces = work.reply_buckets
    line.slots.append(slot)
    line.send(slot, work.raw)
    if work.repeats:
        repeat_behind(line, work, now)
    line.head = None
