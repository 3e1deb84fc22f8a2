"""What is larger than may be held: it passes, or is let go, or ends the line; and nothing of it stays here."""

import pytest

from chaosproxy.core.effect import LimitReached
from chaosproxy.core.passing import TOO_LARGE, Watch
from tests.conversation import GATE, PROVEN, Talk, reply
from tests.core.test_swallowing import DROP, PLAN

MOST = 1000
REACHED = LimitReached("reply")
LATE_GET = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
LARGE = b"$5000\r\n" + b"x" * 5000 + b"\r\n"
REMEMBER = "- {fault: stale_read, behind: 1, match: {commands: '@read', keys: k}}"


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def message(protocol: int, size: int = 5000) -> bytes:
    """A message of a channel, of so many bytes."""
    kind = b">" if protocol == 3 else b"*"
    text = b"x" * size
    return kind + b"3\r\n$7\r\nmessage\r\n$1\r\na\r\n$%d\r\n%s\r\n" % (size, text)


def subscribed(talk: Talk, *channels: str) -> None:
    """Have a client subscribe to channels, one by one."""
    kind = ">" if talk.protocol == 3 else "*"
    for number, channel in enumerate(channels, 1):
        talk.handshake(f"SUBSCRIBE {channel}", f'{kind}["subscribe" "{channel}" :{number}]')


def in_pieces(talk: Talk, raw: bytes, size: int = 300) -> int:
    """Let the upstream send this; gives how much was held at most."""
    most = 0
    for at in range(0, len(raw), size):
        talk.upstream(raw[at : at + size])
        assert not talk.conversation.upstream_paused
        most = max(most, talk.conversation.buffered)
    return most


# -- pushes


@both
@pytest.mark.parametrize("rules", ["", LATE_GET])
def test_a_message(protocol, rules):
    """A message larger than may be held passes as it comes, whole, and what is said around it too."""
    large, pong = message(protocol), "+PONG" if protocol == 3 else '*["pong" ""]'
    with Talk(rules, protocol=protocol, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        assert in_pieces(talk, large) <= MOST + 300
        talk.expect_client(large)
        talk.client("PING")
        talk.heard("upstream")
        assert in_pieces(talk, large + reply(pong) + large) <= MOST + 300
        talk.expect_client(large, pong, large)
        assert not talk.conversation.raw
        assert REACHED not in talk.effects


def test_a_monitors_line():
    """A line that MONITOR gives may be as long as the request it tells of."""
    line = b'+1700000000.123456 [0 127.0.0.1:1] "SET" "a" "' + b"x" * 70000 + b'"\r\n'
    with Talk(max_buffer=MOST) as talk:
        talk.handshake("MONITOR", "+OK")
        assert in_pieces(talk, line, 3000) <= 65536 + 3000
        talk.expect_client(line)
        talk.upstream(line)
        talk.expect_client(line)


@both
def test_a_message_that_rules_look_at(protocol):
    """Rules for pushes do not see one that is too large, which is counted; they see the next one."""
    rules = "- {fault: push, match: {push: {kind: message}}, do: drop}"
    with Talk(rules, protocol=protocol, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        in_pieces(talk, message(protocol))
        talk.expect_client(message(protocol))
        assert talk.effects.count(REACHED) == 1
        talk.upstream(message(protocol, 5))
        talk.expect_client()
        talk.expect_fired("push")


def test_a_message_ahead_of_what_was_answered_here():
    """What the proxy answers while a push passes comes behind it, not into it."""
    rules = "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}"
    large = message(3)
    with Talk(rules, protocol=3, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.upstream(large[:2000])
        talk.client("GET a", "SET a 1")
        talk.expect_upstream("SET a 1")
        talk.expect_client(large[:2000])
        talk.upstream(large[2000:], "+OK")
        talk.expect_client(large[2000:], '"made"', "+OK")
        talk.expect_fired("reply")


def test_a_message_behind_what_is_late():
    """It waits for its turn: what is ahead of it is not the upstream's to finish, which is not read meanwhile."""
    large = message(3)
    with Talk(LATE_GET, protocol=3, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream(b"+A\r\n" + large[:2000])
        talk.expect_client()
        assert talk.conversation.upstream_paused
        talk.wait(1)
        talk.expect_client("+A", large[:2000])
        talk.upstream(large[2000:])
        talk.expect_client(large[2000:])
        talk.expect_fired("latency")


@pytest.mark.parametrize(
    ("cuts", "paused"),
    [
        pytest.param([2000, 4500], True, id="as far as it may be"),
        pytest.param([4500], False, id="with what is behind it"),
    ],
)
def test_silence_in_the_middle_of_a_message(cuts, paused):
    """Where nothing reaches the client any more the rest is held, and no more read than may be held."""
    rules = "- {fault: blackhole, match: {commands: GET}, at: before_forward, what: connection, direction: to_client, for: 1s}"
    stream = message(3) + reply("+A")
    ends = (*cuts, len(stream))
    before, meanwhile, *later = (stream[at:end] for at, end in zip((0, *cuts), ends, strict=True))
    with Talk(rules, protocol=3, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.upstream(before)
        talk.expect_client(before)
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(meanwhile)
        talk.expect_client()
        assert talk.conversation.upstream_paused == paused
        talk.wait(1)
        talk.expect_client(meanwhile)
        for piece in later:
            talk.upstream(piece)
            talk.expect_client(piece)
        talk.expect_fired("blackhole")


@pytest.mark.parametrize("end", ["upstream_gone", "not_understood", "switch"])
def test_the_end_in_the_middle_of_a_message(end):
    """However it ends, the client gets what came, and nothing else."""
    large = message(3)
    with Talk(LATE_GET, protocol=3, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.upstream(large[:2000])
        talk.expect_client(large[:2000])
        if end == "upstream_gone":
            talk.upstream(large[2000:2010])
            talk.upstream_gone()
            talk.expect_client(large[2000:2010])
            talk.expect_closed("close")
        elif end == "not_understood":
            talk.upstream(large[2000:], b"?")
            talk.expect_client(large[2000:], b"?")
            talk.expect_raw("upstream")
        else:
            talk.switch()
            talk.upstream(large[2000:])
            talk.expect_client(large[2000:])


@pytest.mark.parametrize(
    ("held", "raw"),
    [
        pytest.param(['>["message" "a" "x"]'], message(3), id="one that is too large"),
        pytest.param([], message(3, 300) * 100, id="too many"),
    ],
)
def test_messages_between_confirmations(held, raw):
    """A whole of several frames is held with what stands in the middle of it, and let go where that is too much."""
    rules = "- {fault: latency, match: {commands: SUBSCRIBE}, at: after_apply, delay: 1s}"
    first, second = '>["subscribe" "a" :1]', '>["subscribe" "b" :2]'
    with Talk(rules, protocol=3, max_buffer=MOST) as talk:
        talk.client("SUBSCRIBE a b")
        talk.heard("upstream")
        talk.upstream(first, *held)
        talk.expect_client()
        assert in_pieces(talk, raw) <= MOST + 300
        talk.expect_client(first, *held, raw)
        talk.upstream(second)
        talk.expect_client(second)
        assert talk.skipped("latency") == ["too_large"]
        assert talk.effects.count(REACHED) == 1


def test_a_message_in_an_exec_that_must_be_put_right():
    """Behind the array of an EXEC whose end is not here: it ends the line, as the array cannot be put right in parts."""
    rules = "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}"
    with Talk(rules, protocol=3, max_buffer=MOST) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SUBSCRIBE a b", "+QUEUED")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.heard("upstream")
        talk.upstream(b"*1\r\n" + reply('>["subscribe" "a" :1]'))
        talk.expect_client()
        talk.upstream(message(3)[:2000])
        assert talk.heard("client").startswith(b"-CHAOSPROXY EXEC was carried out")
        talk.expect_closed("close")
        talk.expect_fired("reply")


# -- the proxy's own questions


@pytest.mark.parametrize("aside", [False, True])
def test_what_a_swallowed_write_would_give(aside):
    """A reply that is computed and too large is not held: the write passes as it is, and the rule says why."""
    with Talk(DROP, max_buffer=MOST) as talk:
        if aside:
            talk.handshake("WATCH z", "+OK")
        talk.client("RPUSH k a")
        array = b"*5\r\n:1\r\n+OK\r\n" + LARGE + b":1\r\n+OK\r\n"
        if aside:
            talk.expect_side(*GATE)
            talk.side(*PROVEN)
            talk.expect_side(*PLAN)
            talk.side("+OK", *["+QUEUED"] * 5, TOO_LARGE)
        else:
            talk.expect_upstream(*GATE)
            talk.upstream(*PROVEN)
            talk.expect_upstream(*PLAN)
            talk.upstream("+OK", *["+QUEUED"] * 5)
            assert in_pieces(talk, array) <= MOST + 400
            assert talk.effects.count(REACHED) == 1
        talk.expect_upstream("RPUSH k a")
        talk.expect_client()
        talk.upstream(":1")
        talk.expect_client(":1")
        assert talk.skipped("drop_write") == ["too_large"]
        assert talk.conversation.describe()["db"] == 0


def test_how_a_key_was():
    """A value too large to be held is not remembered, and neither is it in the way of the write."""
    with Talk(REMEMBER, max_buffer=MOST) as talk:
        talk.client("SET k 1")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k 1")
        assert in_pieces(talk, LARGE) <= MOST + 300
        talk.upstream(":-1", "+OK")
        talk.expect_client("+OK")
        assert talk.effects.count(REACHED) == 1
        talk.client("GET k")
        talk.expect_upstream("GET k")
        talk.upstream('"1"')
        talk.expect_client('"1"')


def test_what_a_stale_read_would_give():
    """The same of a reply from the past."""
    with Talk(REMEMBER, max_buffer=MOST) as talk:
        talk.client("SET k 1")
        talk.heard("upstream")
        talk.upstream('"dump"', ":-1", "+OK")
        talk.expect_client("+OK")
        talk.client("GET k")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        plan = talk.heard("upstream")
        assert b"RESTORE" in plan
        queued = plan.count(b"\r\n*") - 1
        talk.upstream("+OK", *["+QUEUED"] * queued)
        in_pieces(talk, b"*%d\r\n" % queued + LARGE + b"+OK\r\n" * (queued - 1))
        talk.expect_upstream("GET k")
        talk.upstream('"1"')
        talk.expect_client('"1"')
        assert talk.skipped("stale_read") == ["too_large"]


def test_pushes_ahead_of_the_answer():
    """However much the server pushes ahead of an answer to the proxy: it passes, and is not held while a reply is late."""
    rules = f"{LATE_GET}\n- {{fault: run, match: {{commands: SET}}, at: before_forward, commands: [[INCR, n]]}}"
    small = message(3, 300)
    with Talk(rules, protocol=3, max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.client("SET a 1")
        talk.heard("upstream")
        assert in_pieces(talk, small * 100) <= MOST + 300
        talk.upstream(":1", "+OK")
        talk.expect_client(small * 100, "+OK")
        talk.client("GET a", "SET a 1")
        talk.heard("upstream")
        talk.upstream("+A", *[small] * 4)
        talk.expect_client()
        assert talk.conversation.upstream_paused
        talk.wait(1)
        talk.expect_client("+A", *[small] * 4)
        assert not talk.conversation.upstream_paused
        talk.upstream(":2", "+OK")
        talk.expect_client("+OK")
        for fault in ("run", "latency", "run"):
            talk.expect_fired(fault)


# -- EXEC


def queued(talk: Talk, *commands: str) -> None:
    """Have these commands queued, and EXEC sent."""
    for command in ("MULTI", *commands):
        talk.handshake(command, "+OK" if command == "MULTI" else "+QUEUED")
    talk.client("EXEC")
    talk.heard("upstream")


@both
@pytest.mark.parametrize("size", [370, 3000])
def test_an_exec_that_changes_the_connection(protocol, size):
    """Its array passes as it comes; which of its commands succeeded, and what they subscribed to, is known all the same."""
    kind = ">" if protocol == 3 else "*"
    raw = b"".join(
        [
            b"*4\r\n+OK\r\n*1\r\n$70000\r\n" + b"x" * 70000 + b"\r\n",
            reply('>["invalidate" *["l"]]') if protocol == 3 else b"",
            reply(f'{kind}["subscribe" "a" :1]'),
            b"-ERR DB index is out of range\r\n",
        ]
    )
    with Talk(protocol=protocol, max_buffer=MOST) as talk:
        queued(talk, "SELECT 1", "LRANGE l 0 -1", "SUBSCRIBE a", "SELECT 99")
        assert in_pieces(talk, raw, size) <= MOST + size
        talk.expect_client(raw)
        said = talk.conversation.describe()
        assert (said["db"], said["subscribed"], said["raw"]) == (1, True, False)
        assert not said["in_transaction"]
        assert REACHED not in talk.effects
        # In RESP2 a message is one only for who has subscribed.
        talk.upstream(message(protocol, 5))
        talk.expect_client(message(protocol, 5))
        assert not talk.conversation.raw


@both
def test_an_exec_whose_subscriptions_are_many(protocol):
    """What follows the array and is not counted in its header is known too, and no more of it held."""
    kind = ">" if protocol == 3 else "*"
    channels = [f"channel-number-{number}" for number in range(100)]
    confirmed = [reply(f'{kind}["subscribe" "{each}" :{n}]') for n, each in enumerate(channels, 1)]
    raw = b"*2\r\n+OK\r\n" + b"".join(confirmed)
    with Talk(protocol=protocol, max_buffer=MOST) as talk:
        queued(talk, "SELECT 1", f"SUBSCRIBE {' '.join(channels)}")
        assert in_pieces(talk, raw, 100) <= MOST + 100
        talk.expect_client(raw)
        said = talk.conversation.describe()
        assert (said["db"], said["subscribed"], said["waiting_replies"]) == (1, True, 0)


def test_an_exec_behind_attributes():
    """No server puts any there. Its array passes; what it says of the connection is not known."""
    raw = b"|1\r\n$3\r\na*b\r\n+x\r\n*2\r\n+OK\r\n" + LARGE
    with Talk(protocol=3, max_buffer=MOST) as talk:
        queued(talk, "SELECT 1", "GET a")
        in_pieces(talk, raw)
        talk.expect_client(raw)
        talk.handshake("GET a", "+A")
    watch = Watch()
    watch.feed(b"|1\r\n$5\r\na*b\r\n\r\n+x\r\n*2\r\n")
    watch.feed(b"?\r\n")
    assert watch.array == []


def test_an_exec_with_a_swallowed_write():
    """Nobody can take the copies out of an array that is not held: the line ends, and each event says what became of its command."""
    rules = f"""
{DROP}
- {{fault: latency, match: {{commands: SET}}, at: after_apply, delay: 1s}}
- {{fault: run, match: {{commands: SET}}, at: before_forward, commands: [[INCR, n]]}}
- {{fault: latency, name: slow, match: {{commands: EXEC}}, at: before_forward, delay: 1s}}
- {{fault: disconnect, match: {{commands: EXEC}}, at: after_reply}}
"""
    with Talk(rules, max_buffer=MOST) as talk:
        talk.client("MULTI")
        talk.heard("upstream")
        talk.upstream("+OK", ":0", "+OK", ":0", ":0")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.client("RPUSH k a")
        talk.heard("upstream")
        talk.upstream(*["+QUEUED"] * 5)
        talk.expect_client("+QUEUED")
        talk.client("SET a 1")
        talk.expect_side("INCR n")
        talk.side(":1")
        talk.heard("upstream")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.wait(1)
        talk.heard("upstream")
        talk.upstream(b"*6\r\n:1\r\n+OK\r\n$2000\r\n" + b"x" * 1500)
        assert talk.heard("client").startswith(b"-CHAOSPROXY EXEC was carried out")
        talk.expect_closed("close")
        event = talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")
        assert event.detail.endswith("; the answer to EXEC was too large to be held")
        talk.expect_fired("run", applied="yes", told="error")
        talk.expect_fired("slow", applied="yes", told="error")
        assert talk.skipped("latency") == talk.skipped("disconnect") == ["too_large"]
        assert talk.effects.count(REACHED) == 1


# -- other replies


def test_confirmations_that_are_wanted_whole():
    """A reply of many frames counts as one: too many of them are let go."""
    rules = (
        "- {fault: latency, name: late, match: {commands: SUBSCRIBE}, at: after_apply, delay: 1s}"
    )
    channels = [f"channel-number-{number}" for number in range(100)]
    confirmed = [reply(f'>["subscribe" "{each}" :{n}]') for n, each in enumerate(channels, 1)]
    with Talk(f"{LATE_GET}\n{rules}", protocol=3, max_buffer=MOST) as talk:
        talk.client("GET a", f"SUBSCRIBE {' '.join(channels)}")
        talk.heard("upstream")
        talk.upstream("+A", *confirmed[:50])
        talk.expect_client()
        assert talk.conversation.upstream_paused
        talk.wait(1)
        talk.expect_client("+A")
        assert not talk.conversation.upstream_paused
        talk.upstream(*confirmed[50:])
        talk.expect_client(*confirmed)
        assert talk.skipped("late") == ["too_large"]
        talk.expect_fired("latency")


def test_a_large_answer_to_who_has_subscribed():
    """In RESP2 a subscriber may PING: what comes back is no message, however large."""
    large = b"*2\r\n$4\r\npong\r\n" + LARGE
    with Talk(max_buffer=MOST) as talk:
        subscribed(talk, "a")
        talk.client(b"*2\r\n$4\r\nPING\r\n" + LARGE)
        talk.heard("upstream")
        assert in_pieces(talk, large) <= MOST + 300
        talk.expect_client(large)
        assert talk.conversation.describe()["waiting_replies"] == 0
        assert not talk.conversation.raw


CONFIRMED = b"3\r\n$9\r\nsubscribe\r\n" + LARGE + b":1\r\n"


@pytest.mark.parametrize(
    ("protocol", "sent", "large"),
    [
        pytest.param(2, b"*2\r\n$9\r\nSUBSCRIBE\r\n" + LARGE, b"*" + CONFIRMED, id="a channel"),
        pytest.param(3, b"*2\r\n$9\r\nSUBSCRIBE\r\n" + LARGE, b">" + CONFIRMED, id="a push"),
        # They may be a push's or the reply's.
        pytest.param(3, "SET a 1", b"|1\r\n+a\r\n" + LARGE + b"+OK\r\n", id="attributes"),
        pytest.param(2, None, LARGE, id="what nobody asked for"),
        pytest.param(3, None, LARGE, id="what nobody asked for, in RESP3"),
    ],
)
def test_from_here_on_nothing_is_understood(protocol, sent, large):
    """What is larger than may be held and no plain reply passes all the same, and all that follows passes unseen."""
    with Talk(protocol=protocol, max_buffer=MOST) as talk:
        if sent is not None:
            talk.client(sent)
            talk.expect_upstream(sent)
        in_pieces(talk, large)
        talk.expect_client(large)
        talk.expect_raw("upstream")
        assert talk.effects.count(REACHED) == 1
        talk.upstream(b"?", large)
        talk.expect_client(b"?", large)


def test_what_cannot_be_told_from_an_answer_to_us():
    """Where answers are to come that only the proxy waits for, bytes cannot pass as they come: the line ends."""
    with Talk(DROP, protocol=3, max_buffer=MOST) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(b">3\r\n$12\r\nsunsubscribe\r\n" + LARGE[:2000])
        talk.expect_closed("close")
        assert talk.effects.count(REACHED) == 1
        talk.expect_fired("drop_write", applied="no", told="nothing")


def test_a_reply_with_addresses(monkeypatch):
    """It is held further than others, as it would lead past the proxy; but not for ever."""
    monkeypatch.setattr("chaosproxy.core.passing._ADDRESSES", 2 * MOST)
    with Talk(translate=lambda host, port, *_: (host, port), max_buffer=MOST) as talk:
        talk.client("CLUSTER NODES")
        talk.heard("upstream")
        talk.upstream(LARGE[:2000])
        talk.expect_silence()
        talk.upstream(LARGE[2000:2500])
        assert talk.heard("client").startswith(b"-CHAOSPROXY the answer is larger")
        talk.expect_closed("close")
        assert talk.effects.count(REACHED) == 1
