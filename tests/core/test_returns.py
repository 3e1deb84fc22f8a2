"""From the upstream to the client: each reply finds its slot, whatever comes between, however it is cut."""

import pytest

from tests.conversation import Talk, reply

LATE_GET = "- {fault: latency, match: {commands: GET}, at: after_apply, delay: 1s}"
INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def push(protocol: int, *words: str) -> str:
    """A frame of pub/sub; what is a number stands as one."""
    kind = ">" if protocol == 3 else "*"
    shown = (word if word[0] in ":$_" else '"' + word + '"' for word in words)
    return f"{kind}[{' '.join(shown)}]"


# -- unsolicited frames


@both
def test_messages_between_replies(protocol):
    """A subscriber's messages stand between replies, and are taken for none."""
    message = push(protocol, "message", "a", "x")
    pong = '*["pong" ""]' if protocol == 2 else "+PONG"
    with Talk(protocol=protocol) as talk:
        talk.handshake("SUBSCRIBE a", push(protocol, "subscribe", "a", ":1"))
        talk.client("PING", "PING")
        talk.expect_upstream("PING", "PING")
        talk.upstream(message, pong, message, pong, message)
        talk.expect_client(message, pong, message, pong, message)
        assert talk.conversation.describe()["waiting_replies"] == 0


@both
@pytest.mark.parametrize(
    ("subscribe", "message"),
    [
        ("subscribe", ("message", "a", "x")),
        ("psubscribe", ("pmessage", "a", "abc", "x")),
        ("ssubscribe", ("smessage", "a", "x")),
    ],
)
def test_every_kind_of_subscription(protocol, subscribe, message):
    """Channels, patterns and shard channels: confirmed, told, ended."""
    with Talk(protocol=protocol) as talk:
        talk.client(f"{subscribe} a b")
        talk.heard("upstream")
        confirmed = [push(protocol, subscribe, "a", ":1"), push(protocol, subscribe, "b", ":2")]
        talk.upstream(*confirmed)
        talk.expect_client(*confirmed)
        assert talk.conversation.describe()["subscribed"]
        talk.upstream(push(protocol, *message))
        talk.expect_client(push(protocol, *message))
        unsubscribe = subscribe.replace("sub", "unsub")
        talk.client(unsubscribe)
        ended = [push(protocol, unsubscribe, "b", ":1"), push(protocol, unsubscribe, "a", ":0")]
        talk.upstream(ended[0], push(protocol, *message), ended[1])
        talk.expect_client(ended[0], push(protocol, *message), ended[1])
        assert not talk.conversation.describe()["subscribed"]
        talk.client(unsubscribe, "PING")
        none = push(protocol, unsubscribe, "$-1" if protocol == 2 else "_", ":0")
        talk.upstream(none, "+PONG")
        talk.expect_client(none, "+PONG")
        talk.heard("upstream")
        assert talk.conversation.describe()["waiting_replies"] == 0


@both
def test_a_subscription_that_is_refused(protocol):
    """SUBSCRIBE a b is refused with one error for both."""
    with Talk(protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b", "PING")
        talk.heard("upstream")
        talk.upstream("-NOPERM no", "+PONG")
        talk.expect_client("-NOPERM no", "+PONG")
        assert talk.conversation.describe()["waiting_replies"] == 0


@both
def test_a_slot_moves_away(protocol):
    """A shard subscription that ends without being asked is no reply to anything."""
    ended = push(protocol, "sunsubscribe", "a", ":0")
    with Talk(protocol=protocol) as talk:
        talk.handshake("SSUBSCRIBE a", push(protocol, "ssubscribe", "a", ":1"))
        talk.client("SSUBSCRIBE b")
        talk.heard("upstream")
        confirmed = push(protocol, "ssubscribe", "b", ":1")
        talk.upstream(ended, confirmed)
        talk.expect_client(ended, confirmed)
        assert talk.conversation.describe()["waiting_replies"] == 0


def test_confirmations_while_replies_are_off():
    """Servers from 7.0 on confirm a subscription although replies are off: nobody's reply."""
    with Talk() as talk:
        talk.client("CLIENT REPLY OFF", "SUBSCRIBE a")
        talk.heard("upstream")
        talk.upstream('*["subscribe" "a" :1]', '*["message" "a" "x"]')
        talk.expect_client('*["subscribe" "a" :1]', '*["message" "a" "x"]')
        assert talk.conversation.describe()["subscribed"]
        assert not talk.conversation.raw


def test_a_list_that_looks_like_a_message():
    """An array is a message only for who subscribed in RESP2; in RESP3 never."""
    looks = ['*["message" "a" "x"]', '*["subscribe" "a" :1]']
    for protocol in (2, 3):
        with Talk(protocol=protocol) as talk:
            if protocol == 3:
                talk.handshake("SUBSCRIBE a", '>["subscribe" "a" :1]')
            talk.client("LRANGE l 0 -1", "LRANGE l 0 -1", "PING")
            talk.heard("upstream")
            talk.upstream(*looks, "+PONG")
            talk.expect_client(*looks, "+PONG")
            assert talk.conversation.describe()["waiting_replies"] == 0
            assert talk.conversation.describe()["subscribed"] is (protocol == 3)


def test_monitor():
    """MONITOR's lines come between replies, and are taken for none; a simple string that looks like one is a reply elsewhere."""
    line = b'+1700000000.123456 [0 127.0.0.1:1] "GET" "a"\r\n'
    with Talk() as talk:
        talk.handshake("ECHO x", line)
        talk.handshake("MONITOR", "+OK")
        talk.client("PING")
        talk.heard("upstream")
        talk.upstream(line, "+PONG", line)
        talk.expect_client(line, "+PONG", line)


def test_invalidations_while_blocked():
    """Pushes come at once while a blocking command waits, held as a whole or not."""
    rule = "- {fault: disconnect, match: {commands: BLPOP}, at: after_reply}"
    for rules in ("", rule):
        with Talk(rules, protocol=3) as talk:
            talk.client("BLPOP q 0")
            talk.heard("upstream")
            talk.upstream(INVALIDATED)
            talk.expect_client(INVALIDATED)
            talk.upstream('>["invalidate" _]')
            talk.expect_client('>["invalidate" _]')


@pytest.mark.parametrize("rules", ["", LATE_GET])
def test_a_message_between_confirmations_behind_a_late_reply(rules):
    """Where confirmations wait for their turn, what came between them stays between them."""
    first, second = push(3, "subscribe", "a", ":1"), push(3, "subscribe", "b", ":2")
    message = push(3, "message", "a", "x")
    with Talk(rules, protocol=3) as talk:
        talk.client("GET a", "SUBSCRIBE a b")
        talk.heard("upstream")
        talk.upstream('"A"', message, first, message, second, message)
        talk.wait(1)
        talk.expect_client('"A"', message, first, message, second, message)


# -- partial replies


@both
def test_partial_replies_pass(protocol):
    """What nobody has to see whole is given as it comes."""
    with Talk(LATE_GET, protocol=protocol) as talk:
        talk.client("SET a 1", "LRANGE l 0 -1")
        talk.heard("upstream")
        for raw in (b"+O", b"K\r\n*2\r\n$1\r\n", b"x\r\n$3\r\nab", b"c\r\n"):
            talk.upstream(raw)
            talk.expect_client(raw)


def test_partial_replies_wait_for_their_turn():
    """A partial reply behind one that is late waits with it."""
    with Talk(LATE_GET) as talk:
        talk.client("GET a", "SET a 1")
        talk.heard("upstream")
        talk.upstream('"A"', b"+O")
        talk.expect_client()
        talk.wait(1)
        talk.expect_client('"A"', b"+O")
        talk.upstream(b"K\r\n")
        talk.expect_client(b"K\r\n")


def test_what_may_be_a_message_is_not_given_in_part():
    """In RESP2 a subscriber's array is looked at first: it may be a message, or a confirmation."""
    with Talk() as talk:
        talk.client("SUBSCRIBE a")
        talk.heard("upstream")
        talk.upstream(b"*3\r\n$9\r\nsub")
        talk.expect_client()
        talk.upstream(b"scribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n")
        talk.expect_client('*["subscribe" "a" :1]')
        talk.client("PING")
        talk.heard("upstream")
        talk.upstream(b"$1\r\na\r\n$1\r\n")
        talk.expect_client()
        talk.upstream(b"x\r\n")
        talk.expect_client('*["message" "a" "x"]')


def test_a_subscriber_in_resp3_gets_arrays_in_part():
    """In RESP3 pushes are of a kind of their own: an array is a reply, and passes as it comes."""
    with Talk(protocol=3) as talk:
        talk.handshake("SUBSCRIBE a", push(3, "subscribe", "a", ":1"))
        talk.client("LRANGE l 0 -1")
        talk.heard("upstream")
        talk.upstream(b"*2\r\n$1\r\n")
        talk.expect_client(b"*2\r\n$1\r\n")
        talk.upstream(b"x\r\n:1\r\n>2\r\n$10\r\ninv")
        talk.expect_client(b"x\r\n:1\r\n")
        talk.upstream(b"alidate\r\n_\r\n")
        talk.expect_client('>["invalidate" _]')


def test_a_kind_that_is_not_known_yet():
    """Attributes are held until it is known what they are about."""
    with Talk(protocol=3) as talk:
        talk.client("GET a")
        talk.heard("upstream")
        talk.upstream(b"|1\r\n+ttl\r\n")
        talk.expect_client()
        talk.upstream(b":5\r\n$1\r\n")
        talk.expect_client(b"|1\r\n+ttl\r\n:5\r\n$1\r\n")
        talk.upstream(b"A\r\n")
        talk.expect_client(b"A\r\n")


def test_a_reply_that_is_too_large_at_its_turn_only():
    """A large reply behind a late one is held up to the limit, no further; at its turn it passes."""
    rules = LATE_GET + "\n- {fault: disconnect, match: {commands: LRANGE}, at: after_reply}"
    large = b"*2\r\n$2000\r\n" + b"x" * 1500
    with Talk(rules, max_buffer=1000) as talk:
        talk.client("GET a", "LRANGE l 0 -1")
        talk.heard("upstream")
        talk.upstream('"A"')
        talk.upstream(large)
        talk.expect_client()
        assert talk.conversation.upstream_paused
        talk.wait(1)
        talk.expect_client('"A"', large)
        assert not talk.conversation.upstream_paused
        assert talk.skipped("disconnect") == ["too_large"]


def test_an_exec_that_is_too_large_and_tells_what_follows():
    """An EXEC in which the connection changes passes as it comes if it is too large: what follows is known all the same."""
    with Talk(max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SELECT 1", "+QUEUED")
        talk.handshake("LRANGE l 0 -1", "+QUEUED")
        talk.client("EXEC")
        talk.heard("upstream")
        array = b"*2\r\n+OK\r\n*1\r\n$2000\r\n" + b"x" * 2000 + b"\r\n"
        talk.upstream(array[:900])
        talk.expect_client()
        talk.upstream(array[900:1800])
        talk.expect_client(array[:1800])
        talk.upstream(array[1800:])
        talk.expect_client(array[1800:])
        assert talk.conversation.describe()["db"] == 1


def test_an_exec_of_plain_commands_is_never_held():
    """Where nothing follows from it EXEC's array passes as it comes."""
    with Talk(LATE_GET, max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("LRANGE l 0 -1", "+QUEUED")
        talk.client("EXEC", "PING")
        talk.heard("upstream")
        for raw in (b"*1\r\n", b"*1\r\n$1\r\n", b"x\r\n+PO", b"NG\r\n"):
            talk.upstream(raw)
            talk.expect_client(raw)


@both
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_in_any_pieces(protocol, size):
    """However the bytes are cut, the client gets them all, and the rules the same."""
    rules = LATE_GET + "\n- {fault: reply, match: {commands: TYPE}, at: after_apply, value: made}"
    raw = b"".join(map(reply, ["+OK", '"A"', "+string", '*[:1 *["x" $-1]]', "-ERR no"]))
    with Talk(rules, protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "TYPE a", "LRANGE l 0 -1", "NOSUCH")
        talk.heard("upstream")
        for at in range(0, len(raw), size):
            talk.upstream(raw[at : at + size])
        talk.expect_client("+OK")
        talk.wait(1)
        talk.expect_client('"A"', '"made"', '*[:1 *["x" $-1]]', "-ERR no")


@pytest.mark.parametrize("ours", [False, True])
def test_more_queued_commands_than_are_counted(monkeypatch, ours):
    """From some number on a transaction is not understood: it passes, unless its EXEC would have to be put right."""
    monkeypatch.setattr("chaosproxy.core.returns.MOST_QUEUED", 3)
    rule = (
        "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}" if ours else ""
    )
    with Talk(rule) as talk:
        talk.handshake("MULTI", "+OK")
        if ours:
            talk.client("GET a")
            talk.expect_client("+QUEUED")
        for _ in range(2 if ours else 3):
            talk.handshake("SET a 1", "+QUEUED")
        talk.client("SET a 2")
        talk.expect_upstream("SET a 2")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        if ours:
            talk.expect_closed("close")
            talk.expect_fired("reply")
        else:
            assert talk.expect_raw("upstream") == "more queued commands than are counted"
            talk.handshake("GET a", "+QUEUED")


def test_a_watched_command_of_which_too_much_is_kept():
    """What is only watched for others is kept no longer either."""
    rule = "- {fault: reorder, match: {commands: GET}, until: {command: SET}, max: 1s}"
    with Talk(rule, max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        for _ in range(4):
            talk.handshake("SET k " + "x" * 600, "+QUEUED")
        assert talk.conversation._line.modes.transaction.held < 2000
        talk.client("EXEC")
        talk.heard("upstream")
        talk.upstream("*[+OK +OK +OK +OK]")
        talk.expect_client("*[+OK +OK +OK +OK]")


@both
def test_a_transaction_that_there_never_was(protocol):
    """A MULTI that nobody answered for was refused, as the next answer tells: what seemed to be queued has met its rules in vain."""
    late = "- {fault: latency, match: {commands: SET}, at: after_apply, delay: 1s}"
    with Talk(late, protocol=protocol) as talk:
        talk.client("CLIENT REPLY SKIP", "MULTI", "SET a 1")
        talk.expect_upstream("CLIENT REPLY SKIP", "MULTI", "SET a 1")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("GET b", ":1")
        assert talk.skipped("latency") == ["aborted"]
        talk.client("SET a 2")
        talk.expect_upstream("SET a 2")
        talk.upstream("+OK")
        talk.wait(1.0)
        talk.expect_client("+OK")
        talk.expect_fired("latency")
