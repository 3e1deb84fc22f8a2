"""The door that nobody answers: while a rule refuses all new connections, the proxy does not listen at all.

Takes the engine in force; closes the listener and opens it again, so that connecting itself fails meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from time import monotonic
from typing import Final

from chaosproxy.core.admission import doors, shut_door, stays_shut
from chaosproxy.core.effect import Effect
from chaosproxy.core.engine import Engine
from chaosproxy.core.scalar import closest
from chaosproxy.net.route import Routes

_FOREVER: Final = float("inf")
#: How long after a failed attempt to listen again the next one is made, in seconds.
_AGAIN: Final = 0.05

_log = logging.getLogger("chaosproxy.door")


class Door:
    """Whether the proxy listens. `close` and `listen` do it; `record` writes an effect down.

    `listener`: it is the door of that one, which rules name; None: that of all together.
    """

    def __init__(
        self,
        engine: Callable[[], Engine],
        close: Callable[[], None],
        listen: Callable[[], Awaitable[object]],
        record: Callable[[Effect, float], None],
        listener: str | None = None,
    ) -> None:
        self._listener = listener
        self._engine = engine
        self._close = close
        self._listen = listen
        self._record = record
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._closed_for: Engine | None = None
        self._stopped = False

    def mind(self, now: float) -> None:
        """Something has changed (a profile, a rule that fired, the time): see whether to listen."""
        engine = self._engine()
        if self._stopped:
            return
        if self._closed_for is engine:
            if not stays_shut(engine, now, self._listener):
                self._open()
            return
        shut = shut_door(engine, now, self._listener)
        if shut is not None:
            until, effects = shut
            self._closed_for = engine
            self._close()
            for effect in effects:
                self._record(effect, now)
            self._at(until, self._open)
            return
        if self._closed_for is not None:
            self._open()
        starts = [
            engine.since + rule.rule.when.from_
            for rule in engine.connection_rules
            if rule.rule.when.from_ is not None and engine.since + rule.rule.when.from_ > now
        ]
        if starts:
            self._at(min(starts), lambda: self.mind(monotonic()))

    def stop(self) -> None:
        """The proxy ends: listen no more."""
        self._stopped = True
        self._at(0, None)
        if self._opening is not None:
            self._opening.cancel()

    def _at(self, due: float, what: Callable[[], None] | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if what is not None and due < _FOREVER:
            delay = max(0.0, due - monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, what)

    def _open(self) -> None:
        self._closed_for = None
        self._at(0, None)
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._listen_again())

    async def _listen_again(self) -> None:
        problem = ""
        while self._closed_for is None:
            try:
                await self._listen()
            except OSError as error:
                if str(error) != problem:
                    problem = str(error)
                    _log.warning("cannot listen again: %s", problem)
                await asyncio.sleep(_AGAIN)
            else:
                break
        self._opening = None
        if self._closed_for is not None:  # it has been shut again meanwhile
            self._close()
        self.mind(monotonic())


def strangers(engine: Engine, routes: Routes, later: Collection[str] = ()) -> list[str]:
    """Give, for each rule that waits for what comes by a listener that there is not, nor is to come `later`, what is to be said of that."""
    names = [route.name for route in routes]
    found = []
    for live in engine.rules:
        test = live.rule.match.connection
        if test is not None and test.listener not in {None, *names, *later}:
            near = closest(test.listener, names)
            meant = f"did you mean '{near}'?" if near else f"there is {', '.join(names)}"
            found.append(f"fault {live.name}: no listener is called '{test.listener}'; {meant}")
    return found


class Doors:
    """The door of all routes, and one for each listener that a rule has named."""

    def __init__(
        self, engine: Callable[[], Engine], routes: Routes, record: Callable[[Effect, float], None]
    ) -> None:
        self._engine = engine
        self._routes = routes
        self._record = record
        self._all = Door(engine, routes.close, routes.open, record)
        self._single: dict[str, Door] = {}

    def mind(self, now: float) -> None:
        """Something has changed: see where to listen."""
        self._all.mind(now)
        for name in sorted(doors(self._engine()) - set(self._single)):
            self._single[name] = Door(
                self._engine,
                partial(self._routes.shut, name),
                partial(self._routes.open_again, name),
                self._record,
                name,
            )
        for door in self._single.values():
            door.mind(now)

    def stop(self) -> None:
        """The proxy ends: listen no more."""
        for door in (self._all, *self._single.values()):
            door.stop()
