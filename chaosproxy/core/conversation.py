"""One client's conversation with its upstream: bytes in, bytes and effects out.

Takes what `net/` receives, with the time; gives two outboxes, a list of effects, and when it next wants to be woken. It is
the only door to `intake` (client to upstream) and `returns` (upstream to client), which share one `Line`.
"""

from collections.abc import Sequence

from chaosproxy.core import awaited, undoing
from chaosproxy.core.addresses import Translate
from chaosproxy.core.command import Command
from chaosproxy.core.decision import How
from chaosproxy.core.describing import describe
from chaosproxy.core.effect import CloseClient, Describe, Effect, HalfClose
from chaosproxy.core.intake import Intake
from chaosproxy.core.lane import Lane
from chaosproxy.core.line import FOREVER, Line
from chaosproxy.core.match import LISTENER
from chaosproxy.core.returns import Returns
from chaosproxy.core.slot import queue, rested
from chaosproxy.core.slot_map import Seat
from chaosproxy.core.world import World

#: What stands for a command where there is none.
NO_COMMAND = Command((b"",), b"", None, "", ())


class Conversation:
    """One client connection and its one upstream connection.

    `connection` numbers it, `address` is the client's host, `listener` names the one it came in by, `translate` gives the
    addresses that it is to see in place of the servers' own, `seat` is its place among a cluster's nodes. After every call drain `out_client` and `out_upstream`, then carry
    out `effects`, in order, and clear all three. `now` is seconds on any clock that does not go back. What `lane` takes need
    not be received: it goes on as it is.
    """

    __slots__ = ("_client_ended", "_intake", "_line", "_over", "_passed_on", "_returns", "lane")

    def __init__(
        self,
        world: World,
        connection: int,
        address: str,
        now: float,
        listener: str = LISTENER,
        *,
        translate: Translate | None = None,
        seat: Seat | None = None,
    ) -> None:
        self._line = Line(world, connection, address, now, listener, translate=translate, seat=seat)
        self._intake = Intake(self._line)
        self._returns = Returns(self._line)
        self.lane = Lane(self._line, self._intake, self._returns)
        self.lane.look()
        self._client_ended = False
        self._over = False
        self._passed_on = False

    # -- outboxes

    @property
    def out_client(self) -> list[bytes]:
        """Bytes for the client, in order."""
        return self._line.out_client

    @property
    def out_upstream(self) -> list[bytes]:
        """Bytes for the upstream, in order."""
        return self._line.out_upstream

    @property
    def effects(self) -> list[Effect]:
        """What else is to be done, in order, after the bytes were written."""
        return self._line.effects

    # -- what happens outside

    def receive_from_client(self, data: bytes, now: float) -> None:
        """Bytes have come from the client."""
        self._begin(now)
        line, lane, again = self._line, self.lane, False
        if lane.taken:
            line.out_upstream.append(data[: lane.taken])
            data, lane.taken = data[lane.taken :], 0
        while data and not line.closed:
            # One command that a rule acts on; those behind it may be of no interest again.
            upto, lane.upto = lane.upto or len(data), 0
            self._intake.receive(data[:upto], now, again=again)
            if line.expect:
                self._returns.look(now)
            if line.head is not None:
                self._go_on(now)
            data, again = data[upto:], True
            data = data[lane.follow(data, now) :] if data else data
        if line.slots and line.head is None:
            # Not sooner: answers to what came together leave, and are told of, in the same order with a lane and without.
            self._returns.leaving.release(now)
        self._finish()

    def receive_from_upstream(self, data: bytes, now: float) -> None:
        """Bytes have come from the upstream."""
        self._begin(now)
        if not self._line.closed:
            waited = self._line.head is not None or self._intake.stopped
            self._returns.receive(data, now)
            if waited:
                self._go_on(now)
            self._finish()

    def client_eof(self, now: float) -> None:
        """The client will send no more (FIN)."""
        self._begin(now)
        if not (self._line.closed or self._client_ended):
            self._client_ended = True
            self._finish()

    def client_gone(self, now: float) -> None:
        """The client's connection is no more."""
        self._begin(now)
        self._line.closed = True
        self._finish("client_gone")

    def upstream_eof(self, now: float) -> None:
        """The upstream will send no more (FIN): the client gets what is owed to it, each reply at its time."""
        self.upstream_gone(now)

    def upstream_gone(self, now: float) -> None:
        """The upstream's connection is no more, or could not be had."""
        line = self._line
        self._begin(now)
        if line.closed or self._returns.leaving.ended:
            return
        self._returns.leaving.ended = True
        self._intake.gone("upstream_gone")
        self._returns.leaving.release(now)
        self._finish("upstream_gone")

    def flushed(self, now: float) -> None:
        """Answers AwaitFlush: all bytes given to the client have been acknowledged by its stack."""
        self._begin(now)
        if not self._line.closed:
            self._returns.leaving.flushed()
            self._finish()

    def side_answer(self, token: int, replies: Sequence[bytes] | None, now: float) -> None:
        """Answers AskSide: one raw reply for each request, or None."""
        self._begin(now)
        if not self._line.closed:
            self._line.side_answer(token, replies, now)
            self._go_on(now)
            self._finish()

    def wake(self, now: float) -> None:
        """A deadline has come, or what a held command waits for has happened elsewhere."""
        line = self._line
        self._begin(now)
        if line.closed:
            return
        line.unhush(now)
        line.run_timers(now)
        undoing.take_over(line)
        self._go_on(now)
        self._finish()

    def clogged(self, clogged: bool) -> bool:
        """The client reads more slowly than it is written to, or has caught up: gives whether to `wake` this now."""
        self._line.clogged = clogged
        return self._intake.stopped and not clogged

    def cut(self, how: How, now: float) -> None:
        """Another conversation's fault ends this one too."""
        self._begin(now)
        if not self._line.closed:
            self._line.closed = True
            self._line.effects.append(CloseClient(how))
            self._finish()

    def unblock(self, raw: bytes, now: float) -> None:
        """Its client waits in a command that will never be carried out: it is told so (`raw`) and closed, or reset."""
        line = self._line
        self._begin(now)
        if line.closed:
            return
        if raw and line.at_turn(line.expect[0]):
            line.give(raw)
        line.closed = True
        line.effects.append(CloseClient("close" if raw else "reset"))
        self._finish()

    def matches_client(self, rule: str) -> bool:
        """Whether this connection is one that `rule` speaks of (its `clients` and `db`)."""
        live = self._line.engine.by_name.get(rule)
        return live is not None and live.match.client_holds(self._line.where(NO_COMMAND))

    def switch(self, now: float) -> None:
        """The world has another engine: what the old one holds up goes on at once."""
        line = self._line
        self._begin(now)
        if line.closed:
            return
        line.unhush()
        if line.lost:
            line.closed = True
            line.effects.append(CloseClient("reset"))
            self._finish("switched")
            return
        self._intake.let_go(now)
        self._returns.leaving.let_go(now)
        line.run_timers(FOREVER)
        line.engine = line.world.engine
        self._go_on(now)
        self._finish()

    def _begin(self, now: float) -> None:
        """Something happens."""
        line = self._line
        line.now = now
        line.made = line.made if line.clogged else 0
        self._intake.left = awaited.MOST_AT_ONCE
        line.expect, line.slots = queue(line.expect), queue(line.slots)
        self.lane.leave()

    def _go_on(self, now: float) -> None:
        """Whatever waited may go on, on both sides, until nothing moves."""
        line = self._line
        before = None
        while not line.closed:
            self._intake.pump(now)
            self._returns.drain(now)
            after = (line.head, len(line.expect), len(line.slots))
            if after == before:
                return
            before = after

    def _finish(self, reason: str = "cut") -> None:
        """Once the line is closed: what had not happened will not. Once the client's last request is sent on: its FIN."""
        line = self._line
        if self._client_ended and self._returns.leaving.ended and awaited.is_silenced(line):
            line.closed = True
            line.effects.append(CloseClient("close"))
        if line.closed and not self._over:
            self._over = True
            if self._returns.leaving.ended:
                reason = "upstream_gone"
            self._intake.gone(reason)
            self._returns.leaving.gone(reason)
            line.gone()
        if self._client_ended and not (line.closed or self._passed_on):
            # Behind what waits at the server that would take nothing more either.
            if awaited.is_held_up(line) or (line.head and undoing.surely_waits(line)):
                self._intake.gone("client_gone")
            held = (line.world.held or self._intake.stopped) and self._intake.waiting
            if line.head is None and not held:
                self._passed_on = True
                # Half a request too: nothing may be left here that is sent on later, behind the FIN.
                if not self._intake.ended:
                    self._intake.pass_on()
                line.effects.append(HalfClose("upstream"))
        line.expect, line.slots = rested(line.expect), rested(line.slots)
        self.lane.look()

    # -- what it wants

    @property
    def due(self) -> float | None:
        """When it wants to be woken, None for never."""
        return awaited.due(self._line, self._intake.due, self._returns.leaving.due)

    @property
    def client_paused(self) -> bool:
        """Whether the client's side holds as much as it may: read no more of it for now."""
        return self.lane.crowded or self._intake.waiting > self._line.world.max_buffer

    @property
    def busy(self) -> bool:
        """Whether more has come from the client than is taken at once: read no more of it before the next turn."""
        return self._intake.stopped and not awaited.is_full(self._line)

    @property
    def upstream_paused(self) -> bool:
        """Whether the upstream's side holds as much as it may.

        Never while nothing that is here waits for its time: only more bytes can finish what is unfinished, and of that no more is
        held than may be (`passing`).
        """
        line = self._line
        if line.client_silent is None and not (line.slots and line.slots[0].full):
            return False
        return line.held + self._returns.framer.partial > line.world.max_buffer

    @property
    def buffered(self) -> int:
        """Bytes held, of both sides; none once it is over."""
        line = self._line
        return 0 if line.closed else line.held + self._intake.waiting + self._returns.framer.partial

    @property
    def opened(self) -> float:
        """When its client came."""
        return self._line.opened

    @property
    def blocked(self) -> bool:
        """Whether its client waits in a command that waits for what others write."""
        return undoing.is_waiting(self._line)

    @property
    def quiet(self) -> bool:
        """Whether all that was sent on is answered, but for what may wait."""
        return not (self.lane or self._line.expect) or self.blocked

    @property
    def raw(self) -> bool:
        """Whether bytes pass without being understood."""
        return self._intake.raw or self._line.raw

    @property
    def holding(self) -> bool:
        """Whether a rule holds a request or a reply up now."""
        return awaited.is_held(self._line)

    @property
    def waits(self) -> bool:
        """Whether its client waits for something that comes by itself."""
        return bool(self.lane) or awaited.is_coming(self._line, timed=self.due is not None)

    def describe(self) -> Describe:
        """What is to be known of this connection, for the control API."""
        waiting = sum(slot.times for slot in self._line.slots) + len(self.lane)
        return describe(self._line, buffered=self.buffered, waiting=waiting, raw=self.raw)
