"""A time to live that is not renewed: the command takes effect only as far as it makes nothing live longer.

Takes the work at the head of a line; gives the command in that form, and to the client the reply of the other.

EXPIRE, HEXPIRE, HGETEX   What they shorten, or set for the first time, is what the same time with LT does (Redis 7.0): that is
                          carried out, in the transaction in which the reply is computed on copies.
SET, SETEX, PSETEX        They write a value: with the time that the old one has left.
GETEX, and before 7.0     The key's PTTL tells whether the command is swallowed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from chaosproxy.core import modes, swallow, ttl
from chaosproxy.core.before import send_instead
from chaosproxy.core.computing import Computed, Computing, let_pass, scratch_usable
from chaosproxy.core.decision import Swallow
from chaosproxy.core.ending import end, hidden, local
from chaosproxy.core.line import Line
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import Element, Slot, Told, Work

_NUMBER: Final = re.compile(rb":([0-9]+)\r\n")
NOT_LONGER: Final = "not_longer"


def withhold(line: Line, work: Work, chosen: Chosen, now: float) -> bool:
    """Have the command renew nothing; False while it is found out what it would."""
    if work.waiting:
        return False
    args = tuple(arg or b"" for arg in work.sent.args)
    if ttl.renews_key(args) or line.world.server.version < (7,):
        return _ask(line, work, chosen, args, now)
    part = ttl.never_longer(args) or ()
    withholding = _Withholding(line, work, chosen, part)
    if not line.modes.answers:
        if not part:
            work.final = (chosen, Swallow())
        else:
            _send(line, work, chosen, part, "only as far as nothing lives longer")
        return True
    if line.modes.transaction is not None:
        return withholding.queue(now)
    aside = line.modes.watching
    return Computing(line, work, chosen, withholding.plan, withholding.done, aside).start(now)


def _send(line: Line, work: Work, chosen: Chosen, args: tuple[bytes, ...], detail: str) -> None:
    """The command goes out in this form."""
    send_instead(line, work, args)
    work.told.append(Told(chosen, detail=detail))
    work.final = None


# -- by LT


@dataclass(slots=True)
class _Withholding:
    """One command of which only `part` (a request with LT, or nothing) is carried out."""

    line: Line
    work: Work
    chosen: Chosen
    part: tuple[bytes, ...]
    place: int = 0
    real: bytes = b""

    def plan(self, scratch: bool) -> swallow.Plan:
        """The part goes behind the copies, ahead of the way to the scratch database."""
        line, command = self.line, self.work.sent
        if scratch:
            whole = swallow.in_scratch(command, line.db, line.world.scratch_db)
        else:
            token = f"{line.connection}-{self.chosen.turn.match}"
            whole = swallow.on_temporary_keys(command, token)
        self.place = len(whole.before) - scratch
        parts: tuple[modes.Args, ...] = (self.part,) if self.part else ()
        before = (*whole.before[: self.place], *parts, *whole.before[self.place :])
        return replace(whole, before=before)

    def done(self, computed: Computed, now: float) -> None:
        """The server has computed the reply, and done the part."""
        line, work, raw = self.line, self.work, computed.reply
        self.real = computed.before[self.place] if self.part else b""
        local(line, work, raw, now)
        error = raw[:1] == b"-"
        if self.acted(raw):
            end(line, work, self.chosen, "ok", outcome="false_ok", detail=computed.how)
            return
        # It did all that the command would have done.
        line.skip(self.chosen, NOT_LONGER)
        line.tell(work, "no" if error else "yes", "error" if error else "ok")
        line.forget(work, "ended")
        line.head = None

    def queue(self, now: float) -> bool:
        """Inside the client's transaction; only the reply computed on copies reaches the client."""
        line, work = self.line, self.work
        scratch = scratch_usable(line)
        if not line.means.allow(scratch=scratch):
            return let_pass(line, work, self.chosen, "not_computable")
        plan = self.plan(scratch)

        def heard(raw: bytes) -> bytes:
            self.real = raw
            return raw

        for index, request in enumerate(plan.before):
            part = bool(self.part) and index == self.place
            self._hide(request, now, Element(hidden=True, change=heard if part else None))
        work.swallowed, work.acted = (self.chosen, plan.how, "false_ok"), self.acted
        slot = Slot(
            work.name, work.args, now, work, element=Element(work=work, change=plan.restore)
        )
        line.slots.append(slot)
        line.send(slot, plan.raw or encode_command(*(arg or b"" for arg in plan.args)))
        for request in plan.after:
            self._hide(request, now, Element(hidden=True))
        line.forget(work, "ended")
        work.final = None
        line.head = None
        return True

    def _hide(self, request: modes.Args, now: float, element: Element) -> None:
        hidden(self.line, tuple(arg or b"" for arg in request), now, element)

    def acted(self, reply: bytes) -> bool:
        """Whether the command would have made something live longer: by its reply, and by that of the part."""
        if not self.part:
            return b":1\r\n" in reply
        return b":0\r\n" in self.real and reply != self.real and not swallow.is_null(reply)


# -- by the key's time to live


def _ask(line: Line, work: Work, chosen: Chosen, args: tuple[bytes, ...], now: float) -> bool:
    here = line.takes_ours(keys=True)
    if not here and line.expect:
        return False
    work.waiting = 1

    def told(replies: Sequence[bytes] | None, then: float) -> None:
        if line.head is not work:  # it was let go in the meantime
            return
        work.waiting = 0
        found = None if replies is None else _NUMBER.fullmatch(replies[0])
        kept = int(found[1]) / 1000 if found else 0.0
        wanted = ttl.left(args, then + line.world.epoch)
        if wanted is None or not 0 < kept < wanted:
            let_pass(line, work, chosen, NOT_LONGER)
        elif ttl.writes_value(args):
            detail = f"{kept:g} s to live, as before"
            _send(line, work, chosen, ttl.limited(args, kept), detail)
        else:
            work.final = (chosen, Swallow())

    request = (b"PTTL", args[1])
    if here:
        line.send_hidden([request], now, told)
    else:
        line.ask_side([encode_command(*request)], line.db, told)
    return False
