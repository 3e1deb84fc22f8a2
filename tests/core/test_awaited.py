"""What is still to come on a line: whether its client waits for something that comes by itself, and whether it is owed too much."""

import pytest

from chaosproxy.core.awaited import MOST_AT_ONCE, RUN_COST, is_coming
from tests.conversation import Talk, reply
from tests.wire import encode

DROP = "- {fault: drop_write, match: {commands: SET}, tell: ok}"


def waits(talk: Talk) -> bool:
    return talk.conversation.waits


@pytest.mark.parametrize(
    "rules", ["", "- {fault: latency, match: {keys: b}, at: before_forward, delay: 1s}"]
)
def test_a_reply(rules):
    """From a command to its reply, whether rules look at it or not; half a command is nothing that is answered."""
    with Talk(rules) as talk:
        assert not waits(talk)
        talk.client("GET a")
        talk.expect_upstream("GET a")
        assert waits(talk)
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.client(b"*2\r\n$3\r\nGET\r\n")
        assert not waits(talk)
        talk.heard("upstream")


@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_a_time(at):
    """What is held until a time comes, on either way."""
    with Talk(f"- {{fault: latency, match: {{commands: GET}}, at: {at}, delay: 1s}}") as talk:
        talk.client("GET a")
        if at == "after_apply":
            talk.expect_upstream("GET a")
            talk.upstream('"A"')
        assert waits(talk)
        talk.wait(1)
        talk.heard("upstream")
        talk.heard("client")
        assert waits(talk) == (at == "before_forward")
        talk.events()


@pytest.mark.parametrize("watching", [False, True])
def test_what_is_asked_for_a_command(watching):
    """Before it has a place among the replies: on its own connection, and on the side."""
    with Talk(DROP) as talk:
        if watching:
            talk.handshake("WATCH w", "+OK")
        talk.client("SET a 1")
        assert not talk.conversation._line.slots
        assert waits(talk)
        talk.client_gone()
        talk.heard("upstream")
        talk.expect_fired("drop_write")


@pytest.mark.parametrize(
    ("what", "at"), [("request", "before_forward"), ("reply", "after_apply"), ("connection", "after_apply")]
)  # fmt: skip
def test_what_is_lost(what, at):
    """What a fault has lost for good does not come, nor does anything behind it."""
    with Talk(f"- {{fault: blackhole, match: {{keys: a}}, at: {at}, what: {what}}}") as talk:
        talk.client("GET a", "GET b")
        if at == "after_apply":
            talk.expect_upstream("GET a", "GET b")
            assert waits(talk)
            talk.upstream('"A"', '"B"')
        assert not waits(talk)
        talk.events()


def test_a_silence_that_ends():
    """One for a time is waited for."""
    with Talk(
        "- {fault: blackhole, match: {keys: a}, at: after_apply, what: connection, for: 1s}"
    ) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        assert waits(talk)
        talk.wait(1)
        talk.expect_client('"A"')
        assert not is_coming(talk.conversation._line, timed=False)
        talk.events()


# -- too much

MADE = "- {fault: reply, match: {commands: GET}, at: before_forward, value: '0123456789'}"
ANSWER = '"0123456789"'


def test_answers_made_here_come_little_by_little():
    """Of a pipeline that the proxy answers by itself no more is answered at once than may be held; the rest right after."""
    with Talk(MADE, max_buffer=100) as talk:
        talk.client(*["GET a"] * 20, "SET a 1")
        talk.expect_client(*[ANSWER] * 6)
        assert talk.conversation.due == talk.now
        talk.wait(0)
        talk.expect_client(*[ANSWER] * 14)
        talk.expect_upstream("SET a 1")
        assert talk.conversation.due is None
        talk.upstream("+OK")
        talk.expect_client("+OK")
        for _ in range(20):
            talk.expect_fired("reply")


def test_a_client_that_reads_nothing():
    """As long as it does not, no more is answered than may be held, and its requests wait; then all goes on."""
    with Talk(MADE, max_buffer=100) as talk:
        assert not talk.conversation.clogged(True)
        for _ in range(8):
            talk.client("GET a")
        talk.expect_client(*[ANSWER] * 6)
        talk.wait(5)
        talk.expect_client()
        assert talk.conversation.due is None
        assert not talk.conversation.client_paused
        talk.client(*["GET a"] * 3, "SET a 1")
        assert talk.conversation.client_paused
        talk.client_eof()
        talk.expect_silence()
        assert talk.conversation.clogged(False)
        talk.wake()
        talk.expect_client(*[ANSWER] * 5)
        talk.expect_upstream("SET a 1")
        talk.expect_half_close()
        talk.upstream("+OK")
        talk.expect_client("+OK")
        for _ in range(11):
            talk.expect_fired("reply")


def test_answers_behind_one_that_does_not_come():
    """What is answered here and waits for its turn counts as held: no more requests are taken until that has left."""
    with Talk(MADE, max_buffer=100) as talk:
        talk.client("BLPOP q 0", *["GET a"] * 20)
        talk.expect_upstream("BLPOP q 0")
        talk.wait(5)
        talk.expect_client()
        assert talk.conversation.buffered == len(encode("GET", "a") * 14 + reply(ANSWER) * 6)
        assert talk.conversation.due is None
        assert not talk.conversation.upstream_paused
        talk.upstream("*-1")
        talk.wait(0)
        talk.expect_client("*-1", *[ANSWER] * 20)
        for _ in range(20):
            talk.expect_fired("reply")


def test_requests_behind_replies_that_are_late():
    """The same of what the server has answered and a rule holds up."""
    rule = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
    with Talk(rule, max_buffer=100) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(b"$200\r\n" + b"x" * 200 + b"\r\n")
        talk.client("SET a 1")
        talk.expect_silence()
        talk.wait(1)
        talk.heard("client")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("latency")


def test_silence_while_too_much_is_owed():
    """Where nothing is taken for another reason it is that one that ends it."""
    silent = "- {fault: blackhole, match: {commands: PING}, at: before_forward, what: connection, for: 1s}"
    with Talk(f"{MADE}\n{silent}", max_buffer=100) as talk:
        talk.client(*["GET a"] * 6, "PING", "GET a")
        talk.expect_client(*[ANSWER] * 6)
        talk.wait(0)
        talk.wait(1)
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG", ANSWER)
        talk.heard("client")
        for fault in (*["reply"] * 6, "blackhole", "reply"):
            talk.expect_fired(fault)


RUN_LAST = "- {fault: run, match: {commands: SET}, at: after_reply, commands: [[PUBLISH, c, m]]}"


@pytest.mark.parametrize("end", ["answered", "failed", "switch"])
def test_commands_that_are_to_run_after_replies(end):
    """No more are taken than may be kept until the client has acknowledged its replies and what is run then is answered; all are run."""
    with Talk(RUN_LAST, max_buffer=3 * RUN_COST - 1) as talk:
        for _ in range(3):
            talk.handshake("SET a 1", "+OK")
        talk.client("SET a 2")
        talk.expect_silence()
        assert talk.conversation.due is None
        if end == "switch":
            talk.switch(RUN_LAST)
            assert talk.skipped("run") == ["switched"] * 3
        for _ in range(3):
            talk.flushed()  # one was asked for each
        if end != "switch":
            talk.expect_silence()
            talk.side(*([":1"] if end == "answered" else []))
        talk.expect_upstream("SET a 2")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.flushed()
        for _ in range(1 if end == "switch" else 3):
            talk.side(":1")
        for _ in range({"answered": 4, "failed": 3, "switch": 1}[end]):
            talk.expect_fired("run")
        assert talk.skipped("run") == {
            "failed": ["side_connection"],
            "switch": ["switched"] * 3,
        }.get(end, [])
        assert talk.conversation._line.running == 0


def test_commands_before_those_that_are_to_run():
    """Those that are unanswered count as well, as others may run after them: no more are sent on than there is room for."""
    with Talk(RUN_LAST, max_buffer=3 * RUN_COST - 1) as talk:
        talk.client("SET a 1")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.client("SET a 2", "SET a 3", "SET a 4")
        talk.expect_upstream("SET a 2", "SET a 3")
        assert talk.conversation.due is None
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK", "+OK")
        talk.expect_silence()
        for _ in range(3):
            talk.flushed()
        talk.side(":1")
        talk.expect_upstream("SET a 4")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.flushed()
        for _ in range(3):
            talk.side(":1")
        for _ in range(4):
            talk.expect_fired("run")


def test_so_many_commands_at_once():
    """Of commands that rules look at so many are taken before others have their turn, and no more are read till then."""
    many = MOST_AT_ONCE + 10
    with Talk(MADE) as talk:
        talk.client(*["SET a 1"] * 5, *["GET a"] * many, "SET a 2")
        assert talk.conversation.busy
        assert not talk.conversation.client_paused
        assert talk.conversation.due == talk.now
        talk.expect_upstream(*["SET a 1"] * 5)
        talk.client_eof()
        talk.wait(0)
        assert not talk.conversation.busy
        talk.expect_upstream("SET a 2")
        talk.expect_half_close()
        talk.upstream(*["+OK"] * 6)
        talk.expect_client(*["+OK"] * 5, *[ANSWER] * many, "+OK")
        for _ in range(many):
            talk.expect_fired("reply")
