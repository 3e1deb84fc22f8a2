"""Has the server compute a reply on keys that are copies, or as they were (see `swallow`), and hands it over.

Takes the work at the head of a line and a way to plan it; gives what the server computed, or lets the command pass as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from chaosproxy.core import modes, rights, swallow
from chaosproxy.core.addresses import redirected
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.passing import TOO_LARGE
from chaosproxy.core.reach import indexes
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Work
from chaosproxy.core.transaction import Transaction
from chaosproxy.core.value import errors_in

Replies = Sequence[bytes] | None


@dataclass(frozen=True, slots=True)
class Computed:
    """The command's `reply`, the replies to the plan's requests before it, and how it was made."""

    reply: bytes
    before: Sequence[bytes]
    how: str


@dataclass(frozen=True, slots=True)
class Computing:
    """One computation. `plan` is asked for a plan in the scratch database (True) or on temporary keys; `done` gets its result.

    `aside`: on the side connection, if the client may do it itself. Where nothing can be computed, because of an ACL or because the server refuses the command,
    the command passes as it is, and the rule is skipped.
    """

    line: Line
    work: Work
    chosen: Chosen
    plan: Callable[[bool], swallow.Plan]
    done: Callable[[Computed, float], None]
    aside: bool

    def start(self, now: float) -> bool:
        """Begin; False: not before what the client sent is answered, or not at all."""
        line, command = self.line, self.work.sent
        if line.asking or not swallow.computable(command, scratch=False):
            return let_pass(line, self.work, self.chosen, "not_computable")
        scratch = has_scratch(line) and swallow.computable(command, scratch=True)
        if self.aside and line.expect:
            return False
        self.work.waiting = 1
        if not self.aside or line.world.same_rights(line.modes.user):
            self._prove(scratch, now)
            return False

        def asked(allowed: bool | None, then: float) -> None:
            if allowed:
                self._prove(scratch, then)
            else:
                self._give_up("rights")

        rights.ask(line, self.work, asked)
        return False

    def _prove(self, scratch: bool, now: float) -> None:
        """Find out whether a transaction is allowed, and the scratch database there and empty; then compute."""
        line = self.line

        def gated(replies: Replies, then: float) -> None:
            if replies is None or not swallow.transactions_allowed(replies):
                self._give_up()
            else:
                proven = scratch and swallow.proven(swallow.carried_out(replies))
                self._compute(self.plan(proven), then)

        self._send(swallow.gate_alone(line.db, line.world.scratch_db), (), now, gated)

    def _compute(self, plan: swallow.Plan, now: float) -> None:
        requests, raws, index = plan.alone()

        def computed(replies: Replies, then: float) -> None:
            array = (None if replies is None else swallow.carried_out(replies)) or []
            if len(array) < index or errors_in(array[: index - 1]):
                large = replies is not None and replies[-1] == TOO_LARGE
                self._give_up("too_large" if large else "not_computable")
                return
            self.work.waiting = 0
            reply = plan.restore(array[index - 1])
            self.done(Computed(reply, array[: index - 1], plan.how), then)

        self._send(requests, raws, now, computed)

    def _give_up(self, reason: str = "not_computable") -> None:
        self.work.waiting = 0
        let_pass(self.line, self.work, self.chosen, reason)

    def _send(
        self,
        requests: Sequence[modes.Args],
        raws: Sequence[bytes | None],
        now: float,
        on_done: Callable[[Replies, float], None],
    ) -> None:
        carry(self.line, self.work, requests, now, on_done, raws=raws, aside=self.aside)


def carry(
    line: Line,
    work: Work,
    requests: Sequence[modes.Args],
    now: float,
    on_done: Callable[[Replies, float], None],
    *,
    raws: Sequence[bytes | None],
    aside: bool,
) -> None:
    """Send requests of our own for the work at the head of a line: on the client's connection, or `aside`, on the side connection.

    `raws` are those that are not to be encoded anew. `on_done` hears nothing if the work is let go in the meantime.
    """

    def answered(replies: Replies, then: float) -> None:
        if line.head is not work:
            return
        if aside and replies is not None and line.translate is not None:
            # What comes on the client's connection is translated there.
            replies = [redirected(raw, line.translate) for raw in replies]
        on_done(replies, then)

    if not aside:
        line.send_hidden(requests, now, answered, raws)
        return
    packed = [
        raw or encode_command(*(arg or b"" for arg in args))
        for args, raw in zip_longest(requests, raws)
    ]
    line.ask_side(packed, line.db, answered)


def ask_for_copies(
    line: Line, work: Work, token: str, now: float, done: Callable[[str, float], None]
) -> None:
    """Find out, aside, whether copies can be made of what is at a command's keys; `done` gets why not, '' if they can."""

    def tried(replies: Replies, then: float) -> None:
        work.waiting = 0
        array = None if replies is None else swallow.carried_out(replies)
        if array is not None:
            done("unknown_reply" if errors_in(array) else "", then)
        else:
            done("side_connection" if replies is None else "unknown_reply", then)

    work.waiting = 1
    carry(line, work, swallow.copying(work.sent, token), now, tried, raws=(), aside=True)


def let_pass(line: Line, work: Work, chosen: Chosen, reason: str) -> bool:
    """It cannot be done truthfully: the command is forwarded, and the rule says why it did not act."""
    line.skip(chosen, reason)
    work.final = None
    return True


def has_scratch(line: Line) -> bool:
    """Whether copies may be in the scratch database at all: not of its own clients' keys, and not where an index would take them for these."""
    world = line.world
    return line.db != world.scratch_db and not indexes(world.table.specs)


def scratch_usable(line: Line) -> bool:
    """Whether the scratch database is one for this client; in its transaction: as far as is known, and it stays out of it."""
    if not has_scratch(line):
        return False
    transaction = line.modes.transaction
    return transaction is None or (line.means.scratch and not _selects(transaction))


def _selects(transaction: Transaction) -> bool:
    """Whether the client changes databases in it: its writes may be in the scratch database too by then."""
    return any(
        entry.args is not None
        and (entry.args[0] or b"").upper() == b"SELECT"
        and not (isinstance(entry.element, Element) and entry.element.hidden)
        for entry in transaction.entries
    )
