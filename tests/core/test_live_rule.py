"""A rule in force counts each of its matches once, told or not, and knows what it does and to what."""

from chaosproxy.core.command import Command
from chaosproxy.core.effect import Effect, Matched, Skipped
from chaosproxy.core.live_rule import LiveRule
from chaosproxy.core.match import Exchange
from tests.conversation import Talk

LATE = "- {fault: latency, at: before_forward, delay: 1s, match: {commands: GET}, when: {every: 2}}"


def live(faults: str = LATE) -> tuple[LiveRule, Talk]:
    talk = Talk(faults)
    return talk.world.engine.rules[0], talk


def here(talk: Talk) -> Exchange:
    """An exchange that it matches."""
    return talk.conversation._line.where(Command.parse(talk.world.table, (b"GET", b"k"), b""))


def test_a_match_is_told_or_left_alone():
    """`take` tells of each match and of each it leaves alone, `glance` of none. The counts are the same."""
    rule, talk = live()
    other, _ = live()
    exchange = here(talk)
    told: list[Effect] = []
    for _ in range(5):
        taken = rule.take(exchange, b"k", 100.0, told)
        glanced = other.glance(exchange, b"k", 100.0)
        assert [(each.turn, each.key, each.at) for each in taken] == [
            (each.turn, each.key, each.at) for each in glanced
        ]
    assert [type(effect) for effect in told] == [
        *(Matched, Skipped, Matched) * 2,
        Matched,
        Skipped,
    ]
    assert (rule.unsaid(), other.unsaid()) == ((0, {}), (5, {"every": 3}))
    for each in (rule, other):
        assert (each.matched, each.skipped, each.fired) == (5, {"every": 3}, 0)
    assert other.counter.left_alone() == {"every": 3}


def test_what_is_skipped_for_other_reasons():
    """A match that could not be acted on after all is added to those that the counter has left alone."""
    rule, talk = live()
    exchange = here(talk)
    rule.glance(exchange, b"k", 100.0)
    effects: list[Effect] = []
    rule.count(effects)
    rule.skip("every", effects)
    rule.skip("ended", effects)
    assert (rule.matched, rule.skipped) == (2, {"every": 2, "ended": 1})
    assert effects == [
        Matched("latency", 1),
        Skipped("latency", "every", 1),
        Skipped("latency", "ended", 1),
    ]


def test_what_it_is():
    """Its name, its fault, and what it is asked about: a rule with `match: push` about pushes."""
    rule, _ = live()
    assert (rule.name, rule.fault.type, rule.subject) == ("latency", "latency", "exchange")
    push, _ = live("- {fault: push, match: {push: {kind: message}}, do: drop}")
    assert push.subject == "push"


def test_it_arms_others_once():
    """When it fires those that wait for it are armed, as of then, and not again."""
    rules = (
        LATE
        + "\n- {fault: latency, name: b, at: before_forward, delay: 1s, when: {armed_by: latency}}"
    )
    rule, talk = live(rules)
    waiting = talk.world.engine.by_name["b"]
    assert not waiting.counter.armed
    rule.fire(101.0)
    rule.fire(102.0)
    assert (rule.fired, rule.first_fired) == (2, 101.0)
    assert (waiting.counter.armed, waiting.armed_at) == (True, 101.0)


def test_the_numbers_fit():
    """Read while matches are taken, skipped and acted on in another thread: never has more become of them than there are."""
    rule, talk = live()
    exchange = here(talk)

    class Read(dict[str, int]):
        """Reasons of which one is new by the time that they are read."""

        def copy(self) -> dict[str, int]:
            found = super().copy()
            meanwhile()
            return found

    def meanwhile() -> None:
        effects: list[Effect] = []
        for _ in range(2):
            if rule.take(exchange, b"k", 100.0, effects):
                rule.fire(100.0)
        rule.count(effects)
        rule.skip("ended", effects)

    rule._skipped = Read()
    meanwhile()
    assert rule.numbers == (6, 1, {"every": 1, "ended": 1})
    assert rule.numbers == (9, 2, {"every": 2, "ended": 2})
    assert talk.world.engine.status()[0]["matched"] == 12
