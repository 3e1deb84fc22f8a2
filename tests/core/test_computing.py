"""What the server is made to compute: on which keys, on which connection, and when nothing can be computed."""

import pytest

from tests.conversation import GATE, PROVEN, command
from tests.stale import computed, stale


def test_in_the_scratch_database():
    """Keys that have a past are restored, others copied; all of it is gone when EXEC is done."""
    with stale("a") as talk:
        talk.client("MGET a b")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(
            "MULTI", "COPY b b DB 15 REPLACE", "SELECT 15", "RESTORE a 0 old REPLACE ABSTTL", "MGET a b",
            "DEL a b", "SELECT 0", "EXEC",
        )  # fmt: skip
        talk.upstream(computed(":1", "+OK", "+OK", '*["x" "y"]', ":2", "+OK"))
        talk.expect_client('*["x" "y"]')
        talk.expect_fired(
            "stale_read",
            applied="no",
            outcome="ok",
            detail="1 of 2 keys as they were; reply computed in scratch database 15",
        )


@pytest.mark.parametrize(
    "gate",
    [
        ("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[+OK :7 +OK]"),
        ("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[-ERR :0 +OK]"),
        ("+OK", "-NOPERM", "+QUEUED", "-NOPERM", "-EXECABORT no"),
    ],
)
def test_on_temporary_keys(gate):
    """Where the scratch database is not empty, not there, or not allowed; the reply names the real key."""
    with stale("a") as talk:
        talk.client("XREAD STREAMS a 0")
        talk.expect_upstream(*GATE)
        talk.upstream(*gate)
        sent = talk.heard("upstream")
        key = sent.split(b"\r\n")[7].decode()
        expected = ("MULTI", f"DEL {key}", f"RESTORE {key} 0 old REPLACE ABSTTL", f"XREAD STREAMS {key} 0", f"DEL {key}", "EXEC")  # fmt: skip
        assert sent == b"".join(map(command, expected))
        talk.upstream(computed(":0", "+OK", f'*["{key}"]', ":1"))
        talk.expect_client('*["a"]')
        talk.expect_fired("stale_read")


def test_in_the_scratch_database_itself():
    """A client that uses that database has its reads computed on temporary keys."""
    with stale("a", db=15) as talk:
        talk.handshake("SELECT 15", "+OK")
        talk.client("GET a")
        talk.expect_upstream("MULTI", "SELECT 15", "DBSIZE", "SELECT 15", "EXEC")
        talk.upstream(*PROVEN)
        assert b"SELECT" not in talk.heard("upstream")
        talk.upstream(computed(":0", "+OK", '"old"', ":1"))
        talk.expect_client('"old"')
        assert "temporary" in talk.expect_fired("stale_read").detail


@pytest.mark.parametrize(
    ("gate", "answer"),
    [
        (("-NOPERM", "+OK", ":0", "+OK", "-ERR EXEC without MULTI"), None),
        (("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "-LOADING no"), None),
        (PROVEN, ("+OK", "+QUEUED", "-NOPERM restore", *["+QUEUED"] * 3, "-EXECABORT no")),
        (PROVEN, ("+OK", *["+QUEUED"] * 2, "-ERR arity", *["+QUEUED"] * 2, "-EXECABORT no")),
        (PROVEN, ("+OK", *["+QUEUED"] * 5, "*[+OK -ERR $-1 :0 +OK]")),
        (PROVEN, ("+OK", *["+QUEUED"] * 5, "*[+OK]")),
        (PROVEN, ("+OK", *["+QUEUED"] * 5, "*-1")),
        (PROVEN, ("+OK", *["+QUEUED"] * 5, "-LOADING no")),
    ],
)
def test_nothing_can_be_computed(gate, answer):
    """Whatever is not allowed, refused or odd: the command passes as it is, and the server says what there is to say."""
    with stale("a") as talk:
        talk.client("GET a")
        talk.expect_upstream(*GATE)
        talk.upstream(*gate)
        if answer:
            talk.heard("upstream")
            talk.upstream(*answer)
        talk.expect_upstream("GET a")
        talk.upstream('"new"')
        talk.expect_client('"new"')
        assert talk.skipped("stale_read") == ["not_computable"]


def test_aside():
    """On the side connection where an EXEC of ours would end the client's WATCH: after what the client sent before."""
    with stale("a") as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("GET b", "GET a")
        talk.expect_upstream("GET b")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_side(*GATE, db=0)
        talk.side(*PROVEN)
        talk.expect_side(
            "MULTI",
            "SELECT 15",
            "RESTORE a 0 old REPLACE ABSTTL",
            "GET a",
            "DEL a",
            "SELECT 0",
            "EXEC",
        )
        talk.side("+OK", *["+QUEUED"] * 5, '*[+OK +OK "x" :1 +OK]')
        talk.expect_client('"x"')
        talk.expect_fired("stale_read")


#: What a client sends to be somebody, and whether that is the side connection's user, `boss`.
USERS = (
    ((), False),
    ((("AUTH pw", "+OK"),), False),
    ((("AUTH low pw", "+OK"),), False),
    ((("AUTH boss pw", "+OK"),), True),
    ((("AUTH low pw", "+OK"), ("AUTH boss pw", "-WRONGPASS")), False),
    ((("AUTH boss pw", "+OK"), ("AUTH low pw", "+OK")), False),
    ((("AUTH boss pw", "+OK"), ("AUTH pw", "+OK")), False),
    ((("AUTH boss pw", "+OK"), ("RESET", "+RESET")), False),
    ((("HELLO 2 AUTH boss pw", '*["proto" :2]'),), True),
    ((("HELLO 2 AUTH low pw SETNAME boss", '*["proto" :2]'),), False),
    ((("HELLO 2 AUTH boss pw", '*["proto" :2]'), ("HELLO 2", '*["proto" :2]')), True),
)


@pytest.mark.parametrize(("said", "same"), USERS)
@pytest.mark.parametrize("state", ["WATCH w", "MULTI"])
def test_rights(said, same, state):
    """Who is another user than the side connection is told what that reads only if they may read it themselves."""
    with stale("a") as talk:
        talk.world.user = b"boss"
        for each in said:
            talk.handshake(*each)
        talk.handshake(state, "+OK")
        talk.client("GET a")
        if not same:
            talk.side('"User low has no permissions"')
            assert talk.skipped("stale_read") == ["rights"]
        else:
            talk.expect_side(*GATE, db=0)
            talk.side()
            assert talk.skipped("stale_read") == ["not_computable"]
        talk.expect_upstream("GET a")
        talk.upstream("-NOPERM no")
        talk.expect_client("-NOPERM no")


@pytest.mark.parametrize("answers", [0, 1])
def test_the_side_connection_fails(answers):
    """Whether before or after it is known what there is: the read passes as it is, and is told why."""
    with stale("a") as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("GET a")
        if answers:
            talk.side(*PROVEN)
        talk.side()
        talk.expect_upstream("GET a")
        talk.upstream('"new"')
        talk.expect_client('"new"')
        assert talk.skipped("stale_read") == ["not_computable"]


def test_the_line_lets_go_meanwhile():
    """The upstream makes no sense any more: the command passes, and what the side connection says is for nobody."""
    with stale("a") as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("GET a")
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_upstream("GET a")
        talk.expect_client(b"?\r\n")
        talk.side(*PROVEN)
        talk.expect_silence()
        assert talk.skipped("stale_read") == ["raw"]


def test_between_asking_and_its_command():
    """Nothing of ours comes between the two: the read passes as it is."""
    with stale("a") as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("GET a")
        talk.expect_upstream("GET a")
        talk.upstream('"new"')
        talk.expect_client('"new"')
        assert talk.skipped("stale_read") == ["not_computable"]
