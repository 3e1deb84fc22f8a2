"""Answers a read from the past: the server computes the reply on keys as they were.

Takes the work at the head of a line and the images of its keys; gives a local reply and an event that says how it was made. In
the client's transaction the read is computed aside, and its reply takes its place in EXEC's array: nothing of ours goes into it.
So it is while the client caches what it reads; and since the server is to tell it when that changes, the read is sent as well.
"""

from dataclasses import dataclass

from chaosproxy.core import swallow
from chaosproxy.core.computing import Computed, Computing, let_pass
from chaosproxy.core.decision import Past
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.ending import end, insert, local
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.slot import Told, Work


def read_past(line: Line, work: Work, chosen: Chosen, past: Past, now: float) -> bool:
    """Have the reply computed; False while it is."""
    queued = line.modes.transaction is not None
    if work.waiting:
        return False
    if swallow.waits(work.sent, queued=queued):
        return let_pass(line, work, chosen, "blocking")
    if not line.modes.answers:
        return let_pass(line, work, chosen, "no_reply")
    reading = _Reading(line, work, chosen, past.images)
    aside = queued or line.modes.watching or line.modes.tracking
    return Computing(line, work, chosen, reading.plan, reading.done, aside).start(now)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One read being answered."""

    line: Line
    work: Work
    chosen: Chosen
    images: swallow.Images

    def plan(self, scratch: bool) -> swallow.Plan:
        """On keys as they were, the others as they are."""
        line, command = self.line, self.work.sent
        if scratch:
            return swallow.in_scratch(command, line.db, line.world.scratch_db, self.images)
        token = f"{line.connection}-{self.chosen.turn.match}"
        return swallow.on_temporary_keys(command, token, self.images)

    def done(self, computed: Computed, now: float) -> None:
        """The server has computed the reply."""
        line, work, raw = self.line, self.work, computed.reply
        keys = f"{len(self.images)} of {len(set(work.sent.keys))} keys as they were"
        how = f"{keys}; {computed.how}"
        if line.modes.tracking:
            line.forget(work, "ended")
            work.final = None
            work.told.append(Told(self.chosen, detail=how))
            work.retold = lambda _: computed.reply
            return
        transaction = line.modes.transaction
        inserted = None
        if transaction is not None:
            inserted = insert(transaction, raw)
            raw = b"+QUEUED\r\n"
        local(line, work, raw, now)
        told: Seen = "error" if computed.reply[:1] == b"-" else "ok"
        end(line, work, self.chosen, told, outcome="ok", detail=how, inserted=inserted)
