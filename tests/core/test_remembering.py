"""What keys were is taken down just before each write, and kept once it was applied: which keys, where, and when not."""

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.effect import LimitReached
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.memory import Image, Memory
from chaosproxy.core.remembering import written_keys
from tests.conversation import GATE, PROVEN, Talk

TABLE = CommandTable.bundled()
RULE = "- {fault: stale_read, behind: 1, match: {commands: '@read', keys: 'k*'}}"


def memory(talk: Talk) -> Memory:
    return talk.world.engine.rules[0].state


def past(talk: Talk, key: bytes = b"k", db: int = 0) -> Image | None:
    """What the key was before its last write."""
    return memory(talk).behind(db, key, 1)


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("SET k v", "k"),
        ("DEL a b a", "a b"),
        ("MSET a 1 b 2", "a b"),
        ("RPOPLPUSH a b", "a b"),
        ("RENAME a b", "a b"),
        ("COPY a b", "b"),
        ("SUNIONSTORE d a b", "d"),
        ("ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d"),
        ("BITOP AND d a b", "d"),
        ("PFMERGE d a b", "d"),
        ("ZRANGESTORE d a 0 -1", "d"),
        ("GEORADIUS a 1 1 1 km STORE d", "d"),
        ("GEORADIUS a 1 1 1 km", ""),
        ("SORT a BY w_* STORE d", "d"),
        ("SORT a", ""),
        ("XREADGROUP GROUP g c STREAMS a b > >", "a b"),
        ("EVAL script 2 a b c", "a b"),
        ("FCALL f 1 a b", "a"),
        ("FLUSHALL", ""),
        ("GET a", ""),
        ("WATCH a", ""),
        ("NOTACOMMAND a", ""),
    ],
)
def test_written_keys(command, keys):
    """Only keys that a write may change, each once; those it only reads have no past for its sake."""
    parsed = Command.parse(TABLE, [word.encode() for word in command.split()], b"")
    assert b" ".join(written_keys(parsed)) == keys.encode()


def test_a_key_too_large_to_be_kept():
    """An argument that was not kept is no key."""
    spec = TABLE.find([b"SUNIONSTORE"])
    assert written_keys(Command((b"SUNIONSTORE", None, b"a"), b"", spec, "SUNIONSTORE", ())) == ()


@pytest.mark.parametrize("protocol", [2, 3])
def test_ahead_of_the_write(protocol):
    """On the same connection, in one piece with the write, so that nothing comes between; the client sees nothing of it."""
    with Talk(RULE, protocol=protocol) as talk:
        talk.client("SET k v", "SET other v", "GET x")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v", "SET other v", "GET x")
        talk.upstream('"dump"', ":1700000000123")
        assert past(talk) is None
        talk.upstream("+OK", "+OK", '"X"')
        talk.expect_client("+OK", "+OK", '"X"')
        assert past(talk) == Image(b"dump", ends=1700000000123)
        assert past(talk, b"other") is None


@pytest.mark.parametrize(
    ("dump", "millis", "image"),
    [
        ('"d"', ":-1", Image(b"d")),
        ("$-1", ":-2", Image(None)),
        ("_", ":-2", Image(None)),
        ('"d"', ":0", Image(b"d", ends=0)),
        ("-NOPERM dump", ":-1", None),
        ('"d"', "-NOPERM pttl", None),
        ('"d"', b":x\r\n", None),
        (":1", ":1", None),
    ],
)
def test_what_the_server_says(dump, millis, image):
    """A key that does not exist is an image too; what an ACL forbids is none."""
    with Talk(RULE) as talk:
        talk.client("SET k v")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.upstream(dump, millis, "+OK")
        talk.expect_client("+OK")
        assert past(talk) == image


@pytest.mark.parametrize(
    ("pttl", "now", "image"),
    [
        (":2500", '*["1700000000" "123456"]', Image(b"d", ends=1700000002623)),
        (":-1", '*["1700000000" "123456"]', Image(b"d")),
        (":2500", "-NOPERM time", None),
        (":2500", '*["1700000000"]', None),
        (":2500", '*["a" "b"]', None),
    ],
)
def test_before_redis_7(pttl, now, image):
    """There a key's end is told by the time it has left, and the time of day."""
    with Talk(RULE, server=ServerInfo("Redis", (6, 2, 5))) as talk:
        talk.client("SET k v")
        talk.expect_upstream("DUMP k", "PTTL k", "TIME", "SET k v")
        talk.upstream('"d"', pttl, now, "+OK")
        talk.expect_client("+OK")
        assert past(talk) == image


@pytest.mark.parametrize(
    ("sent", "waits"), [("GET k", True), ("MGET x k", True), ("GET kk", False), ("SET k w", False)]
)
def test_a_read_behind_a_write(sent, waits):
    """A read of the same key waits until the write is answered; others, and further writes, need not."""
    with Talk(RULE) as talk:
        talk.client("SET k v", sent)
        more = ("DUMP k", "PEXPIRETIME k") if sent == "SET k w" else ()
        before = ("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.expect_upstream(*before, *([] if waits else (*more, sent)))
        talk.upstream("-NOPERM no", ":-1", "+OK")
        if waits:
            talk.expect_upstream(sent)
        talk.upstream(*["$-1"] * len(more), "$-1")
        talk.expect_client("+OK", "$-1")


def test_several_keys():
    """Each is asked about by itself, all ahead of the one write; keys that no rule is about are not."""
    with Talk(RULE) as talk:
        talk.client("MSET k1 a x b k2 c")
        talk.expect_upstream(
            "DUMP k1", "PEXPIRETIME k1", "DUMP k2", "PEXPIRETIME k2", "MSET k1 a x b k2 c"
        )
        talk.upstream('"one"', ":-1", "$-1", ":-2", "+OK")
        talk.expect_client("+OK")
        assert (past(talk, b"k1"), past(talk, b"k2")) == (Image(b"one"), Image(None))


def test_two_rules_that_remember():
    """Each has its own past, of its own keys."""
    two = "\n".join((RULE, RULE.replace("k*", "*").replace("match", "name: other, match")))
    with Talk(two) as talk:
        talk.client("SET k v", "SET x v")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "DUMP k", "PEXPIRETIME k", "SET k v", "DUMP x", "PEXPIRETIME x", "SET x v")  # fmt: skip
        talk.upstream('"d"', ":-1", '"d"', ":-1", "+OK", '"x"', ":-1", "+OK")
        talk.expect_client("+OK", "+OK")
        first, second = (live.state for live in talk.world.engine.rules)
        assert (first.behind(0, b"x", 1), second.behind(0, b"x", 1)) == (None, Image(b"x"))


@pytest.mark.parametrize(
    ("sent", "answer", "kept"),
    [
        # Refused.
        ("INCR k", "-WRONGTYPE no", False),
        ("INCR k", "-OOM no", False),
        ("INCR k", "-MOVED 1 a:1", False),
        # A blocking command that found nothing, and one that found something.
        ("BLPOP k 1", "*-1", False),
        ("BLPOP k 1", "$-1", False),
        ("BLPOP k 1", "_", False),
        ("BLPOP k 1", '*["k" "a"]', True),
        # Null means that there was nothing before.
        ("SET k v GET", "$-1", True),
    ],
)
def test_whether_it_was_written(sent, answer, kept):
    """A write whose answer says that it changed nothing has no past."""
    with Talk(RULE) as talk:
        talk.client(sent)
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", sent)
        talk.upstream('"d"', ":-1", answer)
        talk.expect_client(answer)
        assert past(talk) == (Image(b"d") if kept else None)


def test_in_a_transaction():
    """Aside, as nothing of ours goes into it; kept when EXEC was carried out, since that is when the key changed."""
    with Talk(RULE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET k v")
        talk.expect_side("DUMP k", "PEXPIRETIME k", db=0)
        talk.side('"d"', ":-1")
        talk.expect_upstream("SET k v")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.wait(5.0)
        assert past(talk) is None
        talk.handshake("EXEC", "*[+OK]")
        assert memory(talk).as_of(0, b"k", 104.9) == Image(b"d")
        assert memory(talk).as_of(0, b"k", 105.0) is None


def test_in_a_transaction_of_another_database():
    """It is asked about, and remembered, in the database that the queued SELECT leads to."""
    with Talk(RULE) as talk:
        talk.handshake("SELECT 2", "+OK")
        talk.handshake("MULTI", "+OK")
        talk.handshake("SELECT 3", "+QUEUED")
        talk.client("SET k v")
        talk.expect_side("DUMP k", "PEXPIRETIME k", db=3)
        talk.side('"d"', ":-1")
        talk.expect_upstream("SET k v")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", "*[+OK +OK]")
        assert (past(talk, db=2), past(talk, db=3)) == (None, Image(b"d"))


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        pytest.param(True, "*-1", id="not carried out"),
        pytest.param(True, "-EXECABORT no", id="refused"),
        pytest.param(True, "*[-WRONGTYPE]", id="this one refused"),
        pytest.param(False, "*[+OK]", id="the side connection fails"),
    ],
)
def test_in_a_transaction_with_nothing_to_remember(known, answer):
    """Where nothing was changed, or nobody could say what the key was."""
    with Talk(RULE) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("SET k v")
        talk.expect_side("DUMP k", "PEXPIRETIME k", db=0)
        talk.side(*(['"d"', ":-1"] if known else []))
        talk.expect_upstream("SET k v")
        talk.upstream("+QUEUED")
        talk.expect_client("+QUEUED")
        talk.handshake("EXEC", answer)
        assert past(talk) is None


def test_without_replies():
    """Aside; whether it was applied is not known, and most likely."""
    with Talk(RULE) as talk:
        talk.client("CLIENT REPLY OFF", "SET k v", "SET k w")
        talk.expect_upstream("CLIENT REPLY OFF")
        talk.side('"d"', ":-1")
        talk.expect_upstream("SET k v")
        talk.side('"v"', ":-1")
        talk.expect_upstream("SET k w")
        talk.expect_client()
        assert past(talk) == Image(b"v")


def test_on_a_connection_that_takes_little():
    """Aside, and not before what the client sent is answered."""
    with Talk(RULE) as talk:
        talk.handshake("SUBSCRIBE c", '*["subscribe" "c" :1]')
        talk.client("PING", "SET k v")
        talk.expect_upstream("PING")
        talk.upstream('*["pong" ""]')
        talk.expect_client('*["pong" ""]')
        talk.side('"d"', ":-1")
        talk.expect_upstream("SET k v")
        talk.upstream("-ERR only SUBSCRIBE")
        talk.expect_client("-ERR only SUBSCRIBE")
        assert past(talk) is None


@pytest.mark.parametrize("tell", ["ok", "error", "nothing", "disconnect"])
def test_a_write_that_is_dropped(tell):
    """It is not taken down, as it changes nothing."""
    with Talk(RULE + f"\n- {{fault: drop_write, tell: {tell}}}") as talk:
        talk.client("SET k v")
        if tell == "ok":
            talk.expect_upstream(*GATE)
            talk.upstream(*PROVEN)
            assert b"DUMP" not in talk.heard("upstream")
            talk.upstream("+OK", *["+QUEUED"] * 5, "*[:1 +OK +OK :1 +OK]")
            talk.expect_client("+OK")
        elif tell == "error":
            assert talk.heard("client").startswith(b"-ERR the write was dropped")
        elif tell == "disconnect":
            talk.expect_closed("reset")
        talk.expect_upstream()
        talk.expect_fired("drop_write", applied="no")
        assert past(talk) is None


def test_a_write_that_is_dropped_in_a_transaction():
    """Nor there: its key is asked about neither when it is queued nor at EXEC."""
    with Talk(RULE + "\n- {fault: drop_write, tell: ok}") as talk:
        talk.client("MULTI")
        talk.upstream("+OK", ":0", "+OK", ":0", ":0")
        talk.upstream("+OK")
        talk.client("SET k v")
        assert not talk._asked
        talk.upstream(*["+QUEUED"] * 5)
        talk.client("EXEC")
        talk.upstream("*[:1 +OK +OK :1 +OK]")
        assert talk.heard("client").endswith(b"*1\r\n+OK\r\n")
        assert past(talk) is None
        talk.heard("upstream")
        talk.expect_fired("drop_write")


def test_a_request_that_passes_in_pieces():
    """Nothing of ours goes into the middle of a request that is too large to be held; it is not taken down."""
    with Talk(RULE, max_buffer=1000) as talk:
        whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n" + b"x" * 5000 + b"\r\n"
        talk.client(whole[:4000])
        talk.client(whole[4000:])
        talk.expect_upstream(whole)
        talk.upstream("+OK")
        talk.expect_client("+OK")
        assert past(talk) is None


def test_a_request_that_passes_slowly():
    """Ahead of its first piece, not between two."""
    slow = "- {fault: bandwidth, match: {commands: SET}, rate: 10B/s, direction: to_upstream}"
    with Talk(f"{RULE}\n{slow}") as talk:
        talk.client("SET k v")
        talk.wait(10.0)
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.upstream('"d"', ":-1", "+OK")
        talk.expect_client("+OK")
        assert past(talk) == Image(b"d")
        talk.expect_fired("bandwidth")


def test_a_write_that_is_held_back():
    """Taken down when it goes on, not when it came."""
    slow = "- {fault: latency, match: {commands: SET}, at: before_forward, delay: 1s}"
    with Talk(f"{RULE}\n{slow}") as talk:
        talk.client("SET k v")
        talk.expect_silence()
        talk.wait(1.0)
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.upstream('"d"', ":-1", "+OK")
        talk.expect_client("+OK")
        talk.expect_fired("latency")


@pytest.mark.parametrize(
    ("sent", "kept"), [("FLUSHDB", [1]), ("FLUSHALL", []), ("SWAPDB 0 1", []), ("DEL x", [0, 1])]
)
def test_what_changes_keys_without_naming_them(sent, kept):
    """What was known of them holds no more."""
    with Talk(RULE) as talk:
        for db in (0, 1):
            memory(talk).keep(db, b"k", 1.0, Image(b"d"))
        talk.client(sent)
        talk.upstream("+OK")
        talk.expect_client("+OK")
        talk.heard("upstream")
        assert [db for db in (0, 1) if past(talk, db=db)] == kept


def test_the_client_goes_meanwhile():
    """It is not known whether the write was applied; nothing is kept."""
    with Talk(RULE) as talk:
        talk.client("SET k v")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.upstream('"d"', ":-1")
        talk.client_gone()
        assert past(talk) is None


def test_another_rule_waits_for_the_same_write():
    """What a write's reply meets later does not keep it from being remembered."""
    late = "- {fault: latency, match: {commands: SET}, at: after_apply, delay: 1s}"
    with Talk(f"{RULE}\n{late}") as talk:
        talk.client("SET k v")
        talk.expect_upstream("DUMP k", "PEXPIRETIME k", "SET k v")
        talk.upstream('"d"', ":-1", "+OK")
        assert past(talk) == Image(b"d")
        talk.wait(1.0)
        talk.expect_client("+OK")
        talk.expect_fired("latency")


def test_a_command_of_very_many_keys(monkeypatch):
    """It is not asked what they all are: a memory has no place for so many."""
    monkeypatch.setattr("chaosproxy.core.remembering.MOST_KEYS", 3)
    with Talk(RULE) as talk:
        talk.client("DEL k1 k2 k3 k4")
        talk.expect_upstream("DEL k1 k2 k3 k4")
        talk.upstream(":4")
        talk.expect_client(":4")
        assert not memory(talk).size


@pytest.mark.parametrize("queued", [False, True])
def test_images_that_are_too_large_together(queued):
    """Of one command's keys, or of a whole transaction's, so much is held as of one reply."""
    with Talk(RULE, max_buffer=1000) as talk:
        dump = '"' + "x" * 400 + '"'
        if queued:
            talk.handshake("MULTI", "+OK")
            for number in range(3):
                talk.client(f"SET k{number} 1")
                talk.side(dump, ":-1")
                talk.expect_upstream(f"SET k{number} 1")
                talk.upstream("+QUEUED")
                talk.expect_client("+QUEUED")
            talk.client("EXEC")
            talk.expect_upstream("EXEC")
            talk.upstream("*[+OK +OK +OK]")
            talk.expect_client("*[+OK +OK +OK]")
        else:
            talk.client("MSET k0 1 k1 1 k2 1")
            talk.heard("upstream")
            talk.upstream(dump, ":-1", dump, ":-1", dump, ":-1", "+OK")
            talk.expect_client("+OK")
        known = [past(talk, b"k%d" % number) is not None for number in range(3)]
        assert known[0]
        assert not known[-1]
        assert LimitReached("kept") in talk.effects
