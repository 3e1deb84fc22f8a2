"""Writes down what happened: events into the journal, numbers into the counts.

Takes effects of conversations and of admission; gives the journal and the counts their lines.
"""

import logging

from chaosproxy.core.effect import Effect, Fired, LimitReached, Matched, ProtocolFault, Skipped
from chaosproxy.core.engine import Engine
from chaosproxy.core.world import World
from chaosproxy.counts import Countable, Counts
from chaosproxy.journal import Journal

#: How many generations back an event may still be counted under its own profile.
_GENERATIONS = 100

_log = logging.getLogger("chaosproxy.proxy")


class Record:
    """What is written down of one proxy. `world` has the engine in force."""

    def __init__(self, journal: Journal, counts: Counts, world: World) -> None:
        self._journal = journal
        self._counts = counts
        self._world = world
        self._diverged = False
        # By generation: what a late event of an older one still has to be counted under.
        self._profiles: dict[int, tuple[str, dict[str, str]]] = {}
        self.declare(world.engine)

    def declare(self, engine: Engine) -> None:
        """An engine comes into force: its faults are counted from zero."""
        types = {rule.name: rule.fault.type for rule in engine.profile.rules}
        self._profiles[engine.generation] = engine.profile.name, types
        self._profiles.pop(engine.generation - _GENERATIONS, None)
        unsaid = {live.name: live.unsaid for live in engine.rules}
        self._counts.declare(engine.profile.name, types, unsaid)

    def write(self, effect: Effect, now: float) -> None:
        """Put an effect into the journal and the counts, if it says that something has happened."""
        engine = self._world.engine
        generation = engine.generation
        if isinstance(effect, Fired):
            generation = effect.generation
        elif isinstance(effect, Matched | Skipped):
            generation = effect.generation or generation
        elif not isinstance(effect, Countable):
            return
        profile, types = self._profiles.get(generation, ("", {}))
        fault = "" if isinstance(effect, ProtocolFault | LimitReached) else effect.fault
        self._counts.count(effect, profile, types.get(fault, ""), self._world.table.specs)
        if isinstance(effect, Fired):
            # Last, so that whoever finds the event finds it counted.
            self._journal.record(effect, now)
        recording = engine.recording
        if recording is not None and recording.divergence is not None and not self._diverged:
            self._diverged = True
            _log.error("the replay %s", recording.divergence)
