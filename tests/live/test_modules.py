"""Keys and indexes of modules: what is dropped, or lost at a failover, is told as the module would, and changes nothing else.

Takes a real server with RedisJSON, RediSearch and RedisBloom; gives what is not as it was, or not as it was told.
"""

import pytest

from tests import modules, servers
from tests.clients import installs
from tests.proxying import at_its_own_port, wait_for
from tests.wire import WireError, encode

DROP = """
faults:
- {fault: drop_write, tell: ok, match: {keys: ["*"]}}
"""
LOSE = """
faults:
- {fault: failover, name: fo, style: managed, lose: {for: 60s}, when: {trigger: manual}}
"""
STALE = """
faults:
- {fault: stale_read, behind: 1, match: {keys: ["*"]}}
"""
SETUP = (
    ("JSON.SET", "j", "$", '{"a":1,"l":[1,2,3],"s":"x","o":{"k":true}}'),
    ("BF.ADD", "bf", "one"),
    ("CF.ADD", "cf", "one"),
    ("TDIGEST.CREATE", "td"),
    ("TDIGEST.ADD", "td", "1", "2", "3"),
    ("VADD", "vs", "VALUES", "3", "1", "2", "3", "e1"),
    ("FT.SUGADD", "sug", "hello", "1"),
    ("FT.CREATE", "idx", "ON", "HASH", "PREFIX", "1", "doc:", "SCHEMA", "t", "TEXT"),
    ("FT.CREATE", "jidx", "ON", "JSON", "PREFIX", "1", "jd:", "SCHEMA", "$.a", "AS", "a", "NUMERIC"),
    ("HSET", "doc:1", "t", "hello world"),
    ("HSET", "doc:2", "t", "bye"),
    ("JSON.SET", "jd:1", "$", '{"a":5}'),
)  # fmt: skip
#: Copies can be made of what these are about.
COPIED = (
    ("JSON.SET", "j", "$.a", "2"),
    ("JSON.SET", "new", "$", "[1]"),
    ("JSON.SET", "jd:1", "$.a", "7"),
    ("JSON.NUMINCRBY", "j", "$.a", "5"),
    ("JSON.ARRAPPEND", "j", "$.l", "4", "5"),
    ("JSON.ARRPOP", "j", "$.l"),
    ("JSON.TOGGLE", "j", "$.o.k"),
    ("JSON.MSET", "j", "$.a", "9", "new2", "$", "3"),
    ("JSON.DEL", "j"),
    ("BF.ADD", "newbf", "x"),
    ("HSET", "doc:1", "t", "changed"),
    ("HSET", "doc:3", "t", "hello there"),
    ("DEL", "doc:1"),
    ("RENAME", "doc:1", "doc:9"),
    ("EXPIRE", "jd:1", "100"),
)
#: None of these, and only the module knows what it answers.
UNCOPIED = (
    ("BF.ADD", "bf", "two"),
    ("CF.DEL", "cf", "one"),
    ("TDIGEST.ADD", "td", "5"),
    ("TDIGEST.MERGE", "td2", "1", "td"),
    ("FT.SUGADD", "sug", "hi", "2"),
    ("EVAL", "return redis.call('VREM', KEYS[1], 'e1')", "1", "vs"),
)
#: Not about keys: on copies they would do what they do.
INDEXES = (
    ("FT.CREATE", "idx2", "SCHEMA", "x", "TEXT"),
    ("FT.ALTER", "idx", "SCHEMA", "ADD", "z", "TEXT"),
    ("FT.SYNUPDATE", "idx", "g1", "hello", "hi"),
    ("FT.DROPINDEX", "idx"),
    ("FT.DROPINDEX", "idx", "DD"),
)
#: The server refuses them, in words that copies might change.
REFUSED = (("JSON.SET", "j", "$", "{bad"), ("JSON.SET", "doc:1", "$", "1"))


@pytest.fixture(scope="module")
def stack():
    try:
        options = modules.options()
    except installs.Unavailable as error:
        pytest.skip(str(error))
    if reason := servers.available(modules.SERVER):
        pytest.skip(reason)
    stack = servers.start(modules.SERVER, *options)
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def proxy(stack):
    with at_its_own_port(stack) as proxy:
        yield proxy


def fill(server):
    """Make everything anew."""
    server.ask("FLUSHALL")
    for name in server.ask("FT._LIST"):
        server.ask("FT.DROPINDEX", name)
    for call in SETUP:
        assert not isinstance(server.ask(*call), WireError), call


def state(server):
    """What there is: each key by what its type lets one see of it, and what each index finds."""
    found = {}
    for key in server.ask("KEYS", "*"):
        look = {b"hash": "HGETALL", b"ReJSON-RL": "JSON.GET", b"vectorset": "VCARD"}
        kind = server.ask("TYPE", key)
        found[key] = kind, server.ask(look.get(kind, "DUMP"), key), server.ask("PEXPIRETIME", key)
    for name in server.ask("FT._LIST"):
        about = server.ask("FT.INFO", name)
        found[b"index", name] = (
            sorted(map(str, server.ask("FT.SEARCH", name, "*"))),
            about[list(map(text, about)).index("attributes") + 1],
            server.ask("FT.SYNDUMP", name),
        )
    return found


def text(what):
    return what.decode() if isinstance(what, bytes) else what


def make(client, call, way):
    """Make a call in one of these ways; gives what it was answered in the end."""
    if way == "queued":
        client.send_bytes(encode("MULTI") + encode(*call) + encode("EXEC"))
        return client.read(3)[2]
    if way == "watching":
        client.raw("WATCH", "other")
    return client.raw(*call)


def skipped(proxy):
    """How many matches were left alone, by reason."""
    proxy._settle()
    return {
        reason: n for status in proxy.service.status() for reason, n in status["skipped"].items()
    }


def real(server, call, way, resp):
    fill(server)
    with server.connect(resp=resp) as client:
        return make(client, call, way)


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("way", ["plain", "queued", "watching"])
def test_dropped(stack, proxy, way, resp):
    """What can be copied is dropped with the module's own reply, and no index notices; all else passes, as if there were no fault."""
    told, changed, left, failures = {}, {}, {}, []
    for call in (*COPIED, *UNCOPIED, *INDEXES, *REFUSED):
        told[call] = real(stack, call, way, resp)
        fill(stack)
        before = state(stack)
        proxy.use(DROP)
        with proxy.connect(resp=resp) as client:
            answer = make(client, call, way)
        left[call] = skipped(proxy)
        after = state(stack)
        changed[call] = {key for key in before | after if before.get(key) != after.get(key)}
        if answer != told[call]:
            failures.append((call, told[call], answer))
    proxy.use("calm")
    assert failures == []
    for call in COPIED:
        assert (left[call].get("unknown_reply"), changed[call]) == (None, set()), call
    for call in (*UNCOPIED, *INDEXES):
        assert left[call].get("unknown_reply") == 1, call
    for call in REFUSED:
        assert changed[call] == set(), call
        # What an error inside a transaction is of is known behind EXEC only.
        assert way == "queued" or left[call].get("unknown_reply") == 1, call


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("queued", [False, True])
def test_lost_at_a_failover(stack, proxy, queued, resp):
    """Keys are what they were, and what indexes find; what is done to an index itself is carried out, and not named as lost."""
    for call in (*COPIED, *UNCOPIED, *INDEXES):
        fill(stack)
        before = state(stack)
        proxy.use(LOSE)
        with proxy.connect(resp=resp) as client:
            make(client, call, "queued" if queued else "plain")
            lost = fail_over(proxy)
        if call in INDEXES:
            assert (lost, skipped(proxy)) == ([], {"no_keys": 1}), call
        else:
            assert (lost, state(stack)) == ([call[0]], before), call
    proxy.use("calm")


def fail_over(proxy):
    """Let it happen; give the commands that it says are lost."""
    journal = proxy.service.journal
    last = journal.last
    proxy.service.trigger("fo")

    def switches():
        return [event for event in journal.events(last) if "switched" in event.get("detail", "")]

    wait_for(switches, "the switch")
    return [one["command"] for one in switches()[0].get("writes", [])]


def test_read_from_the_past(stack, proxy):
    """A document as it was, while the index finds what is there; what an index finds is no past of a key."""
    fill(stack)
    proxy.use(STALE)
    with proxy.connect() as client:
        client.ask("HSET", "doc:1", "t", "newer")
        client.ask("JSON.SET", "jd:1", "$.a", "6")
        before = state(stack)
        assert client.ask("HGET", "doc:1", "t") == b"hello world"
        assert client.ask("JSON.GET", "jd:1", "$.a") == b"[5]"
        assert client.ask("FT.SEARCH", "idx", "newer", "NOCONTENT") == [1, b"doc:1"]
        assert state(stack) == before
    proxy.use("calm")
