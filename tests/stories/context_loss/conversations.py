"""Hundreds of conversations in which people say things, and questions about what they said: how many cannot be answered.

Takes pods and a seed; gives the context loss rate: questions whose fact was acknowledged and cannot be recalled, of all
questions. Everything is drawn from the seed, the moments included: people are slower than the machine, so where somebody
thinks something over, the queue is idle, and otherwise it is not.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.stories.context_loss.memory import Turn
from tests.stories.context_loss.pod import Died, Pods

#: How many turns a conversation has.
TURNS = range(8, 21)
#: How many questions stand at its end, each about another turn.
QUESTIONS = 4
#: After how many turns somebody thinks it over.
THINKS = 0.25
#: How often somebody tries again who saw an error, and how long a supervisor waits before it starts a pod once more.
TRIES, RESTART = 400, 0.02
#: Something that happens to Redis in the middle of a conversation.
Mishap = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Loss:
    """What came of the conversations of one window."""

    window: int
    conversations: int
    questions: int
    lost: int
    #: How often the pod died under way.
    crashes: int

    @property
    def rate(self) -> float:
        return self.lost / self.questions

    def __str__(self) -> str:
        return (
            f"window {self.window}: {self.lost} of {self.questions} questions lost ({self.rate:.1%}),"
            f" {self.conversations} conversations, {self.crashes} crashes"
        )


def measure(pods: Pods, conversations: int, seed: str, mishap: Mishap | None = None) -> Loss:
    """Have so many conversations, one after the other, each with a mishap if there is one, and count what is lost."""
    before, lost = pods.died, 0
    for number in range(conversations):
        lost += converse(pods, Random(f"{seed}/{pods.window}/{number}"), mishap)
    questions = conversations * QUESTIONS
    return Loss(pods.window, conversations, questions, lost, pods.died - before)


def converse(pods: Pods, random: Random, mishap: Mishap | None = None) -> int:
    """Have one conversation; gives how many of its questions cannot be answered."""
    session = uuid.uuid4().hex
    facts = {}
    turns = random.choice(TURNS)
    # Where there is none, nothing is drawn for it.
    when = random.randrange(2, turns) if mishap else 0
    for number in range(1, turns + 1):
        if mishap and number == when:
            mishap()
        about = f"secret {number} of {session}"
        facts[about] = f"My {about} is {random.randrange(10**6)}"
        # Until it is acknowledged: somebody who sees an error sends it again.
        until_answered(pods, "remember", session, Turn(number, facts[about]))
        if random.random() < THINKS:
            until_answered(pods, "idle")
    until_answered(pods, "idle")
    asked = random.sample(sorted(facts), QUESTIONS)
    return sum(until_answered(pods, "recall", session, about) != facts[about] for about in asked)


def until_answered(pods: Pods, method: str, *args: object) -> object:
    """Call until a pod lives long enough to answer."""
    for number in range(TRIES):
        if number > 1:
            time.sleep(RESTART)
        try:
            return pods.call(method, *args)
        except Died:
            continue
    raise AssertionError(f"{method} was not answered by {TRIES} pods")
