"""What is not renewed: only what shortens a life, or limits it for the first time, is carried out; the reply is that of the whole."""

import pytest

from chaosproxy.core.fault import ServerInfo
from tests.conversation import GATE, PROVEN, Talk, begin, command, reply

RULE = "- {fault: expire_key, mode: no_renewal}"
CLUSTER = ("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[-ERR :7 +OK]")
OLD = ServerInfo("Redis", (6, 2, 5))
#: The clock of a conversation: seconds since 1970.
CLOCK = 1_000_000_100


def array(*elements: str) -> bytes:
    """An array whose elements are written short."""
    return b"*%d\r\n" % len(elements) + b"".join(map(reply, elements))


def in_scratch(command: str, *parts: str, key: str = "k") -> tuple[str, ...]:
    """All that goes out for a command, in the scratch database."""
    copy = f"COPY {key} {key} DB 15 REPLACE"
    return ("MULTI", copy, *parts, "SELECT 15", command, f"DEL {key}", "SELECT 0", "EXEC")


def both(function):
    """Run a test in RESP2 and RESP3."""
    return pytest.mark.parametrize("protocol", [2, 3])(function)


#: A command, what of it is carried out, the reply to that, the reply of the whole; and whether something lives no longer than before.
WITHHELD = [
    ("EXPIRE k 9", "EXPIRE k 9 LT", ":0", ":1", True),
    ("EXPIRE k 9", "EXPIRE k 9 LT", ":1", ":1", False),
    ("EXPIRE k 9", "EXPIRE k 9 LT", ":0", ":0", False),
    ("PEXPIRE k 9 XX", "PEXPIRE k 9 LT XX", ":0", ":1", True),
    (f"EXPIREAT k {CLOCK + 9}", f"EXPIREAT k {CLOCK + 9} LT", ":0", ":1", True),
    ("EXPIRE k 9 GT", None, None, ":1", True),
    ("EXPIRE k 9 GT", None, None, ":0", False),
    ("HEXPIRE k 9 FIELDS 2 a b", "HEXPIRE k 9 LT FIELDS 2 a b", "*[:1 :0]", "*[:1 :1]", True),
    ("HEXPIRE k 9 FIELDS 2 a b", "HEXPIRE k 9 LT FIELDS 2 a b", "*[:1 :1]", "*[:1 :1]", False),
    ("HEXPIRE k 9 FIELDS 2 a b", "HEXPIRE k 9 LT FIELDS 2 a b", "*[:-2 :-2]", "*[:-2 :-2]", False),
    ("HEXPIRE k 9 FIELDS 2 a b", "HEXPIRE k 9 LT FIELDS 2 a b", ":0", "*-1", False),
    ("HEXPIRE k 9 GT FIELDS 2 a b", None, None, "*[:0 :1]", True),
    ("HEXPIRE k 9 GT FIELDS 2 a b", None, None, "*[:0 :0]", False),
    ("HGETEX k PX 9 FIELDS 2 a b", "HPEXPIRE k 9 LT FIELDS 2 a b", "*[:0 :-2]", '*["1" $-1]', True),
    ("HGETEX k PX 9 FIELDS 2 a b", "HPEXPIRE k 9 LT FIELDS 2 a b", "*[:1 :-2]", '*["1" $-1]', False),
]  # fmt: skip


@both
@pytest.mark.parametrize(("sent", "part", "real", "whole", "acted"), WITHHELD)
def test_alone(sent, part, real, whole, acted, protocol):
    """In one transaction: a copy, the part that is carried out, the whole on the copy; the client gets the reply to that."""
    with Talk(RULE, protocol=protocol) as talk:
        talk.client("PING", sent, "PING")
        talk.expect_upstream("PING", *GATE)
        talk.upstream("+PONG", *PROVEN)
        talk.expect_upstream(*in_scratch(sent, *([part] if part else [])))
        elements = [":1", *([real] if part else []), "+OK", whole, ":1", "+OK"]
        talk.upstream("+OK", *["+QUEUED"] * len(elements), array(*elements))
        talk.expect_upstream("PING")
        talk.upstream("+PONG")
        talk.expect_client("+PONG", whole, "+PONG")
        check(talk, acted)


@both
@pytest.mark.parametrize(("sent", "part", "real", "whole", "acted"), WITHHELD)
def test_in_a_transaction(sent, part, real, whole, acted, protocol):
    """The same inside the client's own; of EXEC's array only the element of the whole is the client's."""
    with Talk(RULE, protocol=protocol) as talk:
        begin(talk)
        talk.client("INCR n", sent)
        talk.expect_upstream("INCR n")
        talk.upstream("+QUEUED")
        out = in_scratch(sent, *([part] if part else []))[1:-1]
        talk.expect_upstream(*out)
        talk.upstream(*["+QUEUED"] * len(out))
        talk.expect_client("+QUEUED", "+QUEUED")
        talk.expect_nothing_fired()
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(array(":7", ":1", *([real] if part else []), "+OK", whole, ":1", "+OK"))
        talk.expect_client(array(":7", whole))
        check(talk, acted)


def reasons(talk: Talk) -> list[str]:
    """Why the rule left commands alone that have a time."""
    return [reason for reason in talk.skipped("expire_key") if reason != "not_applicable"]


def check(talk: Talk, acted: bool) -> None:
    """One event if something would have lived longer, else none."""
    if acted:
        talk.expect_fired("expire_key", applied="no", told="ok", outcome="false_ok")
    else:
        talk.expect_nothing_fired()
    assert reasons(talk) == ([] if acted else ["not_longer"])


def test_without_a_scratch_database():
    """In a cluster: on a temporary key beside the real one, whose time is set in the same transaction."""
    with Talk(RULE) as talk:
        talk.client("EXPIRE k 9")
        talk.expect_upstream(*GATE)
        talk.upstream(*CLUSTER)
        sent = talk.heard("upstream")
        key = sent.split(b"\r\n")[7].decode()
        assert key.startswith("k")
        expected = ("MULTI", f"DEL {key}", f"COPY k {key} REPLACE", "EXPIRE k 9 LT", f"EXPIRE {key} 9", f"DEL {key}", "EXEC")  # fmt: skip
        assert sent == b"".join(map(command, expected))
        talk.upstream("+OK", *["+QUEUED"] * 5, "*[:0 :1 :0 :1 :1]")
        talk.expect_client(":1")
        talk.expect_fired("expire_key", outcome="false_ok")


def test_without_a_scratch_database_in_a_transaction():
    """There, too, the reply is computed on a key of its own in the same database."""
    with Talk(RULE) as talk:
        begin(talk, "-ERR no", ":7", "+OK", ":0", ":0")
        talk.client("EXPIRE k 9")
        sent = talk.heard("upstream")
        assert sent.count(b"EXPIRE") == 2
        assert b"SELECT" not in sent
        talk.upstream(*["+QUEUED"] * 5)
        talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[:0 :1 :0 :1 :1]")
        talk.expect_client("*[:1]")
        check(talk, acted=True)


@pytest.mark.parametrize(
    ("gate", "computed"),
    [
        (["-NOPERM multi", "+OK", ":0", "+OK", "-ERR EXEC without MULTI"], None),
        (PROVEN, ["+OK", "-NOPERM copy", *["+QUEUED"] * 5, "-EXECABORT no"]),
        (PROVEN, ["+OK", *["+QUEUED"] * 6, "*[-ERR :0 +OK :1 :1 +OK]"]),
        (PROVEN, ["+OK", *["+QUEUED"] * 6, "*[+OK]"]),
    ],
)
def test_it_cannot_be_computed(gate, computed):
    """Where the user may not do what that takes, or the server refuses, the command passes as it is."""
    with Talk(RULE) as talk:
        talk.client("EXPIRE k 9")
        talk.expect_upstream(*GATE)
        talk.upstream(*gate)
        if computed:
            talk.expect_upstream(*in_scratch("EXPIRE k 9", "EXPIRE k 9 LT"))
            talk.upstream(*computed)
        talk.expect_upstream("EXPIRE k 9")
        talk.upstream(":1")
        talk.expect_client(":1")
        assert reasons(talk) == ["not_computable"]


def test_copies_are_not_allowed_in_a_transaction():
    """What would spoil the client's transaction does not go into it."""
    with Talk(RULE) as talk:
        begin(talk, "+OK", ":0", "+OK", "-NOPERM no permissions to run the 'copy' command", ":0")
        talk.client("EXPIRE k 9")
        talk.expect_upstream("EXPIRE k 9")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*[:1]")
        assert reasons(talk) == ["not_computable"]


def test_aside_while_the_client_watches():
    """An EXEC of ours would end its WATCH: the side connection carries it, once what came before is answered."""
    with Talk(RULE) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("GET a", "EXPIRE k 9")
        talk.expect_upstream("GET a")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_side(*GATE)
        talk.side(*PROVEN)
        talk.expect_side(*in_scratch("EXPIRE k 9", "EXPIRE k 9 LT"))
        talk.side("+OK", *["+QUEUED"] * 6, "*[:1 :0 +OK :1 :1 +OK]")
        talk.expect_client(":1")
        check(talk, acted=True)


def test_the_side_connection_fails():
    """Whether before or after it is known what there is: the command passes as it is, and is told why."""
    with Talk(RULE) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("EXPIRE k 9", "EXPIRE l 9")
        talk.side()
        talk.expect_upstream("EXPIRE k 9")
        talk.upstream(":1")
        talk.side(*PROVEN)
        talk.side()
        talk.expect_upstream("EXPIRE l 9")
        talk.upstream(":1")
        talk.expect_client(":1", ":1")
        assert reasons(talk) == ["not_computable"] * 2


def test_between_asking_and_its_command():
    """Nothing of ours comes between the two: the command passes as it is."""
    with Talk(RULE) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("EXPIRE k 9")
        talk.expect_upstream("EXPIRE k 9")
        talk.upstream(":1")
        talk.expect_client(":1")
        assert reasons(talk) == ["not_computable"]


def test_without_replies():
    """Where no reply is wanted none is computed: the part goes out in the command's place, and nothing where there is none."""
    with Talk(RULE) as talk:
        talk.client("CLIENT REPLY OFF", "EXPIRE k 9", "EXPIRE k 9 GT", "PING")
        talk.expect_upstream("CLIENT REPLY OFF", "EXPIRE k 9 LT", "PING")
        talk.expect_client()
        talk.expect_fired("expire_key", applied="no", told="nothing", outcome="false_ok")
        talk.expect_fired("expire_key", applied="unknown", told="nothing")


def test_the_client_goes_meanwhile():
    """The command never went to the server, so nothing was kept from it."""
    with Talk(RULE) as talk:
        talk.client("EXPIRE k 9")
        talk.expect_upstream(*GATE)
        talk.client_gone()
        assert reasons(talk) == ["client_gone"]


def test_another_rule_on_the_same_command():
    """Where nothing is held back the events of what came before are told all the same; later rules are ended."""
    late = "- {fault: latency, name: late, at: after_apply, delay: 1s}"
    early = "- {fault: latency, name: early, at: before_forward, delay: 1s}"
    with Talk(f"{early}\n{RULE}\n{late}") as talk:
        talk.client("EXPIRE k 9")
        talk.wait(1.0)
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*in_scratch("EXPIRE k 9", "EXPIRE k 9 LT"))
        talk.upstream("+OK", *["+QUEUED"] * 6, "*[:1 :1 +OK :1 :1 +OK]")
        talk.expect_client(":1")
        talk.expect_fired("early", applied="yes", told="late")
        assert reasons(talk) == ["not_longer"]
        assert talk.skipped("late") == ["ended"]


# --- by the key's time to live ---------------------------------------------------------------------

REWRITTEN = [
    ("SETEX k 9 v", "PSETEX k 2500 v"),
    ("PSETEX k 9000 v", "PSETEX k 2500 v"),
    ("SET k v EX 9 XX", "SET k v XX PX 2500"),
    (f"SET k v EXAT {CLOCK + 9}", "SET k v PX 2500"),
]


@both
@pytest.mark.parametrize(("sent", "goes"), REWRITTEN)
def test_a_value_is_written_with_the_time_that_is_left(sent, goes, protocol):
    """The old value's time is asked for; the new one has no more, and the reply is the server's own."""
    with Talk(RULE, protocol=protocol) as talk:
        talk.client(sent)
        talk.expect_upstream("PTTL k")
        talk.upstream(":2500")
        talk.expect_upstream(goes)
        talk.upstream("+OK")
        talk.expect_client("+OK")
        event = talk.expect_fired("expire_key", applied="yes", told="ok", outcome="ok")
        assert event.detail == "2.5 s to live, as before"


@pytest.mark.parametrize(
    "answer", [":-2", ":-1", ":9000", ":99999", ":0", "-NOPERM no", b":x\r\n", b"*0\r\n"]
)
@pytest.mark.parametrize("sent", [*(sent for sent, _ in REWRITTEN), "GETEX k EX 9"])
def test_nothing_lives_longer(sent, answer):
    """A key that is not there, has no end, or would live longer without it: the command goes out as it came."""
    with Talk(RULE) as talk:
        talk.client(sent)
        talk.expect_upstream("PTTL k")
        talk.upstream(answer)
        talk.expect_upstream(sent)
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert reasons(talk) == ["not_longer"]


@pytest.mark.parametrize(
    ("sent", "info"),
    [
        ("GETEX k EX 9", None),
        ("GETEX k EX 9", OLD),
        ("EXPIRE k 9", OLD),
        ("PEXPIREAT k 99999999999999", OLD),
    ],
)
def test_swallowed(sent, info):
    """GETEX, and all of them before Redis 7.0: what would make the key live longer is swallowed as a whole."""
    with Talk(RULE, server=info) as talk:
        talk.client(sent)
        talk.expect_upstream("PTTL k")
        talk.upstream(":2500")
        talk.expect_upstream(*GATE)
        talk.upstream(*PROVEN)
        talk.expect_upstream(*in_scratch(sent))
        talk.upstream("+OK", *["+QUEUED"] * 5, '*[:1 +OK "v" :1 +OK]')
        talk.expect_client('"v"')
        check(talk, acted=True)


@both
def test_a_value_in_a_transaction(protocol):
    """Asked aside when it is queued, in the database of the transaction."""
    with Talk(RULE, protocol=protocol) as talk:
        begin(talk)
        talk.handshake("SELECT 3", "+QUEUED")
        talk.client("SETEX k 9 v")
        talk.expect_side("PTTL k", db=3, protocol=protocol)
        talk.side(":2500")
        talk.expect_upstream("PSETEX k 2500 v")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*[+OK +OK]")
        talk.expect_fired("expire_key", applied="yes")


def test_a_value_without_replies():
    """Aside too, once what was sent before is answered as far as it will be."""
    with Talk(RULE) as talk:
        talk.client("GET a", "CLIENT REPLY OFF", "SETEX k 9 v")
        talk.expect_upstream("GET a", "CLIENT REPLY OFF")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        talk.expect_side("PTTL k")
        talk.side(":2500")
        talk.expect_upstream("PSETEX k 2500 v")
        talk.expect_fired("expire_key", applied="unknown", told="nothing")


def test_a_value_while_the_side_connection_fails():
    """How much time is left is not known then: the value is written with the time that was asked for."""
    with Talk(RULE) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("SETEX k 9 v")
        talk.expect_side("PTTL k")
        talk.side()
        talk.expect_upstream("SETEX k 9 v")
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert reasons(talk) == ["not_longer"]


def test_the_client_goes_while_the_time_is_asked_for():
    """The answer is for nobody, and the value is not written."""
    with Talk(RULE) as talk:
        talk.handshake("ASKING", "+OK")
        talk.client("SETEX k 9 v")
        talk.client_gone()
        assert reasons(talk) == ["client_gone"]
        talk.side(":2500")
        talk.expect_silence()


def test_raw_while_the_time_is_asked_for():
    """The connection is no longer understood: the command passes as it came, and the answer is for nobody."""
    with Talk(RULE) as talk:
        talk.client("SETEX k 9 v")
        talk.expect_upstream("PTTL k")
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_upstream("SETEX k 9 v")
        talk.expect_client(b"?\r\n")
        assert reasons(talk) == ["raw"]


@pytest.mark.parametrize("sent", ["SETEX k 9 v", "EXPIRE k 9"])
def test_raw_while_the_side_connection_is_asked(sent):
    """What it answers is for nobody then."""
    with Talk(RULE) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.handshake("ASKING" if "SETEX" in sent else "PING", "+OK")
        talk.client(sent)
        assert talk._asked
        talk.upstream(b"?\r\n")
        talk.expect_raw("upstream")
        talk.expect_upstream(sent)
        talk.expect_client(b"?\r\n")
        talk.side(*[":2500"] * (1 if "SETEX" in sent else len(GATE)))
        talk.expect_silence()
        assert reasons(talk) == ["raw"]


def test_a_value_on_a_connection_that_takes_little():
    """A subscriber in RESP2 may send next to nothing: the time is asked for aside, after what came before."""
    with Talk(RULE) as talk:
        talk.handshake("SUBSCRIBE c", '*["subscribe" "c" :1]')
        talk.client("PING", "SETEX k 9 v")
        talk.expect_upstream("PING")
        talk.upstream('*["pong" ""]')
        talk.expect_client('*["pong" ""]')
        talk.expect_side("PTTL k")
        talk.side(":2500")
        talk.expect_upstream("PSETEX k 2500 v")
        talk.upstream("-ERR only (P|S)SUBSCRIBE")
        talk.expect_client("-ERR only (P|S)SUBSCRIBE")
        talk.expect_fired("expire_key", applied="no", told="error")
