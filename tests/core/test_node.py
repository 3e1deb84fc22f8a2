"""What a node of a cluster answers where there is none: as a real one would, to the letter."""

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.fault import ServerInfo
from chaosproxy.core.node import KEYS, listing, sorts_elsewhere, told
from chaosproxy.core.slot_map import Seat, SlotMap, node_id
from tests.conversation import TABLE, Talk, reply

HERE, THERE = 12182, 5061
NEW, OLD = ServerInfo("Redis", (7, 4, 0)), ServerInfo("Redis", (7, 2, 5))
NO_NUMBER = "-ERR value is not an integer or out of range"
NO_SLOT = "-ERR Invalid slot or number of keys"


def sit(node=1):
    return Seat(b"h", (7000, 7001), node, SlotMap(2))


def parsed(text):
    return Command.parse(TABLE, tuple(text.encode().split()), b"")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (f"COUNTKEYSINSLOT {THERE}", ":0"),
        ("COUNTKEYSINSLOT 16384", "-ERR Invalid slot"),
        ("COUNTKEYSINSLOT -1", "-ERR Invalid slot"),
        ("COUNTKEYSINSLOT 007", NO_NUMBER),
        ("COUNTKEYSINSLOT 9223372036854775808", NO_NUMBER),
        (f"GETKEYSINSLOT {THERE} 5", "*[]"),
        (f"GETKEYSINSLOT {HERE} 0", "*[]"),
        (f"GETKEYSINSLOT {HERE} -1", NO_SLOT),
        ("GETKEYSINSLOT 16384 1", NO_SLOT),
        ("GETKEYSINSLOT x 1", NO_NUMBER),
        ("GETKEYSINSLOT 16384 x", NO_NUMBER),
        ("GETKEYSINSLOT 1", None),
        ("COUNTKEYSINSLOT 1 2", None),
        (f"replicas {node_id(0).decode()}", "*[]"),
        (f"SLAVES {node_id(1).decode()}", "*[]"),
        (f"COUNT-FAILURE-REPORTS {node_id(0).decode()}", ":0"),
        ("REPLICAS nobody", "-ERR Unknown node nobody"),
        ("FAILOVER", "-ERR You should send CLUSTER FAILOVER to a replica"),
        ("KEYSLOT foo", f":{HERE}"),
        ("MYID x", None),
        ("NOSUCH", None),
    ],
)
def test_questions(question, answer):
    """None: the server has an error for it."""
    args = tuple(f"CLUSTER {question}".encode().split())
    assert told(sit(), SlotMap(2), args, 2) == (None if answer is None else reply(answer))


@pytest.mark.parametrize("protocol", [2, 3])
def test_keys_of_a_slot(protocol):
    """The server is asked for all of them, in the same place among the commands, and in a transaction too; an error is passed on."""
    count, get = f"CLUSTER COUNTKEYSINSLOT {HERE}", f"cluster getkeysinslot {HERE} 2"
    keys = '*["foo" "bar" "{foo}1" "{foo}2" :1 $-1]'
    with Talk(seat=sit(), protocol=protocol) as talk:
        talk.client("SET foo v", count, get)
        talk.expect_upstream("SET foo v", "KEYS *", "KEYS *")
        talk.upstream("+OK", keys, keys)
        talk.expect_client("+OK", ":3", '*["foo" "{foo}1"]')
        talk.handshake("MULTI", "+OK")
        for question in (count, get, count):
            talk.client(question)
            talk.expect_upstream("KEYS *")
            talk.upstream("+QUEUED")
            talk.expect_client("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[" + keys + keys + ' *["!!"]]')
        talk.expect_client('*[:3 *["foo" "{foo}1"] :0]')
        talk.client(count)
        talk.expect_upstream("KEYS *")
        talk.upstream("-NOPERM no")
        talk.expect_client("-NOPERM no")
    assert listing((b"CLUSTER", b"MYID")) is None
    found = listing((b"CLUSTER", b"COUNTKEYSINSLOT", b"1"))
    assert found is not None
    assert found(b"*1\r\n#x\r\n") == b":0\r\n", "nonsense is no key"
    assert KEYS == (b"KEYS", b"*")


@pytest.mark.parametrize("queued", [False, True])
def test_more_keys_than_may_be_held(queued):
    """Nobody is given the server's keys for the number of them: the connection ends with an error."""
    with Talk(seat=sit(), max_buffer=64) as talk:
        if queued:
            talk.client("MULTI")
            talk.upstream("+OK")
        talk.client(f"CLUSTER COUNTKEYSINSLOT {HERE}")
        if queued:
            talk.upstream("+QUEUED")
            talk.client("EXEC")
        talk.heard("upstream")
        talk.heard("client")
        raw = b"*2\r\n$100\r\n" + b"x" * 100 + b"\r\n$5\r\nx"
        talk.upstream(b"*1\r\n" + raw if queued else raw)
        assert talk.heard("client").startswith(b"-CHAOSPROXY ")
        talk.expect_closed("close")


@pytest.mark.parametrize(
    ("options", "old", "new"),
    [
        ("BY nosort", "", ""),
        ("BY w*", "BY", "BY"),
        ("BY {l}*", "BY", ""),
        ("BY x{l}*", "BY", ""),
        ("BY *{l}", "BY", "BY"),
        ("BY {l*}", "BY", "BY"),
        ("BY {}l*", "BY", "BY"),
        ("GET #", "GET", ""),
        ("get x", "GET", "GET"),
        ("GET l", "GET", ""),
        ("GET {l}*->f", "GET", ""),
        ("ASC LIMIT 0 -1 STORE d alpha GET x", "GET", "GET"),
        ("BY w* FOO", "BY", "BY"),
        ("FOO BY w*", "", ""),
        ("LIMIT 0 x GET y", "", ""),
        ("LIMIT 0", "", ""),
        ("STORE", "", ""),
        ("BY", "", ""),
        ("", "", ""),
    ],
)
def test_sort(options, old, new):
    """Keys that nobody names are read of no other slot; until 7.4 of none. What is wrong before that the server says."""
    command = parsed(f"SORT l {options}")
    more = " when keys formed by the pattern may be in different slots"
    for server, word, why in ((OLD, old, ""), (NEW, new, more)):
        error = reply(f"-ERR {word} option of SORT denied in Cluster mode{why}.")
        assert sorts_elsewhere(command, server) == (error if word else None)


def test_sort_that_only_reads():
    """It knows no STORE."""
    assert sorts_elsewhere(parsed("SORT_RO l STORE d BY w*"), OLD) is None
    assert sorts_elsewhere(parsed("SORT_RO l BY w*"), OLD) is not None
