"""What both directions of one conversation share: the outboxes, the queues, and how an event is told.

Takes bytes and decisions from `intake` and `returns`; gives outboxes and effects that `net/` carries out.
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Literal

from chaosproxy.core.addresses import Translate
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec
from chaosproxy.core.decision import Decision, Delay, Silence
from chaosproxy.core.effect import Applied, AskSide, Effect, KeysTouched, Outcome, Wake
from chaosproxy.core.effect import Told as Seen
from chaosproxy.core.fault import Context
from chaosproxy.core.firing import fired
from chaosproxy.core.live_rule import Chosen
from chaosproxy.core.match import LISTENER, Exchange
from chaosproxy.core.modes import Args, Modes
from chaosproxy.core.pending import came_of
from chaosproxy.core.resp import encode_command
from chaosproxy.core.slot import NOBODY, Slot, Work
from chaosproxy.core.slot_map import Seat
from chaosproxy.core.swallow import UNKNOWN
from chaosproxy.core.world import World

FOREVER = float("inf")
OnAnswer = Callable[[Sequence[bytes] | None, float], None]
OnGone = Callable[[], None]


class Line:
    """One client's line to its upstream.

    `expect` holds the slots in the order the upstream will answer them, `slots` those of them that the client waits for, and
    those the proxy fills itself, in the client's order. They are queues while something happens (`slot.queue`, `slot.rested`).
    """

    __slots__ = (
        "_token", "address", "asked", "blocking", "client_silent", "clogged", "closed", "connection", "copied", "effects", "engine", "expect", "head", "held", "listener", "lost", "made", "means",
        "modes", "now", "opened", "out_client", "out_upstream", "raw", "running", "seat", "slots", "timers", "translate", "turning", "upstream_silent", "world",
    )  # fmt: skip

    def __init__(
        self, world: World, connection: int, address: str, now: float, listener: str = LISTENER,
        *, translate: Translate | None = None, seat: Seat | None = None,
    ) -> None:  # fmt: skip
        self.world, self.engine = world, world.engine
        self.connection, self.address, self.listener = connection, address, listener
        self.opened = self.now = now
        self.modes = Modes()
        self.translate, self.seat = translate, seat
        self.out_client: list[bytes] = []
        self.out_upstream: list[bytes] = []
        self.effects: list[Effect] = []
        self.expect: deque[Slot] = NOBODY
        self.slots: deque[Slot] = NOBODY
        self.head: Work | None = None
        #: `running`: so many are to run after a reply, and are not answered yet.
        self.turning = self.blocking = self.running = self._token = 0
        self.means, self.held, self.closed = UNKNOWN, 0, False
        #: How much was answered here since something last happened; or, where the client reads too slowly (`clogged`), since that.
        self.made, self.clogged, self.copied = 0, False, 0
        #: Until when nothing passes to that side; None: it is not silent.
        self.client_silent: float | None = None
        self.upstream_silent: float | None = None
        #: Neither side is understood any more; or a request was lost: nothing may follow, or it got another one's reply.
        self.raw = self.lost = False
        self.asked: dict[int, tuple[OnAnswer, OnGone | None]] | None = None
        self.timers: list[tuple[float, int, Callable[[], None]]] | None = None

    @property
    def settled(self) -> bool:
        """Whether what the next command means is known: nothing unanswered can change it."""
        return not (self.turning or (self.expect and (self.modes.skip or self.modes.transaction)))

    def decide(
        self,
        chosen: Chosen,
        exchange: Exchange,
        *,
        command: Command | None = None,
        reply: bytes | None = None,
        queued: bool = False,
        carried: tuple[CommandSpec | None, ...] = (),
    ) -> Decision | None:
        """Ask a chosen rule's fault what is to happen."""
        live = chosen.live
        context = Context(
            fault=live.name,
            command=command or exchange.command,
            position=chosen.at,
            protocol=self.modes.protocol,
            db=exchange.db,
            match=chosen.turn.match,
            server=self.world.server,
            stream=chosen.turn.stream,
            reply=reply,
            queued=queued,
            key=chosen.key,
            connection=self.connection,
            now=self.now,
            clock=self.now + self.world.epoch,
            state=live.state,
            armed_at=live.armed_at,
            fired=live.fired,
            opened=self.opened,
            carried=carried,
            address=self.world.address if self.seat is None else self.seat.elsewhere,
        )
        decision = live.fault.decide(context)
        if isinstance(decision, Delay) and chosen.turn.delay is not None:
            return Delay(chosen.turn.delay)
        return decision

    def wake(self, connections: Sequence[int]) -> None:
        """Other connections' held commands may go on."""
        if connections:
            self.effects.append(Wake(tuple(connections)))

    def later(self, due: float, what: Callable[[], None]) -> None:
        """Do something at its time, as long as the line is open."""
        self._token += 1
        self.timers = [] if self.timers is None else self.timers
        heappush(self.timers, (due, self._token, what))

    def run_timers(self, now: float) -> None:
        """Do what is due."""
        while self.timers and self.timers[0][0] <= now:
            heappop(self.timers)[2]()

    def where(self, command: Command, *, handshake: bool = False) -> Exchange:
        """A command as an exchange of this connection, as it is now."""
        exchange = Exchange(command, self.connection, self.modes.name, self.address, self.db)
        exchange.states = self.modes.states(blocking=self.blocking)
        exchange.handshake, exchange.opened = handshake, self.opened
        exchange.listener = self.listener
        return exchange

    @property
    def asking(self) -> bool:
        """Whether the next command is the one that ASKING was for."""
        return self.modes.asking and not self.expect

    @property
    def caching(self) -> bool:
        """Whether the next command is the one that CLIENT CACHING was for."""
        return self.modes.caching and not self.expect

    def takes_ours(self, *, keys: bool) -> bool:
        """Whether a request of our own (on `keys`) can go on the client's connection, and gets its own reply.

        On keys none can where the server tells the client which have changed: those that ours read, and not those they write.
        """
        modes = self.modes
        away = modes.transaction or modes.restricted or (keys and modes.tracking)
        return not (away or self.asking or self.caching) and modes.answers

    @property
    def db(self) -> int:
        """The database the next command will be carried out in."""
        transaction = self.modes.transaction
        return self.modes.db if transaction is None else transaction.db

    # -- towards the client

    def give(self, raw: bytes) -> None:
        """Bytes for the client, now. Nobody gives anything while its side of the line is silent."""
        self.out_client.append(raw)

    def at_turn(self, slot: Slot) -> bool:
        """Whether the client may get what comes of this slot at once."""
        return bool(self.slots) and self.slots[0] is slot and self.client_silent is None

    def hush(self, silence: Silence, now: float) -> None:
        """The line falls silent in the silence's direction, or stays so for longer."""
        until = FOREVER if silence.seconds is None else now + silence.seconds
        if silence.direction != "to_upstream":
            self.client_silent = max(self.client_silent or 0.0, until)
        if silence.direction != "to_client":
            self.upstream_silent = max(self.upstream_silent or 0.0, until)

    def unhush(self, now: float = FOREVER) -> None:
        """What silence is over by now (if nothing is said: all of it) is over: what was held goes on."""
        if self.client_silent is not None and self.client_silent <= now:
            self.client_silent = None
        if self.upstream_silent is not None and self.upstream_silent <= now:
            self.upstream_silent = None

    @property
    def silent_until(self) -> float:
        """When the next silence is over."""
        return min(self.client_silent or FOREVER, self.upstream_silent or FOREVER)

    def flush(self, slot: Slot, *, reply: bool = True) -> None:
        """Give the client what is here of a slot: pushes ahead of its reply, the reply, pushes behind it."""
        for pieces in (slot.before, slot.parts, slot.behind) if reply else (slot.before,):
            for raw in pieces:
                self.held -= len(raw)
                self.give(raw)
            pieces.clear()
        if reply:
            slot.times = slot.owed_commands

    def replace(self, slot: Slot, parts: Sequence[bytes]) -> None:
        """Put other bytes, or none, in the place of a slot's reply."""
        self.held += sum(map(len, parts)) - sum(map(len, slot.parts))
        slot.parts[:] = filter(None, parts)

    # -- towards the upstream

    def send(self, slot: Slot, raw: bytes) -> None:
        """Forward a request whose reply comes back in `slot`."""
        self.out_upstream.append(raw)
        self.expect.append(slot)
        self.turning += slot.name.turning
        self.blocking += slot.name.blocking

    def answered(self) -> None:
        """The next slot that was expected has all its frames."""
        slot = self.expect.popleft()
        self.turning -= slot.name.turning
        self.blocking -= slot.name.blocking

    def send_hidden(
        self,
        requests: Sequence[Args],
        now: float,
        on_done: Callable[[list[bytes], float], None],
        raws: Sequence[bytes | None] = (),
    ) -> None:
        """Send requests of our own on the client's connection; `on_done` gets their raw replies, in order.

        `raws`: the bytes of a request that goes out as the client sent it.
        """
        replies: list[bytes] = []
        count = len(requests)

        def on_reply(raw: bytes, then: float) -> None:
            replies.append(raw)
            if len(replies) == count:
                on_done(replies, then)

        for index, args in enumerate(requests):
            raw = raws[index] if index < len(raws) else None
            name = self.world.name(args[0] or b"")
            self.send(
                Slot(name, args, now, on_reply=on_reply),
                encode_command(*(arg or b"" for arg in args)) if raw is None else raw,
            )

    def ask_side(
        self,
        requests: Sequence[bytes],
        db: int,
        on_done: OnAnswer,
        where: Literal["upstream", "standby"] = "upstream",
        on_gone: OnGone | None = None,
    ) -> None:
        """Have requests carried out on the side connection; `on_gone`: the line ends before there is an answer."""
        self._token += 1
        self.asked = {} if self.asked is None else self.asked
        self.asked[self._token] = on_done, on_gone
        self.effects.append(AskSide(self._token, tuple(requests), db, self.modes.protocol, where))

    def side_answer(self, token: int, replies: Sequence[bytes] | None, now: float) -> None:
        """The side connection has answered, or could not (None)."""
        if self.asked is not None and token in self.asked:
            on_done, _ = self.asked.pop(token)
            on_done(replies, now)

    def gone(self) -> None:
        """The line ends: nobody is here any more to hear what was asked for."""
        self.run_timers(FOREVER)
        asked, self.asked = self.asked or {}, None
        for _, on_gone in asked.values():
            if on_gone is not None:
                on_gone()

    def fire(
        self,
        chosen: Chosen,
        work: Work,
        applied: Applied,
        told: Seen,
        outcome: Outcome,
        *,
        delay: float | None = None,
        detail: str = "",
    ) -> None:
        """A fault has acted: write it down."""
        event = fired(
            chosen.live, chosen.turn, work.exchange, self.now,
            applied=applied, told=told, outcome=outcome, delay=delay, detail=detail,
        )  # fmt: skip
        self.effects.append(event)

    def skip(self, chosen: Chosen, reason: str) -> None:
        """A rule was chosen and could not act: write down why."""
        chosen.live.counter.give_back(chosen.turn)
        chosen.live.skip(reason, self.effects)

    def forget(self, work: Work, reason: str) -> None:
        """What was to happen once an exchange is forwarded will not."""
        for each in (*(chosen for chosen, _ in work.repeats), *work.after):
            self.skip(each, reason)
        work.repeats.clear()
        work.after.clear()
        work.candidates.clear()
        self.wake(work.leave_logs(self.now))
        self.leave_barriers(work)

    def leave_barriers(self, work: Work) -> None:
        """Its places at barriers are free: it was applied, or never will be."""
        for _, barrier, ticket in work.tickets:
            self.wake(barrier.leave(ticket))
        work.tickets.clear()

    def tell(self, work: Work, applied: Applied, told: Seen | None) -> None:
        """Write down what was done to an exchange before it was forwarded, now that its fate is known; `told` None: no reply was wanted."""
        for done in work.told:
            seen, outcome = came_of(done, applied, told)
            self.fire(done.chosen, work, applied, seen, outcome, delay=done.delay, detail=done.detail)  # fmt: skip
        work.told.clear()

    def touched(self, chosen: Chosen, how: str, count: int) -> None:
        """A fault has changed keys behind the app's back."""
        self.effects.append(KeysTouched(chosen.live.name, how, count))
