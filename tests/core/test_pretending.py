"""One server as a cluster: each node answers for its slots, sends others away, and the server sees nothing of that."""

import pytest

from chaosproxy.core.slot_map import Seat, SlotMap, encode_text, node_id
from tests.conversation import Talk
from tests.wire import encode

HERE, THERE = "foo", "bar"  # slots 12182 and 5061


def sit(node=1):
    return Seat(b"h", (7000, 7001), node, SlotMap(2))


def check(talk, command, answer):
    """The node answers by itself."""
    talk.client(command)
    talk.expect_client(answer)
    talk.expect_silence()


@pytest.mark.parametrize("protocol", [2, 3])
def test_slots_of_others(protocol):
    """A key of another node's is there; a key of this one, and no key at all, are the server's."""
    with Talk(seat=sit(), protocol=protocol) as talk:
        for command in (f"GET {THERE}", f"SET {THERE} v", f"EVAL x 1 {THERE}", f"BLPOP {THERE} 0"):
            check(talk, command, "-MOVED 5061 h:7000")
        for command in (f"GET {HERE}", "PING", "NOSUCH x"):
            talk.client(command)
            talk.expect_upstream(command)
            talk.upstream("+x")
            talk.expect_client("+x")


def test_several_slots():
    """Keys of several slots go nowhere, be they this node's; keys of one go together."""
    with Talk(seat=sit()) as talk:
        check(
            talk,
            f"MGET {HERE} {THERE}",
            "-CROSSSLOT Keys in request don't hash to the same slot",
        )
        check(talk, f"MGET {THERE} {{{THERE}}}2", "-MOVED 5061 h:7000")
        talk.client(f"MGET {HERE} {{{HERE}}}2")
        talk.expect_upstream(f"MGET {HERE} {{{HERE}}}2")
        talk.upstream("*[ $-1 $-1 ]")
        talk.expect_client("*[ $-1 $-1 ]")


COPYING = "-ERR Copying to another database is not allowed in cluster mode"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("SWAPDB 0 1", "-ERR SWAPDB is not allowed in cluster mode"),
        (f"MOVE {HERE} 1", "-ERR MOVE is not allowed in cluster mode"),
        (f"COPY {HERE} {HERE} DB 1", COPYING),
        (f"COPY {HERE} {HERE} replace db 1", COPYING),
        (f"MOVE {THERE} 1", "-MOVED 5061 h:7000"),
        (f"SORT {HERE} BY w*", "-ERR BY option of SORT denied in Cluster mode."),
        ("REPLICAOF NO ONE", "-ERR REPLICAOF not allowed in cluster mode."),
        (
            "FAILOVER",
            "-ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.",
        ),
        (f"SORT {HERE} BY nosort", None),
        ("SELECT 00", None),
        (f"COPY {HERE} {HERE} DB x", None),
        (f"COPY {HERE} {HERE} DB 1 FOO", None),
        (f"COPY {HERE} {HERE} DB 0", None),
        (f"COPY {HERE} {HERE} DB", None),
        (f"COPY {HERE} {HERE}", None),
    ],
)
def test_other_databases(command, answer):
    """There are none: no key goes there, in a transaction either, where that is found out when it is carried out."""
    with Talk(seat=sit()) as talk:
        if answer is None:
            talk.handshake(command, ":0")
            return
        check(talk, command, answer)
        talk.handshake("MULTI", "+OK")
        moved = answer.startswith("-MOVED")
        talk.client(command)
        talk.expect_client(answer if moved else "+QUEUED")
        if moved:
            talk.heard("upstream")
            talk.upstream("-ERR unknown")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("-EXECABORT no" if moved else "*[]")
        talk.expect_client("-EXECABORT no" if moved else b"*1\r\n%b\r\n" % answer.encode())


@pytest.mark.parametrize("protocol", [2, 3])
def test_channels_of_slots(protocol):
    """Shard channels belong to slots as keys do; channels, messages and no channel at all do not."""
    with Talk(seat=sit(), protocol=protocol) as talk:
        for command in (f"SSUBSCRIBE {THERE}", f"SUNSUBSCRIBE {THERE}", f"SPUBLISH {THERE} {HERE}"):
            check(talk, command, "-MOVED 5061 h:7000")
        no = "-CROSSSLOT Keys in request don't hash to the same slot"
        check(talk, f"SSUBSCRIBE {HERE} {THERE}", no)
        kind = ">" if protocol == 3 else "*"
        talk.handshake(f"SPUBLISH {HERE} {THERE}", ":0")
        talk.handshake(
            "SUNSUBSCRIBE", f'{kind}["sunsubscribe" {"_" if protocol == 3 else "$-1"} :0]'
        )
        talk.handshake(f"PUBLISH {THERE} x", ":0")
        talk.handshake(f"SUBSCRIBE {THERE}", f'{kind}["subscribe" "{THERE}" :1]')


@pytest.mark.parametrize(
    "command",
    [f"GET {THERE} x", "MGET", "ASKING now", "CLUSTER NODES x", "READONLY x", f"SPUBLISH {THERE}"],
)
def test_what_is_no_request(command):
    """What has too many words or too few the server refuses, as it would before it looked at slots; and it is what ASKING was for."""
    with Talk(seat=sit()) as talk:
        check(talk, "ASKING", "+OK")
        talk.handshake(command, "-ERR wrong number of arguments")
        check(talk, f"GET {THERE}", "-MOVED 5061 h:7000")


@pytest.mark.parametrize(
    "command",
    ["SELECT 1", "SWAPDB 0 1", f"MOVE {HERE} 1", f"COPY {HERE} {HERE} DB 1", "READONLY", "ASKING", "CLUSTER MYID", f"CLUSTER KEYSLOT {HERE}"],
)  # fmt: skip
def test_who_subscribed(command):
    """In RESP2 it is sent away as anybody, and the rest is the server's to refuse."""
    with Talk(seat=sit()) as talk:
        talk.handshake("SUBSCRIBE ch", '*["subscribe" "ch" :1]')
        check(talk, f"GET {THERE}", "-MOVED 5061 h:7000")
        talk.handshake(command, "-ERR Can't execute it in this context")


@pytest.mark.parametrize("protocol", [2, 3])
def test_questions(protocol):
    """CLUSTER's questions are answered here; what is not known of is the server's to refuse."""
    with Talk(seat=sit(0), protocol=protocol) as talk:
        check(talk, "CLUSTER MYID", f'"{node_id(0).decode()}"')
        check(talk, f"cluster keyslot {HERE}", ":12182")
        for command, piece in (
            ("CLUSTER SLOTS", b":8191\r\n"),
            ("CLUSTER SHARDS", b"replication-offset"),
            ("CLUSTER NODES", b"myself,master"),
            ("CLUSTER INFO", b"cluster_state:ok"),
        ):
            talk.client(command)
            assert piece in talk.heard("client")
        for command in ("CLUSTER", "CLUSTER KEYSLOT", "CLUSTER COUNTKEYSINSLOT"):
            talk.client(command)
            talk.expect_upstream(command)
            talk.upstream("-ERR no")
            talk.expect_client("-ERR no")


TEXT = "redis_version:7.0.15\r\nredis_mode:%s\r\n# Cluster\r\ncluster_enabled:%d\r\ncluster_enabled:0x\r\n"


def info(protocol, mode, enabled):
    """INFO's reply."""
    return encode_text((TEXT % (mode, enabled)).encode(), protocol)


def hello(protocol, mode):
    """HELLO's reply."""
    kind, count = ("*", 6) if protocol == 2 else ("%", 3)
    return f"{kind}{count}\r\n$5\r\nproto\r\n:{protocol}\r\n$4\r\nmode\r\n{mode}$4\r\nrole\r\n$6\r\nmaster\r\n".encode()


ALONE, AMONG_OTHERS = "$10\r\nstandalone\r\n", "$7\r\ncluster\r\n"


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_the_server_says_of_itself(protocol):
    """It is a node of a cluster, within a transaction too; all else it says is as it came, and so is an error."""
    late = "- {fault: latency, match: {commands: INFO}, at: after_apply, delay: 1ms}"
    with Talk(late, seat=sit(), protocol=protocol) as talk:
        for command, came, left in (
            ("HELLO", hello(protocol, ALONE), hello(protocol, AMONG_OTHERS)),
            ("INFO", "-NOPERM no", "-NOPERM no"),
            ("hello", "-NOPERM no", "-NOPERM no"),
            ("PING standalone", '"mode"', '"mode"'),
            ("info all", info(protocol, "standalone", 0), info(protocol, "cluster", 1)),
        ):
            talk.client(command)
            talk.expect_upstream(command)
            talk.upstream(came)
            talk.wait(0.001)
            talk.expect_client(left)
        talk.handshake("MULTI", "+OK")
        talk.handshake("INFO", "+QUEUED")
        talk.handshake("HELLO", "+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream(b"*2\r\n" + info(protocol, "standalone", 0) + hello(protocol, ALONE))
        talk.wait(0.001)
        talk.expect_client(b"*2\r\n" + info(protocol, "cluster", 1) + hello(protocol, AMONG_OTHERS))
        for _ in range(3):
            talk.expect_fired("latency")


def test_modes_of_a_node():
    """READONLY and READWRITE are known, and there is one database."""
    with Talk(seat=sit()) as talk:
        check(talk, "READONLY", "+OK")
        check(talk, "READWRITE", "+OK")
        check(talk, "SELECT 1", "-ERR SELECT is not allowed in cluster mode")
        talk.client("SELECT 0")
        talk.expect_upstream("SELECT 0")
        talk.upstream("+OK")
        talk.expect_client("+OK")


def test_asking():
    """ASKING opens the node for one command and no more."""
    with Talk(seat=sit()) as talk:
        check(talk, "ASKING", "+OK")
        talk.client(f"GET {THERE}")
        talk.expect_upstream(f"GET {THERE}")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        check(talk, f"GET {THERE}", "-MOVED 5061 h:7000")


def test_transactions():
    """A queued command for another node is refused, and the transaction with it; CLUSTER's questions are queued."""
    with Talk(seat=sit()) as talk:
        talk.client("MULTI")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.client(f"GET {THERE}")
        talk.expect_upstream("CHAOSPROXY.REFUSED")
        talk.upstream("-ERR unknown command")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("-EXECABORT Transaction discarded because of previous errors.")
        talk.expect_client(
            "+OK",
            "-MOVED 5061 h:7000",
            "-EXECABORT Transaction discarded because of previous errors.",
        )
        talk.client("MULTI")
        talk.expect_upstream("MULTI")
        talk.upstream("+OK")
        talk.client("CLUSTER MYID", f"GET {HERE}")
        talk.expect_upstream(f"GET {HERE}")
        talk.upstream("+QUEUED")
        talk.client("EXEC")
        talk.expect_upstream("EXEC")
        talk.upstream("*[ $-1 ]")
        talk.expect_client("+OK", "+QUEUED", "+QUEUED", f'*[ "{node_id(1).decode()}" $-1 ]')


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("moved", [False, True])
def test_a_transaction_in_several_slots(moved, protocol):
    """What is queued is of one slot, else EXEC is refused; so it is once that slot has moved. The next transaction knows nothing of it."""
    seat = sit()
    with Talk(seat=seat, protocol=protocol) as talk:
        talk.handshake("MULTI", "+OK")
        talk.handshake(f"SET {HERE} 1", "+QUEUED")
        if moved:
            seat.heed(b"-MOVED 12182 h:7000\r\n")
        else:
            talk.handshake("INCR qux", "+QUEUED")
        talk.handshake("PING", "+QUEUED")
        no = (
            "-MOVED 12182 h:7000"
            if moved
            else "-CROSSSLOT Keys in request don't hash to the same slot"
        )
        talk.client("EXEC")
        talk.expect_upstream("DISCARD")
        talk.upstream("+OK")
        talk.expect_client(no)
        talk.handshake("MULTI", "+OK")
        talk.handshake("INCR qux", "+QUEUED")
        talk.handshake(
            f"WATCH {HERE if not moved else 'k1'}", "-ERR WATCH inside MULTI is not allowed"
        )
        talk.handshake("EXEC", "*[:1]")
        # Behind what is refused nothing is queued.
        talk.handshake("MULTI", "+OK")
        talk.handshake("NOSUCH" if moved else "GET", "-ERR no")
        talk.handshake("INCR qux", "+QUEUED")
        talk.handshake("INCR k1", "+QUEUED")
        talk.handshake("EXEC", "-EXECABORT Transaction discarded because of previous errors.")


def test_no_reply_wanted():
    """Who has switched replies off gets none from a node either."""
    with Talk(seat=sit()) as talk:
        talk.client("CLIENT REPLY OFF")
        talk.expect_upstream("CLIENT REPLY OFF")
        talk.client(f"GET {THERE}")
        talk.expect_silence()


def test_a_request_too_large_to_be_held():
    """What is on its way to the server already cannot be sent elsewhere."""
    with Talk(seat=sit(), max_buffer=50) as talk:
        raw = encode("SET", THERE, "x" * 500)
        talk.client(raw[:300])
        talk.client(raw[300:])
        talk.expect_upstream(raw)
        talk.upstream("+OK")
        talk.expect_client("+OK")


# Faults.


@pytest.mark.parametrize("at", ["before_forward", "after_apply"])
def test_a_slot_moves(at):
    """MOVED told by a fault is true from then on: the next node has the slot, and this one sends there."""
    rule = f"- {{fault: reply, when: {{nth: 1}}, at: {at}, error: MOVED}}"
    seat = sit()
    with Talk(rule, seat=seat) as talk:
        talk.client(f"GET {HERE}")
        if at == "after_apply":
            talk.expect_upstream(f"GET {HERE}")
            talk.upstream("$-1")
        talk.expect_client("-MOVED 12182 h:7000")
        talk.expect_fired("reply")
        assert seat.slots.owner(12182) == 0
        check(talk, f"GET {HERE}", "-MOVED 12182 h:7000")


def test_a_slot_on_its_way():
    """ASK told by a fault names the next node, and moves nothing."""
    seat = sit()
    with Talk(
        "- {fault: reply, when: {nth: 1}, at: before_forward, error: ASK}", seat=seat
    ) as talk:
        check(talk, f"GET {HERE}", "-ASK 12182 h:7000")
        talk.expect_fired("reply")
        assert seat.slots.owner(12182) == 1


def test_rules_look_at_what_a_node_answers():
    """A redirection is a reply like any other to a rule that looks at replies or delays them."""
    rules = """
- {fault: reply, name: again, match: {reply: {error: MOVED}}, when: {nth: 1}, at: after_apply, error: TRYAGAIN}
- {fault: latency, match: {commands: SET}, at: after_apply, delay: 1s}
"""
    with Talk(rules, seat=sit()) as talk:
        talk.client(f"GET {THERE}")
        assert talk.heard("client").startswith(b"-TRYAGAIN ")
        assert talk.expect_fired("again").applied == "no"
        talk.client(f"SET {THERE} v")
        talk.expect_silence()
        talk.wait(1)
        talk.expect_client("-MOVED 5061 h:7000")
        talk.expect_fired("latency")


@pytest.mark.parametrize(
    "rule",
    [
        "{fault: drop_write, tell: ok}",
        "{fault: expire_key, mode: no_renewal}",
        "{fault: stale_read, behind: 1}",
    ],
)
def test_nothing_is_swallowed_elsewhere(rule):
    """A write that another node would get is not swallowed by this one, nor a read answered from the past."""
    with Talk(f"- {rule}", seat=sit()) as talk:
        for command in (f"SET {THERE} v", f"EXPIRE {THERE} 10", f"GET {THERE}"):
            talk.client(command)
            talk.expect_client("-MOVED 5061 h:7000")
            # What the proxy asks for itself is no write.
            assert b"SET" not in talk.heard("upstream")
        talk.expect_nothing_fired()


def test_what_ends_before_it_is_asked():
    """A fault that answers, cuts or loses the command first comes before the node."""
    with Talk("- {fault: reply, at: before_forward, error: CLUSTERDOWN}", seat=sit()) as talk:
        check(talk, f"GET {THERE}", "-CLUSTERDOWN The cluster is down")
        talk.expect_fired("reply")


def test_a_real_cluster():
    """A client of a real cluster is not answered here; a fault's redirection leads to another of its nodes."""
    seat = Seat(b"h", (7000, 7001), 0)
    with Talk(
        "- {fault: reply, when: {nth: 2}, at: before_forward, error: MOVED}", seat=seat
    ) as talk:
        talk.client(f"GET {HERE}")
        talk.expect_upstream(f"GET {HERE}")
        talk.upstream("$-1")
        talk.expect_client("$-1")
        check(talk, f"GET {HERE}", "-MOVED 12182 h:7001")
        talk.expect_fired("reply")
