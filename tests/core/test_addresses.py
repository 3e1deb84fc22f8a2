r"""Addresses in replies: those of the servers replaced by the proxy's, lengths put right, every other byte as it came.

The replies are what Redis 6.2, 7.0 and 8.2 and Valkey 9 sent, with other ids and ports.
"""

import pytest

from chaosproxy.core import addresses
from chaosproxy.core.value import decode
from tests.conversation import Talk, reply

A, B = b"a" * 40, b"b" * 40


def translate(host, port, *others):
    """Node at 7000 is at 40001 for this client, node at 7001 at 40002, whatever they are called."""
    assert host in {b"", b"127.0.0.1", b"host-a.example", b"::1"}
    # Of several ports the last is the one that is known.
    return b"proxy", [port, *others][-1] - 7000 + 40001


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text)


def verbatim(text):
    return b"=%d\r\ntxt:%s\r\n" % (len(text) + 4, text)


def done(command, raw):
    """What the client gets of a command's reply; that it is still one reply is looked at here."""
    said = addresses.translated(tuple(word.encode() for word in command.split()), raw, translate)
    decode(said)
    return said


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"-MOVED 16287 127.0.0.1:7000\r\n", b"-MOVED 16287 proxy:40001\r\n"),
        (b"-ASK 3300 127.0.0.1:7001\r\n", b"-ASK 3300 proxy:40002\r\n"),
        (b"-REDIRECT 127.0.0.1:7001\r\n", b"-REDIRECT proxy:40002\r\n"),
        (b"-MOVED 1 ::1:7000\r\n", b"-MOVED 1 proxy:40001\r\n"),
        (b"-MOVED 1 host-a.example:7000\r\n", b"-MOVED 1 proxy:40001\r\n"),
        # The host is the one that the client is connected to, and so it is still.
        (b"-MOVED 16287 :7001\r\n", b"-MOVED 16287 :40002\r\n"),
        (b"-MOVED 16287 ?:7001\r\n", b"-MOVED 16287 ?:40002\r\n"),
        (b"-MOVED 16287\r\n", b"-MOVED 16287\r\n"),
        (b"-MOVED 1 h:" + b"7" * 5000 + b"\r\n", b"-MOVED 1 h:" + b"7" * 5000 + b"\r\n"),
        (b"-MOVED 16287 127.0.0.1:x\r\n", b"-MOVED 16287 127.0.0.1:x\r\n"),
        (b"-ERR MOVED 1 127.0.0.1:7000\r\n", b"-ERR MOVED 1 127.0.0.1:7000\r\n"),
        (b"-CLUSTERDOWN The cluster is down\r\n", b"-CLUSTERDOWN The cluster is down\r\n"),
    ],
)
def test_redirections(raw, said):
    """The three errors that say where to go; no other error has an address."""
    assert addresses.redirected(raw, translate) == said


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ('*[ "127.0.0.1" :7000 "id" ]', '*[ "proxy" :40001 "id" ]'),
        ('*[ "127.0.0.1" :7000 "id" *[ ] ]', '*[ "proxy" :40001 "id" *[ ] ]'),
        ('*[ "127.0.0.1" :7000 "id" %[ ] ]', '*[ "proxy" :40001 "id" %[ ] ]'),
        ('*[ "127.0.0.1" :7000 "id" *[ "hostname" "host-a.example" ] ]',
         '*[ "proxy" :40001 "id" *[ "hostname" "proxy" ] ]'),
        ('*[ "host-a.example" :7001 "id" %[ "ip" "127.0.0.1" ] ]',
         '*[ "proxy" :40002 "id" %[ "ip" "proxy" ] ]'),
        ('*[ $-1 :7000 "id" %[ "ip" "127.0.0.1" "hostname" "host-a.example" ] ]',
         '*[ $-1 :40001 "id" %[ "ip" "proxy" "hostname" "proxy" ] ]'),
        ('*[ _ :7000 "id" *[ "hostname" "host-a.example" ] ]',
         '*[ _ :40001 "id" *[ "hostname" "proxy" ] ]'),
        ('*[ $-1 :7000 "id" ]', '*[ $-1 :40001 "id" ]'),
        ('*[ $-1 :7000 "id" *[ ] ]', '*[ $-1 :40001 "id" *[ ] ]'),
        ('*[ "" :7000 "id" *[ "hostname" "" "shard" *[ ] ] ]',
         '*[ "" :40001 "id" *[ "hostname" "" "shard" *[ ] ] ]'),
        ('*[ "?" :7000 "id" *[ "ip" "127.0.0.1" ] ]', '*[ "?" :40001 "id" *[ "ip" "proxy" ] ]'),
    ],
)  # fmt: skip
def test_slots(node, said):
    """CLUSTER SLOTS of all versions: a node's host, port and metadata; a host that is not told stays untold."""
    whole = '*[ *[ :0 :99 {0} *[ "127.0.0.1" :7001 "id" ] ] *[ :100 :16383 {0} ] ]'
    wanted = '*[ *[ :0 :99 {0} *[ "proxy" :40002 "id" ] ] *[ :100 :16383 {0} ] ]'
    assert done("CLUSTER SLOTS", reply(whole.format(node))) == reply(wanted.format(said))
    assert done("cluster slots", reply("*[ ]")) == reply("*[ ]")


@pytest.mark.parametrize("map_", ["*[", "%["])
def test_shards(map_):
    """CLUSTER SHARDS in RESP2 and RESP3: a node's ip, endpoint, hostname and ports, and nothing else of it."""
    raw = """*[ MAP "slots" *[ :0 :7000 ] "nodes" *[
        MAP "id" "a" "port" :7000 "ip" "127.0.0.1" "endpoint" "host-a.example" "hostname" "host-a.example"
            "role" "master" "replication-offset" :7000 "health" "online" ]
        MAP "id" "b" "tls-port" :7001 "ip" "" "endpoint" "" "role" "replica" ]
        MAP "id" "c" "port" :7000 "tls-port" :7001 "ip" "127.0.0.1" "endpoint" "?" ] ] ] ]"""
    said = """*[ MAP "slots" *[ :0 :7000 ] "nodes" *[
        MAP "id" "a" "port" :40001 "ip" "proxy" "endpoint" "proxy" "hostname" "proxy"
            "role" "master" "replication-offset" :7000 "health" "online" ]
        MAP "id" "b" "tls-port" :40002 "ip" "" "endpoint" "" "role" "replica" ]
        MAP "id" "c" "port" :40002 "tls-port" :40002 "ip" "proxy" "endpoint" "?" ] ] ] ]"""
    raw, said = (reply(text.replace("MAP", map_)) for text in (raw, said))
    assert done("CLUSTER SHARDS", raw) == said


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (b"127.0.0.1:7000@17000", b"proxy:40001@17000"),
        (b"127.0.0.1:7000@17000,host-a.example", b"proxy:40001@17000,proxy"),
        (b"127.0.0.1:7000@17000,,shard-id=c0ffee", b"proxy:40001@17000,,shard-id=c0ffee"),
        (b"127.0.0.1:7000@17000,host-a.example,tls-port=0,shard-id=c0",
         b"proxy:40001@17000,proxy,tls-port=0,shard-id=c0"),
        (b"127.0.0.1:7000@17000,shard-id=c0", b"proxy:40001@17000,shard-id=c0"),
        (b":7000@17000", b":40001@17000"),
        (b"::1:7001@17001", b"proxy:40002@17001"),
        (b"127.0.0.1:7000", b"proxy:40001"),
        (b":0@0", b":0@0"),
        (b"-", b"-"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("string", [bulk, verbatim])
def test_nodes(where, said, string):
    """CLUSTER NODES: each line's address and host name, the length of the whole with them, as a bulk or verbatim string."""
    rest = b" myself,master - 0 0 0 connected 0-7000 [7000->-%s]\n" % B
    other = b"%s 127.0.0.1:7001@17001 slave %s 0 1796002440200 0 connected\n"
    raw = A + b" " + where + rest + other % (B, A)
    wanted = (A + b" " + said + rest + other % (B, A)).replace(b"127.0.0.1:7001@", b"proxy:40002@")
    assert done("CLUSTER NODES", string(raw)) == string(wanted)


@pytest.mark.parametrize("word", ["REPLICAS", "SLAVES"])
def test_replicas(word):
    """CLUSTER REPLICAS and SLAVES: lines of CLUSTER NODES, each a string of its own."""
    line = b"%s %s slave %s 0 1796002440200 0 connected"
    raw = b"*2\r\n" + bulk(line % (A, b"127.0.0.1:7000@17000", B)) + bulk(line % (B, b":0@0", A))
    said = b"*2\r\n" + bulk(line % (A, b"proxy:40001@17000", B)) + bulk(line % (B, b":0@0", A))
    assert done(f"CLUSTER {word} {B.decode()}", raw) == said
    assert done(f"CLUSTER {word} x", b"-ERR Unknown node x\r\n") == b"-ERR Unknown node x\r\n"


@pytest.mark.parametrize("string", [bulk, verbatim])
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:7000\r\nmaster_link_status:up\r\n",
         b"role:slave\r\nmaster_host:proxy\r\nmaster_port:40001\r\nmaster_link_status:up\r\n"),
        (b"slave0:ip=127.0.0.1,port=7000,state=online\r\nslave10:ip=host-a.example,port=7001,lag=0\r\n",
         b"slave0:ip=proxy,port=40001,state=online\r\nslave10:ip=proxy,port=40002,lag=0\r\n"),
        (b"# Server\r\ntcp_port:7000\r\n", b"# Server\r\ntcp_port:7000\r\n"),
    ],
)  # fmt: skip
def test_info(lines, said, string):
    """INFO: where the master and the replicas are, and no other number that looks alike."""
    assert done("INFO", string(lines)) == string(said)
    assert done("info replication", string(lines)) == string(said)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('*[ "master" :7000 *[ *[ "127.0.0.1" "7000" "7001" ] *[ "host-a.example" "7001" "0" ] ] ]',
         '*[ "master" :7000 *[ *[ "proxy" "40001" "7001" ] *[ "proxy" "40002" "0" ] ] ]'),
        ('*[ "master" :0 *[ ] ]', '*[ "master" :0 *[ ] ]'),
        ('*[ "slave" "127.0.0.1" :7000 "connected" :7001 ]',
         '*[ "slave" "proxy" :40001 "connected" :7001 ]'),
        ('*[ "sentinel" *[ "mymaster" ] ]', '*[ "sentinel" *[ "mymaster" ] ]'),
        ('*[ "slave" "127.0.0.1" _ "connected" :7001 ]', '*[ "slave" "127.0.0.1" _ "connected" :7001 ]'),
    ],
)  # fmt: skip
def test_role(raw, said):
    """ROLE: a master's replicas, a replica's master."""
    assert done("ROLE", reply(raw)) == reply(said)


@pytest.mark.parametrize(
    ("command", "raw"),
    [
        ("CLUSTER", b"-ERR wrong number of arguments for 'cluster' command\r\n"),
        ("CLUSTER SLOTS", b"-ERR This instance has cluster support disabled\r\n"),
        ("CLUSTER SLOTS", b"+QUEUED\r\n"),
        ("CLUSTER SLOTS", reply("*[ :1 ]")),
        ("CLUSTER SLOTS", reply('*[ *[ :0 :99 *[ "127.0.0.1" "x" "id" ] ] ]')),
        ("CLUSTER SLOTS", reply('*[ *[ :0 :99 *[ :1 :7000 "id" ] ] ]')),
        ("CLUSTER SLOTS", reply("*[ *[ :0 :99 *[ ] ] ]")),
        ("CLUSTER SHARDS", reply('*[ *[ "slots" *[ ] "nodes" ] ]')),
        ("ROLE", reply('*[ "master" ]')),
        ("CLUSTER SLOTS", b"*1\r\n>1\r\n+x\r\n*2\r\n:0\r\n:1\r\n"),
        ("CLUSTER SHARDS", reply('*[ %[ "nodes" *[ %[ "id" "a" ] ] ] ]')),
        ("CLUSTER NODES", b"$-1\r\n"),
        ("CLUSTER MYID", bulk(b"127.0.0.1:7000")),
        ("CLUSTER LINKS", reply('*[ *[ "node" "127.0.0.1:7000" ] ]')),
        ("INFO", b"-NOPERM no\r\n"),
        ("ROLE", b"-NOPERM no\r\n"),
        ("GET k", bulk(b"slave0:ip=127.0.0.1,port=7000")),
        ("CLIENT LIST", bulk(b"laddr=127.0.0.1:7000")),
    ],
)  # fmt: skip
def test_what_is_not_what_it_should_be(command, raw):
    """Errors, other commands, and replies of another shape stay as they are."""
    assert done(command, raw) == raw


# In a conversation.


def test_nothing_where_nobody_translates():
    """A proxy of one server changes no address."""
    with Talk() as talk:
        talk.client("CLUSTER SLOTS", "GET k")
        talk.expect_upstream("CLUSTER SLOTS", "GET k")
        talk.upstream('*[ *[ :0 :9 *[ "127.0.0.1" :7000 "id" ] ] ]', "-MOVED 1 127.0.0.1:7000")
        talk.expect_client('*[ *[ :0 :9 *[ "127.0.0.1" :7000 "id" ] ] ]', "-MOVED 1 127.0.0.1:7000")


@pytest.mark.parametrize("faults", ["", "- {fault: latency, at: after_apply, delay: 1s}"])
def test_in_a_conversation(faults):
    """Replies with addresses are translated in their places, in a pipeline, with and without a rule that looks."""
    with Talk(faults, translate=translate) as talk:
        talk.client("GET k", "CLUSTER SLOTS", "GET k", "ROLE")
        talk.expect_upstream("GET k", "CLUSTER SLOTS", "GET k", "ROLE")
        talk.upstream(
            '"127.0.0.1:7000"',
            '*[ *[ :0 :9 *[ "127.0.0.1" :7000 "id" ] ] ]',
            "-MOVED 1 127.0.0.1:7000",
            '*[ "slave" "127.0.0.1" :7000 "connected" :7 ]',
        )
        if faults:
            for _ in range(4):
                talk.wait(1)
        talk.expect_client(
            '"127.0.0.1:7000"',
            '*[ *[ :0 :9 *[ "proxy" :40001 "id" ] ] ]',
            "-MOVED 1 proxy:40001",
            '*[ "slave" "proxy" :40001 "connected" :7 ]',
        )


def test_in_pieces():
    """Nothing of an address leaves before the whole of it is here, however the bytes come; other replies do."""
    with Talk(translate=translate) as talk:
        talk.client("GET a", "GET b", "CLUSTER NODES")
        talk.expect_upstream("GET a", "GET b", "CLUSTER NODES")
        raw = (
            bulk(b"x" * 20) + b"-MOVED 1 127.0.0.1:7000\r\n" + verbatim(A + b" 127.0.0.1:7001@1\n")
        )
        said = bulk(b"x" * 20) + b"-MOVED 1 proxy:40001\r\n" + verbatim(A + b" proxy:40002@1\n")
        for index in range(len(raw)):
            talk.upstream(raw[index : index + 1])
            if index == 10:
                early = talk.heard("client")
                assert early == said[:11]
        assert early + talk.heard("client") == said


def test_larger_than_may_be_held():
    """A reply with addresses is held to its end however long it is."""
    with Talk(translate=translate, max_buffer=50) as talk:
        talk.client("CLUSTER NODES")
        talk.expect_upstream("CLUSTER NODES")
        raw = bulk((A + b" 127.0.0.1:7001@17001\n") * 10)
        talk.upstream(raw[:300])
        talk.expect_silence()
        talk.upstream(raw[300:])
        talk.expect_client(bulk((A + b" proxy:40002@17001\n") * 10))


@pytest.mark.parametrize("faults", ["", "- {fault: latency, at: after_apply, delay: 1s}"])
def test_in_a_transaction(faults):
    """Queued, a command's element of EXEC's array is translated; an error at queueing is too."""
    slots = '*[ *[ :0 :9 *[ "{}" :{} "id" ] ] ]'
    with Talk(faults, translate=translate) as talk:
        talk.client("MULTI", "CLUSTER SLOTS", "GET k", "CLUSTER MYID", "EXEC")
        if faults:
            talk.expect_upstream("MULTI")
            talk.upstream("+OK")
            for command in ("CLUSTER SLOTS", "GET k", "CLUSTER MYID"):
                talk.expect_upstream(command)
                talk.upstream("+QUEUED")
            talk.expect_upstream("EXEC")
        else:
            talk.expect_upstream("MULTI", "CLUSTER SLOTS", "GET k", "CLUSTER MYID", "EXEC")
            talk.upstream("+OK", "+QUEUED", "+QUEUED", "+QUEUED")
        talk.upstream(f'*[ {slots.format("127.0.0.1", 7000)} "127.0.0.1:7000" "id" ]')
        while faults and talk.conversation.due is not None:
            talk.wait(1)
        talk.expect_client(
            "+OK",
            *["+QUEUED"] * 3,
            f'*[ {slots.format("proxy", 40001)} "127.0.0.1:7000" "id" ]',
        )


def test_refused_in_a_transaction():
    """MOVED as a command is queued, and instead of EXEC's array."""
    with Talk(translate=translate) as talk:
        talk.client("MULTI", "GET k", "EXEC", "MULTI", "GET k", "EXEC")
        talk.expect_upstream("MULTI", "GET k", "EXEC", "MULTI", "GET k", "EXEC")
        talk.upstream(
            "+OK",
            "-MOVED 1 127.0.0.1:7000",
            "-EXECABORT Transaction discarded because of previous errors.",
            "+OK",
            "+QUEUED",
            "-MOVED 1 127.0.0.1:7001",
        )
        talk.expect_client(
            "+OK",
            "-MOVED 1 proxy:40001",
            "-EXECABORT Transaction discarded because of previous errors.",
            "+OK",
            "+QUEUED",
            "-MOVED 1 proxy:40002",
        )


def test_a_rule_on_a_redirection():
    """A rule that looks for a redirection sees it as the client does."""
    rule = "- {fault: reply, match: {reply: {error: MOVED}}, at: after_apply, error: TRYAGAIN}"
    with Talk(rule, translate=translate) as talk:
        talk.client("GET k")
        talk.expect_upstream("GET k")
        talk.upstream("-MOVED 1 127.0.0.1:7000")
        assert talk.heard("client").startswith(b"-TRYAGAIN ")
        talk.expect_fired("reply")


def test_unasked_errors():
    """An error nobody asked for, and a push, have their addresses too, or none."""
    with Talk(translate=translate, protocol=3) as talk:
        talk.upstream('>[ "message" "c" "127.0.0.1:7000" ]')
        talk.expect_client('>[ "message" "c" "127.0.0.1:7000" ]')
        talk.upstream("-MOVED 1 127.0.0.1:7000")
        talk.expect_client("-MOVED 1 proxy:40001")


@pytest.mark.parametrize("error", ["MOVED", "ASK"])
def test_what_the_side_connection_is_told(error):
    """Where a client WATCHes its write is computed there: an error that sends it elsewhere sends it to the proxy's own address."""
    rule = "- {fault: drop_write, match: {commands: SET}, tell: ok}"
    with Talk(rule, translate=translate) as talk:
        talk.handshake("WATCH w", "+OK")
        talk.client("SET a 1")
        talk.side("+OK", "+QUEUED", "+QUEUED", "+QUEUED", "-EXECABORT no")
        there = f"-{error} 15495 127.0.0.1:7000"
        talk.side("+OK", *[there] * 4, "-EXECABORT no")
        talk.expect_client(f"-{error} 15495 proxy:40001")
        talk.expect_fired("drop_write", applied="no", told="error", outcome="fail")
        talk.client("SET a 1")
        talk.side()
        assert talk.heard("client").startswith(b"+OK")
        talk.expect_fired("drop_write", applied="no", told="ok")
