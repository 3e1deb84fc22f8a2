"""`push`: messages and invalidations are lost, late, doubled or made up, and nothing else is touched."""

import pytest

from tests.conversation import Talk, reply

INVALIDATED = '>["invalidate" *["k"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


class Subscriber(Talk):
    """A client that has subscribed to c."""

    def __init__(self, rules, protocol, **how):
        super().__init__(rules, protocol=protocol, **how)
        self.handshake("SUBSCRIBE c", self.frame('"subscribe" "c" :1'))

    def frame(self, parts):
        return f"{'>' if self.protocol == 3 else '*'}[{parts}]"

    def message(self, text, channel="c"):
        return self.frame(f'"message" "{channel}" "{text}"')

    @property
    def pong(self):
        return "+PONG" if self.protocol == 3 else '*["pong" ""]'


def rule(settings, match="{kind: message}"):
    return f"- {{fault: push, match: {{push: {match}}}, {settings}}}"


@both
def test_drop(protocol):
    """The message never arrives; the reply behind it does."""
    with Subscriber(rule("do: drop"), protocol) as talk:
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(talk.message("hi"), talk.pong)
        talk.expect_client(talk.pong)
        event = talk.expect_fired("push", told="nothing", outcome="ok", position="after_apply")
        assert (event.command, event.keys) == ("message", (b"c",))


@both
def test_delay(protocol):
    """The message arrives late, and what stands behind it waits with it."""
    with Subscriber(rule("do: delay, delay: 1s"), protocol) as talk:
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(talk.message("hi"), talk.pong)
        talk.expect_silence()
        talk.wait(0.999)
        talk.expect_silence()
        talk.wait(0.001)
        talk.expect_client(talk.message("hi"), talk.pong)
        talk.expect_fired("push", told="late", delay=1.0)


@both
def test_duplicate(protocol):
    """The message arrives twice, one right behind the other."""
    with Subscriber(rule("do: duplicate"), protocol) as talk:
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(talk.message("hi"), talk.pong)
        talk.expect_client(talk.message("hi"), talk.message("hi"), talk.pong)
        talk.expect_fired("push", told="ok")


@both
def test_inject(protocol):
    """A frame of one's own arrives just ahead of it."""
    frame = '"*3\\r\\n$7\\r\\nmessage\\r\\n$1\\r\\nc\\r\\n$4\\r\\nmade\\r\\n"'
    made = '*["message" "c" "made"]'
    with Subscriber(rule(f"do: inject, frame: {frame}"), protocol) as talk:
        talk.upstream(talk.message("hi"))
        talk.expect_client(made, talk.message("hi"))
        talk.expect_fired("push", told="ok")


@pytest.mark.parametrize("do", ["drop", "duplicate"])
def test_invalidations(do):
    """A client-side cache is told nothing of a key that changed, or twice."""
    with Talk(rule(f"do: {do}", "{kind: invalidate, channel: 'k*'}"), protocol=3) as talk:
        other = '>["invalidate" *["j"]]'
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(INVALIDATED, other, ">[+invalidate _]", '"A"')
        times = {"drop": 0, "duplicate": 2}[do]
        talk.expect_client(*[INVALIDATED] * times, other, ">[+invalidate _]", '"A"')
        assert talk.matched("push") == 1


def test_counts_per_key():
    """Of an invalidation of several keys the first that matches counts, not whichever stands first in it."""
    rule = (
        "- {fault: push, do: drop, match: {push: {channel: 'chat:*'}}, when: {per: key, first: 1}}"
    )
    with Talk(rule, protocol=3) as talk:
        for chat in ("chat:1", "chat:2"):
            talk.upstream(f'>["invalidate" *["user:a" "{chat}"]]')
            talk.expect_client()
            talk.expect_fired("push", per=chat, match=1)


def test_invalidations_of_another_connection():
    """In RESP2 a client learns of changed keys by a channel: these are invalidations too, and no messages."""
    rules = rule("do: drop", "{kind: invalidate, channel: 'k*'}")
    channel = "__redis__:invalidate"
    with Talk(rules + "\n" + rule("name: m, do: drop")) as talk:
        talk.handshake(f"SUBSCRIBE {channel}", f'*["subscribe" "{channel}" :1]')
        all_gone = f'*["message" "{channel}" *-1]'
        talk.upstream(f'*["message" "{channel}" *["k"]]', all_gone)
        talk.expect_client(all_gone)
        talk.expect_fired("push", command="invalidate", keys=(b"k",))
        assert talk.matched("m") == 0


@both
def test_all_kinds(protocol):
    """Without `match: push` it is every frame nobody asked for, but no confirmation."""
    with Subscriber("- {fault: push, do: drop}", protocol) as talk:
        frames = (
            talk.message("x"),
            talk.frame('"pmessage" "c*" "c" "x"'),
            talk.frame('"smessage" "c" "x"'),
        )
        talk.upstream(*frames)
        talk.expect_client()
        talk.client("SUBSCRIBE d")
        talk.expect_upstream("SUBSCRIBE d")
        talk.upstream(talk.frame('"subscribe" "d" :2'))
        talk.expect_client(talk.frame('"subscribe" "d" :2'))
        assert talk.matched("push") == 3


@pytest.mark.parametrize(
    ("match", "frames"),
    [
        ("{kind: message}", [0, 1]),
        ("{kind: pmessage}", [2]),
        ("{kind: [pmessage, smessage]}", [2, 3]),
        ("{channel: c}", [0, 2]),
        ("{channel: [d, e*]}", [1, 3]),
        ("{kind: message, channel: c}", [0]),
        ("{kind: tracking-redir-broken}", [4]),
        ("{kind: message, channel: nobody}", []),
    ],
)
@both
def test_which(protocol, match, frames):
    """Kinds and channels say which: of a pattern's message it is the channel that counts."""
    with Subscriber(rule("do: drop", match), protocol) as talk:
        sent = [
            talk.frame('"message" "c" "x"'),
            talk.frame('"message" "d" "x"'),
            talk.frame('"pmessage" "*" "c" "x"'),
            talk.frame('"smessage" "e1" "x"'),
        ]
        if protocol == 3:
            sent.append('>["tracking-redir-broken" :5]')
        talk.upstream(*sent)
        talk.expect_client(*(each for at, each in enumerate(sent) if at not in frames))


@both
def test_counts(protocol):
    """`nth` counts frames, per channel if that is asked for, and never commands."""
    rules = "- {fault: push, do: drop, when: {nth: 2, per: key}}"
    with Subscriber(rules, protocol) as talk:
        for answer in (talk.pong, talk.pong):
            talk.handshake("PING", answer)
        talk.upstream(
            talk.message("1"), talk.message("1", "d"), talk.message("2"), talk.message("3")
        )
        talk.expect_client(talk.message("1"), talk.message("1", "d"), talk.message("3"))
        assert talk.matched("push") == 4


# -- confirmations


@both
def test_a_confirmation(protocol):
    """A confirmation is meant only by who names its kind; each of several is one of its own."""
    with Subscriber(
        rule("do: delay, delay: 1s", "{kind: subscribe, channel: e}"), protocol
    ) as talk:
        frames = [talk.frame(f'"subscribe" "{name}" :2') for name in "def"]
        talk.client("SUBSCRIBE d e f", "PING")
        talk.expect_upstream("SUBSCRIBE d e f", "PING")
        talk.upstream(*frames, talk.pong)
        talk.expect_client(frames[0])
        talk.wait(1)
        talk.expect_client(*frames[1:], talk.pong)
        talk.expect_fired("push", command="subscribe", keys=(b"e",), told="late")


@both
def test_a_confirmation_that_is_lost(protocol):
    """The subscription is there all the same, and its messages come."""
    with Subscriber(
        rule("do: drop", "{kind: [subscribe, unsubscribe], channel: d}"), protocol
    ) as talk:
        talk.client("SUBSCRIBE d")
        talk.expect_upstream("SUBSCRIBE d")
        talk.upstream(talk.frame('"subscribe" "d" :2'), talk.message("x", "d"))
        talk.expect_client(talk.message("x", "d"))
        talk.client("UNSUBSCRIBE")
        talk.expect_upstream("UNSUBSCRIBE")
        talk.upstream(talk.frame('"unsubscribe" "c" :1'), talk.frame('"unsubscribe" "d" :0'))
        talk.expect_client(talk.frame('"unsubscribe" "c" :1'))
        talk.handshake("PING", "+PONG")


@both
def test_a_message_between_confirmations(protocol):
    """A message keeps its place among the confirmations that it came between."""
    with Subscriber(rule("do: duplicate"), protocol) as talk:
        first, second = talk.frame('"subscribe" "d" :2'), talk.frame('"subscribe" "e" :3')
        talk.client("SUBSCRIBE d e")
        talk.expect_upstream("SUBSCRIBE d e")
        talk.upstream(first, talk.message("x", "d"), second)
        talk.expect_client(first, *[talk.message("x", "d")] * 2, second)


@both
def test_where_another_rule_looks_at_the_whole(protocol):
    """Confirmations that a rule for SUBSCRIBE looks at leave together: rules for frames let them be."""
    rules = (
        rule("do: drop", "{kind: [subscribe, message]}")
        + "\n- {fault: latency, match: {commands: SUBSCRIBE}, when: {skip: 1}, at: after_apply, delay: 1s}"
    )
    with Talk(rules, protocol=protocol) as talk:
        kind = ">" if protocol == 3 else "*"
        confirmed = [f'{kind}["subscribe" "{name}" :1]' for name in "cde"]
        message = f'{kind}["message" "c" "x"]'
        talk.client("SUBSCRIBE c")
        talk.expect_upstream("SUBSCRIBE c")
        talk.upstream(confirmed[0])
        talk.expect_client()
        talk.client("SUBSCRIBE d e")
        talk.expect_upstream("SUBSCRIBE d e")
        talk.upstream(message, confirmed[1], message, confirmed[2])
        talk.expect_client()
        talk.wait(1)
        talk.expect_client(confirmed[1], confirmed[2], message)
        assert talk.skipped("push") == ["in_reply"] * 3
        assert len(talk.events()) == 3


def test_inside_exec():
    """Confirmations that belong to EXEC's reply are left alone, and so is what comes between them."""
    sent = ("MULTI", "SUBSCRIBE a b", "EXEC")
    array = ('*[>["subscribe" "a" :1]]', '>["message" "a" "x"]', '>["subscribe" "b" :2]')
    with Talk(rule("do: drop", "{kind: [subscribe, message]}"), protocol=3) as talk:
        talk.client(*sent)
        talk.heard("upstream")
        talk.upstream("+OK", "+QUEUED")
        talk.heard("upstream")
        talk.upstream(*array)
        assert talk.heard("client").startswith(reply("+OK") + reply("+QUEUED") + reply(array[0]))
        assert talk.skipped("push") == ["in_reply"] * talk.matched("push")
        talk.handshake("PING", "+PONG")


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize(("do", "times"), [("drop", 0), ("duplicate", 2)])
def test_in_the_middle_of_exec(do, times, step):
    """What an old server says between the elements of EXEC's array are frames like others; those that rules leave alone go ahead of it."""
    rules = rule(f"do: {do}", "{kind: message}")
    message = reply('>["message" "c" "x"]')
    other = reply(INVALIDATED)
    with Talk(rules, protocol=3) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("PUBLISH c x", "+QUEUED")
        talk.handshake("SET k v", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        raw = b"*2\r\n%b:1\r\n%b+OK\r\n" % (message, other)
        for at in range(0, len(raw), step or len(raw)):
            talk.upstream(raw[at : at + (step or len(raw))])
        talk.expect_client(*[message] * times, other, b"*2\r\n:1\r\n+OK\r\n")
        talk.expect_fired("push", command="message", keys=(b"c",))
        talk.handshake("MULTI", "+OK")
        talk.handshake("EXEC", "-EXECABORT no")


# -- with others


def test_what_is_added_and_what_is_late():
    """A copy, a frame made up and a delay add up, in whatever order they stand in the profile."""
    inject = rule('name: made, do: inject, frame: "+made\\r\\n"')
    rules = [rule("name: twice, do: duplicate"), rule("name: late, do: delay, delay: 1s"), inject]
    for profile in (rules, rules[::-1]):
        with Subscriber("\n".join(profile), 3) as talk:
            talk.upstream(talk.message("x"))
            talk.expect_client()
            talk.wait(1)
            talk.expect_client("+made", *[talk.message("x")] * 2)
            assert len(talk.events()) == 3


def test_what_is_lost_ends_the_chain():
    """Once it is lost nothing more is asked; a frame made up before that still arrives."""
    inject = rule('name: made, do: inject, frame: "+made\\r\\n"')
    rules = "\n".join((inject, rule("name: lost, do: drop"), rule("name: twice, do: duplicate")))
    with Subscriber(rules, 3) as talk:
        talk.upstream(talk.message("x"))
        talk.expect_client("+made")
        assert talk.skipped("twice") == ["ended"]


@both
def test_a_copy_is_not_cut_up(protocol):
    """Where a message is cut up the cuts are in the message, whatever stands beside it."""
    cut = "- {fault: slice, match: {push: {kind: message}}, split: 4, gap: 1s}"
    inject = rule('name: made, do: inject, frame: "+made\\r\\n"')
    with Subscriber(f"{cut}\n{inject}", protocol) as talk:
        raw = reply(talk.message("x"))
        talk.upstream(raw)
        assert talk.heard("client") == b"+made\r\n" + raw[:4]
        talk.wait(1)
        assert talk.heard("client") == raw[4:]


@pytest.mark.parametrize(
    ("at", "given"), [("after_apply", 0), ("mid_reply, bytes: 5", 5), ("after_reply", None)]
)
@both
def test_a_disconnect_on_a_message(protocol, at, given):
    """`disconnect` can act on a message: it has not arrived, in part, or all of it has."""
    rules = f"- {{fault: disconnect, match: {{push: {{kind: message}}}}, at: {at}}}"
    with Subscriber(rules, protocol) as talk:
        raw = reply(talk.message("x"))
        talk.upstream(raw, talk.message("y"))
        assert talk.heard("client") == raw[:given]
        talk.expect_closed("reset")
        talk.expect_fired("disconnect", command="message")


@both
def test_latency_on_a_message(protocol):
    """`latency` can act on a message, drawn from a distribution."""
    rules = "- {fault: latency, match: {push: {kind: message}}, at: after_apply, delay: {uniform: [1s, 2s]}}"
    with Subscriber(rules, protocol) as talk:
        talk.upstream(talk.message("x"))
        delay = talk.conversation.due - talk.now
        assert 1 <= delay <= 2
        talk.wait(delay - 0.001)
        talk.expect_silence()
        talk.wait(0.001)
        talk.expect_client(talk.message("x"))
        assert talk.expect_fired("latency", told="late").delay == pytest.approx(delay)


# -- ends


@both
def test_another_profile(protocol):
    """At a switch a late message comes at once, and the next one meets the new profile."""
    with Subscriber(rule("do: delay, delay: 9s"), protocol) as talk:
        talk.upstream(talk.message("x"))
        talk.expect_client()
        talk.switch(rule("do: drop"))
        talk.expect_client(talk.message("x"))
        talk.upstream(talk.message("y"))
        talk.expect_client()


@both
def test_the_client_goes_while_a_message_is_late(protocol):
    """Nothing is given to who is gone."""
    with Subscriber(rule("do: delay, delay: 9s"), protocol) as talk:
        talk.upstream(talk.message("x"))
        talk.client_gone()
        assert talk.conversation.due is None


@both
def test_the_upstream_goes_while_a_message_is_late(protocol):
    """The message is the client's: it comes at its time, then the end."""
    with Subscriber(rule("do: delay, delay: 9s"), protocol) as talk:
        talk.upstream(talk.message("x"))
        talk.upstream_eof()
        talk.expect_client()
        talk.wait(9)
        talk.expect_client(talk.message("x"))
        talk.expect_closed("close")


# -- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("do: delay", "do: delay goes with the setting delay"),
        ("do: drop, delay: 1s", "delay: goes with do: delay"),
        ("do: inject", "do: inject goes with the setting frame"),
        ('do: drop, frame: "+x\\r\\n"', "frame: goes with do: inject"),
        *(
            (f'do: inject, frame: "{text}"',
             f"frame: expected whole RESP frames, each line with its \\r\\n, got '{text}'")
            for text in ("", "x", "+x", "+x\\r\\n+")
        ),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together(problems, settings, message):
    """What each `do` needs is told, and what goes with another one."""
    assert problems(f"- {{fault: push, {settings}}}") == [message]
