"""Exchanges that end before Redis has seen them: answered, cut off or lost, in any state of the connection."""

import pytest

from tests.conversation import Talk

READONLY = "-READONLY You can't write against a read only replica."
REFUSE_SET = "- {fault: reply, match: {commands: SET}, at: before_forward, error: READONLY}"
REFUSE_EXEC = "- {{fault: reply, match: {{commands: EXEC}}, at: before_forward, error: {code}}}"


def in_transaction(talk: Talk) -> None:
    talk.handshake("MULTI", "+OK")
    talk.handshake("GET a", "+QUEUED")


@pytest.mark.parametrize("protocol", [2, 3])
def test_answered_in_its_turn(protocol):
    """An answer of the proxy's waits for the replies before it, and those behind it for it."""
    with Talk(REFUSE_SET, protocol=protocol) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a", "GET b")
        talk.expect_client()
        talk.upstream('"x"')
        talk.expect_client('"x"', READONLY)
        talk.upstream('"y"')
        talk.expect_client('"y"')
        talk.expect_fired("reply", applied="no", told="error", outcome="fail")


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_queued_command_is_refused(protocol):
    """The server's transaction is poisoned, so that EXEC answers what it would have answered."""
    aborted = "-EXECABORT Transaction discarded because of previous errors."
    with Talk(REFUSE_SET, protocol=protocol) as talk:
        in_transaction(talk)
        talk.client("SET a 1", "EXEC")
        talk.expect_upstream("CHAOSPROXY.REFUSED", "EXEC")
        talk.upstream("-ERR unknown command", aborted)
        talk.expect_client(READONLY, aborted)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_queued_command_is_answered(protocol):
    """Its answer becomes its element of EXEC's array; the server never saw it."""
    rule = "- {fault: reply, match: {commands: GET}, at: before_forward, value: made}"
    with Talk(rule, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET a 1", "GET a", "INCR n")
        talk.expect_upstream("SET a 1")
        talk.upstream("+QUEUED")
        talk.expect_upstream("INCR n")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED", "+QUEUED", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[+OK :1]")
        talk.expect_client('*[+OK "made" :1]')


def test_exec_is_refused():
    """The server discards the transaction, and the client is told why, as servers say it."""
    with Talk(REFUSE_EXEC.format(code="OOM")) as talk:
        in_transaction(talk)
        talk.client("EXEC", "GET b")
        talk.expect_upstream("DISCARD", "GET b")
        talk.expect_client(
            "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."
        )
        talk.upstream("+OK", '"v"')
        talk.expect_client('"v"')


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("MOVED", "-MOVED 0 :0"),
        ("CLUSTERDOWN", "-CLUSTERDOWN The cluster is down"),
        ("EXECABORT", "-EXECABORT Transaction discarded because of previous errors."),
    ],
)
def test_exec_is_redirected(code, told):
    """What a cluster says of an EXEC it says without an EXECABORT around it."""
    with Talk(REFUSE_EXEC.format(code=code)) as talk:
        in_transaction(talk)
        talk.client("EXEC")
        talk.expect_upstream("DISCARD")
        talk.expect_client(told)
        talk.upstream("+OK")


def test_exec_is_answered():
    """Another answer than an error: the server's transaction is discarded all the same."""
    rule = "- {fault: reply, match: {commands: EXEC}, at: before_forward, value: null}"
    with Talk(rule) as talk:
        in_transaction(talk)
        talk.client("EXEC")
        talk.expect_upstream("DISCARD")
        talk.expect_client("$-1")
        talk.upstream("+OK")


def test_exec_without_multi_is_answered():
    """Nothing is discarded where there is nothing."""
    with Talk(REFUSE_EXEC.format(code="READONLY")) as talk:
        talk.client("EXEC")
        talk.expect_upstream()
        talk.expect_client(READONLY)


def test_multi_is_refused():
    """What follows is no transaction, for either side."""
    rule = "- {fault: reply, match: {commands: MULTI}, at: before_forward, error: READONLY}"
    with Talk(rule) as talk:
        talk.client("MULTI", "SET a 1", "EXEC")
        talk.expect_upstream("SET a 1", "EXEC")
        talk.expect_client(READONLY)
        talk.upstream("+OK", "-ERR EXEC without MULTI")
        talk.expect_client("+OK", "-ERR EXEC without MULTI")


def test_no_reply_where_none_is_asked_for():
    """With CLIENT REPLY OFF a refused command gets no error either, and the event says so."""
    with Talk(REFUSE_SET) as talk:
        talk.client("CLIENT REPLY OFF", "SET a 1", "GET a", "CLIENT REPLY ON")
        talk.expect_upstream("CLIENT REPLY OFF", "GET a", "CLIENT REPLY ON")
        talk.expect_client()
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.expect_fired("reply", applied="no", told="nothing", outcome="fail")


def test_an_answer_to_a_write_is_a_lie():
    """A write that was answered with a value was not applied: false ok."""
    rule = "- {fault: reply, match: {keys: k}, at: before_forward, value: 1}"
    with Talk(rule) as talk:
        talk.client("INCR k", "GET k")
        talk.expect_client(":1", ":1")
        talk.expect_fired("reply", command="INCR", told="ok", outcome="false_ok")
        talk.expect_fired("reply", command="GET", told="ok", outcome="ok")


@pytest.mark.parametrize("how", ["reset", "close"])
def test_cut_before_it_is_forwarded(how):
    """Replies to earlier commands are delivered first; what stands behind is never seen."""
    rule = f"- {{fault: disconnect, match: {{commands: SET}}, at: before_forward, how: {how}}}"
    with Talk(rule) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a")
        talk.upstream('"x"')
        talk.expect_client('"x"')
        talk.expect_closed(how)
        told = {"reset": "reset", "close": "closed"}[how]
        talk.expect_fired("disconnect", applied="no", told=told, outcome="fail")


def test_cut_others_too():
    """A cut that speaks of other connections says so, and which rule chooses them."""
    rule = "- {fault: disconnect, match: {commands: SET, db: 1}, at: before_forward, who: matching}"
    with Talk(rule) as talk, talk.another() as other, talk.another() as third:
        for each in (talk, other):
            each.handshake("SELECT 1", "+OK")
        talk.client("SET a 1")
        talk.expect_closed("reset")
        talk.expect_cut_others("matching")
        assert other.conversation.matches_client("disconnect")
        assert not third.conversation.matches_client("disconnect")
        assert not third.conversation.matches_client("nosuch")
        other.cut("reset")
        other.expect_closed("reset")


def test_a_request_that_runs_into_silence():
    """A request on a connection that falls silent goes on when the silence ends, and the event claims no more."""
    rule = "- {fault: blackhole, match: {commands: SET}, at: before_forward, what: connection, for: 2s}"
    with Talk(rule) as talk:
        talk.client("GET a", "SET a 1", "GET b")
        talk.expect_upstream("GET a")
        talk.upstream('"x"')
        talk.client("PING")
        talk.expect_silence()
        talk.expect_fired("blackhole", applied="unknown", told="nothing", outcome="unknown")
        talk.wait(2)
        talk.expect_upstream("SET a 1", "GET b", "PING")
        talk.expect_client('"x"')


def test_a_connection_silent_to_the_client_only():
    """The request reaches Redis; whatever comes back waits for the end of the silence."""
    rule = """
- fault: blackhole
  match: {commands: SET}
  at: before_forward
  what: connection
  direction: to_client
  for: 2s
"""
    with Talk(rule) as talk:
        talk.client("SET a 1", "GET b")
        talk.expect_upstream("SET a 1", "GET b")
        talk.upstream("+OK", b"$5\r\nhel")
        talk.expect_client()
        talk.expect_fired("blackhole", applied="yes", told="nothing", outcome="unknown")
        talk.wait(2)
        talk.expect_client("+OK", b"$5\r\nhel")
        talk.upstream(b"lo\r\n")
        talk.expect_client(b"lo\r\n")


def test_ours_goes_aside_where_the_connection_takes_little():
    """Commands to run before a SUBSCRIBE of a RESP2 subscriber go on the side connection."""
    rule = "- {fault: run, match: {commands: SUBSCRIBE}, at: before_forward, commands: [[SCRIPT, FLUSH]]}"
    with Talk(rule) as talk:
        talk.client("SUBSCRIBE a")
        talk.expect_upstream("SCRIPT FLUSH", "SUBSCRIBE a")
        talk.upstream("+OK", '*["subscribe" "a" :1]')
        talk.expect_client('*["subscribe" "a" :1]')
        talk.client("SUBSCRIBE b")
        talk.expect_upstream()
        talk.expect_side("SCRIPT FLUSH")
        talk.side("+OK")
        talk.expect_upstream("SUBSCRIBE b")


def test_ours_goes_aside_where_all_commands_are_watched():
    """A connection in MONITOR carries none of ours."""
    rule = "- {fault: run, match: {commands: PING}, at: before_forward, commands: [[INCR, n]]}"
    with Talk(rule) as talk:
        talk.handshake("MONITOR", "+OK")
        talk.client("PING")
        talk.expect_side("INCR n")
        talk.side(":1")
        talk.expect_upstream("PING")
