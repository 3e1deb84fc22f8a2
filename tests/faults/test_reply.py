"""`reply`: another answer than the server's, in its place; Redis and the client agree on what a transaction is."""

import pytest

from chaosproxy.core.effect import LimitReached
from chaosproxy.core.errors import TEXTS
from chaosproxy.core.fault import ServerInfo
from chaosproxy.profile import ProfileError
from tests.conversation import Talk, profile

ONE = "give exactly one of error, value, miss, truncate and invalid_utf8"
READONLY = "-READONLY You can't write against a read only replica."
INVALIDATED = '>["invalidate" *["a"]]'


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


def instead(what: str, commands: str = "GET") -> str:
    return f"- {{fault: reply, match: {{commands: {commands}}}, at: before_forward, {what}}}"


def afterwards(what: str, commands: str = "GET") -> str:
    return f"- {{fault: reply, match: {{commands: {commands}}}, at: after_apply, {what}}}"


VALUES = [
    ("error: READONLY", READONLY, READONLY),
    ("error: my own words", "-ERR my own words", "-ERR my own words"),
    ("error: 'CUSTOM my own words'", "-CUSTOM my own words", "-CUSTOM my own words"),
    ("error: MOVED", "-MOVED 15495 :0", "-MOVED 15495 :0"),
    ("value: null", "$-1", "_"),
    ("value: ''", '""', '""'),
    ("value: 42", ":42", ":42"),
    ("value: -1", ":-1", ":-1"),
    ("value: text", '"text"', '"text"'),
    ("value: '42'", '"42"', '"42"'),
    ("miss: true", "$-1", "_"),
]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize(("what", "second", "third"), VALUES, ids=[value[0] for value in VALUES])
def test_before_forward(protocol, what, second, third):
    """Redis never sees the command; the answer is of the client's protocol and comes in its place."""
    answer = third if protocol == 3 else second
    with Talk(instead(what), protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1", "SET a 2")
        talk.expect_client()
        talk.upstream("+OK", "+OK")
        talk.expect_client("+OK", answer, "+OK")
        told, outcome = ("error", "fail") if answer[0] == "-" else ("ok", "ok")
        talk.expect_fired("reply", applied="no", told=told, outcome=outcome)


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize(("what", "second", "third"), VALUES, ids=[value[0] for value in VALUES])
def test_after_apply(protocol, what, second, third):
    """Redis has applied the command; the client gets another answer in its place, and nothing of the real one."""
    answer = third if protocol == 3 else second
    with Talk(afterwards(what), protocol=protocol) as talk:
        talk.client("SET a 1", "GET a", "SET a 2")
        talk.expect_upstream("SET a 1", "GET a", "SET a 2")
        talk.upstream("+OK", b"$1\r\n")
        talk.expect_client("+OK")
        talk.upstream(b"1\r\n", "+OK")
        talk.expect_client(answer, "+OK")
        told, outcome = ("error", "unknown") if answer[0] == "-" else ("ok", "ok")
        talk.expect_fired("reply", applied="yes", told=told, outcome=outcome)


CHANGES = [
    ("truncate: 2", '"hello"', '"he"'),
    ("truncate: 0", '"hello"', '""'),
    ("truncate: 2", '*["hello" :12345 "hi"]', '*["he" :12345 "hi"]'),
    ("invalid_utf8: true", '"hello"', b"$5\r\nhell\xff\r\n"),
    ("invalid_utf8: true", '*["é" $-1]', b"*2\r\n$2\r\n\xc3\xff\r\n$-1\r\n"),
]


@both
@pytest.mark.parametrize(("what", "sent", "made"), CHANGES)
def test_the_own_reply_changed(protocol, what, sent, made):
    """Each text in the server's reply is shorter, or is no UTF-8 any more; the frame is whole, and what follows is its own."""
    with Talk(afterwards(what), protocol=protocol) as talk:
        talk.client("GET a", "PING")
        talk.expect_upstream("GET a", "PING")
        talk.upstream(sent, "+PONG")
        talk.expect_client(made, "+PONG")
        talk.expect_fired("reply", applied="yes", told="ok", outcome="ok")


@both
@pytest.mark.parametrize("sent", ["$-1", ":1", "+OK", "-ERR no", '""', "*[]"])
@pytest.mark.parametrize("what", ["truncate: 10", "invalid_utf8: true"])
def test_no_text_to_change(protocol, what, sent):
    """A reply without a text to change is left as it is, and nothing is told to have happened."""
    with Talk(afterwards(what), protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(sent)
        talk.expect_client(sent)
        assert talk.skipped("reply") == ["not_applicable"]


@both
def test_an_element_changed(protocol):
    """A queued command's own element is changed, the others stay."""
    with Talk(afterwards("truncate: 1"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("LRANGE l 0 -1", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*["hello" *["hello"]]')
        talk.expect_client('*["h" *["hello"]]')
        talk.expect_fired("reply", command="GET", applied="yes", told="ok")


@both
@pytest.mark.parametrize(
    ("command", "second", "third"),
    [
        ("GET a", "$-1", "_"),
        ("MGET a b", "*[$-1 $-1]", "*[_ _]"),
        ("LRANGE a 0 -1", "*[]", "*[]"),
        ("HGETALL a", "*[]", "%[]"),
        ("SMEMBERS a", "*[]", "~[]"),
        ("EXISTS a", ":0", ":0"),
        ("TTL a", ":-2", ":-2"),
        ("TYPE a", "+none", "+none"),
        ("ZSCORE a m", "$-1", "_"),
        ("LPOP a", "$-1", "_"),
    ],
)
def test_miss(protocol, command, second, third):
    """What the command answers for keys that are not there: right in type, in either protocol."""
    rule = "- {fault: reply, match: {keys: a}, at: before_forward, miss: true}"
    with Talk(rule, protocol=protocol) as talk:
        talk.client(command)
        talk.expect_client(third if protocol == 3 else second)


def test_no_miss():
    """A command that knows no absent keys is left alone, and the rule says so."""
    with Talk("- {fault: reply, at: before_forward, miss: true}") as talk:
        talk.handshake("PING", "+PONG")
        assert talk.skipped("reply") == ["not_applicable"]


@pytest.mark.parametrize("commands", ["INCR", "[PING, XADD]", "EVAL"])
def test_never_a_miss(commands):
    """A rule that names only such commands is refused as it is read; one of several that knows them is enough."""
    rule = "- {fault: reply, match: {commands: %s}, at: before_forward, miss: true}"
    why = "commands: can never hold, fault reply answers as for an absent key and none of these has such an answer"
    with pytest.raises(ProfileError, match=why):
        profile(rule % commands)
    assert profile(rule % "[INCR, GET]")


@both
def test_refused_in_a_transaction(protocol):
    """A refused queued command makes EXEC answer EXECABORT, by the server itself; nothing of it is applied."""
    aborted = "-EXECABORT Transaction discarded because of previous errors."
    with Talk(instead("error: OOM", "SET"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a", "SET a 1", "GET b", "EXEC", "GET c")
        talk.expect_upstream("GET a")
        talk.upstream("+QUEUED")
        talk.expect_upstream("CHAOSPROXY.REFUSED", "GET b", "EXEC", "GET c")
        talk.upstream("-ERR unknown command", "+QUEUED", aborted, '"C"')
        oom = "-OOM command not allowed when used memory > 'maxmemory'."
        talk.expect_client("+QUEUED", oom, "+QUEUED", aborted, '"C"')


@both
def test_answered_in_a_transaction(protocol):
    """A queued command that is answered gives its answer as its element of EXEC's array, in its place."""
    rules = instead("value: made") + "\n" + instead("value: 7", "INCR")
    with Talk(rules, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("INCR n", "SET a 1", "GET a", "SET a 2", "GET b", "EXEC")
        talk.expect_upstream("SET a 1")
        talk.upstream("+QUEUED")
        talk.expect_upstream("SET a 2")
        talk.upstream("+QUEUED")
        talk.expect_upstream("EXEC")
        talk.expect_client(*["+QUEUED"] * 5)
        talk.upstream("*[+OK +OK]")
        talk.expect_client('*[:7 +OK "made" +OK "made"]')


@both
def test_only_answers_in_a_transaction(protocol):
    """The server's array is empty; the client's is not."""
    with Talk(instead("value: made"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[]")
        talk.expect_client('*["made"]')


@both
@pytest.mark.parametrize("null", ["*-1", "_", "-EXECABORT no"])
def test_answered_in_a_transaction_that_fails(protocol, null):
    """WATCH failed, or the server refused: the client gets just that."""
    with Talk(instead("value: made"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", null)
        talk.handshake("SET a 1", "+OK")


@both
def test_rewritten_in_a_transaction(protocol):
    """An element is rewritten once EXEC has carried it out; the others stay as they are."""
    with Talk(afterwards("error: WRONGTYPE"), protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        for command in ("SET a 1", "GET a", "SET a 2"):
            talk.handshake(command, "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*[+OK "1" +OK]')
        wrong = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
        talk.expect_client(b"*3\r\n+OK\r\n" + wrong + b"+OK\r\n")
        talk.expect_fired("reply", applied="yes", told="error", outcome="unknown")


def test_an_array_that_breaks_off_is_not_given():
    """Where the client's array would not be the server's, an unfinished one cannot be put right."""
    with Talk(instead("value: made")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SET a 1", "+QUEUED")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(b"*1\r\n+O")
        talk.upstream_gone()
        talk.expect_closed("close")


def test_an_array_too_large_to_be_put_right():
    """An array that must be put right and is too large ends the connection: neither the server's nor the client's can be given."""
    with Talk(instead("value: made"), max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("LRANGE l 0 -1", "+QUEUED")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(b"*1\r\n$5000\r\n" + b"x" * 900)
        assert not talk.conversation.upstream_paused
        talk.expect_client()
        talk.upstream(b"x" * 200)
        assert talk.heard("client").startswith(b"-CHAOSPROXY EXEC was carried out, but ")
        talk.expect_closed("close")
        assert LimitReached("reply") in talk.effects


def test_an_array_too_large_to_be_held():
    """An array of which only an element would be rewritten passes, and the rule says why it did not act."""
    with Talk(afterwards("value: made"), max_buffer=1000) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        large = b"*1\r\n$5000\r\n" + b"x" * 5000 + b"\r\n"
        talk.upstream(large[:4000])
        talk.expect_client(large[:4000])
        talk.upstream(large[4000:])
        talk.expect_client(large[4000:])
        assert talk.skipped("reply") == ["too_large"]
        assert talk.effects.count(LimitReached("reply")) == 1
        talk.handshake("SET a 1", "+OK")


@both
def test_a_blocking_command(protocol):
    """UNBLOCKED instead of a job: the command never blocked, what stands behind it goes on."""
    with Talk(instead("error: UNBLOCKED", "BLPOP"), protocol=protocol) as talk:
        talk.client("BLPOP q 0", "GET a")
        talk.expect_upstream("GET a")
        talk.expect_client(
            "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
        )
        talk.upstream('"A"')
        talk.expect_client('"A"')


def test_pushes_stay():
    """Pushes around a reply that is rewritten are the server's, unchanged and in place."""
    with Talk(afterwards("value: made"), protocol=3) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream(INVALIDATED, '"1"', INVALIDATED)
        talk.expect_client(INVALIDATED, '"made"', INVALIDATED)


@both
def test_a_message_in_the_middle_of_confirmations(protocol):
    """SUBSCRIBE a b is refused afterwards: a message that came between its confirmations is not lost."""
    kind = ">" if protocol == 3 else "*"
    with Talk(afterwards("error: NOPERM", "SUBSCRIBE"), protocol=protocol) as talk:
        talk.client("SUBSCRIBE a b")
        talk.expect_upstream("SUBSCRIBE a b")
        message = f'{kind}["message" "a" "x"]'
        talk.upstream(f'{kind}["subscribe" "a" :1]', message, f'{kind}["subscribe" "b" :2]')
        talk.expect_client(
            "-NOPERM this user has no permissions to run the 'subscribe' command", message
        )


def test_a_handshake_is_refused():
    """HELLO is answered as by an old server; the client falls back, and the connection stays RESP2."""
    rule = instead("error: \"unknown command 'HELLO'\"", "HELLO")
    with Talk(rule) as talk:
        talk.client("HELLO 3", "GET a")
        talk.expect_upstream("GET a")
        talk.expect_client("-ERR unknown command 'HELLO'")
        talk.upstream('"A"')
        talk.expect_client('"A"')
        assert talk.conversation.describe()["protocol"] == 2


def test_a_select_is_refused():
    """A SELECT that never reached the server selects nothing."""
    with Talk(instead("error: NOPERM", "SELECT")) as talk:
        talk.client("SELECT 1")
        talk.expect_client("-NOPERM this user has no permissions to run the 'select' command")
        assert talk.conversation.describe()["db"] == 0


@pytest.mark.parametrize("quiet", ["OFF", "SKIP"])
@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_with_no_reply(quiet, at):
    """Where the client wants no reply it gets none, invented or not."""
    rule = f"- {{fault: reply, match: {{commands: GET}}, at: {at}, value: made}}"
    with Talk(rule) as talk:
        talk.client(f"CLIENT REPLY {quiet}", "GET a")
        talk.expect_client()
        if at == "before_forward":
            placeholder = ["PING"] if quiet == "SKIP" else []
            talk.expect_upstream(f"CLIENT REPLY {quiet}", *placeholder)
            talk.expect_fired("reply", applied="no", told="nothing", outcome="fail")
        else:
            talk.expect_upstream(f"CLIENT REPLY {quiet}", "GET a")
            assert talk.skipped("reply") == ["no_reply"]


def test_the_first_answer_counts():
    """The first final decision ends the chain; at after_apply the answer is what later rules see."""
    rules = afterwards("value: one") + "\n" + afterwards("value: two")
    with Talk(rules) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"A"')
        talk.expect_client('"one"')
        assert talk.skipped("reply-2") == ["ended"]


@both
def test_another_profile(protocol):
    """A rule that waits for the reply when its profile ends leaves it alone, in a transaction too."""
    with Talk(afterwards("value: made"), protocol=protocol) as talk:
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.switch(afterwards("value: new"))
        talk.upstream('"A"')
        talk.expect_client('"A"')
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.switch()
        talk.handshake("EXEC", '*["A"]')
        assert talk.skipped("reply") == ["switched", "switched"]


def test_another_profile_keeps_a_transaction_right():
    """What was answered before a switch has its place in EXEC's array after it."""
    with Talk(instead("value: made")) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SET a 1", "+QUEUED")
        talk.client("GET a")
        talk.expect_client("+QUEUED")
        talk.switch()
        talk.client("GET b")
        talk.expect_upstream("GET b")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream('*[+OK "B"]')
        talk.expect_client('*[+OK "made" "B"]')


@pytest.mark.parametrize("code", TEXTS)
@pytest.mark.parametrize("product", ["Redis", "Valkey"])
def test_every_code(code, product):
    """Every code of the list is answered with one error of that code, in the server's own words."""
    rule = "- {fault: reply, match: {keys: k}, at: before_forward, error: " + code + "}"
    with Talk(rule, server=ServerInfo(product, (9, 0, 0))) as talk:
        talk.client("SET k v")
        raw = talk.heard("client")
        assert raw.startswith(b"-" + (b"ERR max" if code == "MAXCLIENTS" else code.encode()))
        assert raw.endswith(b"\r\n")
        assert b"{" not in raw
        assert raw.count(b"\r\n") == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", ONE),
        ("error: OOM, value: 1", ONE),
        ("value: null, miss: true", ONE),
        ("truncate: 1, miss: true", ONE),
        ("invalid_utf8: true, miss: true", ONE),
        (
            "truncate: 1",
            "truncate: goes with at: after_apply; earlier there is no reply to change",
        ),
        (
            "invalid_utf8: true",
            "invalid_utf8: goes with at: after_apply; earlier there is no reply to change",
        ),
        ("value: true", "value: expected null, empty, an integer or a text, got true"),
        ("value: [1]", "value: expected null, empty, an integer or a text, got a list"),
        (
            f"value: {1 << 63}",
            f"value: expected an integer of 64 bits, as Redis has them, got {1 << 63}",
        ),
    ],
)
def test_refused(settings, message, problems):
    """What cannot be meant is refused when the profile is read."""
    assert problems("- {fault: reply, at: before_forward, " + settings + "}") == [message]
