"""`expire_key` on real servers: what a client, a subscriber and the key space see is what the server does by itself.

Takes every kind of server; gives proof by notifications, TTLs, typed replies, tracking and transactions, beside the real thing.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests import servers
from tests.proxying import RunningProxy, serve_proxy, wait_for
from tests.servers import Server
from tests.wire import Wire, WireError, encode

both = pytest.mark.parametrize("resp", [2, 3])
modes = pytest.mark.parametrize(("mode", "word"), [("now", "expired"), ("evict", "evicted")])

#: A key of each kind: how it is made, a read of it, and a write to it that says what was there.
TYPES = {
    "string": (("SET", "k", "v"), ("GET", "k"), ("APPEND", "k", "w")),
    "number": (("SET", "k", "7"), ("STRLEN", "k"), ("INCR", "k")),
    "list": (("RPUSH", "k", "a", "b"), ("LRANGE", "k", "0", "-1"), ("RPUSH", "k", "c")),
    "set": (("SADD", "k", "a"), ("SMEMBERS", "k"), ("SADD", "k", "a")),
    "sorted set": (("ZADD", "k", "1", "a"), ("ZRANGE", "k", "0", "-1", "WITHSCORES"), ("ZINCRBY", "k", "1", "a")),
    "hash": (("HSET", "k", "f", "v"), ("HGETALL", "k"), ("HINCRBY", "k", "n", "1")),
    "stream": (("XADD", "k", "1-1", "f", "v"), ("XRANGE", "k", "-", "+"), ("XADD", "k", "1-1", "f", "v")),
    "hyperloglog": (("PFADD", "k", "a"), ("PFCOUNT", "k"), ("PFADD", "k", "a")),
    "geo": (("GEOADD", "k", "1", "1", "a"), ("GEOPOS", "k", "a"), ("GEOADD", "k", "1", "1", "a")),
    "bitmap": (("SETBIT", "k", "1", "1"), ("BITCOUNT", "k"), ("SETBIT", "k", "1", "1")),
}  # fmt: skip


def profile(mode: str, match: str = "") -> str:
    return f"faults:\n  - {{fault: expire_key, mode: {mode}, match: {{{match}}}}}\n"


class Ear:
    """Hears all keyspace notifications of a server, as (channel, message)."""

    def __init__(self, server: Server, flags: str) -> None:
        self._server = server
        server.ask("CONFIG", "SET", "notify-keyspace-events", flags)
        self.wire = server.connect()
        self.wire.ask("PSUBSCRIBE", "__key*__:*")

    def heard(self) -> list[tuple[str, str]]:
        """What has been heard since; messages arrive in order, so an own one is the last."""
        self._server.ask("PUBLISH", "__keyend__:", "end")
        found = []
        while True:
            (raw,) = self.wire.read()
            channel, message = raw.split(b"\r\n")[6:9:2]
            if channel == b"__keyend__:":
                return found
            found.append((channel.decode(), message.decode()))

    def wait_for(self, word: str) -> list[tuple[str, str]]:
        """All up to the keyevent of this word."""
        found: list[tuple[str, str]] = []

        def come() -> bool:
            found.extend(self.heard())
            return any(channel == f"__keyevent@0__:{word}" for channel, _ in found)

        wait_for(come, word)
        return found


@contextmanager
def ear(server: Server, flags: str = "KEA") -> Iterator[Ear]:
    found = Ear(server, flags)
    try:
        yield found
    finally:
        found.wire.close()


@contextmanager
def proxied(
    server: Server, text: str, resp: int = 2, url: str = ""
) -> Iterator[tuple[RunningProxy, Wire]]:
    with serve_proxy(url or server.url, text) as proxy, proxy.connect(resp=resp) as client:
        yield proxy, client


def gone(word: str, key: str = "k") -> list[tuple[str, str]]:
    """The notifications of a key that goes."""
    return [(f"__keyspace@0__:{key}", word), (f"__keyevent@0__:{word}", key)]


def untouched(server: Server, flags: bytes) -> None:
    """Nothing of ours is left: the setting is as it was, no database has a key that was not there."""
    assert server.ask("CONFIG", "GET", "notify-keyspace-events")[1] == flags
    assert b"db15" not in server.ask("INFO", "keyspace")


# --- what it looks like, beside the real thing -----------------------------------------------------


def test_a_natural_expiry_and_eviction(server):
    """What the other tests compare with: the server gives these notifications, in this order, and no other."""
    with ear(server) as heard:
        server.ask("SET", "k", "v")
        heard.heard()
        server.ask("PEXPIRE", "k", "20")
        wait_for(lambda: server.ask("EXISTS", "k") == 0, "the end of the key")
        assert heard.wait_for("expired") == gone("expire") + gone("expired")
        server.ask("SET", "k", "v")
        heard.heard()
        server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        server.ask("CONFIG", "SET", "maxmemory", "1")
        server.ask("SET", "other", "v")
        assert heard.heard() == gone("evicted")
        server.ask("CONFIG", "SET", "maxmemory", "0")


@both
@modes
@pytest.mark.parametrize("what", TYPES)
def test_the_reply_of_a_key_that_is_gone(server, mode, word, what, resp):
    """Reads and writes of each type are answered byte for byte as for a key that is not there; one notification, and no more."""
    make, *uses = TYPES[what]
    with ear(server) as heard, proxied(server, profile(mode, "keys: k"), resp) as (proxy, client):
        for use in uses:
            with server.connect(resp=resp) as direct:
                server.ask("DEL", "k")
                expected = direct.raw(*use)
                server.ask("DEL", "k")
                server.ask(*make)
                heard.heard()
                assert client.raw(*use) == expected
            found = heard.heard()
            assert found[:2] == gone(word)
            assert word not in [message for _, message in found[2:]]
            assert not {"expire", "del"} & {message for _, message in found}
        events = proxy.wait_events(2)
        assert [(event["applied"], event["told"], event.get("detail")) for event in events] == [
            ("yes", "ok", None)
        ] * 2
        assert proxy.metric("keys_touched_total", how=word) == 2
        untouched(server, b"AKE")


@modes
@pytest.mark.parametrize("life", ["for ever", "an hour"])
def test_whatever_its_life(server, mode, word, life):
    """Keys with a time to live and without go alike, in whichever database."""
    with proxied(server, profile(mode)) as (_, client):
        client.ask("SELECT", "3")
        server.ask("SELECT", "3")
        server.ask("SET", "k", "v", *(("EX", "3600") if life == "an hour" else ()))
        server.ask("SELECT", "0")
        server.ask("SET", "k", "other")
        with ear(server) as heard:
            assert client.raw("GET", "k") == b"$-1\r\n"
            assert heard.heard() == [
                ("__keyspace@3__:k", word),
                (f"__keyevent@3__:{word}", "k"),
            ]
        assert server.ask("GET", "k") == b"other"


@modes
@pytest.mark.parametrize(
    "flags", ["", "K", "KEx", "KEe", "Kgx", "Egxe", "Kge", "EA", "KA", "Exe", "KEg", "KEm"]
)
def test_what_subscribers_asked_for(server, mode, word, flags):
    """Each setting gives just what the server itself would give, and is in force again afterwards."""
    wanted = []
    if (word[2] == "p" and "x" in flags) or (word[2] == "i" and "e" in flags) or "A" in flags:
        wanted = [each for each, kind in zip(gone(word), "KE", strict=True) if kind in flags]
    with ear(server, flags) as heard, proxied(server, profile(mode)) as (_, client):
        before = server.ask("CONFIG", "GET", "notify-keyspace-events")
        server.ask("SET", "k", "v")
        heard.heard()
        assert client.raw("GET", "k") == b"$-1\r\n"
        # The client's GET itself may be heard as a miss.
        assert [each for each in heard.heard() if "keymiss" not in "".join(each)] == wanted
        assert server.ask("CONFIG", "GET", "notify-keyspace-events") == before


@modes
def test_a_key_that_is_not_there(server, mode, word):
    """Nothing is notified, nothing is told to have happened."""
    with ear(server) as heard, proxied(server, profile(mode)) as (proxy, client):
        assert client.raw("GET", "k") == b"$-1\r\n"
        assert heard.heard() == []
        assert proxy.events() == []
        assert proxy.metric("faults_skipped_total", reason="no_key") == 1
        assert proxy.metric("keys_touched_total") == 0


@modes
def test_many_at_once(server, mode, word):
    """Of many clients that meet the same key at the same moment one takes it away: one notification, and one event."""
    count = 16
    with ear(server) as heard, proxied(server, profile(mode)) as (proxy, _):
        for _ in range(5):
            server.ask("SET", "k", "v")
            heard.heard()
            clients = [proxy.connect() for _ in range(count)]
            barrier = threading.Barrier(count)

            def ask(wire: Wire, barrier=barrier) -> bytes:
                with wire:
                    barrier.wait()
                    return wire.raw("GET", "k")

            with ThreadPoolExecutor(count) as threads:
                assert list(threads.map(ask, clients)) == [b"$-1\r\n"] * count
            assert [each for each in heard.heard() if each[1] != "expire"] == gone(word)
        assert len(proxy.events()) == 5
        assert proxy.metric("faults_skipped_total", reason="no_key") == 5 * (count - 1)
        untouched(server, b"AKE")


@both
@modes
def test_tracking(server, mode, word, resp):
    """A client that has the key in its cache is told that it is not valid any more."""
    server.ask("SET", "k", "v")
    rule = profile(mode, "commands: STRLEN")
    with proxied(server, rule, resp) as (proxy, client), proxy.connect(resp=3) as cache:
        assert cache.ask("CLIENT", "TRACKING", "ON") == "OK"
        assert cache.ask("GET", "k") == b"v"
        assert client.raw("STRLEN", "k") == b":0\r\n"
        assert cache.read() == [b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"]


@modes
def test_lazily(server, mode, word):
    """Where the server expires keys only when they are asked for, the command that follows is what it is noticed by."""
    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    server.ask("SET", "k", "v")
    with ear(server) as heard, proxied(server, profile(mode)) as (_, client):
        assert client.raw("GET", "k") == b"$-1\r\n"
        assert heard.heard() == gone(word)
    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")


# --- in every state of a connection ----------------------------------------------------------------


@both
@modes
def test_in_a_pipeline(server, mode, word, resp):
    """Writes that were sent just before are not overtaken: it is what they wrote that goes."""
    with proxied(server, profile(mode, "commands: [GET, LRANGE]"), resp) as (proxy, client):
        sent = [encode("SET", f"k{n}", "v") + encode("GET", f"k{n}") for n in range(20)]
        client.send_bytes(b"".join(sent) + encode("RPUSH", "l", "a") + encode("LRANGE", "l", 0, -1))
        null = b"$-1\r\n" if resp == 2 else b"_\r\n"
        assert client.read(42) == [b"+OK\r\n", null] * 20 + [b":1\r\n", b"*0\r\n"]
        assert len(proxy.wait_events(21)) == 21


@both
@modes
def test_in_a_transaction(server, mode, word, resp):
    """The key goes when the command is queued; EXEC finds it gone, and its array is whole."""
    server.ask("SET", "k", "v")
    with (
        ear(server) as heard,
        proxied(server, profile(mode, "commands: GET"), resp) as (proxy, client),
    ):
        assert client.ask("MULTI") == "OK"
        assert client.ask("SET", "n", "1") == "QUEUED"
        assert client.ask("GET", "k") == "QUEUED"
        assert client.ask("EXEC") == ["OK", None]
        assert [each for each in heard.heard() if each[1] == word] == gone(word)[:1]
        (event,) = proxy.wait_events()
        assert (event["applied"], event["told"]) == ("yes", "ok")


@modes
def test_a_watched_key(server, mode, word):
    """EXEC answers null, as it does to a client whose watched key was evicted, or has expired by itself."""
    server.ask("SET", "k", "v")
    with proxied(server, profile(mode, "commands: GET")) as (_, client):
        client.ask("WATCH", "k")
        assert client.ask("GET", "k") is None
        client.ask("MULTI")
        client.ask("SET", "k", "w")
        assert client.ask("EXEC") is None


@modes
def test_without_replies(server, mode, word):
    """A client that wants no replies has its key gone as well."""
    server.ask("SET", "k", "v")
    with proxied(server, profile(mode, "commands: APPEND")) as (_, client):
        client.send("CLIENT", "REPLY", "OFF")
        client.send("APPEND", "k", "w")
        client.send("CLIENT", "REPLY", "ON")
        assert client.read() == [b"+OK\r\n"]
        assert server.ask("GET", "k") == b"w"


@modes
def test_on_a_cluster(mode, word, cluster):
    """On a cluster's node, whose notifications are its own."""
    cluster.ask("FLUSHALL")
    cluster.ask("SET", "k", "v")
    with ear(cluster) as heard, proxied(cluster, profile(mode)) as (proxy, client):
        assert client.raw("GET", "k") == b"$-1\r\n"
        assert heard.heard() == gone(word)
        (event,) = proxy.wait_events()
        assert event["keys"] == ["k"]


@pytest.fixture(scope="module", params=servers.NAMES)
def cluster(request) -> Iterator[Server]:
    if reason := servers.available(request.param):
        pytest.skip(reason)
    node = servers.start_cluster_node(request.param)
    yield node
    node.stop()


# --- what an ACL allows ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("-config", "CONFIG is not allowed, so notifications that are on say "),
        ("-config|set", "CONFIG is not allowed, so notifications that are on say "),
        ("-config +config|get", "CONFIG is not allowed, so notifications that are on say "),
    ],
)
@modes
def test_without_config(server, mode, word, rules, says):
    """The key goes all the same; subscribers hear more than that, and the event says so, and why."""
    if server.version < (7,) and "config|set" in rules.split()[0]:
        rules = "-config +config|get"  # 6.2 can take no subcommand away
    server.ask("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", *rules.split())
    server.ask("SET", "k", "v")
    url = server.url.replace("://", "://app:secret@")
    with (
        ear(server) as heard,
        proxied(server, profile(mode, "commands: GET"), url=url) as (proxy, client),
    ):
        client.ask("AUTH", "app", "secret")
        assert client.raw("GET", "k") == b"$-1\r\n"
        (event,) = proxy.wait_events()
        assert says in event["detail"]
        assert "config" in event["detail"].lower()
        words = [message for channel, message in heard.heard() if "keyspace" in channel]
        assert words == (["expire", "expired"] if mode == "now" else ["del"])


@modes
def test_without_anything(server, mode, word):
    """A user who may not even take the key away leaves it, and the event is none."""
    server.ask("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config", "-pexpire", "-unlink")  # fmt: skip
    server.ask("SET", "k", "v")
    url = server.url.replace("://", "://app:secret@")
    with proxied(server, profile(mode, "commands: GET"), url=url) as (proxy, client):
        client.ask("AUTH", "app", "secret")
        assert client.ask("GET", "k") == b"v"
        assert proxy.events() == []
        assert proxy.metric("faults_skipped_total", reason="refused") == 1


@modes
def test_clients_need_no_rights(server, mode, word):
    """It is the upstream URL's user that takes keys away; the client may be one who can do nothing but read."""
    server.ask("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get")
    server.ask("SET", "k", "v")
    with ear(server) as heard, proxied(server, profile(mode, "commands: GET")) as (_, client):
        client.ask("AUTH", "reader", "secret")
        assert client.raw("GET", "k") == b"$-1\r\n"
        assert heard.heard() == gone(word)


# --- times -----------------------------------------------------------------------------------------

NEWER = {"HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT", "HSETEX", "HGETEX", "MSETEX"}
DAY = 86400


def at(seconds: float, unit: int = 1) -> str:
    return str(int((time.time() + seconds) * unit))


def setters(server: Server) -> list[tuple[str, ...]]:
    """A command of each kind that sets a day to live, on k (for fields: on h)."""
    server.ask("SET", "x", "v")
    dump = server.ask("DUMP", "x")
    server.ask("DEL", "x")
    calls: list[tuple] = [
        ("SET", "k", "v", "EX", DAY),
        ("SET", "k", "v", "PX", DAY * 1000),
        ("SET", "k", "v", "EXAT", at(DAY)),
        ("SET", "k", "v", "PXAT", at(DAY, 1000), "GET"),
        ("SETEX", "k", DAY, "v"),
        ("PSETEX", "k", DAY * 1000, "v"),
        ("GETEX", "k", "EX", DAY),
        ("GETEX", "k", "PXAT", at(DAY, 1000)),
        ("EXPIRE", "k", DAY),
        ("PEXPIRE", "k", DAY * 1000),
        ("EXPIREAT", "k", at(DAY)),
        ("PEXPIREAT", "k", at(DAY, 1000)),
        ("RESTORE", "k", DAY * 1000, dump, "REPLACE"),
        ("RESTORE", "k", at(DAY, 1000), dump, "REPLACE", "ABSTTL"),
        ("HEXPIRE", "h", DAY, "FIELDS", 1, "f"),
        ("HPEXPIRE", "h", DAY * 1000, "FIELDS", 1, "f"),
        ("HEXPIREAT", "h", at(DAY), "FIELDS", 1, "f"),
        ("HPEXPIREAT", "h", at(DAY, 1000), "FIELDS", 1, "f"),
        ("HSETEX", "h", "EX", DAY, "FIELDS", 1, "f", "v"),
        ("HGETEX", "h", "EX", DAY, "FIELDS", 1, "f"),
        ("MSETEX", 1, "k", "v", "EX", DAY),
    ]
    if server.version >= (7,):
        calls += [("EXPIRE", "k", DAY, "NX"), ("EXPIRE", "k", DAY, "LT")]
    known = [call for call in calls if call[0] not in NEWER or knows(server, call[0])]
    assert len(known) >= 14
    return known


def knows(server: Server, name: str) -> bool:
    return server.ask("COMMAND", "INFO", name) != [None]


def fill(server: Server, *, life: int = 0) -> None:
    """A string k and a hash h, which have so many seconds to live (0: for ever), h's field f as well."""
    server.ask("DEL", "k", "h")
    server.ask("SET", "k", "v")
    server.ask("HSET", "h", "f", "v", "g", "w")
    if life:
        server.ask("EXPIRE", "k", life)
        server.ask("HEXPIRE", "h", life, "FIELDS", 1, "f")


def life(server: Server, call: tuple) -> float:
    """How long what the call is about has to live, in seconds; -1 is for ever."""
    if call[1] == "h":
        (millis,) = server.ask("HPTTL", "h", "FIELDS", 1, "f")
    else:
        millis = server.ask("PTTL", "k")
    return millis / 1000 if millis > 0 else millis


@both
def test_no_time_to_live(server, resp):
    """strip_ttl: after each command that sets one there is none, its reply is the server's own, and all else of it is done."""
    with (
        proxied(server, profile("strip_ttl"), resp) as (proxy, client),
        server.connect(resp=resp) as direct,
    ):
        for number, call in enumerate(calls := setters(server), 1):
            fill(server)
            expected = direct.raw(*call)
            assert life(server, call) > 0
            fill(server)
            assert client.raw(*call) == expected, call
            assert life(server, call) == -1, call
            proxy.wait_events(number)
        lies = {event["command"] for event in proxy.events() if event["outcome"] == "false_ok"}
        assert lies == {call[0] for call in calls if "EXPIRE" in call[0]}
        for call in (("SET", "k", "w", "KEEPTTL"), ("SET", "k", "x", "XX", "KEEPTTL", "GET")):
            if server.version < (7,) and "GET" in call:
                continue
            fill(server, life=DAY)
            client.ask(*call)
            assert server.ask("TTL", "k") == -1


@both
def test_no_time_to_live_in_a_transaction(server, resp):
    """strip_ttl there too: what is queued goes without its time, and EXEC has its reply."""
    with proxied(server, profile("strip_ttl"), resp) as (_, client):
        for call in setters(server):
            fill(server)
            client.ask("MULTI")
            assert client.ask(*call) == "QUEUED", call
            assert client.ask("TTL", "k") == "QUEUED"
            reply, ttl = client.ask("EXEC")
            assert not isinstance(reply, WireError), (call, reply)
            assert ttl == -1
            assert life(server, call) == -1, call


@both
@pytest.mark.parametrize("queued", [False, True])
def test_no_renewal(server, resp, queued):
    """no_renewal: a first time is set, a shorter one is set, a longer one is not; each reply is the server's own."""

    def ask(wire: Wire, call: tuple) -> bytes:
        if not queued:
            return wire.raw(*call)
        wire.send_bytes(encode("MULTI") + encode(*call) + encode("EXEC"))
        return wire.read(3)[2]

    written = {"HSETEX", "MSETEX", "RESTORE"}
    with (
        proxied(server, profile("no_renewal"), resp) as (proxy, client),
        server.connect(resp=resp) as direct,
    ):
        for number, (name, *_) in enumerate(setters(server)):
            if name in written:
                continue
            for left in (0, 100, 2 * DAY):
                # Its absolute time is counted from now, not from when the first of them was tried.
                call = setters(server)[number]
                fill(server, life=left)
                expected = ask(direct, call)
                fill(server, life=left)
                assert ask(client, call) == expected, (call, left)
                wanted = DAY if left in (0, 2 * DAY) else left
                if left == 2 * DAY and call[-1] == "NX":
                    wanted = left
                if left == 2 * DAY and server.version < (7,) and "EXPIRE" in call[0]:
                    wanted = DAY
                assert life(server, call) == pytest.approx(wanted, abs=30), (call, left)
        told = {event["outcome"] for event in proxy.events()}
        assert told == {"ok", "false_ok"}
        untouched(server, b"")


def test_no_renewal_of_fields(server):
    """Of several fields each keeps the time that it has, or gets its first one."""
    if not knows(server, "HEXPIRE"):
        with proxied(server, profile("no_renewal")) as (_, client):
            assert "unknown command" in client.ask("HEXPIRE", "h", DAY, "FIELDS", 1, "f")
        return
    with proxied(server, profile("no_renewal")) as (proxy, client):
        fill(server, life=100)
        assert client.ask("HEXPIRE", "h", DAY, "FIELDS", 3, "f", "g", "none") == [1, 1, -2]
        assert server.ask("HTTL", "h", "FIELDS", 2, "f", "g") == [
            pytest.approx(100, abs=20),
            pytest.approx(DAY, abs=20),
        ]
        assert len(proxy.wait_events()) == 1
        assert client.ask("HEXPIRE", "h", 50, "FIELDS", 2, "f", "g") == [1, 1]
        assert server.ask("HTTL", "h", "FIELDS", 2, "f", "g") == [pytest.approx(50, abs=20)] * 2
        assert len(proxy.events()) == 1


@pytest.mark.parametrize(
    ("change", "wanted"),
    [("{ttl_scale: 0.01}", 864.0), ("{ttl_set: 1500000ms}", 1500.0), ("{ttl_scale: 2}", 2 * DAY)],
)
@pytest.mark.parametrize("queued", [False, True])
def test_other_times(server, change, wanted, queued):
    """ttl_scale and ttl_set, measured after each command that sets a time; the reply is the server's own."""
    with proxied(server, profile(change)) as (proxy, client), server.connect() as direct:
        for number in range(1, 1 + len(setters(server))):
            # Its absolute time is counted from now: what has passed since then is scaled, too.
            call = setters(server)[number - 1]
            fill(server)
            expected = direct.raw(*call)
            fill(server)
            if queued:
                client.send_bytes(encode("MULTI") + encode(*call) + encode("EXEC"))
                assert client.read(3)[2] == b"*1\r\n" + expected, call
            else:
                assert client.raw(*call) == expected, call
            assert life(server, call) == pytest.approx(wanted, abs=30), call
            assert len(proxy.wait_events(number)) == number


def test_a_skewed_clock(server):
    """clock_skew moves absolute times by that much, and leaves relative ones alone."""
    with proxied(server, profile("{clock_skew: -1h}")) as (proxy, client):
        for call in setters(server):
            absolute = "AT" in call[0] or any(word in ("EXAT", "PXAT", "ABSTTL") for word in call)
            fill(server)
            client.ask(*call)
            wanted = DAY - 3600 if absolute else DAY
            assert life(server, call) == pytest.approx(wanted, abs=30), call
        # A client an hour behind that wants a key to live for a minute has it gone at once.
        server.ask("SET", "k", "v")
        assert client.ask("EXPIREAT", "k", at(60)) == 1
        assert server.ask("EXISTS", "k") == 0
        skipped = proxy.metric("faults_skipped_total", reason="not_applicable")
        assert skipped == sum(
            "AT" not in c[0] and not {"EXAT", "PXAT", "ABSTTL"} & {*c} for c in setters(server)
        )


def test_exactly(server):
    """To the millisecond, where the server tells when a key ends."""
    if server.version < (7,):
        with proxied(server, profile("{clock_skew: -500ms}")) as (_, client):
            end = int(at(100, 1000))
            client.ask("SET", "k", "v", "PXAT", end)
            before = time.time() * 1000
            left = server.ask("PTTL", "k")
            after = time.time() * 1000
        assert end - 500 - after - 2 <= left <= end - 500 - before + 2
        return
    end = int(at(DAY))
    with proxied(server, profile("{clock_skew: -500ms}")) as (_, client):
        client.ask("SET", "k", "v", "EXAT", end)
        assert server.ask("PEXPIRETIME", "k") == end * 1000 - 500
        client.ask("PEXPIREAT", "k", end * 1000 + 1)
        assert server.ask("PEXPIRETIME", "k") == end * 1000 - 499
        client.ask("GETEX", "k", "EXAT", end + 7)
        assert server.ask("PEXPIRETIME", "k") == end * 1000 + 6500


@pytest.mark.parametrize("change", ["{ttl_scale: 0.000001}", "{ttl_set: 1us}"])
def test_never_a_deletion(server, change):
    """However short it becomes: the command is no error and no deletion, and the key ends as keys do."""
    with ear(server) as heard, proxied(server, profile(change)) as (_, client):
        assert client.ask("SET", "k", "v", "EX", "10") == "OK"
        assert client.ask("SETEX", "l", "10", "v") == "OK"
        client.ask("SET", "m", "v")
        assert client.ask("EXPIRE", "m", "10") == 1
        wait_for(lambda: server.ask("EXISTS", "k", "l", "m") == 0, "the end of the keys")
        words = [message for channel, message in heard.heard() if "keyspace" in channel]
        assert words.count("expired") == 3
        assert "del" not in words


def test_orders_to_delete(server):
    """A time of 0 or less, or one that is over, deletes the key in every mode, and no event tells of more."""
    for mode in ("strip_ttl", "no_renewal", "{ttl_set: 3s}", "{ttl_scale: 9}"):
        with proxied(server, profile(mode)) as (proxy, client):
            for call in (("EXPIRE", "k", 0), ("EXPIRE", "k", -1), ("PEXPIREAT", "k", at(-9, 1000)), ("GETEX", "k", "EXAT", at(-9))):  # fmt: skip
                fill(server, life=100)
                client.ask(*call)
                assert server.ask("EXISTS", "k") == 0, (mode, call)
            assert proxy.events() == []


@pytest.mark.parametrize("touched", [False, True])
def test_a_watched_key_that_expires_early(server, touched):
    """A time that was shortened ends as a natural one does: EXEC says what it says without the proxy."""

    def begin(client: Wire, millis: int) -> None:
        server.ask("FLUSHALL")
        client.ask("SET", "k", "v", "PX", millis)
        client.ask("WATCH", "k")

    def outcome(client: Wire, millis: int) -> object:
        begin(client, millis)
        # It may be over before it is watched, where the server was kept from it: then it is begun anew.
        while server.ask("PTTL", "k") < 0:
            client.ask("UNWATCH")
            begin(client, millis)
        if touched:
            wait_for(lambda: server.ask("EXISTS", "k") == 0, "the end of the key")
        else:
            # Nobody may ask for it: that would be noticed.
            time.sleep(1.05)
        client.ask("MULTI")
        client.ask("PING")
        return client.ask("EXEC")

    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    with proxied(server, profile("{ttl_scale: 0.0005}")) as (_, client), server.connect() as direct:
        assert outcome(client, 2_000_000) == outcome(direct, 1000)
    server.ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")


def test_values_that_look_like_options(server):
    """Keys, values and fields called EX, PX, KEEPTTL or FIELDS are what they are."""
    with proxied(server, profile("{ttl_set: 3s}")) as (proxy, client):
        for call in (("SET", "EX", "PX"), ("SET", "PX", "10"), ("RPUSH", "l", "EX", "100"), ("MSET", "EX", "1", "PX", "2"), ("HSET", "h", "EX", "100")):  # fmt: skip
            assert not isinstance(client.ask(*call), WireError)
        assert server.ask("MGET", "EX", "PX") == [b"1", b"2"]
        assert server.ask("LRANGE", "l", "0", "-1") == [b"EX", b"100"]
        assert {server.ask("TTL", key) for key in ("EX", "PX", "l", "h")} == {-1}
        assert proxy.events() == []
