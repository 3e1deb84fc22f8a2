"""Carries out the steps of failovers: who is cut, who is told, when the switch is, and who waits meanwhile.

Takes the rules whose failover begins, by an exchange or by the clock; gives each step its time, and writes it down.

While a step is carried out the world holds all requests; it begins once those that are on their way have been answered, so
nothing slips in between a switch and what is undone by it.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, assert_never

from chaosproxy.core.decision import How
from chaosproxy.core.effect import Effect
from chaosproxy.core.engine import Engine
from chaosproxy.core.errors import error_reply
from chaosproxy.core.failing import (
    begin_by_itself,
    begins_at,
    forget,
    lose,
    lost_events,
    refused,
    state_of,
    tell,
)
from chaosproxy.core.failover import CutOff, Phase, Rejoin, Step, Switch, Unblock
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.lost import Lost
from chaosproxy.core.resp import encode_command
from chaosproxy.net.connection import Link
from chaosproxy.net.ending import cut_off
from chaosproxy.net.pair_error import PairError, UnsurePairError

if TYPE_CHECKING:
    from chaosproxy.net.proxy import Proxy

#: How long what is on its way may take to be answered before a step, in seconds.
PATIENCE: Final = 2.0
#: How often it is looked whether it has been, in seconds.
_POLL: Final = 0.001
#: How often the server has to answer before what it has said to those who wait is surely heard.
_HEARD: Final = 4

_log = logging.getLogger("chaosproxy.failover")


class Failovers:
    """The failovers of the engine in force. What stands behind the proxy is asked first whether it can make one real."""

    def __init__(self, proxy: "Proxy") -> None:
        self._proxy = proxy
        self._world = proxy.world
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped = False

    def mind(self, now: float) -> None:
        """Something has changed (a profile, a rule that fired, a request, the time): see what begins by itself."""
        if self._stopped:
            return
        self._changed.set()
        self._changed = asyncio.Event()
        engine = self._world.engine
        effects: list[Effect] = []
        begun = begin_by_itself(engine, now, effects)
        for effect in effects:
            self._proxy.write_down(effect, now)
        for live in begun:
            self._world.hold()
            self._run(engine, live)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        starts = [at for live in engine.failovers if (at := begins_at(engine, live)) is not None]
        for live in engine.failovers:
            state_of(live).expect(begins_at(engine, live))
        # One whose time is past is switched off: it is minded again when it is switched on.
        if coming := [at for at in starts if at > now]:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(coming) - now, lambda: self.mind(monotonic()))

    def coming(self, engine: Engine) -> None:
        """This engine is about to come into force: where something may be lost, what is on its way is answered first.

        Else it could come between the image of a key and the write that the image is for.
        """
        if any(state_of(live).log is not None for live in engine.failovers):
            self._world.hold()
            self._keep(self._let_go_once_answered())

    async def _let_go_once_answered(self) -> None:
        await self._answered(_HEARD)
        # All still held: who waits at the server is known before anybody writes there.
        self._wake()
        self._let_go()

    def start(self, rule: str) -> None:
        """A failover has begun with an exchange; the world holds all requests already."""
        engine = self._world.engine
        self._run(engine, engine.by_name[rule])

    def stop(self) -> None:
        """The proxy ends."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()

    def _run(self, engine: Engine, live: LiveRule) -> None:
        self._keep(self._carry_out(engine, live))

    def _keep(self, what: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, engine: Engine, live: LiveRule) -> None:
        """Go through the steps of one failover, as long as its profile is in force; requests are held as this begins."""
        world, state = self._world, state_of(live)
        holding = True
        try:
            await self._answered()
            if (done := await self._proxy.behind.instead(live)) is not None:
                state.call_off()
                self._proxy.counts.failovers += 1
                self._tell(live, done)
                return
            await self._unless_replaced(engine, self._proxy.behind.begin(live))
            while True:
                while world.engine is engine and (step := state.step(monotonic())) is not None:
                    await self._do(live, step)
                self._proxy.door.mind(monotonic())
                if state.phase is None or not state.phase.held:
                    holding = False
                    self._let_go()
                if state.due is None or not await self._reaches(state.due, engine):
                    return
                if not holding:
                    holding = True
                    world.hold()
                await self._answered()
        except PairError as error:
            state.call_off()
            self._called_off(live, error)
        except Exception:  # noqa: BLE001 - a mistake of ours, and nobody is to wait for ever
            _log.exception("failover %s: a mistake in chaosproxy", live.name)
            state.due = state.phase = None
        finally:
            if holding:
                self._let_go()

    def _everybody(self) -> list[Link]:
        return [link for link in self._proxy.links.values() if not link.ended]

    def _let_go(self) -> None:
        self._world.go_on()
        self._wake()

    def _wake(self) -> None:
        for link in self._everybody():
            if link.relaying:
                link.tell(link.conversation.wake)

    async def _reaches(self, due: float, engine: Engine) -> bool:
        """Wait until then; False if another profile comes into force before."""
        while self._world.engine is engine:
            rest = due - monotonic()
            if rest <= 0:
                return True
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await changed.wait()
        return False

    async def _unless_replaced(self, engine: Engine, what: Coroutine[None, None, None]) -> None:
        """Wait for it, and no longer once another profile is in force: nobody is held up for that. Raises what it raises."""
        task = asyncio.get_running_loop().create_task(what)
        try:
            while self._world.engine is engine and not task.done():
                changed = asyncio.get_running_loop().create_task(self._changed.wait())
                await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            if task.done():
                await task
        finally:
            task.cancel()

    async def _answered(self, times: int = 1) -> None:
        """Wait until all that is on its way to the server has been answered, but for what waits there for others.

        So often the server is asked whether what it is met with is heard.
        """
        end = monotonic() + PATIENCE
        while not all(link.conversation.quiet for link in self._everybody() if link.relaying):
            if monotonic() > end:
                _log.warning("a failover goes on although not everything sent before is answered")
                return
            await asyncio.sleep(_POLL)
        if any(link.conversation.blocked for link in self._everybody() if link.relaying):
            # Who has just been given what it waited for hears that first.
            await self._asked(times)

    async def _asked(self, times: int) -> None:
        """Have the server answer so often: what came before it has met by then."""
        for _ in range(times):
            await self._proxy.routes.first.side.request(b"PING")
            await asyncio.sleep(0)

    async def _do(self, live: LiveRule, step: Step) -> None:
        match step:
            case Phase():
                self._proxy.door.mind(monotonic())
            case CutOff(how):
                count = self._cut(self._everybody(), how)
                told = "reset" if how == "reset" else "closed"
                self._tell(live, f"{count} connections cut", told=told, outcome="fail")
            case Unblock(told):
                self._unblock(live, told=told)
            case Switch():
                await self._switch(live)
            case Rejoin():
                await self._proxy.behind.rejoin(live)
                state = state_of(live)
                old = [link for link in self._everybody() if state.is_old(link.conversation.opened)]
                count = self._cut(old, "close")
                text = f"the old primary is a replica now, {count} connections to it closed"
                self._tell(live, text, told="closed", outcome="fail")
            case _:
                assert_never(step)

    def _tell(self, live: LiveRule, detail: str, **what: object) -> None:
        now = monotonic()
        self._write(tell(live, now, detail, **what), now)

    def _called_off(self, live: LiveRule, error: PairError) -> None:
        if isinstance(error, UnsurePairError):
            said = f"called off, though it may have been made: {error}"
            self._tell(live, said, applied="unknown", outcome="unknown")
        else:
            self._tell(live, f"called off: {error}")

    def _write(self, effects: Iterable[Effect], now: float) -> None:
        for effect in effects:
            self._proxy.write_down(effect, now)

    @staticmethod
    def _cut(links: Iterable[Link], how: How) -> int:
        count = 0
        for link in links:
            cut_off(link, how)
            count += 1
        return count

    def _unblock(self, live: LiveRule, *, told: bool) -> None:
        raw = error_reply("UNBLOCKED", self._world.server) if told else b""
        count = 0
        for link in self._everybody():
            if link.relaying and link.conversation.blocked:
                link.tell(partial(link.conversation.unblock, raw))
                count += 1
        if count:
            seen = "error" if told else "reset"
            self._tell(live, f"{count} blocked clients told", told=seen, outcome="fail")

    async def _switch(self, live: LiveRule) -> None:
        """The new primary takes over."""
        state = state_of(live)
        behind = self._proxy.behind
        real = behind.makes_real(live)
        if not real and state.old is not None:
            # Whoever becomes a replica tells those who wait; else what the new primary is sent would be given to them.
            self._unblock(live, told=True)
        lost = await (behind.switch(self._answered) if real else self._undo(live))
        now = monotonic()
        if real:
            forget(self._world.engine)
        state.switch_done(now)
        behind.switched(live)
        if lost is None:
            self._tell(live, "switched; what was lost by it is not known")
        else:
            self._write(lost_events(live, lost, now, "lost" if real else "undone"), now)
        self._proxy.counts.failovers += 1

    async def _undo(self, live: LiveRule) -> Lost:
        """Undo what the new primary never received."""
        lost = lose(self._world.engine, live)
        if lost.requests:
            # Whose connection ends just now may still wait there, and would be given what is put back.
            await self._asked(_HEARD)
            requests = [encode_command(b"MULTI"), *lost.requests, encode_command(b"EXEC")]
            done = asyncio.get_running_loop().create_future()
            self._proxy.routes.first.side.ask(requests, 0, 2, done.set_result)
            lost = refused(lost, await done)
        return lost
