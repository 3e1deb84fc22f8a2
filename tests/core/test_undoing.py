"""Before each write it is asked how its places are: where, when not, and who waits meanwhile."""

import pytest

from chaosproxy.core.effect import LimitReached
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.memory import Image, restore
from tests.conversation import Talk
from tests.failing import Director
from tests.wire import encode

RULE = "- {fault: failover, name: fo, style: managed, lose: {writes: 9}, when: {trigger: manual}}"
DUMPED = ('"v"', ":-1")


#: How often the side connection answers before one that waits at the server lets others write.
PARKED = 4


def fail_over(talk):
    """Let it happen; gives what was lost."""
    director = Director(talk)
    talk.world.engine.by_name["fo"].counter.requests = 1
    director.look()
    assert director.lost is not None
    return director.lost


def put_in_force(talk, rules=RULE):
    """As net/ does it: all are held until what was sent is answered, and nobody goes on before all have been told."""
    talk.world.hold()
    talk.switch(rules)
    for each in talk.clock.talks * 2:  # something else may wake it as well
        each.wake()
    talk.world.go_on()
    for each in talk.clock.talks:
        each.wake()


def hand_over(other, talk):
    """What the other one pushes is taken down, made and answered; then the one that waits has it."""
    other.expect_upstream(*asks("a", "b"), "RPUSH a x")
    other.upstream(*DUMPED * 2, ":1")
    other.expect_client(":1")
    talk.upstream('"x"')
    talk.expect_client('"x"')


def asks(*keys):
    return [f"{name} {key}" for key in keys for name in ("DUMP", "PEXPIRETIME")]


@pytest.mark.parametrize("protocol", [2, 3])
def test_just_ahead(protocol):
    """On the client's own connection, right before the write; the client sees its own reply only."""
    with Talk(RULE, protocol=protocol) as talk:
        talk.client("SET k v", "GET k")
        talk.expect_upstream(*asks("k"), "SET k v", "GET k")
        talk.upstream(*DUMPED, "+OK", '"v"')
        talk.expect_client("+OK", '"v"')
        lost = fail_over(talk)
        assert lost.writes == (("SET", (b"k",)),)
        assert lost.requests == (restore(b"k", Image(b"v")),)


def test_old_servers():
    """Before 7.0 there is no PEXPIRETIME."""
    with Talk(RULE, server=ServerInfo("Redis", (6, 2, 0))) as talk:
        talk.client("SET k v")
        talk.expect_upstream("DUMP k", "PTTL k", "TIME", "SET k v")
        talk.upstream('"v"', ":500", '*["1700000000" "0"]', "+OK")
        talk.expect_client("+OK")
        assert fail_over(talk).requests == (restore(b"k", Image(b"v", 1700000000500)),)


def test_reads_are_not_asked_about():
    """Nor is what the server does not know."""
    with Talk(RULE) as talk:
        talk.client("GET k", "NOSUCH k", "PING")
        talk.expect_upstream("GET k", "NOSUCH k", "PING")
        talk.upstream("$-1", "-ERR unknown command", "+PONG")
        talk.heard("client")
        assert fail_over(talk).writes == ()


def test_what_others_write_waits():
    """Two connections write to one key one after the other, to different keys at once, and one alone as it likes."""
    with Talk(RULE) as talk, talk.another() as other, talk.another() as third:
        talk.client("INCR k", "INCR k")
        talk.expect_upstream(*asks("k"), "INCR k", *asks("k"), "INCR k")
        other.client("INCR k", "GET k")
        third.client("INCR other")
        third.expect_upstream(*asks("other"), "INCR other")
        other.expect_silence()
        talk.upstream(*DUMPED, ":2")
        other.expect_silence()
        talk.upstream(*DUMPED, ":3")
        talk.expect_client(":2", ":3")
        other.expect_upstream(*asks("k"), "INCR k", "GET k")
        other.upstream(*DUMPED, ":4", '"4"')
        other.expect_client(":4", '"4"')
        third.upstream(*DUMPED, ":1")
        third.expect_client(":1")
        assert [keys for _, keys in fail_over(talk).writes] == [(b"k",)] * 3 + [(b"other",)]


def test_what_is_refused_is_no_write():
    """And lets others go on."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client("LPUSH k v")
        other.client("SET k v")
        talk.heard("upstream")
        talk.upstream(*DUMPED, "-WRONGTYPE no list")
        talk.expect_client("-WRONGTYPE no list")
        other.expect_upstream(*asks("k"), "SET k v")
        other.upstream(*DUMPED, "+OK")
        other.expect_client("+OK")
        assert [name for name, _ in fail_over(talk).writes] == ["SET"]


@pytest.mark.parametrize("call", ["EVAL x 1 k", "EVALSHA x 1 k", "FCALL f 1 k"])
@pytest.mark.parametrize("queued", [False, True])
def test_a_script_that_fails(call, queued):
    """What it wrote before its error is undone, though it is no write that was acknowledged."""
    with Talk(RULE) as talk:
        if queued:
            talk.client("MULTI", call, "EXEC")
            talk.upstream("+OK")
            talk.upstream("+QUEUED")
            talk.side(*DUMPED)
            talk.upstream("*[-WRONGTYPE]")
        else:
            talk.client(call)
            talk.upstream(*DUMPED, "-WRONGTYPE")
        talk.heard("upstream")
        talk.heard("client")
        lost = fail_over(talk)
        assert (lost.writes, lost.kept) == ((), ())
        assert lost.puts == (b"k",)


@pytest.mark.parametrize(
    ("command", "reply", "counts"),
    [
        ("SET k v NX", "$-1", False),
        ("SET k v NX", "_", False),
        ("SET k v GET", "$-1", True),
        ("SET k v EX 9 get", '"v"', True),
        ("SET k v XX GET", "$-1", False),
        ("SET k v XX GET", '"v"', True),
        ("SET k v NX GET", "_", True),
        ("SET k v GET NX", '"v"', False),
        ("GETSET k v", "$-1", True),
        ("LPOP k", "$-1", False),
        ("DEL k", ":0", False),
        ("HSET k f v", ":0", True),
        ("SADD k a", ":0", False),
        ("EVAL return 1 k", "$-1", True),
        ("XADD k NOMKSTREAM * a b", "_", False),
        ("INCR k", ":0", True),
    ],
)
def test_what_was_done_in_vain(command, reply, counts):
    """A write that found nothing to do is none that could be lost."""
    command = command.replace("EVAL return 1 k", "EVAL x 1 k")
    with Talk(RULE) as talk:
        talk.client(command)
        talk.expect_upstream(*asks("k"), command)
        talk.upstream(*DUMPED, reply)
        talk.expect_client(reply)
        assert len(fail_over(talk).writes) == counts


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("RENAME a b", "ab"),
        ("SMOVE a b m", "ab"),
        ("SUNIONSTORE a b c", "a"),
        ("SORT a STORE b", "b"),
        ("COPY a b", "b"),
        ("COPY a b REPLACE", "b"),
        ("MSET a 1 b 2", "ab"),
        ("EVAL x 2 a b", "ab"),
        ("LMOVE a b LEFT LEFT", "ab"),
    ],
)
def test_which_keys(command, keys):
    """All that it may change, and none that it only reads."""
    with Talk(RULE) as talk:
        talk.client(command)
        talk.expect_upstream(*asks(*keys), command)
        talk.upstream(*DUMPED * len(keys), "+OK")
        talk.expect_client("+OK")


@pytest.mark.parametrize(
    "command",
    ["SORT a", "SORT a BY w_* GET d_*", "GEORADIUS a 1 1 9 m", "GEORADIUSBYMEMBER a b 9 m"],
)
def test_one_that_only_reads_its_keys(command):
    """It could write, and does not: nothing is asked, nothing is lost by it, and nobody waits for it."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client(command)
        talk.expect_upstream(command)
        other.client("SET a 1")
        other.expect_upstream(*asks("a"), "SET a 1")
        other.upstream(*DUMPED, "+OK")
        other.expect_client("+OK")
        talk.upstream("*[]")
        talk.expect_client("*[]")
        lost = fail_over(talk)
        assert (lost.writes, lost.kept) == ((("SET", (b"a",)),), ())


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("MOVE k 3", [(0, b"k"), (3, b"k")]),
        ("COPY k c DB 3", [(3, b"c")]),
        ("COPY k c REPLACE DB 3", [(3, b"c")]),
    ],
)
def test_another_database(command, places):
    """What goes to another one is asked on the side, and the write waits for that; what came before is answered first."""
    with Talk(RULE) as talk:
        talk.client("GET x", command)
        talk.expect_upstream("GET x")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        for db, key in places:
            assert talk._asked[0].db == db
            assert talk._asked[0].requests[0].endswith(b"%s\r\n" % key)
            talk.expect_silence()
            talk.side(*DUMPED)
        talk.expect_upstream(command)
        talk.upstream(":1")
        talk.expect_client(":1")
        keys = {request for request in fail_over(talk).requests if b"RESTORE" in request}
        assert keys == {restore(key, Image(b"v")) for _, key in places}


@pytest.mark.parametrize("command", ["MOVE k", "MOVE k x", "COPY a b DB x", "COPY a b DB"])
def test_nonsense_is_the_servers(command):
    """What names no database is asked about as it stands; the server refuses it."""
    with Talk(RULE) as talk:
        talk.client(command)
        assert talk.heard("upstream").endswith(command.split()[-1].encode() + b"\r\n")
        talk.upstream(*DUMPED, "-ERR syntax")
        talk.expect_client("-ERR syntax")
        assert fail_over(talk).writes == ()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("FLUSHALL", "sweeps"),
        ("FLUSHDB ASYNC", "sweeps"),
        ("EVAL x 0", "no_keys"),
        ("FUNCTION FLUSH", "no_keys"),
        ("FT.CREATE idx", "no_keys"),
    ],
)
def test_what_cannot_be_undone(command, why):
    """It is carried out and named; nobody else writes meanwhile."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.learn("ft.create")
        talk.client(command)
        talk.expect_upstream(command)
        other.client("SET k v")
        other.expect_silence()
        talk.upstream("+OK")
        talk.expect_client("+OK")
        other.expect_upstream(*asks("k"), "SET k v")
        other.upstream(*DUMPED, "-OOM no")
        other.expect_client("-OOM no")
        lost = fail_over(talk)
        assert (lost.writes, [reason for _, reason in lost.kept]) == ((), [why])


KEEPS = ["FLUSHALL", "FLUSHDB", "EVAL x 0", "FUNCTION FLUSH", "FT.CREATE idx"]


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("command", KEEPS)
def test_what_was_there_before_one_that_cannot_be_undone(command, together, protocol):
    """It stays with that one, which may have built on it; what comes after that is asked about anew, however it was sent, and is undone."""
    name = command.split()[0] if command != KEEPS[3] else "FUNCTION|FLUSH"
    with Talk(RULE, protocol=protocol) as talk:
        talk.learn("ft.create")
        calls = ["SET k 1", command, "SET k 2"]
        for sent in [calls] if together else [[call] for call in calls]:
            talk.client(*sent)
        talk.expect_upstream(*asks("k"), calls[0], command, *asks("k"), calls[2])
        talk.upstream(*DUMPED, "+OK", "+OK", '"w"', ":-1", "+OK")
        talk.expect_client("+OK", "+OK", "+OK")
        lost = fail_over(talk)
    builds = command != KEEPS[3]
    assert [each for each, _ in lost.kept] == [name] + ["SET"] * builds
    assert lost.writes == (("SET", (b"k",)),) * (2 - builds)
    assert lost.requests == (restore(b"k", Image(b"w" if builds else b"v")),)


def test_a_transaction_with_what_cannot_be_undone():
    """It is kept whole: half of a transaction is what no server loses."""
    with Talk(RULE) as talk:
        talk.client("MULTI", "SET k 1", "FLUSHALL", "EXEC")
        for reply in ("+OK", "+QUEUED", "+QUEUED"):
            talk.upstream(reply)
        talk.side(*DUMPED)
        talk.upstream("*[+OK +OK]")
        talk.heard("client")
        talk.heard("upstream")
        lost = fail_over(talk)
    assert (lost.writes, lost.requests) == ((), ())
    assert lost.kept == (("FLUSHALL", "sweeps"), ("SET", "built_on"))


def test_a_script_that_failed_may_have_written_anywhere():
    """It is no acknowledged write, and what was there before it stays."""
    with Talk(RULE) as talk:
        talk.client("SET k 1", "EVAL x 0")
        talk.upstream(*DUMPED, "+OK", "-ERR later")
        talk.heard("client")
        talk.heard("upstream")
        lost = fail_over(talk)
    assert (lost.writes, lost.kept, lost.requests) == ((), (("SET", "built_on"),), ())


def test_one_that_is_gone_may_have_written_anywhere():
    """Nobody has heard whether all was swept away: what was there before stays as it is."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client("SET k 1")
        talk.upstream(*DUMPED, "+OK")
        talk.heard("client")
        other.client("FLUSHALL")
        other.heard("upstream")
        other.client_gone()
        talk.heard("upstream")
        lost = fail_over(talk)
    assert (lost.writes, lost.kept, lost.requests) == ((), (("SET", "built_on"),), ())


def test_swapped_databases():
    """They are swapped back."""
    with Talk(RULE) as talk:
        talk.client("SWAPDB 0 3", "SWAPDB x", "SWAPDB x y")
        talk.expect_upstream("SWAPDB 0 3", "SWAPDB x", "SWAPDB x y")
        talk.upstream("+OK", "-ERR", "-ERR")
        talk.expect_client("+OK", "-ERR", "-ERR")
        assert fail_over(talk).requests[0].split()[2] == b"SWAPDB"


def test_swapped_in_a_transaction():
    """What is written behind the swap is in the other database before it; a swap that is refused is none."""
    with Talk(RULE) as talk:
        talk.client("MULTI", "SWAPDB 0 3", "SET k v", "SWAPDB 0 99", "EXEC")
        talk.upstream("+OK")
        for _ in range(3):
            talk.upstream("+QUEUED")
        asked = {(ask.db, ask.requests[0]) for ask in talk._asked}
        assert {db for db, _ in asked} == {0, 3, 99}
        for _ in asked:
            talk.side(*DUMPED)
        talk.upstream("*[+OK +OK -ERR]")
        talk.heard("client")
        talk.heard("upstream")
        requests = fail_over(talk).requests
        assert requests[0] == encode("SWAPDB", 0, 3)
        assert requests.count(restore(b"k", Image(b"v"))) == 3


def test_too_large():
    """A request that is not held as a whole is not taken down, and that is said."""
    with Talk(RULE, max_buffer=1000) as talk:
        raw = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000\r\n" + b"v" * 2000 + b"\r\n"
        for start in range(0, len(raw), 500):
            talk.client(raw[start : start + 500])
        talk.expect_upstream(raw)
        talk.upstream("+OK")
        talk.expect_client("+OK")
        lost = fail_over(talk)
        assert (lost.writes, lost.kept) == ((), (("SET", "too_large"),))


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_transaction(protocol):
    """Its places are asked about on the side when EXEC comes, in the database that each command runs in; it is one."""
    with Talk(RULE, protocol=protocol) as talk, talk.another() as other:
        talk.client("MULTI", "SET a 1", "SELECT 3", "LPUSH b x", "GET a", "EXEC")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        for queued in ("SET a 1", "SELECT 3", "LPUSH b x", "GET a"):
            talk.expect_upstream(queued)
            talk.upstream("+QUEUED")
        talk.expect_client("+OK", *["+QUEUED"] * 4)
        other.client("SET a 2")
        other.expect_silence()
        assert [(ask.db, b"DUMP" in ask.requests[0]) for ask in talk._asked] == [
            (0, True),
            (3, True),
        ]
        talk.side(*DUMPED)
        talk.expect_silence()
        talk.side("$-1", ":-2")
        talk.expect_upstream("EXEC")
        talk.upstream('*[+OK +OK -WRONGTYPE "1"]')
        talk.expect_client('*[+OK +OK -WRONGTYPE "1"]')
        other.expect_upstream(*asks("a"), "SET a 2")
        other.upstream(*DUMPED, "+OK")
        other.expect_client("+OK")
        assert fail_over(talk).writes == (("SET", (b"a",)),) * 2


@pytest.mark.parametrize("ending", ["DISCARD", "null", "error"])
def test_a_transaction_that_is_none(ending):
    """What was not carried out is no write, and holds nobody up."""
    with Talk(RULE) as talk:
        talk.client("MULTI", "SET a 1")
        talk.upstream("+OK")
        talk.upstream("+QUEUED")
        talk.client("DISCARD" if ending == "DISCARD" else "EXEC")
        if ending != "DISCARD":
            talk.side(*DUMPED)
        talk.upstream({"DISCARD": "+OK", "null": "*-1", "error": "-EXECABORT no"}[ending])
        talk.heard("client")
        talk.heard("upstream")
        talk.client("SET a 2")
        talk.expect_upstream(*asks("a"), "SET a 2")
        talk.upstream(*DUMPED, "+OK")
        talk.expect_client("+OK")
        assert len(fail_over(talk).writes) == 1


def test_a_transaction_begun_before():
    """What was queued before the profile came into force is not known: nobody else writes meanwhile, and it is named."""
    with Talk() as talk, talk.another() as other:
        talk.client("MULTI", "SET a 1")
        talk.upstream("+OK")
        talk.upstream("+QUEUED")
        talk.switch(RULE)
        talk.client("SET b 1", "EXEC")
        talk.upstream("+QUEUED")
        talk.heard("client")
        talk.side(*DUMPED)
        other.client("SET c 1")
        other.expect_silence()
        talk.upstream("*[+OK +OK]")
        talk.heard("client")
        talk.heard("upstream")
        other.heard("upstream")
        other.upstream(*DUMPED, "+OK")
        other.expect_client("+OK")
        lost = fail_over(talk)
        assert lost.kept == (("EXEC", "queued_before"), ("SET", "built_on"))
        assert (lost.writes, lost.puts) == ((("SET", (b"c",)),), (b"c",))


def test_a_transaction_waits_for_others():
    """EXEC waits while another connection writes to one of its keys."""
    with Talk(RULE) as talk, talk.another() as other:
        other.client("SET a 0")
        other.heard("upstream")
        talk.client("MULTI", "SET a 1", "EXEC")
        talk.upstream("+OK")
        talk.upstream("+QUEUED")
        talk.heard("client")
        talk.heard("upstream")
        assert not talk._asked
        other.upstream(*DUMPED, "+OK")
        other.expect_client("+OK")
        talk.side(*DUMPED)
        talk.expect_upstream("EXEC")
        talk.upstream("*[+OK]")
        talk.expect_client("*[+OK]")


def test_who_gives_no_replies():
    """Where the client gets none, the side connection asks; the write counts as applied."""
    with Talk(RULE) as talk:
        talk.client("CLIENT REPLY OFF")
        talk.heard("upstream")
        talk.client("SET a 1")
        talk.side(*DUMPED)
        talk.expect_upstream("SET a 1")
        talk.client("CLIENT REPLY ON", "PING")
        talk.upstream("+OK")
        talk.expect_upstream("CLIENT REPLY ON", "PING")
        talk.upstream("+PONG")
        talk.heard("client")
        assert fail_over(talk).writes == (("SET", (b"a",)),)


def test_the_side_connection_fails():
    """What could not be asked is not known."""
    with Talk(RULE) as talk:
        talk.client("MOVE k 3")
        talk.side()
        talk.side(*DUMPED)
        talk.expect_upstream("MOVE k 3")
        talk.upstream(":1")
        talk.expect_client(":1")
        assert fail_over(talk).kept == (("MOVE", "no_image"),)


def test_one_that_waits():
    """BLPOP holds its keys until it surely waits; then others may write, and what it gets counts with what they gave."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client("BLMOVE a b LEFT LEFT 0")
        talk.expect_upstream(*asks("a", "b"), "BLMOVE a b LEFT LEFT 0")
        talk.upstream(*DUMPED * 2)
        assert talk.conversation.blocked
        assert talk.conversation.quiet
        other.client("RPUSH a x")
        for _ in range(PARKED):
            other.expect_silence()
            talk.side("+PONG")
        hand_over(other, talk)
        lost = fail_over(talk)
        assert [name for name, _ in lost.writes] == ["RPUSH", "BLMOVE"]
        assert len(lost.requests) == 2


@pytest.mark.parametrize("gone", [False, True])
def test_who_went_on_is_heard_first(gone):
    """Before anybody writes where one has waited it is known because of which write that went on."""
    with Talk(RULE) as talk, talk.another() as other, talk.another() as third:
        talk.client("BLPOP a 0")
        talk.upstream(*DUMPED)
        for _ in range(PARKED):
            talk.side("+PONG")
        other.client("RPUSH a x", "RPUSH a y")
        other.expect_upstream(*asks("a"), "RPUSH a x")
        third.client("DEL a")
        other.upstream(*DUMPED, ":1")
        other.expect_client(":1")
        third.expect_silence()
        if gone:
            other.client_gone()
        else:
            other.side("+PONG")
            other.expect_silence()
            talk.upstream('*["a" "x"]')
            other.side("+PONG")
            other.expect_upstream(*asks("a"), "RPUSH a y")
            other.upstream("$-1", ":-2", ":1")
            other.expect_client(":1")
        third.expect_upstream(*asks("a"), "DEL a")
        third.upstream("$-1", ":-2", ":0")
        third.expect_client(":0")
        if gone:
            talk.upstream('*["a" "x"]')
        talk.heard("upstream")
        talk.heard("client")
        names = [name for name, _ in fail_over(talk).writes]
        assert names == (["RPUSH"] if gone else ["RPUSH", "BLPOP", "RPUSH"])


@pytest.mark.parametrize("numbers", ["0 3", "3 0", "5 6"])
def test_given_by_a_swap(numbers):
    """Who swaps the database in which somebody waits may give them what is in the other: both lists are asked about, and they are one."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client("BLPOP a 0")
        talk.upstream(*DUMPED)
        for _ in range(PARKED):
            talk.side("+PONG")
        other.client(f"SWAPDB {numbers}")
        concerned = "0" in numbers
        assert {ask.db for ask in other._asked} == ({0, 3} if concerned else set())
        for _ in range(2 * concerned):
            other.side(*DUMPED)
        other.expect_upstream(f"SWAPDB {numbers}")
        other.upstream("+OK")
        other.expect_client("+OK")
        talk.upstream('*["a" "x"]' if concerned else "*-1")
        lost = fail_over(talk)
        assert [name for name, _ in lost.writes] == ["SWAPDB"] + ["BLPOP"] * concerned
        assert lost.requests[0] == encode("SWAPDB", *numbers.split())
        assert lost.requests.count(restore(b"a", Image(b"v"))) == 2 * concerned
        talk.heard("upstream")
        talk.heard("client")


def test_one_that_has_waited_in_vain_is_gone():
    """Also where another one has waited there all along, and it is answered before it surely waits."""
    with Talk(RULE) as talk, talk.another() as other, talk.another() as third:
        talk.client("BLPOP a 0")
        talk.upstream(*DUMPED)
        for _ in range(PARKED):
            talk.side("+PONG")
        other.client("BLPOP a 0.001")
        other.upstream(*DUMPED, "*-1")
        for _ in range(PARKED + 2):
            other.side("+PONG")
        third.client("LPUSH a x")
        third.expect_upstream(*asks("a"), "LPUSH a x")
        third.upstream(*DUMPED, ":1")
        talk.upstream('*["a" "x"]')
        for each in (talk, other, third):
            each.heard("upstream")
            each.heard("client")
        for _ in range(2):
            third.side("+PONG")
        third.client("LPUSH a y")
        third.expect_upstream(*asks("a"), "LPUSH a y")
        third.upstream(*DUMPED, ":1")
        third.expect_client(":1")
        assert not third._asked, "nobody waits there any more"
        assert len(fail_over(talk).writes) == 3


def test_a_write_behind_one_that_waits():
    """It is not on its way before: who gives that what it waits for may have to write to the same key."""
    with Talk(RULE) as talk, talk.another() as other:
        talk.client("BLPOP a 0", "GET a", "DEL a")
        talk.upstream(*DUMPED)
        talk.expect_upstream(*asks("a"), "BLPOP a 0", "GET a")
        for _ in range(PARKED):
            talk.side("+PONG")
        other.client("RPUSH a x")
        other.expect_upstream(*asks("a"), "RPUSH a x")
        other.upstream(*DUMPED, ":1")
        other.expect_client(":1")
        talk.upstream('*["a" "x"]')
        talk.expect_client('*["a" "x"]')
        talk.expect_silence()
        for _ in range(2):
            other.side("+PONG")
        talk.expect_upstream(*asks("a"), "DEL a")
        talk.upstream("$-1", *DUMPED, ":1")
        talk.expect_client("$-1", ":1")
        assert len(fail_over(talk).writes) == 3


@pytest.mark.parametrize(
    ("waited", "answer", "written"),
    [
        pytest.param(False, '*["a" "x"]', 1, id="it need not wait"),
        pytest.param(True, '*["a" "x"]', 1, id="it waited"),
        pytest.param(True, "*-1", 0, id="it waited in vain"),
    ],
)
def test_whether_one_that_may_wait_has_written(waited, answer, written):
    """What is answered with something is a write like any other, at once or later; with nothing it is none."""
    with Talk(RULE) as talk:
        talk.client("BLPOP a 1")
        talk.expect_upstream(*asks("a"), "BLPOP a 1")
        talk.upstream(*DUMPED)
        for _ in range(PARKED * waited):
            talk.side("+PONG")
        talk.upstream(answer)
        talk.expect_client(answer)
        for _ in range(PARKED * (not waited)):
            talk.side("+PONG")
        assert len(fail_over(talk).writes) == written


def test_who_goes_away():
    """A write whose client is gone may have been applied: what is known of it is undone, and others go on."""
    with Talk(RULE) as talk, talk.another() as other, talk.another() as third:
        talk.client("SET k 1")
        talk.heard("upstream")
        talk.upstream(*DUMPED)
        other.client("SET k 2")
        third.client("SET k 3")
        other.client_gone()
        talk.client_gone()
        third.expect_upstream(*asks("k"), "SET k 3")
        third.upstream('"w"', ":-1", "+OK")
        third.expect_client("+OK")
        lost = fail_over(third)
        assert lost.writes == (("SET", (b"k",)),)
        assert lost.requests == (restore(b"k", Image(b"v")),)


def test_another_fault_ends_it():
    """What Redis never sees is not asked about; what another fault swallows neither."""
    rules = RULE + "\n- {fault: reply, match: {commands: SET}, at: before_forward, error: OOM}"
    with Talk(rules) as talk:
        talk.client("SET k v")
        talk.expect_upstream()
        talk.expect_client("-OOM command not allowed when used memory > 'maxmemory'.")
        assert fail_over(talk).writes == ()


def test_swallowed_in_a_transaction():
    """A queued write that another fault keeps from having an effect changes nothing."""
    rules = RULE + "\n- {fault: reply, match: {commands: SET}, at: before_forward, value: OK}"
    with Talk(rules) as talk:
        talk.client("MULTI", "SET k v", "EXEC")
        talk.upstream("+OK")
        talk.expect_upstream("MULTI", "EXEC")
        talk.upstream("*[]")
        talk.heard("client")
        assert fail_over(talk).writes == ()


def test_nothing_may_be_lost():
    """Without `lose` nothing is asked."""
    with Talk("- {fault: failover, style: managed, when: {trigger: manual}}") as talk:
        talk.client("SET k v")
        talk.expect_upstream("SET k v")
        talk.upstream("+OK")
        talk.expect_client("+OK")


def test_a_waiting_client_in_the_middle():
    """Only a command that is next to be answered, and outside a transaction, is one that somebody waits in."""
    with Talk(RULE) as talk:
        talk.client("XREAD STREAMS s 0", "BLPOP a 0")
        assert not talk.conversation.blocked
        talk.heard("upstream")
        talk.upstream("*-1")
        talk.expect_client("*-1")
        assert not talk.conversation.blocked, "what its keys are is asked first"
        talk.upstream(*DUMPED)
        assert talk.conversation.blocked
        talk.upstream("*-1")
        talk.expect_client("*-1")
        talk.client("MULTI", "BLPOP a 0")
        talk.upstream("+OK")
        assert not talk.conversation.blocked
        talk.upstream("+QUEUED")
        talk.heard("client")
        talk.heard("upstream")


def test_a_command_of_very_many_keys(monkeypatch):
    """Nobody asks what they all are: it is not undone, and that is said."""
    monkeypatch.setattr("chaosproxy.core.undoing.MOST_KEYS", 3)
    with Talk(RULE) as talk:
        talk.client("DEL a b c d")
        talk.expect_upstream("DEL a b c d")
        talk.upstream(":4")
        talk.expect_client(":4")
        assert LimitReached("kept") in talk.effects
        lost = fail_over(talk)
        assert (lost.writes, lost.kept) == ((), (("DEL", "too_large"),))


SLOW = "- {fault: latency, at: before_forward, delay: 0s}"


@pytest.mark.parametrize("before", ["", SLOW, RULE])
@pytest.mark.parametrize("protocol", [2, 3])
def test_one_that_waits_as_the_profile_comes(before, protocol):
    """However it was sent on: who gives it what it waits for asks what all its places are, and the two are lost as one."""
    with Talk(before, protocol=protocol) as talk, talk.another() as other:
        talk.client("BLMOVE a b LEFT LEFT 0")
        if before == RULE:
            talk.upstream(*DUMPED * 2)
            for _ in range(PARKED):
                talk.side("+PONG")
        talk.heard("upstream")
        put_in_force(talk)
        other.client("RPUSH a x")
        hand_over(other, talk)
        for _ in range(2):
            other.side("+PONG")
        lost = fail_over(talk)
        assert lost.writes == (("RPUSH", (b"a",)), ("BLMOVE", (b"a", b"b")))
        assert lost.requests == tuple(restore(key, Image(b"v")) for key in (b"a", b"b"))


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_was_sent_behind_one_that_waits(protocol):
    """It goes on with that: who gives that one what it waits for asks what all is, and all are lost as one."""
    with Talk(SLOW, protocol=protocol) as talk, talk.another() as other:
        talk.client("BLPOP a 0", "SET k 1", "GET k")
        talk.heard("upstream")
        put_in_force(talk)
        other.client("RPUSH a x")
        other.expect_upstream(*asks("a", "k"), "RPUSH a x")
        other.upstream(*DUMPED * 2, ":1")
        other.expect_client(":1")
        talk.upstream('*["a" "x"]', "+OK", '"1"')
        talk.expect_client('*["a" "x"]', "+OK", '"1"')
        for _ in range(2):
            other.side("+PONG")
        lost = fail_over(talk)
    assert lost.writes == (("RPUSH", (b"a",)), ("BLPOP", (b"a",)), ("SET", (b"k",)))
    assert lost.puts == (b"a", b"k")


@pytest.mark.parametrize("heard", ["giver", "waiting"])
@pytest.mark.parametrize("protocol", [2, 3])
def test_what_was_sent_unseen_behind_one_that_waits(protocol, heard):
    """Nobody looked at it then, so what it has written to is not known: it is kept, with what was there before it, and that is said."""
    with Talk(protocol=protocol) as talk, talk.another() as other:
        talk.client("BLPOP a 0", "SET k 1", "SET l 1")
        talk.heard("upstream")
        put_in_force(talk)
        other.client("RPUSH a x")
        other.expect_upstream(*asks("a"), "RPUSH a x")
        other.upstream(*DUMPED)
        if heard == "giver":
            other.upstream(":1")
            other.expect_client(":1")
        talk.upstream('*["a" "x"]', "+OK", "+OK")
        talk.expect_client('*["a" "x"]', "+OK", "+OK")
        if heard == "giver":
            for _ in range(2):
                other.side("+PONG")
        else:
            other.upstream(":1")
            other.expect_client(":1")
        lost = fail_over(talk)
    assert (lost.writes, lost.requests) == ((), ())
    assert set(lost.kept) == {("SET", "no_keys"), ("RPUSH", "built_on"), ("BLPOP", "built_on")}


BEHIND = [
    (SLOW, ["SET k 1"], ["+OK"], (("SET", "no_image"),)),
    (SLOW, ["SET k 1"], ["-OOM"], ()),
    ("", ["SELECT 3", "SET k 1"], ["+OK", "+OK"], (("SET", "no_keys"),)),
    ("", ["MULTI", "SET k 1", "EXEC"], ["+OK", "+QUEUED", "*[+OK]"], (("EXEC", "queued_before"),)),
    ("", ["MULTI", "SET k 1", "DISCARD"], ["+OK", "+QUEUED", "+OK"], ()),
    (SLOW, ["SET k 1", "SET l 1"], ["+OK", "+OK"], (("SET", "no_image"),) * 2),
]


@pytest.mark.parametrize(("before", "behind", "replies", "kept"), BEHIND)
def test_what_was_sent_behind_one_that_waits_in_vain(before, behind, replies, kept):
    """It goes on by itself, and nobody has asked how all was just before that: it is kept, and that is said."""
    with Talk(before) as talk, talk.another() as other:
        talk.client("BLPOP a 0", *behind)
        talk.heard("upstream")
        put_in_force(talk)
        other.client("SET z 1")
        other.heard("upstream")
        other.upstream(*DUMPED, "+OK")
        other.heard("client")
        for reply in ("*-1", *replies):
            talk.upstream(reply)
        talk.heard("client")
        assert fail_over(talk).kept[: len(kept)] == kept


@pytest.mark.parametrize("ending", ["in vain", "gone", "another", "read"])
def test_one_that_waited_as_the_profile_came_is_gone(ending):
    """Then nobody who writes there has to do with it; what only reads has never had to."""
    with Talk() as talk, talk.another() as other:
        talk.client("XREAD BLOCK 0 STREAMS a $" if ending == "read" else "BLPOP a b 0")
        talk.heard("upstream")
        put_in_force(talk)
        put_in_force(talk, RULE if ending == "another" else "")
        put_in_force(talk)
        if ending == "gone":
            talk.client_gone()
        elif ending != "another":
            talk.upstream("*-1")
            talk.expect_client("*-1")
        other.client("RPUSH a x")
        keys = ("a", "b") if ending == "another" else ("a",)
        other.expect_upstream(*asks(*keys), "RPUSH a x")
        other.upstream(*DUMPED * len(keys), ":1")
        other.expect_client(":1")
        if ending == "another":
            talk.upstream('*["a" "x"]')
            talk.heard("client")
            other.side("+PONG")
            other.side("+PONG")
        assert len(fail_over(talk).writes) == len(keys)


@pytest.mark.parametrize(
    ("keys", "why"), [("a b", "no_image"), ("a" * 2000, "no_keys")], ids=["given", "long"]
)
def test_one_that_waits_and_gets_what_nobody_gave(keys, why):
    """What its places were is not known, or not even which they are: it is not undone, and that is said."""
    with Talk() as talk:
        talk.client(f"BLPOP {keys} 0")
        talk.heard("upstream")
        put_in_force(talk)
        talk.upstream('*["a" "x"]')
        talk.heard("client")
        lost = fail_over(talk)
        assert (lost.writes, lost.kept, lost.requests) == ((), (("BLPOP", why),), ())


def test_a_profile_without_a_loss():
    """What waits as it comes into force is asked nothing."""
    with Talk() as talk:
        talk.client("BLPOP a 0")
        talk.heard("upstream")
        put_in_force(talk, RULE.replace("lose: {writes: 9}, ", ""))
        talk.upstream('*["a" "x"]')
        talk.expect_client('*["a" "x"]')


@pytest.mark.parametrize(("later", "lost"), [(0, 0), (8.5, 2)])
def test_one_that_waits_since_before_the_window(later, lost):
    """Nothing is asked as it is sent; it counts once it goes on because of a write that may be lost, and not sooner."""
    rule = "- {fault: failover, name: fo, style: managed, lose: {for: 1s}, when: {from: 10s}}"
    with Talk() as talk, talk.another() as other:
        talk.switch(rule)
        director = Director(talk)
        talk.client("BLPOP a 0")
        talk.expect_upstream("BLPOP a 0")
        talk.wait(later)
        other.client("RPUSH a x")
        other.expect_upstream(*asks("a") * bool(lost), "RPUSH a x")
        other.upstream(*DUMPED * bool(lost))
        talk.wait(0.6)
        other.upstream(":1")
        other.expect_client(":1")
        talk.upstream('*["a" "x"]')
        talk.expect_client('*["a" "x"]')
        for _ in range(lost):
            other.side("+PONG")
        talk.wait(10)
        director.look()
        assert director.lost is not None
        assert (len(director.lost.writes), director.lost.kept) == (lost, ())


@pytest.mark.parametrize("waits", ["before", "since"])
def test_given_by_who_may_write_anywhere(waits):
    """Nobody knows what such a script has given: neither is undone, and that is said of both. Who writes next hears first who went on."""
    with Talk("" if waits == "before" else RULE) as talk, talk.another() as other:
        talk.client("BLPOP a 0")
        if waits == "since":
            talk.upstream(*DUMPED)
            for _ in range(PARKED):
                talk.side("+PONG")
        talk.heard("upstream")
        put_in_force(talk, RULE)
        other.client("EVAL x 0", "RPUSH a y")
        other.expect_upstream("EVAL x 0")
        other.upstream(":1")
        other.expect_client(":1")
        other.expect_silence()
        talk.upstream('*["a" "x"]')
        talk.expect_client('*["a" "x"]')
        other.expect_silence()
        other.side("+PONG")
        other.expect_upstream(*asks("a"), "RPUSH a y")
        other.upstream("$-1", ":-2", ":1")
        other.expect_client(":1")
        other.side("+PONG")
        lost = fail_over(talk)
        assert lost.writes == ()
        assert set(lost.kept) == {("EVAL", "no_keys"), ("BLPOP", "no_image"), ("RPUSH", "no_image")}
