"""What is sent around a write so that the server computes its reply and keeps nothing, and when that is possible at all.

That the replies are the server's, byte for byte, is shown on real servers (tests/live); here it is what is sent.
"""

import pytest

from chaosproxy.core import swallow
from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.memory import Image
from chaosproxy.core.resp import encode_bulk, encode_command
from chaosproxy.core.swallow import Means

OK = b"+OK\r\n"


def command(text: str | bytes) -> Command:
    args = (text if isinstance(text, bytes) else text.encode()).split()
    return Command.parse(CommandTable.bundled(), args, encode_command(*args))


def test_in_scratch():
    """Copies there, the write as it came, the copies gone, the way back; each key once."""
    plan = swallow.in_scratch(command("SMOVE a b x"), 3, 15)
    assert plan.before == (
        (b"COPY", b"a", b"a", b"DB", b"15", b"REPLACE"),
        (b"COPY", b"b", b"b", b"DB", b"15", b"REPLACE"),
        (b"SELECT", b"15"),
    )
    assert plan.after == ((b"DEL", b"a", b"b"), (b"SELECT", b"3"))
    requests, raws, index = plan.alone()
    assert requests[0] == (b"MULTI",)
    assert requests[-1] == (b"EXEC",)
    assert raws[index] == encode_command(b"SMOVE", b"a", b"b", b"x")
    assert len(swallow.in_scratch(command("SMOVE a a x"), 0, 15).before) == 2
    assert "15" in plan.how


def test_scripts_are_searched_for_what_they_leave():
    """A script may write keys that it does not declare: they are listed before the way back."""
    plan = swallow.in_scratch(command("EVAL x 1 k"), 0, 15)
    assert plan.scans
    assert plan.after[-2][0] == b"SCAN"
    assert swallow.leftovers(b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n") == [b"a", b"b"]
    assert swallow.leftovers(b"-ERR no\r\n") == []
    assert swallow.leftovers(b"*2\r\n:x\r\n*0\r\n") == []


def test_images_take_the_place_of_keys():
    """A key as it was is restored, not copied; one that was not there is nowhere."""
    images = {b"a": Image(b"dump", 99), b"b": Image(None)}
    plan = swallow.in_scratch(command("MGET a b c"), 0, 15, images)
    assert plan.before == (
        (b"COPY", b"c", b"c", b"DB", b"15", b"REPLACE"),
        (b"SELECT", b"15"),
        (b"RESTORE", b"a", b"99", b"dump", b"REPLACE", b"ABSTTL"),
    )
    beside = swallow.on_temporary_keys(command("MGET a b c"), "t", images)
    assert [request[0] for request in beside.before] == [
        b"DEL",
        b"RESTORE",
        b"DEL",
        b"DEL",
        b"COPY",
    ]


@pytest.mark.parametrize("key", [b"k", b"{tag}k", b"a}b", b"{}x", b"a{b", b"", b"x{y}z"])
def test_temporary_keys_stand_beside_the_real_ones(key: bytes):
    """In the same hash slot, and beginning as the key does; never the key itself."""
    plan = swallow.on_temporary_keys(
        Command((b"SET", key, b"v"), b"", CommandTable.bundled().find((b"SET",)), "SET", (1,)),
        "7-1",
    )
    ((temporary, real),) = plan.names
    assert real == key
    assert temporary != key
    assert temporary.startswith(key)
    assert key_slot(temporary) == key_slot(key)
    assert plan.args == (b"SET", temporary, b"v")
    assert plan.before[0] == (b"DEL", temporary)
    assert plan.after == ((b"DEL", temporary),)


def test_real_keys_come_back_in_replies():
    """As bulk strings in replies, as servers shorten them in errors."""
    plan = swallow.on_temporary_keys(command("LMPOP 1 l LEFT"), "7-1")
    ((temporary, _),) = plan.names
    reply = b"*2\r\n" + encode_bulk(temporary) + b"*0\r\n"
    assert plan.restore(reply) == b"*2\r\n" + encode_bulk(b"l") + b"*0\r\n"
    assert (
        plan.restore(b"-NOGROUP No such key '%b'\r\n" % temporary)
        == b"-NOGROUP No such key 'l'\r\n"
    )


@pytest.mark.parametrize(
    ("replies", "proven"),
    [
        ([OK, b":0\r\n", OK], True),
        ([OK, b":1\r\n", OK], False),
        ([b"-ERR DB index is out of range\r\n", b":0\r\n", OK], False),
        ([OK, b":0\r\n", b"-NOPERM\r\n"], False),
        (None, False),
    ],
)
def test_the_gate(replies, proven):
    """The scratch database is used only if it can be selected, is empty, and there is a way back."""
    assert swallow.gate(2, 15) == [(b"SELECT", b"15"), (b"DBSIZE",), (b"SELECT", b"2")]
    assert swallow.proven(replies) is proven


GATE = [OK, b":0\r\n", OK]


@pytest.mark.parametrize(
    ("copied", "deleted", "means"),
    [
        (b":0\r\n", b":0\r\n", Means(scratch=True, selects=True)),
        (
            b"-NOPERM this user has no permissions to run the 'copy' command\r\n",
            b":0\r\n",
            Means(scratch=True, selects=True, copies=False, forbidden=frozenset({"COPY"})),
        ),
        (
            b"-OOM command not allowed\r\n",
            b":0\r\n",
            Means(scratch=True, selects=True, copies=False),
        ),
        (
            b"-NOPERM no permissions to access a key\r\n",
            b"-NOPERM no permissions to access a key\r\n",
            Means(scratch=True, selects=True, restricted=True),
        ),
    ],
)
def test_means(copied: bytes, deleted: bytes, means: Means):
    """What an ACL or the server's state allows is found out before MULTI, not in the client's transaction."""
    assert swallow.means([*GATE, copied, deleted]) == means
    assert means.allow(scratch=True) is means.copies
    assert means.allow(scratch=False) is (means.copies and not means.restricted)


def test_a_stand_in_is_refused_where_the_write_would_be():
    """It names a key in the same slot, has no effect, and needs memory if the write does."""
    given = Means(selects=True)
    request = swallow.stand_in(command("RPUSH {a}k v"), "t", given)
    assert request is not None
    assert request[0] == b"COPY"
    assert request[1] == request[2]
    assert key_slot(request[1] or b"") == key_slot(b"{a}k")
    assert swallow.stand_in(command("DEL k"), "t", given)[0] == b"DEL"
    assert swallow.stand_in(command("FLUSHALL"), "t", given) is not None
    assert swallow.stand_in(command("FLUSHALL"), "t", Means()) is None
    assert swallow.stand_in(command("DEL k"), "t", Means(restricted=True)) is None


def test_transactions():
    """Whether they are allowed, and what was carried out."""
    assert swallow.gate_alone(0, 15)[0] == (b"MULTI",)
    assert swallow.transactions_allowed([OK, b"*1\r\n:1\r\n"])
    assert swallow.transactions_allowed([OK, b"-EXECABORT Transaction discarded\r\n"])
    assert not swallow.transactions_allowed([b"-NOPERM\r\n", b"-ERR EXEC without MULTI\r\n"])
    assert swallow.carried_out([b"*1\r\n:1\r\n"]) == [b":1\r\n"]
    assert swallow.carried_out([b"*-1\r\n", b"-ERR\r\n"]) is None
    assert swallow.carried_out([b"*1\r\n|1\r\n"]) is None


@pytest.mark.parametrize(
    ("text", "queued", "waits"),
    [
        ("BLPOP l 0", False, True),
        ("BLPOP l 0", True, False),
        ("RPUSH l x", False, False),
        ("XREADGROUP GROUP g c STREAMS s >", False, False),
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", False, True),
        ("NOSUCH k", False, False),
    ],
)
def test_waits(text: str, queued: bool, waits: bool):
    """A blocking command may wait, but not in a transaction, and XREADGROUP only with BLOCK."""
    assert swallow.waits(command(text), queued=queued) is waits


def test_nulls():
    """What a blocking command answers in a transaction when it would have to wait."""
    assert all(swallow.is_null(raw) for raw in (b"$-1\r\n", b"*-1\r\n", b"_\r\n"))
    assert not swallow.is_null(b"$1\r\nx\r\n")


@pytest.mark.parametrize(
    ("text", "scratch", "keys"),
    [
        ("RPUSH l x", True, True),
        ("FLUSHALL", False, False),
        ("MOVE k 1", False, False),
        ("COPY a b", True, True),
        ("COPY a b DB 1", False, False),
        ("SORT l STORE d", True, True),
        ("SORT l BY w* STORE d", False, True),
        ("EVAL redis.call('incr',KEYS[1]) 1 k", True, False),
        ("EVAL redis.call('SELECT',1) 1 k", False, False),
        ("EVAL removed 1 k", True, False),
        ("EVALSHA abc 1 k", True, False),
        ("EVAL x 0", False, False),
        ("NOSUCH k", False, False),
    ],
)
def test_computable(text: str, scratch: bool, keys: bool):
    """Not what reaches beyond its keys; scripts only where they can do no harm to keys they do not declare."""
    assert swallow.computable(command(text), scratch=True) is scratch
    assert swallow.computable(command(text), scratch=False) is keys


def test_a_key_that_was_not_kept():
    """A key too large to have been kept is no key to copy; nothing is put in its place."""
    table = CommandTable.bundled()
    plan = swallow.on_temporary_keys(Command.parse(table, (b"MGET", b"a", None), b""), "t")
    ((temporary, real),) = plan.names
    assert plan.args == (b"MGET", temporary, None)
    assert real == b"a"
