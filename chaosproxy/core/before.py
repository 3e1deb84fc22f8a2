"""What happens to an exchange before Redis sees it: what was decided adds up, and is carried out stage by stage.

Takes the work at the head of a line and the rules chosen for it; gives what goes ahead of the request, the request in the form
it goes out, and what follows it.
"""

from collections.abc import Sequence
from random import Random
from typing import assert_never, cast

from chaosproxy.core import modes, remembering, swallow, undoing
from chaosproxy.core.barrier import Barrier, Ticket
from chaosproxy.core.bucket import Bucket
from chaosproxy.core.command import Command
from chaosproxy.core.decision import (
    Admit,
    Answer,
    Beside,
    Cut,
    Decision,
    Delay,
    Hold,
    NoRenewal,
    Pace,
    Past,
    Pieces,
    Position,
    Repeat,
    Rewrite,
    Run,
    Silence,
    Swallow,
    Vanish,
)
from chaosproxy.core.effect import LimitReached
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.pending import spent
from chaosproxy.core.repeating import repeat_behind
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Slot, Told, Work
from chaosproxy.core.value import errors_in
from chaosproxy.core.vanishing import OVER, vanish, waits_for_others

MAX_REACHED = "let go because max was reached"
NOT_KNOWN = "the connection ended before it was known whether it happened"


def place_in_transaction(line: Line, work: Work, following: bytes | None) -> None:
    """Count a queued command among the commands of its transaction, not of its pipeline; `following`: the next one's name."""
    transaction = line.modes.transaction
    counts = line.engine.counts_places and work.name.upper not in modes.NEVER_QUEUED
    if transaction is None or not counts:
        return
    mine = [e for e in transaction.entries if not getattr(e.element, "hidden", False)]
    work.exchange.place = 1 + len(mine)
    work.exchange.last = following is None or following.upper() == b"EXEC"


def fold(line: Line, work: Work, chosen: list[Chosen], now: float) -> None:
    """Add up what was decided, in profile order: delays sum, the first final decision ends the chain."""
    transaction = line.modes.transaction
    queued = transaction is not None and work.name.upper not in modes.NEVER_QUEUED
    full = transaction is not None and queued and transaction.held > line.world.max_buffer
    if full:
        work.candidates.clear()
        line.effects.append(LimitReached("kept"))
    delay = 0.0
    if work.refused is not None:
        rules = line.engine.rules
        chosen = sorted((*chosen, work.refused[0]), key=lambda each: rules.index(each.live))
    for each in chosen:
        refused = work.refused is not None and each is work.refused[0]
        if full and not refused:
            line.skip(each, "too_large")
        elif each.at is not Position.BEFORE_FORWARD:
            work.after.append(each)
        elif work.final is not None:
            line.skip(each, "ended")
        elif not work.whole:
            line.skip(each, "too_large")
        else:
            decision: Decision | None
            if work.refused is not None and refused:
                decision = work.refused[1]
            else:
                decision = line.decide(each, work.exchange, command=work.sent, queued=queued)
            delay += _note(line, work, each, decision)
    work.due = now + delay if delay else 0.0


def cut_short(work: Work, now: float) -> None:
    """It is not delayed any more, before its time: its events say how long it really was."""
    late = [told for told in work.told if told.delay is not None]
    passed = now - work.due + sum(told.delay or 0.0 for told in late)
    for told in late:
        told.delay, passed = spent(told.delay or 0.0, passed)


def _note(line: Line, work: Work, chosen: Chosen, decision: Decision | None) -> float:
    """Keep one decision for when its time comes; give the delay it adds."""
    match decision:
        case None | Pieces() | Beside() | Admit():
            line.skip(chosen, "not_applicable")
        case Delay(seconds):
            work.told.append(Told(chosen, delay=seconds))
            return seconds
        case Run() | Vanish():
            work.runs.append((chosen, decision))
        case Hold(limit):
            work.holds.append((chosen, limit))
        case Rewrite(args, detail):
            send_instead(line, work, args)
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
        case Answer() | Swallow() | NoRenewal() | Cut() | Silence() | Past():
            work.final = (chosen, decision)
        case _:
            assert_never(decision)
    return 0.0


def send_instead(line: Line, work: Work, args: Sequence[bytes]) -> None:
    """Another request goes out in this one's place."""
    work.args, work.raw = list(args), encode_command(*args)
    work.sent = Command.parse(line.world.table, args, work.raw)


# -- barriers


def enter_barriers(line: Line, work: Work, now: float) -> None:
    """Take a place at each barrier."""
    for chosen, limit in work.holds:
        barrier = cast("Barrier", chosen.live.state)
        random = Random(chosen.turn.stream + "/barrier")  # noqa: S311 - reproducible on purpose
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


def has_run(line: Line, work: Work, now: float) -> bool:
    """Whether what is to happen exactly before this command has; it begins here.

    What goes aside may not be ahead of what the client sent before: it waits until that is answered.
    """
    here = _takes_ours(line, work)
    first = not work.running
    if first:
        leaving = _leaving(work)
        aside = not here and (work.runs or remembering.concerns(line, work))
        if line.expect and (leaving or aside):
            return False
        if any(waits_for_others(line, each) for each in leaving):
            return False
        work.running = True
    if first or work.ran < len(work.runs):
        _run_before(line, work, now)
        if not here and work.ran == len(work.runs):
            remembering.take_down(line, work, now, aside=True)
    if work.waiting:
        return False
    if here and not work.taken:
        remembering.take_down(line, work, now, aside=False)
    return True


def _takes_ours(line: Line, work: Work) -> bool:
    """Whether what is to run goes on the client's connection: not while that watches keys, as an EXEC of ours would end it."""
    return line.takes_ours(keys=True) and not (line.modes.watching and work.runs)


def _run_before(line: Line, work: Work, now: float) -> None:
    """Carry out what is to run exactly before this command, on its own connection where that is possible: keys go by another one."""
    mixed = _is_mixed(work)
    while work.ran < len(work.runs) and not (mixed and work.waiting):
        chosen, run = work.runs[work.ran]
        work.ran += 1
        told = Told(chosen)
        work.told.append(told)
        if isinstance(run, Vanish):
            _vanish(line, work, told, run)
        else:
            _run(line, work, told, run, now)


def _is_mixed(work: Work) -> bool:
    """Whether keys go, and commands run: each waits for the one before it then."""
    return len({type(run) for _, run in work.runs}) > 1


def _run(line: Line, work: Work, told: Told, run: Run, now: float) -> None:
    requests = run.requests(told.chosen.key)
    here = _takes_ours(line, work) and run.where == "upstream"
    # What follows on the same connection comes after it anyway.
    waits = not here or _is_mixed(work)
    work.waiting += waits
    told.detail = "" if here else NOT_KNOWN

    def done(replies: Sequence[bytes] | None, then: float) -> None:
        del then
        work.waiting -= waits
        why = "" if replies is not None else line.world.unanswered(run.where)
        _ran(line, work, told, "run", why, errors_in(replies or ()))

    if here:
        line.send_hidden(requests, now, done)
    else:
        raws = [encode_command(*request) for request in requests]
        line.ask_side(raws, work.exchange.db, done, run.where)


def _leaving(work: Work) -> list[tuple[int, bytes]]:
    """The keys, with their database, that are to go before this command."""
    return [
        (work.exchange.db, chosen.key or b"")
        for chosen, run in work.runs
        if isinstance(run, Vanish)
    ]


def _vanish(line: Line, work: Work, told: Told, run: Vanish) -> None:
    """Have the key go, and the command wait for that; others that want it gone wait too."""
    work.waiting += 1
    told.detail = NOT_KNOWN
    key = work.exchange.db, told.chosen.key or b""
    vanishing = line.world.vanishing
    vanishing.setdefault(key, [])

    def go_on() -> None:
        work.waiting -= 1
        line.wake(vanishing.pop(key, ()))

    def done(why: str, detail: str, then: float) -> None:
        _ran(line, work, told, run.how, why, detail)
        if not why and run.how == "expired":
            line.later(then + OVER, go_on)
        else:
            go_on()

    vanish(line, told.chosen.key or b"", work.exchange.db, run.how, done, on_gone=go_on)


def _ran(  # noqa: PLR0917 - one call's worth of what is at hand
    line: Line, work: Work, told: Told, touch: str, why: str, detail: str
) -> None:
    """What was to run has run; `why` not: then nothing is told of it."""
    if not why:
        told.detail = detail
        line.touched(told.chosen, touch, 1 if told.chosen.key is not None else 0)
    elif any(each is told for each in work.told):  # not if it is told already, as unknown
        work.told = [each for each in work.told if each is not told]
        line.skip(told.chosen, why)


# -- the request itself, and what follows it


def pace(line: Line, work: Work, now: float) -> bool:
    """Let the request pass no faster than its buckets do; False while it has to wait.

    One that goes nowhere in the end takes as long, and not a byte of it leaves.
    """
    buckets = [each.requests for _, each in work.paces if each.requests is not None]
    if not buckets:
        return True
    if not work.pieces:
        work.pieces.append(work.raw)
        work.due = _take(work, buckets, now)
    while now >= work.due:
        if len(work.pieces) == 1:
            work.raw = work.pieces.popleft()
            return True
        line.out_upstream.append(work.pieces.popleft())
        work.due = _take(work, buckets, work.due)
    return False


def _take(work: Work, buckets: Sequence[Bucket], since: float) -> float:
    """When the next piece of a request has passed all buckets; it is cut off what is left."""
    if work.final is None and len(work.pieces[0]) > buckets[0].size:
        work.pieces.extendleft(reversed(buckets[0].split(work.pieces.popleft())))
    return max(bucket.take(len(work.pieces[0]), since) for bucket in buckets)


def forward(line: Line, work: Work, now: float) -> None:
    """The request goes to Redis; its reply has a slot from here on."""
    slot = Slot(work.name, work.args, now, work if work.matters else None)
    slot.paces = work.reply_buckets
    line.slots.append(slot)
    line.send(slot, work.raw)
    undoing.sent(line, work)
    if work.repeats:
        repeat_behind(line, work, now)
    line.head = None
