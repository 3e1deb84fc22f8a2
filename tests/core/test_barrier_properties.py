"""Several clients that wait for each other: whatever they do and whenever they go, nobody waits for ever.

Takes random commands, rules, ends and switches; toy servers answer. It is held that what the server was sent is what was
written down of it, that replies keep their order, and that in the end nothing is held by anybody.
"""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from chaosproxy.core.effect import CutOthers
from tests.conversation import Talk, command
from tests.toy import Toy

RULES = (
    "fault: reorder, match: {commands: SET}, until: {command: SET}, max: 1s",
    "fault: reorder, match: {commands: SET}, when: {nth: 1, per: key}, until: {command: SET}, max: 1s",
    "fault: reorder, match: {commands: [SET, RPUSH]}, until: {command: '@write', same: any, applied: 2}, max: 2s",
    "fault: reorder, match: {commands: '@write'}, waiting: 2, max: 1s",
    "fault: reorder, match: {commands: '@write'}, waiting: 3, order: reversed, max: 2s",
    "fault: reorder, match: {commands: [SET, EXEC]}, waiting: 2, order: shuffled, max: 500ms",
    "fault: latency, match: {commands: SET}, at: before_forward, delay: 300ms, when: {chance: 50%}",
    "fault: latency, match: {commands: RPUSH}, at: after_apply, delay: 300ms",
    "fault: disconnect, match: {commands: RPUSH}, at: before_forward, when: {every: 5}",
    "fault: disconnect, match: {commands: RPUSH}, at: after_apply, who: all, when: {nth: 4}",
    "fault: reply, match: {commands: SET}, at: before_forward, error: OOM, when: {every: 3}",
    "fault: duplicate, match: {commands: '@write'}, when: {chance: 30%}",
    "fault: bandwidth, match: {commands: '@write'}, rate: 500B/s, shared: proxy",
)
COMMANDS = ("SET k:{n} a", "SET k:{n} b", "RPUSH k:{n} c", "GET k:{n}", "MULTI", "EXEC", "PING")
EVENTS = (*("client",) * 6, *("upstream",) * 8, *("wait",) * 4, "rare")
RARE = ("switch", "calm", "client_eof", "client_gone", "upstream_eof", "cut")


class Client:
    """One client, its toy server, and what it still has to say."""

    def __init__(self, talk: Talk, random: Random) -> None:
        self.talk, self.server = talk, Toy()
        self.todo = [self.some(random) for _ in range(random.randint(1, 6))]

    @staticmethod
    def some(random: Random) -> list[str]:
        """Some commands that are sent in one piece; a transaction is ended in the piece that begins it."""
        lines = []
        for _ in range(random.randint(1, 4)):
            line = random.choice(COMMANDS).format(n=random.randint(1, 2))
            if line not in {"MULTI", "EXEC"}:
                lines.append(line)
        return ["MULTI", *lines, "EXEC"] if random.random() < 0.3 else lines

    @property
    def over(self) -> bool:
        return self.talk._over

    def speak(self) -> None:
        if self.todo and not (self.over or self.talk.conversation._client_ended):
            self.talk.client(*self.todo.pop(0))

    def answer(self, count: int = 1000) -> None:
        self.server.receive(self.talk.heard("upstream"))
        if self.over or self.talk.conversation._returns.leaving.ended:
            return
        out, self.server.out = self.server.out[:count], self.server.out[count:]
        if out:
            self.talk.upstream(*out)


def profile(random: Random) -> str:
    return "\n".join(f"- {{{random.choice(RULES)}}}" for _ in range(random.randint(1, 3)))


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_nobody_waits_for_ever(random):
    """In the end every client that is still there has every reply, and no command is held."""
    converse(random)


def converse(random: Random) -> None:  # noqa: C901 - one case an event
    """All of it at random; checked at its end."""
    first = Talk(profile(random))
    clients = [Client(first, random)]
    clients += [Client(first.another(), random) for _ in range(random.randint(1, 3))]
    for _ in range(random.randint(10, 60)):
        client = random.choice(clients)
        event = random.choice(EVENTS)
        if event == "rare":
            event = random.choice(RARE)
        match event:
            case "client":
                client.speak()
            case "upstream":
                client.answer(random.randint(1, 3))
            case "wait":
                first.wait(random.choice([0.01, 0.3, 1.0]))
            case "switch":
                first.switch(profile(random))
            case "calm":
                first.switch()
            case "cut" if not client.over:
                client.talk.cut("reset")
            case _ if event != "cut" and not client.over and random.random() < 0.5:
                getattr(client.talk, event)()
        cut_others(clients)
    for _ in range(60):
        for client in clients:
            client.speak()
            client.answer()
        first.wait(5)
        cut_others(clients)
    for client in clients:
        check(client)
    first.close()


def cut_others(clients: list[Client]) -> None:
    """Carry out what one connection's fault does to the others."""
    for client in clients:
        for effect in client.talk._awaited:
            if isinstance(effect, CutOthers):
                for other in clients:
                    if other is not client and not other.over:
                        other.talk.cut(effect.how)
        client.talk._awaited.clear()


def check(client: Client) -> None:
    """Nothing is left of what a client that is still there has sent."""
    talk = client.talk
    talk.heard("client")
    if not client.over:
        line = talk.conversation._line
        assert line.head is None, talk._failed("a request is held that nothing holds up")
        assert not line.slots, talk._failed("a reply is waited for that never comes")
        assert not line.held, talk._failed("bytes are held that nothing holds up")
        talk.client_gone()
    tickets = [
        ticket
        for live in talk.world.engine.rules
        if hasattr(live.state, "_held")
        for ticket in (*live.state._held, *live.state._leaving)
        if ticket.connection == talk.connection
    ]
    assert tickets == [], talk._failed("it still has a place at a barrier")


def test_what_is_written_down_has_happened():  # noqa: C901 - one story
    """A held command that is told as dropped never reaches the server, and one told as applied has."""
    for seed in range(200):
        random = Random(seed)
        first = Talk(
            "- {fault: reorder, match: {commands: SET}, waiting: 2, order: shuffled, max: 1s}"
        )
        talks = [first, first.another(), first.another()]
        reached = [b""] * 3
        for step in range(12):
            number = random.randrange(3)
            talk = talks[number]
            if talk._over:
                continue
            talk.client(f"SET k:{step} v")
            if random.random() < 0.3:
                first.wait(1)
            for at, each in enumerate(talks):
                heard = each.heard("upstream")
                reached[at] += heard
                if not each._over and heard:
                    each.upstream(*["+OK"] * heard.count(b"SET"))
            if random.random() < 0.2 and not talk._over:
                talk.client_gone()
        for at, talk in enumerate(talks):
            if not talk._over:
                talk.client_gone()
            reached[at] += talk.heard("upstream")
            talk.heard("client")
            for event in talk.events():
                sent = command(f"SET {event.keys[0].decode()} v") in reached[at]
                assert sent == (event.applied != "no"), talk._failed(str(event))
        first.close()
