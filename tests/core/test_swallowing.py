"""How a swallowed write is carried out: proven first, computed by the server, answered in its place, and written down.

The dialogues for every mode of a connection are in tests/faults/test_drop_write.py, real servers in tests/live; here it is the
order of things, and what becomes of them when the server or the side connection says no.
"""

import re

import pytest

from chaosproxy.core.ending import ENDED
from tests.conversation import GATE, PROVEN, Talk, begin

DROP = "- {fault: drop_write, tell: ok, match: {commands: [RPUSH]}}"
PLAN = [
    "MULTI",
    "COPY k k DB 15 REPLACE",
    "SELECT 15",
    "RPUSH k a",
    "DEL k",
    "SELECT 0",
    "EXEC",
]


def test_proven_then_computed():
    """First the gate, and only then the transaction; the client gets EXEC's element, and what it sends meanwhile waits."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a", "PING")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*PLAN)
        talk.upstream("+OK", *["+QUEUED"] * 5, "*[:1 +OK :7 :1 +OK]")
        talk.expect_client(":7")
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG")
        how = "reply computed in scratch database 15"
        talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok", detail=how)


def test_not_proven_then_beside():
    """Where the scratch database holds something, temporary keys take its place."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream("+OK", *["+QUEUED"] * 3, "*[+OK :3 +OK]")
        heard = talk.heard("upstream")
        assert b"SELECT" not in heard
        assert heard.count(b":chaosproxy:") >= 4
        talk.upstream_eof()
        talk.expect_closed("close")


def test_the_servers_own_refusal():
    """What the server refuses before it queues it, it would have refused anyway: the client gets that very error."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*PLAN)
        refused = "-READONLY You can't write against a read only replica."
        talk.upstream(
            "+OK",
            "+QUEUED",
            "+QUEUED",
            refused,
            "+QUEUED",
            "+QUEUED",
            "-EXECABORT Transaction discarded.",
        )
        talk.expect_client(refused)
        talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")


@pytest.mark.parametrize("phase", ["gate", "plan"])
def test_the_upstream_goes(phase: str):
    """If the upstream goes in the middle of it nothing was told, nothing is written down as told, and the write is lost."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        if phase == "plan":
            talk.upstream(*PROVEN)
            talk.expect_upstream(*PLAN)
        talk.upstream_eof()
        talk.expect_closed("close")
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail", detail=ENDED)


# -- where no copy can give the reply

TABLE = "reply made from the reply table"


def drop(commands: str) -> str:
    return f"- {{fault: drop_write, tell: ok, match: {{commands: {commands}}}}}"


#: What the side connection says to the transaction that shows that one key can be copied.
COPIED = ("+OK", *["+QUEUED"] * 3, "*[:0 :1 :1]")


def queued(count: int, result: str | bytes) -> list[str | bytes]:
    """Replies to a transaction of so many commands."""
    return ["+OK", *["+QUEUED"] * count, result]


def test_what_cannot_be_tried_on_a_copy():
    """The server is asked only whether it would refuse it, in a transaction that cannot be carried out."""
    with Talk(drop("FLUSHALL")) as talk:
        talk.client("FLUSHALL", "PING")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.expect_upstream("FLUSHALL", "CHAOSPROXY.REFUSED", "EXEC")
        talk.upstream("+QUEUED", "-ERR unknown command", "-EXECABORT Transaction discarded.")
        talk.expect_client("+OK")
        talk.expect_upstream("PING")
        talk.expect_fired("drop_write", told="ok", outcome="false_ok", detail=TABLE)


def test_what_the_server_would_refuse():
    """Then the client gets that refusal, not a reply of ours."""
    with Talk(drop("FLUSHALL")) as talk:
        talk.client("FLUSHALL")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.heard("upstream")
        talk.upstream("-NOPERM no", "-ERR unknown command", "-EXECABORT Transaction discarded.")
        talk.expect_client("-NOPERM no")
        talk.expect_fired(
            "drop_write", told="error", outcome="fail", detail="refused by the server"
        )


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ("-NOAUTH Authentication required.", "-NOAUTH Authentication required."),
        ("-NOPERM this user has no permissions to run the 'multi' command", "+OK"),
    ],
)
def test_where_no_transaction_is_allowed(refused, told):
    """Who may not even begin a transaction is not asked twice: not logged in is told, anything else answered from the table."""
    with Talk(drop("FLUSHALL")) as talk:
        talk.client("FLUSHALL")
        talk.expect_upstream("MULTI")
        talk.upstream(refused)
        talk.expect_client(told)


def test_a_wrong_number_of_arguments():
    """A command that no server takes passes, so that the server says so itself."""
    with Talk(drop("MOVE")) as talk:
        talk.client("MOVE a 1 2")
        talk.expect_upstream("MULTI")
        talk.upstream("-NOPERM no multi")
        talk.expect_upstream("MOVE a 1 2")
        talk.upstream("-ERR wrong number of arguments for 'move' command")
        talk.expect_client("-ERR wrong number of arguments for 'move' command")
        assert talk.skipped("drop_write") == ["refused"]


def test_an_answer_of_any_kind_is_not_made_up():
    """A script's reply can be anything: where it cannot be computed the write passes, and the rule says why."""
    with Talk(drop("EVAL")) as talk:
        talk.client("EVAL return:1 1 k")
        talk.expect_upstream(*GATE)
        talk.upstream(*queued(3, "*[+OK :3 +OK]"))
        talk.expect_upstream("EVAL return:1 1 k")
        assert talk.skipped("drop_write") == ["unknown_reply"]


def test_transactions_are_refused():
    """Where an ACL forbids MULTI nothing of ours is carried out by itself; the reply is made up, and the event says why."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        refused = "-NOPERM this user has no permissions to run the 'multi' command"
        talk.upstream(refused, "+OK", ":0", "+OK", "-ERR EXEC without MULTI")
        talk.expect_upstream("MULTI")
        talk.upstream(refused)
        talk.expect_client(":1")
        event = talk.expect_fired("drop_write", told="ok")
        assert event.detail.startswith(TABLE + ": NOPERM")


@pytest.mark.parametrize(
    "result", ["-EXECABORT no", "*-1", "*[]", "*[:1]", "*[-ERR +OK :7 :1 +OK]"]
)
def test_the_transaction_is_not_carried_out(result):
    """Copies that could not be made give no reply: it is made up, unless the server would refuse the write."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*PLAN)
        talk.upstream(*queued(5, result))
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.heard("upstream")
        talk.upstream("+QUEUED", "-ERR unknown command", "-EXECABORT Transaction discarded.")
        talk.expect_client(":1")
        assert talk.expect_fired("drop_write", told="ok").detail.startswith(TABLE)


def test_a_blocking_command_that_does_not_wait():
    """A blocking pop with something to pop is computed as any other; with nothing it passes, and blocks."""
    for element, skipped in (('*["k" "job"]', []), ("*-1", ["blocking"])):
        with Talk(drop("BLPOP")) as talk:
            talk.client("BLPOP k 0")
            talk.expect_upstream(*GATE)
            talk.upstream(*PROVEN)
            talk.heard("upstream")
            talk.upstream(*queued(5, f"*[:1 +OK {element} :1 +OK]"))
            assert talk.skipped("drop_write") == skipped
            if skipped:
                talk.expect_upstream("BLPOP k 0")
            else:
                talk.expect_client(element)


def test_a_blocking_command_without_a_reply():
    """With replies off nobody knows whether it would wait: it passes."""
    with Talk(drop("BLPOP")) as talk:
        talk.client("CLIENT REPLY OFF", "BLPOP k 0")
        talk.expect_upstream("CLIENT REPLY OFF", "BLPOP k 0")
        assert talk.skipped("drop_write") == ["blocking"]


def test_refused_under_another_name():
    """An ACL that forbids the temporary key does not forbid the client's: that refusal is not told."""
    with Talk(DROP) as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(*queued(3, "*[+OK :3 +OK]"))
        talk.heard("upstream")
        no = "-NOPERM No permissions to access a key"
        talk.upstream("+OK", no, no, no, no, "-EXECABORT no")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.heard("upstream")
        talk.upstream("+QUEUED", "-ERR unknown command", "-EXECABORT no")
        talk.expect_client(":1")
        assert "NOPERM" in talk.expect_fired("drop_write").detail


def test_a_server_short_of_memory():
    """It takes no command into a transaction, but would carry out one that frees memory: no refusal is told."""
    with Talk(drop("DEL")) as talk:
        talk.client("DEL k")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        oom = "-OOM command not allowed when used memory > 'maxmemory'."
        talk.upstream("+OK", oom, oom, oom, oom, oom, "-EXECABORT no")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.heard("upstream")
        talk.upstream(oom, "-ERR unknown command", "-EXECABORT no")
        talk.expect_client(":1")
        assert "OOM" in talk.expect_fired("drop_write", told="ok").detail


# -- scripts


def test_what_a_script_has_left_is_removed():
    """Keys that it wrote without declaring them go from the scratch database, and the event says so."""
    with Talk(drop("EVAL")) as talk:
        talk.client("EVAL return:1 1 k")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(*queued(6, '*[:1 +OK :7 :1 *["0" *["other"]] +OK]'))
        talk.expect_client(":7")
        talk.expect_upstream("SELECT 15", "DEL other", "SELECT 0")
        talk.upstream("+OK", ":1", "+OK")
        assert "did not declare" in talk.expect_fired("drop_write", told="ok").detail


def test_in_the_scratch_database_itself():
    """A client that works in the scratch database gets temporary keys there."""
    with Talk(DROP) as talk:
        talk.handshake("SELECT 15", "+OK")
        talk.client("RPUSH k a")
        talk.expect_upstream("MULTI", "SELECT 15", "DBSIZE", "SELECT 15", "EXEC")
        talk.upstream(*queued(3, "*[+OK :0 +OK]"))
        assert b":chaosproxy:" in talk.heard("upstream")


# -- while the client is watching: aside


@pytest.mark.parametrize("sent", ["RPUSH k a", "LMPOP 1 k LEFT"])
def test_a_transaction_that_never_began(sent):
    """MULTI was refused and nobody heard of it: what was to run on copies in it has done so, and that is told, with the key's own name."""
    with Talk(DROP.replace("RPUSH", "RPUSH, LMPOP")) as talk:
        talk.client("CLIENT REPLY SKIP", "MULTI", sent)
        asked = talk.heard("upstream")
        copy = re.search(rb"k\S*:chaosproxy:[^\r]*", asked)[0]
        mine = [b":7\r\n", b"*2\r\n$%d\r\n%s\r\n*1\r\n$1\r\nx\r\n" % (len(copy), copy)][
            sent[0] == "L"
        ]
        talk.upstream(":0", ":1", mine, ":1")
        talk.expect_client([":7", '*["k" *["x"]]'][sent[0] == "L"])
        event = talk.expect_fired("drop_write", applied="no", told="ok", outcome="false_ok")
        assert event.detail == "reply computed on temporary keys"
        talk.client("PING")
        talk.upstream("+PONG")
        talk.expect_upstream("PING")
        talk.expect_client("+PONG")


def watching(talk: Talk) -> None:
    talk.handshake("WATCH w", "+OK")


def test_aside():
    """An EXEC of ours would end the client's WATCH: all of it goes on the side connection."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("RPUSH k a")
        talk.expect_upstream()
        talk.expect_side(*GATE)
        talk.side(*PROVEN)
        talk.expect_side(*PLAN)
        talk.side(*queued(5, "*[:1 +OK :7 :1 +OK]"))
        talk.expect_client(":7")


def test_aside_only_once_what_came_before_is_answered():
    """The side connection must not be ahead of what the client has sent."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("RPUSH other a", "RPUSH k a")
        talk.side(*PROVEN)
        talk.side(*queued(5, "*[:1 +OK :1 :1 +OK]"))
        talk.expect_client(":1")
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("GET k", "RPUSH k a")
        talk.expect_upstream("GET k")
        assert not talk._asked
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_side(*GATE)
        talk.side()
        talk.expect_client(":1")


@pytest.mark.parametrize("said", [(), (PROVEN,)])
def test_the_side_connection_fails(said):
    """At the gate or behind it: the reply is made up."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("RPUSH k a")
        for replies in said:
            talk.side(*replies)
        talk.side()
        talk.expect_client(":1")
        talk.expect_fired("drop_write", detail=f"{TABLE}: the side connection failed")


def test_an_answer_that_comes_too_late():
    """What the side connection says of a write that was let go changes nothing."""
    with Talk(DROP) as talk:
        watching(talk)
        talk.client("RPUSH k a")
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_client(b"?\r\n")
        talk.expect_upstream("RPUSH k a")
        talk.side(*PROVEN)
        assert not talk._asked
        assert talk.skipped("drop_write") == ["raw"]


def test_asking():
    """Between ASKING and its command nothing of ours may go: the reply is made up."""
    with Talk(DROP) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("RPUSH k a")
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client(":1")


REFUSED = "-ERR Can't execute 'x': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"


@pytest.mark.parametrize(
    ("rule", "sent"),
    [
        (DROP, "RPUSH k a"),
        (drop("FLUSHALL"), "FLUSHALL"),
        ("- {fault: expire_key, mode: strip_ttl, match: {commands: EXPIRE}}", "EXPIRE k 9"),
    ],
)
def test_a_subscriber_may_write_nothing(rule, sent):
    """In RESP2 the server refuses it, and whatever the proxy would ask for: it was told to have worked."""
    with Talk(rule) as talk:
        talk.handshake("SUBSCRIBE c", '*["subscribe" "c" :1]')
        talk.client(sent)
        talk.expect_upstream(sent)
        talk.upstream(REFUSED)
        talk.expect_client(REFUSED)
        talk.expect_nothing_fired()


def test_the_upstream_stops_making_sense_while_it_is_asked():
    """Whatever the server says of our question then, the write has passed."""
    with Talk(drop("FLUSHALL")) as talk:
        talk.client("FLUSHALL")
        talk.expect_upstream("MULTI")
        talk.client_eof()
        talk.client_gone()
        talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail", detail=ENDED)


# -- inside the client's transaction


NO_COPY = (
    "+OK",
    ":0",
    "+OK",
    "-NOPERM this user has no permissions to run the 'copy' command",
    ":0",
)
NO_SCRATCH = ("-ERR DB index is out of range", ":7", "+OK", ":0", ":0")


def test_a_transaction_without_copies():
    """Where COPY is forbidden nothing of ours is queued: it would spoil the client's transaction. The element is made up."""
    with Talk(DROP) as talk:
        begin(talk, *NO_COPY)
        talk.client("RPUSH k a", "EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[]")
        talk.expect_client("+QUEUED", "*[:1]")
        talk.expect_fired("drop_write", told="ok", outcome="false_ok")


def test_a_transaction_with_a_command_that_is_forbidden():
    """A write that the ACL forbids, or that no server takes, passes, so that the server refuses it itself."""
    with Talk(drop("[COPY, RPUSH]")) as talk:
        begin(talk, *NO_COPY)
        for sent in ("COPY a b", "RPUSH k"):
            talk.client(sent)
            talk.expect_upstream(sent)
            talk.upstream("-NOPERM no")
            talk.expect_client("-NOPERM no")
        assert talk.skipped("drop_write") == ["refused", "refused"]


def test_a_stand_in():
    """What cannot be tried on a copy is stood in for by a request that has no effect, and that is refused as it would be."""
    with Talk(drop("[FLUSHALL, MOVE]")) as talk:
        begin(talk)
        talk.client("FLUSHALL")
        assert talk.heard("upstream").count(b"\r\n$3\r\nDEL\r\n") == 1
        talk.upstream("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:0]")
        talk.expect_client("+QUEUED", "*[+OK]")
        talk.expect_fired("drop_write", told="ok", detail=TABLE)


@pytest.mark.parametrize("end", ["upstream_gone", "client_gone"])
@pytest.mark.parametrize("sent", ["MULTI", "EXEC"])
def test_a_transaction_that_either_side_leaves(end, sent):
    """Once EXEC is on its way nobody knows what became of it, but that the write was no part of it; before, nothing was."""
    with Talk(DROP) as talk:
        begin(talk)
        talk.client("RPUSH k a")
        talk.expect_upstream(*PLAN[1:-1])
        talk.upstream(*["+QUEUED"] * 5)
        talk.expect_client("+QUEUED")
        if sent == "EXEC":
            talk.client("EXEC")
            talk.expect_upstream("EXEC")
        getattr(talk, end)()
        if end == "upstream_gone":
            talk.expect_closed("close")
        if sent == "EXEC":
            event = talk.expect_fired("drop_write", applied="no", told="nothing", outcome="fail")
            assert event.detail.endswith(f"; {ENDED}")
        else:
            assert talk.skipped("drop_write") == [end]


def test_copies_that_could_not_be_made():
    """Where a copy fails at EXEC the element is made up, and the event says why."""
    with Talk(DROP) as talk:
        begin(talk)
        talk.client("RPUSH k a")
        talk.expect_upstream(*PLAN[1:-1])
        talk.upstream(*["+QUEUED"] * 5)
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[-ERR +OK :9 :1 +OK]")
        talk.expect_client("+QUEUED", "*[:1]")
        assert talk.expect_fired("drop_write", told="ok").detail == f"{TABLE}: ERR"


def test_a_script_in_a_transaction():
    """What it leaves in the scratch database is removed by the side connection: the client may have selected another by then."""
    for left in ("", ' "other"'):
        with Talk(drop("EVAL")) as talk:
            begin(talk)
            talk.client("EVAL return:1 1 k")
            talk.side(*COPIED)
            talk.heard("upstream")
            talk.upstream(*["+QUEUED"] * 6)
            talk.client("EXEC")
            talk.heard("upstream")
            talk.upstream(f'*[:1 +OK :7 :1 *["0" *[{left}]] +OK]')
            talk.expect_client("+QUEUED", "*[:7]")
            detail = talk.expect_fired("drop_write", told="ok").detail
            assert ("did not declare" in detail) == bool(left)
            if left:
                talk.expect_side("DEL other", db=15)
                talk.side(":1")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (("+OK", *["+QUEUED"] * 3, "*[:0 -ERR :0]"), "unknown_reply"),
        (("+OK", *["+QUEUED"] * 3, "-EXECABORT no"), "unknown_reply"),
        ((), "side_connection"),
    ],
)
def test_a_script_whose_keys_cannot_be_copied(answers, why):
    """In a transaction that is known too late: it is found out aside, and the script passes."""
    with Talk(drop("EVAL")) as talk:
        begin(talk)
        talk.client("EVAL return:1 1 k")
        talk.expect_upstream()
        copy = re.search(rb"k\S*:chaosproxy:[^\r]*", talk._asked[-1].requests[1])[0].decode()
        talk.expect_side("MULTI", f"DEL {copy}", f"COPY k {copy} REPLACE", f"DEL {copy}", "EXEC")
        talk.side(*answers)
        talk.expect_upstream("EVAL return:1 1 k")
        assert talk.skipped("drop_write") == [why]


def test_a_script_behind_what_is_not_answered():
    """Whether its keys can be copied is asked once what the client sent before it is done."""
    with Talk(drop("EVAL")) as talk:
        begin(talk)
        talk.client("SET k v", "EVAL return:1 1 k")
        talk.expect_upstream("SET k v")
        assert talk._asked == []
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.side(*COPIED)
        assert b"COPY" in talk.heard("upstream")


# -- modules


def with_modules(*more: str) -> Talk:
    """A server that has commands of modules too; all writes are dropped."""
    talk = Talk("- {fault: drop_write, tell: ok}")
    talk.learn("json.set", "nosuch.set", *more)
    return talk


def test_a_modules_write():
    """It is tried on a copy, as any other."""
    with with_modules() as talk:
        talk.client("JSON.SET k v")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*[line.replace("RPUSH k a", "JSON.SET k v") for line in PLAN])
        talk.upstream(*queued(5, "*[:1 +OK +OK :1 +OK]"))
        talk.expect_client("+OK")
        talk.expect_fired("drop_write", applied="no", told="ok")


def test_a_modules_error():
    """It may be of a key that was not copied, as the module does not tell of it: the write passes, and the server says."""
    with with_modules() as talk:
        talk.client("JSON.SET k v")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.heard("upstream")
        talk.upstream(*queued(5, "*[:1 +OK -ERR :1 +OK]"))
        talk.expect_upstream("JSON.SET k v")
        assert talk.skipped("drop_write") == ["unknown_reply"]


def test_a_write_of_who_knows_which_module():
    """It may do more than the keys show, and would do that on copies too."""
    with with_modules() as talk:
        talk.client("NOSUCH.SET k v")
        talk.expect_upstream("NOSUCH.SET k v")
        assert talk.skipped("drop_write") == ["unknown_reply"]


def test_where_there_are_indexes():
    """They would take a copy in another database for the key itself: copies have names of their own. Scripts pass."""
    with with_modules("ft.create") as talk:
        talk.client("RPUSH k a")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        heard = talk.heard("upstream")
        assert b":chaosproxy:" in heard
        assert b"SELECT" not in heard
        talk.upstream(*queued(4, "*[:0 :1 :7 :1]"))
        talk.expect_client(":7")
        talk.expect_fired("drop_write", applied="no", told="ok")
        talk.client("FT.CREATE idx SCHEMA x TEXT", "EVAL return:1 1 k")
        talk.expect_upstream("FT.CREATE idx SCHEMA x TEXT", "EVAL return:1 1 k")
        assert talk.skipped("drop_write") == ["unknown_reply"] * 2


def test_a_transaction_that_selects():
    """A client that changes databases in its transaction gets temporary keys: the scratch database may be its own by then."""
    with Talk(DROP) as talk:
        begin(talk)
        talk.handshake("SELECT 15", "+QUEUED")
        talk.handshake("SELECT 0", "+QUEUED")
        talk.client("RPUSH k a")
        assert b":chaosproxy:" in talk.heard("upstream")


def test_a_script_where_there_is_no_scratch_database():
    """A script cannot be tried on temporary keys, and its reply can be anything: it passes."""
    with Talk(drop("EVAL")) as talk:
        begin(talk, *NO_SCRATCH)
        talk.client("EVAL return:1 1 k")
        talk.expect_upstream("EVAL return:1 1 k")
        assert talk.skipped("drop_write") == ["unknown_reply"]
