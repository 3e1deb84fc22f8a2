"""`stale_read` on real servers: every read of every type is answered byte for byte as before the writes, and nothing is changed.

Takes every kind of server, alone and as a cluster of one node; gives proof by the replies that the server itself gave then.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.reply import elements
from tests import servers
from tests.busy import within
from tests.calls import SETUP, SETUP_NEWER, Call
from tests.proxying import RunningProxy, serve_proxy, wait_for
from tests.servers import Server
from tests.tools.make_command_table import command_reply
from tests.wire import Wire, WireError, decode, encode

both = pytest.mark.parametrize("resp", [2, 3])

READS: tuple[Call, ...] = (
    *(tuple(line.split()) for line in """
    BITCOUNT str
    BITCOUNT str 1 -2
    BITFIELD_RO str GET u8 0 GET i5 9
    BITPOS str 1
    DUMP str
    EXISTS str none l
    EXPIRETIME str
    GEODIST geo Palermo Catania km
    GEOHASH geo Palermo none
    GEOPOS geo Palermo none Catania
    GEORADIUSBYMEMBER_RO geo Palermo 200 km WITHDIST
    GEORADIUS_RO geo 15 37 200 km WITHDIST WITHCOORD
    GEOSEARCH geo FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHDIST
    GET str
    GETBIT str 2
    GETRANGE str 1 3
    HEXISTS h f
    HEXPIRETIME ht FIELDS 2 f g
    HGET h f
    HGETALL h
    HKEYS h
    HLEN h
    HMGET h f none g
    HPEXPIRETIME ht FIELDS 2 f g
    HPTTL h FIELDS 1 f
    HSCAN h 0
    HSTRLEN h f
    HTTL ht FIELDS 3 f g none
    HVALS h
    LCS str n
    LCS str n LEN
    LCS str n IDX
    LINDEX l 1
    LLEN l
    LPOS l a
    LPOS l a COUNT 0
    LRANGE l 0 -1
    MGET str none n
    OBJECT ENCODING l
    OBJECT ENCODING n
    OBJECT REFCOUNT l
    PEXPIRETIME str
    PFCOUNT p1
    PFCOUNT p1 p2
    PTTL str
    SCARD s
    SDIFF s s2
    SINTER s s2
    SINTERCARD 2 s s2
    SISMEMBER s a
    SMEMBERS s
    SMEMBERS digits
    SMISMEMBER s a none
    SORT_RO digits
    SORT_RO l ALPHA DESC
    SORT_RO digits BY w_* GET # GET o_*
    SSCAN s 0
    STRALGO LCS KEYS str n
    STRLEN str
    SUBSTR str 0 1
    SUNION s s2
    TOUCH str none
    TTL l2
    TTL str
    TYPE z
    VCARD v
    VDIM v
    VEMB v one
    VGETATTR v one
    VISMEMBER v one
    VLINKS v one
    VSIM v ELE one WITHSCORES
    XINFO GROUPS x
    XINFO STREAM x
    XLEN x
    XPENDING x grp
    XRANGE x - +
    XRANGE x 2-1 + COUNT 1
    XREAD COUNT 2 STREAMS x 0
    XREAD STREAMS x none 1-1 0
    XREVRANGE x + -
    ZCARD z
    ZCOUNT z 1 2
    ZDIFF 2 z z2 WITHSCORES
    ZINTER 2 z z2 WITHSCORES
    ZINTERCARD 2 z z2
    ZLEXCOUNT z - +
    ZMSCORE z a none
    ZRANGE z 0 -1 WITHSCORES
    ZRANGE z 1 2 BYSCORE REV
    ZRANGEBYLEX z - +
    ZRANGEBYSCORE z 1 2 WITHSCORES LIMIT 0 1
    ZRANK z b
    ZREVRANGE z 0 -1
    ZREVRANGEBYLEX z + -
    ZREVRANGEBYSCORE z 3 1
    ZREVRANK z b
    ZSCAN z 0
    ZSCORE z c
    ZUNION 2 z z2 WEIGHTS 1 2
    LLEN str
    GET l
    XRANGE x - + COUNT none
    GET str str
    """.strip().splitlines()),
    ("EVAL_RO", "return {redis.call('GET', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1)}", "2", "str", "l"),
    ("EVALSHA_RO", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "str"),
    ("FCALL_RO", "stale_f", "1", "str"),
)  # fmt: skip
#: What their replies say depends on more than the key: on chance, on when it was looked at last, on how many there were before.
ELSEWHERE = {
    "HRANDFIELD", "MEMORY|USAGE", "OBJECT|FREQ", "OBJECT|IDLETIME", "SRANDMEMBER", "VRANDMEMBER", "XINFO|CONSUMERS",
    "VINFO", "ZRANDMEMBER", "CLUSTERSCAN",
}  # fmt: skip
#: Sets have no order, and RESTORE makes them anew; their members are the same.
UNORDERED = {"SMEMBERS", "SSCAN", "SUNION", "SDIFF", "SINTER"}
#: Their replies are times left, which run down; of those a busy machine may let so much go by between two looks.
LEFT = {"TTL": 30, "PTTL": 30_000, "HTTL": 30, "HPTTL": 30_000}
TIME = re.compile(rb"(?<=:)[1-9][0-9]{2,}(?=\r)")
LIBRARY = "#!lua name=stale\nredis.register_function{function_name='stale_f', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}"


def profile(how: str, match: str = "") -> str:
    return f"faults:\n  - {{fault: stale_read, {how}, match: {{{match}}}}}\n"


@contextmanager
def proxied(server: Server, text: str, resp: int = 2) -> Iterator[tuple[RunningProxy, Wire]]:
    with serve_proxy(server.url, text) as proxy, proxy.connect(resp=resp) as client:
        yield proxy, client


class Bench:
    """A server's own data and words: on a cluster all keys share a hash tag."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.table = CommandTable.from_reply(command_reply(server), CommandTable.bundled())

    def parse(self, call: Call) -> Command:
        return Command.parse(self.table, [word.encode() for word in call], b"")

    def tagged(self, call: Call) -> Call:
        if not self.server.cluster:
            return call
        words = list(call)
        for position in self.parse(call).key_positions:
            words[position] = "{t}" + words[position]
        if call[0] == "SORT_RO":  # its patterns name keys
            words = [word for word in words if "_*" not in word and word not in ("BY", "GET", "#")]
        return tuple(words)

    def fill(self) -> None:
        """Put the data there, as if it had always been."""
        library = ("FUNCTION", "LOAD", "REPLACE", LIBRARY)
        calls = [("FLUSHALL",), *map(self.tagged, (*SETUP, *SETUP_NEWER)), library]
        calls += [("SET", "w_1", "2"), ("SET", "o_1", "one"), ("EXPIRE", "str", "5000")] * (
            not self.server.cluster
        )
        self.server.control.send_bytes(b"".join(encode(*call) for call in calls))
        self.server.control.read(len(calls))

    @property
    def reads(self) -> list[Call]:
        """Those this server knows."""
        return [self.tagged(call) for call in READS if self.parse(call).spec is not None]

    def digest(self) -> object:
        return self.server.ask("DEBUG", "DIGEST")


BENCHES = [(name, cluster) for name in servers.NAMES for cluster in (False, True)]


@pytest.fixture(
    scope="module",
    params=BENCHES,
    ids=[f"{name}{'-cluster' * cluster}" for name, cluster in BENCHES],
)
def bench(request) -> Iterator[Bench]:
    name, cluster = request.param
    if reason := servers.available(name):
        pytest.skip(reason)
    server = servers.start_cluster_node(name) if cluster else servers.start(name)
    yield Bench(server)
    server.stop()


def test_every_read(bench):
    """No read with keys that a server knows is left out, but those whose replies depend on more than the key."""
    tried = {bench.parse(call).name for call in bench.reads}
    known = {
        name
        for name, spec in bench.table.specs.items()
        if "readonly" in spec.flags and spec.key_specs
    }
    containers = {name for name in known if any(other.startswith(name + "|") for other in known)}
    assert known - tried - ELSEWHERE - containers == set()


@both
@pytest.mark.parametrize("write", ["DEL", "SET", "of its type"])
@pytest.mark.parametrize("queued", [False, True])
def test_byte_for_byte(bench, resp, write, queued):
    """As the server answered before the write, in and out of MULTI; and neither the read nor what it takes changes anything."""
    server = bench.server
    failures, told = [], 0
    with proxied(server, profile("behind: 1"), resp) as (proxy, client):
        with server.connect(resp=resp) as direct:
            for call in bench.reads:
                bench.fill()
                expected = direct.raw(*call)
                if queued:
                    expected = in_transaction(direct, call)
                keys = [key.decode() for key in bench.parse(call).keys if server.ask("EXISTS", key)]
                for key in keys:
                    assert not isinstance(client.ask(*change(server, write, key)), WireError)
                before = bench.digest()
                got = in_transaction(client, call) if queued else client.raw(*call)
                if not same(call, got, expected):
                    failures.append((call, expected, got))
                assert bench.digest() == before, call
                assert b"db15" not in server.ask("INFO", "keyspace")
                told += bool(keys)
        assert failures == []
        # What the server would not even queue it is left to say itself: one of the calls.
        events = proxy.wait_events(told - 1)
        assert len(events) == told - 1
        assert proxy.metric("faults_skipped_total", reason="not_computable") == 1
        assert {(event["outcome"], event["applied"]) for event in events} == {("ok", "no")}


def in_transaction(wire: Wire, call: Call) -> bytes:
    """The reply to a call alone in a transaction: EXEC's array, or the refusals."""
    wire.send_bytes(encode("MULTI") + encode(*call) + encode("EXEC"))
    return b"".join(wire.read(3)[1:])


def change(server: Server, write: str, key: str) -> Call:
    """A write after which the key is another one."""
    if write != "of its type":
        return (write, key, "changed")[: 3 if write == "SET" else 2]
    match server.ask("TYPE", key):
        case "string" if key.endswith(("p1", "p2")):
            return ("PFADD", key, "more", "and", "more")
        case "string":
            return ("SETRANGE", key, "0", "zz")
        case "list":
            return ("RPUSH", key, "more")
        case "set":
            return ("SADD", key, "more", "9")
        case "zset":
            return ("ZADD", key, "2.5", "more")
        case "hash":
            return ("HSET", key, "f", "other", "more", "1")
        case "stream":
            return ("XADD", key, "9-9", "more", "1")
        case _:
            return ("VADD", key, "VALUES", "3", "1", "1", "1", "more")


def same(call: Call, got: bytes, expected: bytes) -> bool:
    """Whether two replies are the same; milliseconds left go by between them, and sets have no order."""
    if call[0] in UNORDERED:
        return sorted(got.split(b"\r\n")) == sorted(expected.split(b"\r\n"))
    if got == expected:
        return True
    if call[0] not in LEFT or TIME.sub(b"", got) != TIME.sub(b"", expected):
        return False
    numbers = zip(TIME.findall(expected), TIME.findall(got), strict=True)
    # One more where that was rounded.
    return all(-1 <= int(before) - int(after) < LEFT[call[0]] for before, after in numbers)


@both
def test_so_many_writes_behind(bench, resp):
    """Each of a row of writes is seen that many reads of the past later; a key that was not there then is not."""
    server = bench.server
    server.ask("FLUSHALL")
    with (
        proxied(server, profile("behind: 3"), resp) as (_, client),
        server.connect(resp=resp) as direct,
    ):
        history = [direct.raw("LRANGE", "l", 0, -1)]
        for number in range(8):
            client.ask("RPUSH", "l", number)
            history.append(direct.raw("LRANGE", "l", 0, -1))
            assert client.raw("LRANGE", "l", 0, -1) == history[max(0, len(history) - 4)]
        client.ask("DEL", "l")
        client.ask("SET", "l", "v")
        assert client.raw("LRANGE", "l", 0, -1) == history[-2]
        client.ask("APPEND", "l", "w")
        assert client.raw("LRANGE", "l", 0, -1) == history[-1]
        assert client.raw("GET", "l")[:10] == b"-WRONGTYPE"
        client.ask("APPEND", "l", "w")
        assert client.raw("TYPE", "l") == b"+none\r\n"


def test_a_lag(bench):
    """A write is seen by readers once the lag has passed since it, not before, and from then on."""
    server = bench.server
    server.ask("FLUSHALL")
    with proxied(server, profile("lag: 400ms")) as (_, client):

        def watch(key: str) -> bool:
            """Write, and look until that is seen; gives whether it was not seen before."""
            start = time.monotonic()
            client.ask("SET", key, "one")
            written = time.monotonic()
            was_unseen = False
            while True:
                before = time.monotonic()
                value = client.ask("GET", key)
                if value is not None:
                    assert value == b"one"
                    assert time.monotonic() > start + 0.4
                    return was_unseen
                assert before < written + 0.4 + 0.05
                was_unseen = True

        # A busy machine may look for the first time when the lag is over.
        assert any(watch(f"k{number}") for number in range(10))
        # Unchanged since: it is read as it is, however often.
        assert client.ask("GET", "k0") == b"one"


@within(1)
def test_its_time_to_live(bench):
    """A key is from the past with the life it would have left by now, as on a replica; a key that has expired since is gone."""
    server = bench.server
    server.ask("FLUSHALL")
    with proxied(server, profile("behind: 1")) as (_, client):
        client.ask("SET", "k", "v", "EX", "100")
        client.ask("PERSIST", "k")
        assert 70 <= client.ask("TTL", "k") <= 100
        assert server.ask("TTL", "k") == -1
        began = time.monotonic()
        client.ask("SET", "s", "v", "PX", "1500")
        client.ask("SET", "s", "w")
        assert client.ask("GET", "s") == b"v"
        wait_for(lambda: client.ask("GET", "s") is None, "the end of what it was")
        # The server counts in whole milliseconds, of which the first had begun.
        assert time.monotonic() - began >= 1.498
        assert server.ask("GET", "s") == b"w"


def test_writes_that_did_not_happen(bench):
    """Refused ones, and transactions that were not carried out, are no past."""
    server = bench.server
    server.ask("FLUSHALL")
    with proxied(server, profile("behind: 1", "commands: GET")) as (_, client):
        client.ask("SET", "k", "one")
        client.ask("SET", "k", "two")
        assert client.ask("LPUSH", "k", "x").startswith("WRONGTYPE")
        assert client.ask("INCR", "k").startswith("ERR")
        client.ask("WATCH", "k")
        server.ask("SET", "k", "two")
        client.ask("MULTI")
        client.ask("SET", "k", "three")
        assert client.ask("EXEC") is None
        client.ask("MULTI")
        client.ask("SET", "k", "three")
        client.ask("DISCARD")
        assert client.ask("GET", "k") == b"one"


@both
def test_transactions(bench, resp):
    """What a transaction has changed is seen by readers as a whole; reads inside one are from the past like all others."""
    server = bench.server
    server.ask("FLUSHALL")
    server.ask("SET", "{t}a", "0")
    server.ask("SET", "{t}b", "0")
    with proxied(server, profile("behind: 1"), resp) as (_, client):
        client.send_bytes(b"".join(encode(*call) for call in (("MULTI",), ("INCR", "{t}a"), ("INCR", "{t}b"), ("INCR", "{t}a"), ("MGET", "{t}a", "{t}b"), ("EXEC",))))  # fmt: skip
        assert decode(client.read(6)[-1]) == [1, 1, 2, [b"2", b"1"]]
        assert client.ask("MGET", "{t}a", "{t}b") == [b"0", b"0"]
        client.ask("INCR", "{t}b")
        client.ask("MULTI")
        client.ask("GET", "{t}a")
        client.ask("INCR", "{t}a")
        client.ask("MGET", "{t}b", "{t}a")
        assert client.ask("EXEC") == [b"0", 3, [b"1", b"0"]]


@both
def test_while_watching(bench, resp):
    """A read from the past does not end the client's WATCH: its EXEC is carried out, or is not, as if it had been a real one."""
    server = bench.server
    server.ask("FLUSHALL")
    with proxied(server, profile("behind: 1", "commands: GET"), resp) as (_, client):
        client.ask("SET", "k", "one")
        client.ask("SET", "k", "two")
        for disturbed in (False, True):
            client.ask("WATCH", "k")
            assert client.ask("GET", "k") == b"one"
            if disturbed:
                server.ask("SET", "k", "two")
            client.ask("MULTI")
            client.ask("PING")
            assert client.ask("EXEC") == (None if disturbed else ["PONG"])


def test_pipelines(bench):
    """A client that sends all at once reads the past as one that waits does."""
    server = bench.server
    server.ask("FLUSHALL")
    with proxied(server, profile("behind: 1", "commands: GET")) as (_, client):
        calls = [
            call for n in range(50) for call in (("SET", "k", n), ("GET", "k"), ("GET", "other"))
        ]
        client.send_bytes(b"".join(encode(*call) for call in calls))
        replies = [decode(raw) for raw in client.read(len(calls))]
        assert replies[1::3] == [None, *(b"%d" % n for n in range(49))]
        assert set(replies[2::3]) == {None}


def test_many_clients(bench):
    """Readers and writers at once: every read is a value that there was, no reply is another's, nothing is left behind."""
    server = bench.server
    server.ask("FLUSHALL")
    with serve_proxy(server.url, profile("behind: 2", "commands: GET")) as proxy:
        wrong: list[object] = []

        def work(name: str) -> None:
            with proxy.connect() as client:
                for n in range(60):
                    client.ask("SET", name, f"{name}:{n}")
                    value = client.ask("GET", name)
                    wanted = f"{name}:{n - 2}".encode() if n > 1 else None
                    if value != wanted:
                        wrong.append((name, n, value))

        threads = [threading.Thread(target=work, args=(f"k{n}",)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert sorted(server.ask("KEYS", "*")) == [b"k%d" % n for n in range(6)]
        assert b"db15" not in server.ask("INFO", "keyspace")


def test_what_an_acl_forbids(server):
    """Where the user may not take down or restore keys, reads are what they are, and no event says otherwise."""
    for rule, reason in (("-dump", "not_applicable"), ("-restore", "not_computable")):
        server.ask("FLUSHALL")
        server.ask("ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all", rule)
        with proxied(server, profile("behind: 1", "commands: GET")) as (proxy, client):
            client.ask("AUTH", "app", "secret")
            client.ask("SET", "k", "one")
            client.ask("SET", "k", "two")
            assert client.ask("GET", "k") == b"two"
            assert proxy.events() == []
            assert proxy.metric("faults_skipped_total", reason=reason) == 1


def test_flushes(server):
    """What was known of keys that a flush took away holds no more."""
    with proxied(server, profile("behind: 1", "commands: GET")) as (_, client):
        for flush in (("FLUSHALL",), ("FLUSHDB",), ("SWAPDB", "0", "1")):
            client.ask("SET", "k", "one")
            client.ask("SET", "k", "two")
            assert client.ask("GET", "k") == b"one"
            client.ask(*flush)
            assert client.ask("GET", "k") is None


WRITES = (
    ("SET", 1), ("SET", "v", "EX", 1000), ("SET", "v", "NX"), ("APPEND", "z"), ("SETRANGE", 1, "q"), ("INCR",), ("RPUSH", "x"),
    ("LPOP",), ("LTRIM", 0, 0), ("SADD", 1, 2), ("HSET", "f", 1), ("XADD", "*", "f", "v"), ("EXPIRE", 5000), ("PERSIST",),
    ("GETEX", "PERSIST"), ("DEL",), ("RESTORE", 0, "junk"),
)  # fmt: skip
LOOKS = ("GET", "TYPE", "LLEN", "EXISTS", "STRLEN", "SCARD")


@both
@pytest.mark.parametrize("behind", [2])
def test_beside_a_model(bench, resp, behind):
    """Any writes, refused ones and transactions among them, by two clients: reads are as a list of what was there says."""
    server, random = bench.server, Random(f"{resp}/{behind}")
    server.ask("FLUSHALL")
    history: dict[str, list[dict[str, bytes]]] = {"{t}a": [], "{t}b": []}
    with (
        proxied(server, profile(f"behind: {behind}"), resp) as (proxy, one),
        proxy.connect(resp=resp) as two,
        server.connect(resp=resp) as direct,
    ):
        for _ in range(120):
            client, key = random.choice([one, two]), random.choice(sorted(history))
            now = {look: direct.raw(look, key) for look in LOOKS}
            calls = [(name, key, *rest) for name, *rest in random.sample(WRITES, 2)]
            past = history[key]
            match random.choice(["write", "transaction", "read", "read in a transaction"]):
                case "write":
                    replies = [client.raw(*calls[0])]
                    past += [now for raw in replies if raw[:1] != b"-"]
                case "transaction":
                    client.send_bytes(b"".join(encode(*c) for c in [("MULTI",), *calls, ("EXEC",)]))
                    for raw in elements(client.read(4)[-1])[1]:
                        past += [now] if raw[:1] != b"-" else []
                case how:
                    look = random.choice(LOOKS)
                    then = now
                    if len(past) >= behind:
                        then = past[-behind]
                    elif past and past[0]["EXISTS"] == b":0\r\n":
                        then = past[0]
                    if how == "read":
                        assert client.raw(look, key) == then[look]
                    else:
                        expected = b"+QUEUED\r\n*1\r\n" + then[look]
                        assert in_transaction(client, (look, key)) == expected
        assert set(server.ask("KEYS", "*")) <= {b"{t}a", b"{t}b"}


@both
def test_what_a_script_writes(any_server, resp):
    """Scripts write to the keys that they declare, and that is remembered as any write is, whatever else a profile looks at."""
    script = "return redis.call('SET', KEYS[1], ARGV[1])"
    rules = "faults:\n- {fault: stale_read, match: {commands: GET}, behind: 1}\n"
    with serve_proxy(any_server.url, rules) as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("SET", "k", "a")
        digest = wire.ask("SCRIPT", "LOAD", script)
        for words, value in (("EVAL", script), "b"), (("EVALSHA", digest), "c"):
            before = any_server.ask("GET", "k")
            wire.ask(*words, 1, "k", value)
            assert wire.ask("GET", "k") == before
            assert any_server.ask("GET", "k") == value.encode()
        before = any_server.ask("GET", "k")
        wire.send_bytes(encode("MULTI") + encode("EVAL", script, 1, "k", "d") + encode("EXEC"))
        wire.read(3)
        assert wire.ask("GET", "k") == before
