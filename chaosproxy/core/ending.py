"""How an exchange ends before Redis has seen it: answered, cut off, or lost.

Takes the work at the head of a line and the final decision; gives local replies, hidden commands and events.
"""

from chaosproxy.core import modes
from chaosproxy.core.decision import Answer, Cut, Silence, Swallow
from chaosproxy.core.effect import CloseClient, CutOthers, Outcome
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.memory import COST
from chaosproxy.core.pending import ANSWERED, hold, tell
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Slot, Stage, Told, Work
from chaosproxy.core.transaction import Entry, Transaction

#: Poisons the server's transaction when a queued command was refused here: no server knows it.
REFUSED = (b"CHAOSPROXY.REFUSED",)
#: Said of a write whose reply was still being computed.
ENDED = "the connection ended before there was a reply"
#: Takes the place of a command that never leaves, where the server waits for one (after CLIENT REPLY SKIP, ASKING, CLIENT CACHING).
PLACEHOLDER = (b"PING",)
#: Errors that EXEC answers as they are; the reason for any other is told in an EXECABORT.
_OF_EXEC = (b"-EXECABORT ", b"-MOVED ", b"-ASK ", b"-TRYAGAIN ", b"-CROSSSLOT ", b"-CLUSTERDOWN ")


def local(line: Line, work: Work, raw: bytes, now: float) -> bool:
    """Give the client a reply of our own, in its place; False if it gets none to this command."""
    answers = line.modes.answers
    if answers:
        slot = Slot(work.name, work.args, now, parts=[raw], full=True, paces=work.reply_buckets)
        line.held += len(raw)
        line.made += len(raw)
        line.slots.append(slot)
    if line.modes.skip:  # which is settled only when nothing is unanswered
        line.out_upstream.append(encode_command(*PLACEHOLDER))
        line.modes.settle(PLACEHOLDER[0], PLACEHOLDER, None)
    elif line.asking or line.caching:
        hidden(line, PLACEHOLDER, now)
    return answers


def hidden(
    line: Line, request: tuple[bytes, ...], now: float, element: Element | None = None
) -> None:
    """Send one request of our own on the client's connection, and let its reply go."""
    slot = Slot(line.world.name(request[0]), request, now, on_reply=_ignore, element=element)
    line.send(slot, encode_command(*request))


def insert(transaction: Transaction, raw: bytes) -> Element:
    """A queued command that the server never sees has this element in EXEC's array."""
    transaction.held += COST + len(raw)
    element = Element(inserted=raw)
    transaction.entries.append(Entry(1, None, element, absent=True))
    return element


def end(
    line: Line,
    work: Work,
    chosen: Chosen,
    told: Seen,
    *,
    outcome: Outcome | None = None,
    detail: str = "",
    inserted: Element | None = None,
) -> None:
    """The exchange ends before Redis has seen it; `outcome` None: ok if the client was told so, else fail.

    An answer is told once it has left, in its place behind the others or, if it was `inserted`, in EXEC's array.
    """
    result: Outcome = outcome or ("ok" if told == "ok" else "fail")
    if told in ANSWERED:
        place = inserted or line.slots[-1]
        tell(line, place, work, "no", told)
        hold(line, place, work, Told(chosen, detail=detail), "no", told, result)
    else:
        line.tell(work, "no", told)
        line.fire(chosen, work, "no", told, result, detail=detail)
    line.forget(work, "ended")
    line.head = None


def answer(line: Line, work: Work, chosen: Chosen, decision: Answer, now: float) -> None:
    """Answer in Redis's place; in a transaction so that Redis and the client agree on it."""
    raw = decision.raw
    if line.seat is not None:
        line.seat.heed(raw)
    transaction = line.modes.transaction
    inserted: Element | None = None
    upper = work.name.upper
    if transaction is not None and upper not in modes.NEVER_QUEUED:
        if decision.refusal:
            hidden(line, REFUSED, now, Element(hidden=True))
        else:
            inserted = insert(transaction, decision.raw)
            raw = b"+QUEUED\r\n"
    elif upper == b"EXEC" and transaction is not None:
        hidden(line, (b"DISCARD",), now)
        if decision.refusal and not raw.startswith(_OF_EXEC):
            raw = b"-EXECABORT Transaction discarded because of: " + raw[1:]
    given = local(line, work, raw, now)
    spec = work.exchange.command.spec
    lie = spec is not None and spec.is_write and not decision.refusal
    told: Seen = ("error" if decision.refusal else "ok") if given else "nothing"
    end(line, work, chosen, told, outcome="false_ok" if lie else None, inserted=inserted)


def cut(line: Line, work: Work, chosen: Chosen, decision: Cut) -> bool:
    """Cut the connection; False while replies to earlier commands, or to our own, are still owed."""
    if line.slots or line.expect:
        return False
    end(line, work, chosen, "reset" if decision.how == "reset" else "closed")
    close(line, chosen, decision)
    return True


def silence(line: Line, work: Work, chosen: Chosen, decision: Silence, now: float) -> bool:
    """The request, or all that passes from here on, is lost; False if the request stays where it is."""
    work.final = None
    line.forget(work, "ended")
    detail = silence_detail(decision)
    if decision.what == "request":
        line.lost = True
        line.tell(work, "no", "nothing")
        line.fire(chosen, work, "no", "nothing", "fail", detail=detail)
        return False
    line.hush(decision, now)
    if decision.direction == "to_client":
        work.told.append(Told(chosen, None, detail, "nothing", "unknown"))
        return True
    # It may still be delivered, late, when the silence ends.
    line.tell(work, "unknown", "nothing")
    line.fire(chosen, work, "unknown", "nothing", "unknown", detail=detail)
    return False


def lose(line: Line, work: Work) -> None:
    """The line ends under this request: a write whose swallowing has begun has no effect, and nobody is told."""
    if work.final is None or work.stage is not Stage.ACT or not work.waiting:
        return
    chosen, decision = work.final
    if isinstance(decision, Swallow):
        work.final = None
        line.fire(chosen, work, "no", "nothing", "fail", detail=ENDED)


def close(line: Line, chosen: Chosen, cut: Cut) -> None:
    """End this connection, and the others a cut speaks of."""
    line.closed = True
    line.effects.append(CloseClient(cut.how))
    if cut.who != "this":
        line.effects.append(CutOthers(cut.how, cut.who, chosen.live.name))


def silence_detail(silence: Silence) -> str:
    """What an event says of a silence."""
    span = "for good" if silence.seconds is None else f"for {silence.seconds:g} s"
    way = f", {silence.direction}" if silence.what == "connection" else ""
    return f"{silence.what} silent {span}{way}"


def _ignore(raw: bytes, now: float) -> None:
    del raw, now
