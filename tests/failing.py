"""Plays in a talk what net/failover.py does in a proxy: it carries out the steps of a failover, at once.

Takes a Talk; gives a Director that is told when to look, as the clock would tell it, and the effects that it wrote down.
"""

from chaosproxy.core.effect import Effect
from chaosproxy.core.errors import error_reply
from chaosproxy.core.failing import begin_by_itself, begins_at, lose, lost_events, state_of, tell
from chaosproxy.core.failover import CutOff, Phase, Rejoin, Step, Switch, Unblock
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.lost import Lost
from tests.conversation import Talk


class Director:
    """Carries out the failovers of all clients of a talk. `lost` is what the last switch has cost."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.world = talk.world
        self.engine = talk.world.engine
        self.effects: list[Effect] = []
        self.lost: Lost | None = None
        self._holding = False
        for live in self.engine.failovers:
            state_of(live).expect(begins_at(self.engine, live))

    @property
    def talks(self) -> list[Talk]:
        """Every client that is still there."""
        return [talk for talk in self.talk.clock.talks if not talk._over]

    def look(self) -> None:
        """Something has happened, or time has passed."""
        now = self.talk.now
        self._holding = self._holding or self.world.held > 0
        if self.world.engine is not self.engine:
            self._let_go()
            return
        if begin_by_itself(self.engine, now, self.effects):
            self.world.hold()
            self._holding = True
        for live in self.engine.failovers:
            state = state_of(live)
            if state.due is None or now < state.due:
                continue
            if not self._holding:
                self._holding = True
                self.world.hold()
            if not all(talk.conversation.quiet for talk in self.talks):
                return
            while (step := state.step(now)) is not None:
                self._do(live, step)
            if state.phase is None or not state.phase.held:
                self._let_go()

    def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            self.world.go_on()
            for talk in self.talks:
                talk.wake()

    def _do(self, live: LiveRule, step: Step) -> None:  # noqa: C901 - one branch a step
        state, now = state_of(live), self.talk.now
        match step:
            case Phase():
                pass
            case CutOff(how):
                for talk in self.talks:
                    talk.cut(how)
                self.effects += tell(live, now, "cut")
            case Unblock(told):
                raw = error_reply("UNBLOCKED", self.world.server) if told else b""
                for talk in self.talks:
                    if talk.conversation.blocked:
                        talk.conversation.unblock(raw, now)
                        talk._look()
            case Switch():
                self.lost = lose(self.engine, live)
                state.switch_done(now)
                self.effects += lost_events(live, self.lost, now)
            case Rejoin():
                for talk in self.talks:
                    if state.is_old(talk.conversation.opened):
                        talk.cut("close")
