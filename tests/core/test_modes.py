"""What breaks "one request, one reply", as a dialogue: a reply too few or too many would put all later ones out of place.

Takes commands and a server's replies; gives proof that what the client gets is what the server said, faults or none.
"""

import pytest

from chaosproxy.core.modes import Modes
from tests.conversation import Talk, begin, reply

#: Looks at every reply, acts on none.
ARMED = "- {fault: latency, when: {nth: 1000000}, at: after_apply, delay: 1s}"


@pytest.mark.parametrize("faults", ["", ARMED])
def test_monitor_says_nothing_to_a_monitor(faults: str):
    """A second MONITOR gets no reply, and what comes behind it gets its own."""
    line = b'+1700000000.000001 [0 127.0.0.1:1] "PING"\r\n'
    with Talk(faults) as talk:
        talk.handshake("MONITOR", "+OK")
        talk.client("MONITOR")
        talk.expect_upstream("MONITOR")
        talk.client("PING")
        talk.expect_upstream("PING")
        talk.upstream(line, "+PONG")
        talk.expect_client(line, "+PONG")


@pytest.mark.parametrize("faults", ["", ARMED])
@pytest.mark.parametrize("word", ["OFF", "SKIP"])
def test_an_array_that_lacks_what_it_announces_is_not_waited_for(faults: str, word: str):
    """Redis up to 8.2 queues CLIENT REPLY and then garbles EXEC's array: from there on bytes pass as they come."""
    with Talk(faults) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client(f"CLIENT REPLY {word}")
        talk.upstream("+QUEUED")
        assert "CLIENT REPLY" in talk.expect_raw("upstream")
        talk.expect_upstream(f"CLIENT REPLY {word}")
        talk.expect_client("+QUEUED")
        talk.client("ECHO 1", "EXEC")
        talk.expect_upstream("ECHO 1", "EXEC")
        talk.upstream("+QUEUED", b"*2\r\n$1\r\n1\r\n")
        talk.expect_client("+QUEUED", b"*2\r\n$1\r\n1\r\n")


@pytest.mark.parametrize(
    "fault", ["duplicate", "reply, at: before_forward, value: made", "drop_write, tell: ok"]
)
def test_such_an_array_is_not_the_clients_where_something_was_changed_in_it(fault: str):
    """Elements of ours would come with it, or some of the client's would be missing: so the connection ends, and nothing worked."""
    with Talk(f"- {{fault: {fault}, match: {{commands: SET}}}}") as talk:
        if "drop" in fault:
            begin(talk)
        else:
            talk.client("MULTI")
            talk.expect_upstream("MULTI")
            talk.upstream("+OK")
            talk.expect_client("+OK")
        talk.client("SET k v", "CLIENT REPLY SKIP")
        count = {"duplicate": 3, "reply": 1}.get(fault.partition(",")[0], 6)
        for _ in range(count):
            talk.upstream("+QUEUED")
        talk.heard("upstream")
        talk.heard("client")
        talk.expect_closed("close")
        if "drop" in fault:
            assert talk.skipped("drop_write") == ["cut"]
        else:
            name = fault.partition(",")[0]
            talk.expect_fired(name, applied="no", told="nothing", outcome="fail")


def test_what_was_done_to_a_transaction_that_is_no_longer_understood():
    """It goes on: whether it is carried out is not known."""
    late = "- {fault: latency, match: {commands: SET}, at: before_forward, delay: 1s}"
    with Talk(late) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SET k v", "+QUEUED", late=1)
        talk.handshake("CLIENT REPLY SKIP", "+QUEUED")
        talk.expect_raw("upstream")
        talk.expect_fired("latency", applied="unknown", told="late", outcome="ok")


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_server_that_refuses_to_queue_it_is_understood_further(faults: str):
    """Valkey 9 does not queue CLIENT REPLY: its error is a reply like any other."""
    with Talk(faults) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("CLIENT REPLY OFF", "-ERR not allowed inside a transaction")
        talk.handshake("EXEC", "-EXECABORT Transaction discarded because of previous errors.")
        talk.handshake("PING", "+PONG")


# -- what later commands mean


def described(talk: Talk, *fields: str) -> tuple[object, ...]:
    told = talk.conversation.describe()
    return tuple(told[field] for field in fields)


@pytest.mark.parametrize(
    ("sent", "answer", "protocol", "name"),
    [
        ("HELLO 3", '%["proto" :3]', 3, "web"),
        ("HELLO 3 AUTH u p SETNAME new", '%["proto" :3]', 3, "new"),
        ("HELLO 3 SETNAME old SETNAME new AUTH u p", '%["proto" :3]', 3, "new"),
        ("HELLO 3 AUTH setname secret", '%["proto" :3]', 3, "web"),
        ("HELLO 3 WHATEVER", '%["proto" :3]', 3, "web"),
        ("HELLO 2", '*["proto" :2]', 2, "web"),
        ("HELLO", '*["proto" :2]', 2, "web"),
        ("HELLO 4", "-NOPROTO unsupported protocol version", 2, "web"),
        ("HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'", 2, "web"),
    ],
)
def test_hello(sent, answer, protocol, name):
    """The version and the name are those the server has confirmed."""
    with Talk() as talk:
        talk.handshake("CLIENT SETNAME web", "+OK")
        talk.handshake(sent, answer)
        assert described(talk, "protocol", "name") == (protocol, name)


def test_hello_without_a_reply():
    """With CLIENT REPLY OFF the version is the one that was asked for."""
    with Talk() as talk:
        talk.client("CLIENT REPLY OFF", "HELLO 3 SETNAME web", "HELLO x", "CLIENT REPLY ON")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert described(talk, "protocol", "name") == (3, "web")


@pytest.mark.parametrize(
    ("sent", "answer", "db"),
    [
        ("SELECT 5", "+OK", 5),
        ("SELECT 99", "-ERR DB index is out of range", 0),
        ("SELECT x", "+OK", 0),
        ("SELECT", "+OK", 0),
    ],
)
def test_select(sent, answer, db):
    """The database is the one the server has confirmed."""
    with Talk() as talk:
        talk.handshake(sent, answer)
        assert described(talk, "db") == (db,)


def test_select_in_a_transaction():
    """A queued SELECT counts once EXEC has carried it out, and only if it did."""
    with Talk() as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("SELECT 5", "+QUEUED")
        talk.handshake("SELECT 6", "+QUEUED")
        assert described(talk, "db") == (0,)
        talk.handshake("EXEC", b"*2\r\n+OK\r\n-ERR no\r\n")
        assert described(talk, "db") == (5,)
        talk.handshake("MULTI", "+OK")
        talk.handshake("SELECT 7", "+QUEUED")
        talk.handshake("EXEC", "*-1")
        assert described(talk, "db") == (5,)


def test_reset():
    """RESET makes it as if new: version, database, name, transaction, subscriptions; and it is answered though replies were off."""
    with Talk(protocol=3) as talk:
        talk.handshake("CLIENT SETNAME web", "+OK")
        talk.handshake("SELECT 5", "+OK")
        talk.handshake("SUBSCRIBE a", '>["subscribe" "a" :1]')
        talk.handshake("MULTI", "+OK")
        talk.handshake("RESET", "+RESET")
        fields = ("protocol", "db", "name", "in_transaction", "subscribed")
        assert described(talk, *fields) == (2, 0, "", False, False)
        talk.client("CLIENT REPLY OFF", "PING", "RESET", "PING")
        talk.heard("upstream")
        talk.upstream("+RESET", "+PONG")
        talk.expect_client("+RESET", "+PONG")
        assert described(talk, "waiting_replies") == (0,)


def test_reset_that_is_skipped():
    """CLIENT REPLY SKIP hides RESET's reply too."""
    with Talk() as talk:
        talk.client("CLIENT REPLY SKIP", "RESET", "PING")
        talk.heard("upstream")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        assert described(talk, "waiting_replies") == (0,)


@pytest.mark.parametrize("word", ["ON", "OFF", "SKIP"])
def test_client_reply_that_is_refused(word):
    """A CLIENT REPLY with a word too many is an error like any other."""
    with Talk() as talk:
        talk.handshake(f"CLIENT REPLY {word} x", "-ERR wrong number of arguments")
        talk.handshake("PING", "+PONG")


def test_skip_while_off():
    """CLIENT REPLY SKIP means nothing while all replies are off; ON is always answered."""
    with Talk() as talk:
        talk.client("CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING")
        talk.heard("upstream")
        talk.upstream("+OK", "+PONG")
        talk.expect_client("+OK", "+PONG")
        assert described(talk, "waiting_replies") == (0,)


def test_skip_skip():
    """The second SKIP is what the first one skips, and skips the next command itself."""
    with Talk() as talk:
        talk.client("CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "PING")
        talk.heard("upstream")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        assert described(talk, "waiting_replies") == (0,)


def test_skip_on():
    """CLIENT REPLY ON behind SKIP is answered, and ends it."""
    with Talk() as talk:
        talk.client("CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING")
        talk.heard("upstream")
        talk.upstream("+OK", "+PONG")
        talk.expect_client("+OK", "+PONG")


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_transaction_whose_multi_was_skipped(faults):
    """MULTI's +OK vanishes, what follows is answered: it is a transaction all the same."""
    with Talk(faults) as talk:
        talk.client("CLIENT REPLY SKIP", "MULTI", "SET a 1", "EXEC", "PING")
        talk.upstream("+QUEUED")
        talk.upstream("*[+OK]")
        talk.upstream("+PONG")
        talk.expect_upstream("CLIENT REPLY SKIP", "MULTI", "SET a 1", "EXEC", "PING")
        talk.expect_client("+QUEUED", "*[+OK]", "+PONG")


@pytest.mark.parametrize("faults", ["", ARMED])
def test_a_transaction_whose_multi_was_refused_without_a_word(faults):
    """MULTI may be forbidden: what is carried out behind it shows that it is no transaction, and what is refused does not."""
    with Talk(faults) as talk:
        talk.client("CLIENT REPLY SKIP", "MULTI", "INCR b")
        talk.upstream("-NOPERM no")
        assert talk.conversation._line.modes.transaction
        talk.client("INCR a")
        talk.upstream(":1")
        assert not talk.conversation._line.modes.transaction
        talk.client("SELECT 3", "EXEC")
        talk.upstream("+OK", "-ERR EXEC without MULTI")
        talk.expect_upstream("CLIENT REPLY SKIP", "MULTI", "INCR b", "INCR a", "SELECT 3", "EXEC")
        talk.expect_client("-NOPERM no", ":1", "+OK", "-ERR EXEC without MULTI")
        assert talk.conversation._line.db == 3


@pytest.mark.parametrize(
    "error",
    [
        "-EXECABORT Transaction discarded because of previous errors.",
        "-MOVED 1 127.0.0.1:2",
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command",
    ],
)
def test_an_exec_that_is_refused_ends_the_transaction(error):
    """Whatever EXEC is refused with, the server has forgotten the transaction; what follows is none."""
    rule = "- {fault: disconnect, match: {commands: SET}, at: after_apply}"
    with Talk(rule) as talk:
        talk.handshake("WATCH k", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("EXEC", error)
        assert described(talk, "in_transaction") == (False,)
        talk.client("SET a 1")
        talk.expect_upstream("SET a 1")
        talk.upstream("+OK")
        talk.expect_closed("reset")


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ("EXEC", "-ERR EXEC without MULTI"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("DISCARD x", "-ERR wrong number of arguments for 'discard' command"),
    ],
)
def test_errors_that_end_nothing(sent, error):
    """EXEC without MULTI leaves a WATCH alone; a DISCARD that is refused leaves the transaction."""
    rule = "- {fault: reply, match: {commands: GET, connection: {state: watching}}, at: before_forward, value: w}"
    with Talk(rule) as talk:
        talk.handshake("WATCH k", "+OK")
        if "x" in sent:
            talk.handshake("MULTI", "+OK")
        talk.handshake(sent, error)
        assert described(talk, "in_transaction") == ("x" in sent,)
        talk.client("GET a")
        talk.expect_client("+QUEUED" if "x" in sent else '"w"')


def test_nested_multi():
    """A second MULTI is refused, and the transaction goes on."""
    with Talk() as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("MULTI", "-ERR MULTI calls can not be nested")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("EXEC", '*["A"]')


def test_multi_that_is_answered_twice():
    """A server that says OK to a second MULTI changes nothing in what was queued."""
    with Talk() as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake("GET a", "+QUEUED")
        talk.handshake("MULTI", "+OK")
        talk.handshake("EXEC", '*["A"]')


@pytest.mark.parametrize("end", ["UNWATCH", "EXEC", "DISCARD", "RESET"])
def test_watching(end):
    """WATCH counts until UNWATCH, EXEC, DISCARD or RESET."""
    rule = "- {fault: reply, match: {commands: GET, connection: {state: watching}}, at: before_forward, value: w}"
    with Talk(rule) as talk:
        talk.handshake("WATCH k", "+OK")
        talk.client("GET a")
        talk.expect_client('"w"')
        if end in ("EXEC", "DISCARD"):
            talk.handshake("MULTI", "+OK")
        talk.handshake(end, "*[]" if end == "EXEC" else "+OK")
        talk.handshake("GET a", '"A"')


def test_shutdown_and_quit():
    """At most one reply, and then the end."""
    for sent in ("QUIT", "SHUTDOWN NOSAVE"):
        with Talk() as talk:
            talk.client(sent, "PING")
            talk.expect_upstream(sent, "PING")
            if sent == "QUIT":
                talk.upstream("+OK")
                talk.expect_client("+OK")
            talk.upstream_eof()
            talk.expect_closed("close")


def test_a_transaction_without_replies():
    """With CLIENT REPLY OFF a transaction is taken to have been carried out, and what follows from it with it."""
    with Talk() as talk:
        talk.client("CLIENT REPLY OFF", "MULTI", "SELECT 2", "HELLO 3", "EXEC", "CLIENT REPLY ON")
        talk.heard("upstream")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert described(talk, "db", "protocol", "in_transaction") == (2, 3, False)


@pytest.mark.parametrize("faults", ["", ARMED])
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_another_version_in_the_middle_of_a_transaction(faults, before, after):
    """HELLO and SUBSCRIBE a b in one transaction: confirmations are of the version that they are told in."""
    kind = ">" if after == 3 else "*"
    hello = "%[]" if after == 3 else "*[]"
    first, second = f'{kind}["subscribe" "a" :1]', f'{kind}["subscribe" "b" :2]'
    with Talk(faults, protocol=before) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake(f"HELLO {after}", "+QUEUED")
        talk.handshake("SUBSCRIBE a b", "+QUEUED")
        talk.client("EXEC", "PING")
        talk.upstream(f"*[{hello} {first}]", second)
        pong = "+PONG" if after == 3 else '*["pong" ""]'
        talk.upstream(pong)
        talk.heard("upstream")
        talk.expect_client(f"*[{hello} {first}]", second, pong)
        assert described(talk, "protocol", "subscribed", "waiting_replies") == (after, True, 0)


@pytest.mark.parametrize(
    "sent", ["CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "SELECT 1", "MULTI"]
)
def test_a_subscriber_is_refused(sent):
    """A RESP2 subscriber is refused nearly everything, CLIENT REPLY too: an error like any other, and nothing follows from it."""
    with Talk() as talk:
        talk.handshake("SUBSCRIBE a", '*["subscribe" "a" :1]')
        talk.client(sent, "PING", "PING")
        talk.heard("upstream")
        refused = "-ERR Can't execute it: only (P|S)SUBSCRIBE is allowed in this context"
        talk.upstream(refused, '*["pong" ""]', '*["pong" ""]')
        talk.expect_client(refused, '*["pong" ""]', '*["pong" ""]')
        assert described(talk, "waiting_replies", "raw", "db", "in_transaction") == (
            0,
            False,
            0,
            False,
        )


def test_a_subscriber_is_refused_without_a_word():
    """With replies off it is refused silently; RESET helps."""
    with Talk(protocol=3) as talk:
        talk.handshake("SUBSCRIBE a", '>["subscribe" "a" :1]')
        talk.client(
            "CLIENT REPLY OFF", "HELLO 2", "HELLO 3", "SELECT 1", "CLIENT REPLY ON", "RESET", "PING"
        )
        talk.heard("upstream")
        talk.upstream("+RESET", "+PONG")
        talk.expect_client("+RESET", "+PONG")
        assert described(talk, "waiting_replies", "protocol", "db") == (0, 2, 0)


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize("quiet", ["SKIP", "OFF"])
def test_subscriptions_without_replies(quiet, confirmed):
    """Servers from 7.0 on confirm subscriptions where no replies are wanted, older ones do not: both are understood."""
    with Talk(protocol=3) as talk:
        talk.handshake(
            "SUBSCRIBE a b", b"".join(map(reply, [subscribed("a", 1), subscribed("b", 2)]))
        )
        talk.client(
            f"CLIENT REPLY {quiet}", "UNSUBSCRIBE a", "CLIENT REPLY ON", "UNSUBSCRIBE", "PING"
        )
        talk.heard("upstream")
        pushes = [subscribed("a", 1, "un")] if confirmed else []
        said = [*pushes, "+OK", subscribed("b", 0, "un"), "+PONG"]
        talk.upstream(*said)
        talk.expect_client(*said)
        assert described(talk, "waiting_replies", "subscribed", "raw") == (0, False, False)


def subscribed(channel: str, count: int, un: str = "") -> str:
    return f'>["{un}subscribe" "{channel}" :{count}]'


def test_nobody_holds_what_another_one_does():
    """What one connection subscribes to, its confirmation or not, is no other's."""
    confirmed, silent, other = Modes(), Modes(), Modes()
    confirmed.confirm(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
    silent.settle(b"SUBSCRIBE", (b"SUBSCRIBE", b"b"), None)
    assert (confirmed.subscribed, silent.subscribed, other.subscribed) == (True, True, False)
    assert Modes().channels == other.channels == {}
