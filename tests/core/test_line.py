"""What both directions share: time, the side connection, silence, and how an event is told."""

from chaosproxy.core.replay import Recording
from tests.conversation import Talk

LATE = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: {uniform: [1s, 2s]}, when: {chance: 50%}}"


def test_timers_run_in_order_and_each_once():
    """What is to happen later happens at its time, first what is due first; nothing is due after that."""
    done = []
    with Talk() as talk:
        line = talk.conversation._line
        for name, due in (("c", 103.0), ("a", 101.0), ("b", 101.0)):
            line.later(due, lambda name=name: done.append(name))
        assert talk.conversation.due == 101.0
        talk.wait(1)
        assert done == ["a", "b"]
        talk.wait(2)
        assert done == ["a", "b", "c"]
        assert talk.conversation.due is None


def test_what_was_to_happen_later_happens_at_the_end():
    """A write that is to be applied again is applied again, though its client goes before its time, and that is told."""
    with Talk("- {fault: duplicate, match: {commands: INCR}, gap: 5s}") as talk:
        talk.handshake("INCR n", ":1")
        talk.client_gone()
        talk.expect_side("INCR n")
        talk.expect_fired("duplicate", applied="yes", told="ok")


def test_what_was_to_happen_later_happens_at_a_switch():
    """And another profile does not wait for it either."""
    with Talk("- {fault: duplicate, match: {commands: INCR}, gap: 5s}") as talk:
        talk.handshake("INCR n", ":1")
        talk.switch()
        talk.expect_side("INCR n")
        talk.side(":2")
        talk.wait(10)


def test_replayed():
    """A replay fires the matches that were recorded, with the delays that were recorded, whatever is drawn now."""

    def ask(talk: Talk) -> list[tuple[int, float | None, float | None]]:
        for _ in range(8):
            talk.client("GET a")
            talk.expect_upstream("GET a")
            talk.upstream('"A"')
            talk.wait(2)
            talk.expect_client('"A"')
        return [(event.match, event.delay, event.draw) for event in talk.events()]

    with Talk(LATE, seed=1) as talk:
        fired = ask(talk)
        assert 0 < len(fired) < 8
        recorded = [
            {
                "n": n,
                "fault": event.fault,
                "per": event.per,
                "ordinal": event.ordinal,
                "match": event.match,
                "digest": event.digest,
                "delay": event.delay,
                "draw": event.draw,
                "command": event.command,
            }
            for n, event in enumerate(talk.events(), 1)
        ]
    recording = Recording.of(recorded)
    with Talk(LATE, seed=2, recording=recording) as talk:
        assert ask(talk) == fired
        assert talk.skipped("latency") == ["not_recorded"] * (8 - len(fired))
        assert recording.verdict() is None


def test_what_could_not_act_in_a_replay_spends_nothing():
    """A recorded match that cannot act now is skipped like any other."""
    rule = "- {fault: drop_write, tell: error, match: {commands: '*'}}".replace("'*'", "SET")
    with Talk(rule) as talk:
        talk.client("SET a 1")
        talk.heard("client")
        event = talk.events()[0]
    fields = ("fault", "per", "ordinal", "match", "digest", "command")
    recording = Recording.of([{"n": 1, **{field: getattr(event, field) for field in fields}}])
    with Talk(rule, recording=recording, max_buffer=5) as talk:
        talk.client(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1")
        talk.client(b"\r\n")
        talk.heard("upstream")
        assert talk.skipped("drop_write") == ["too_large"]


def test_the_clock_of_a_fault():
    """A fault is told the proxy's time and the world's."""
    with Talk(at=50.0) as talk:
        assert talk.world.epoch == 1e9
        assert talk.conversation._line.now == 50.0
        talk.wait(1)
        talk.wake()
        assert talk.conversation._line.now == 51.0
