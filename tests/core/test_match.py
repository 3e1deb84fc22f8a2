"""Which exchanges a rule is about: every field alone, in combination, and what it does not hold for."""

import pytest

from chaosproxy.core.command import Command, key_slot
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.match import CompiledMatch, Exchange, reply_holds, share_of
from chaosproxy.core.units import ReplyTest
from tests.conversation import Talk, command, profile, reply

TABLE = CommandTable.bundled()


def exchange(text: str, **around) -> Exchange:
    """A command as an exchange; `around` is what stands around it."""
    args = tuple(word.encode() for word in text.split())
    where = {"connection": 1, "client": b"", "address": "10.0.0.9", "db": 0, **around}
    return Exchange(Command.parse(TABLE, args, command(text)), **where)


def compiled(match: str, fired_at=None, first: int = 1) -> CompiledMatch:
    rule = profile(f"- {{fault: latency, match: {{{match}}}, at: after_apply, delay: 1s}}").rules[0]
    return CompiledMatch(rule.match, 7, rule.name, (fired_at or {}).get, first)


def holds(match: str, text: str, **around) -> bytes | bool | None:
    """The key a match holds for (True where the command has none), False where it does not hold."""
    found, key = compiled(match).holds(exchange(text, **around))
    return (True if key is None else key) if found else False


@pytest.mark.parametrize(
    ("match", "text", "held"),
    [
        ("", "GET k", b"k"),
        ("", "PING", True),
        ("", "NOSUCH k", True),
        ("commands: GET", "get k", b"k"),
        ("commands: get", "GET k", b"k"),
        ("commands: GET", "SET k v", False),
        ("commands: [SET, GET]", "GET k", b"k"),
        ("commands: CONFIG", "CONFIG SET a b", True),
        ("commands: CONFIG|SET", "config set a b", True),
        ("commands: CONFIG|SET", "CONFIG GET a", False),
        ("commands: CONFIG|SET", "CONFIG", False),
        ("commands: '@write'", "SET k v", b"k"),
        ("commands: '@write'", "GET k", False),
        ("commands: '@list'", "LPUSH k v", b"k"),
        ("commands: '@blocking'", "BLPOP k 0", b"k"),
        ("commands: '@denyoom'", "SET k v", b"k"),
        ("commands: '@readonly'", "GET k", b"k"),
        ("commands: '@pubsub'", "SUBSCRIBE c", True),
        ("commands: '@write'", "NOSUCH k", False),
        ("commands: ['@list', GET]", "GET k", b"k"),
        ("keys: k", "GET k", b"k"),
        ("keys: k", "GET kk", False),
        ("keys: 'chat:*'", "LPUSH chat:1 v", b"chat:1"),
        ("keys: ['a*', 'b*']", "GET b1", b"b1"),
        ("keys: b", "MGET a b c", b"b"),
        ("keys: k", "PING", False),
        ("keys: k", "SET x k", False),
        ("keys: k", "EVAL script 1 k arg", b"k"),
        ("keys: arg", "EVAL script 1 k arg", False),
        ("keys: s", "XREADGROUP GROUP g c STREAMS s >", b"s"),
        ("keys: b", "ZUNIONSTORE d 2 a b", b"b"),
        ("keys: d", "ZUNIONSTORE d 2 a b", b"d"),
        ("slots: 15495", "GET a", b"a"),
        ("slots: 0-100", "GET a", False),
        ("slots: [0-100, 15000-16383]", "MGET nosuch a", b"a"),
        ("keys: 'a*', slots: 15495", "MGET b a", b"a"),
        ("keys: 'b*', slots: 15495", "MGET b a", False),
        ("key_share: 100%", "GET a", b"a"),
        ("key_share: 0.000000001%", "GET a", False),
        ("key_share: 100%", "PING", False),
        ("arguments: {has: nx}", "SET k v NX", b"k"),
        ("arguments: {has: NX}", "SET k v XX", False),
        ("arguments: {has: NX}", "SET NX v", False),
        ("arguments: {has: v}", "SET k V", b"k"),
        ("arguments: {has: GET}", "GET k", False),
        ("arguments: {has: SET}", "CONFIG SET a b", False),
        ("arguments: {contains: ON}", "SET k DONE", b"k"),
        ("arguments: {contains: on}", "SET k DONE", False),
        ("arguments: {has: DONE, contains: ON}", "SET k DONE", b"k"),
        ("arguments: {has: DONE, contains: OFF}", "SET k DONE", False),
        ("arguments: {contains: k}", "GET k", False),
    ],
)
def test_the_command(match, text, held):
    """Names, categories, flags, keys by their positions, slots, arguments that are no keys."""
    assert holds(match, text) == held


def test_arguments_too_large_to_have_been_kept():
    """An argument of which nothing is known passes no test; the others are still looked at."""
    found = exchange("SET k v NX")
    found.command = Command.parse(TABLE, (b"SET", b"k", None, b"NX"), b"")
    assert compiled("arguments: {has: NX}").holds(found) == (True, b"k")
    assert compiled("arguments: {contains: v}").holds(found) == (False, None)


@pytest.mark.parametrize(
    ("match", "handshake", "held"),
    [
        ("", False, True),
        ("", True, False),
        ("commands: HELLO", True, True),
        ("commands: '@handshake'", True, True),
        ("commands: '@handshake'", False, False),
        ("commands: ['@handshake', GET]", True, True),
    ],
)
def test_a_handshake(match, handshake, held):
    """What a client says to introduce itself is left alone, unless it is asked for."""
    assert holds(match, "HELLO 3", handshake=handshake) is held


@pytest.mark.parametrize(
    ("match", "around", "held"),
    [
        ("db: 1", {"db": 1}, True),
        ("db: 1", {"db": 0}, False),
        ("clients: 'worker-*'", {"client": b"worker-1"}, True),
        ("clients: 'worker-*'", {"client": b"web"}, False),
        ("clients: 'worker-*'", {}, False),
        ("clients: {name: web, address: '10.*'}", {"client": b"web"}, True),
        ("clients: {name: web, address: '11.*'}", {"client": b"web"}, False),
        ("clients: {address: '10.0.0.*'}", {}, True),
        ("connection: {nth: 2}", {"connection": 2}, True),
        ("connection: {nth: 2}", {"connection": 3}, False),
        ("connection: {state: watching}", {"states": ("transaction", "watching")}, True),
        ("connection: {state: blocked}", {"states": ("watching",)}, False),
        ("connection: {listener: node-2}", {"listener": "node-2"}, True),
        ("connection: {listener: node-2}", {"listener": "node-1"}, False),
        ("connection: {listener: redis}", {}, True),
        ("connection: {listener: node-2, nth: 1}", {"listener": "node-2"}, True),
        ("connection: {listener: node-2, nth: 2}", {"listener": "node-2"}, False),
        ("batch: {index: 2}", {"place": 2}, True),
        ("batch: {index: 2}", {"place": 1}, False),
        ("batch: {index: last}", {"last": True}, True),
        ("batch: {index: last}", {"last": False}, False),
    ],
)
def test_the_connection(match, around, held):
    """Its database, its client, its number, its state, its listener, its place in a batch."""
    assert holds(match, "PING", **around) is held


@pytest.mark.parametrize(
    ("match", "fired", "opened", "held"),
    [
        ("opened_before: other", 10.0, 5.0, True),
        ("opened_before: other", 10.0, 10.0, False),
        ("opened_before: other", None, 5.0, False),
        ("opened_after: other", 10.0, 10.0, True),
        ("opened_after: other", 10.0, 5.0, False),
        ("opened_after: other", None, 5.0, False),
    ],
)
def test_opened_before_and_after(match, fired, opened, held):
    """When the connection was opened, against the first firing of another fault."""
    rules = profile(f"""
- {{fault: latency, name: other, at: after_apply, delay: 1s}}
- {{fault: latency, match: {{connection: {{{match}}}}}, at: after_apply, delay: 1s}}
""").rules
    test = CompiledMatch(rules[1].match, 7, "rule", {"other": fired}.get, 1)
    assert test.holds(exchange("PING", opened=opened))[0] is held


def test_connections_are_counted_from_when_the_profile_came_into_force():
    """`nth` counts from the first connection of this generation."""
    assert compiled("connection: {nth: 2}", first=11).holds(exchange("PING", connection=12))[0]
    assert not compiled("connection: {nth: 2}", first=11).holds(exchange("PING", connection=2))[0]


DELETED = TABLE.specs["DEL"]


@pytest.mark.parametrize(
    ("match", "text", "around", "held"),
    [
        ("after: {command: DEL}", "SET k v", {"before_on_key": {b"k": DELETED}}, b"k"),
        ("after: {command: DEL}", "SET k v", {"before": DELETED}, False),
        ("after: {command: '@keyspace'}", "SET k v", {"before_on_key": {b"k": DELETED}}, b"k"),
        ("after: {command: GET}", "SET k v", {"before_on_key": {b"k": DELETED}}, False),
        ("after: {command: DEL}", "MSET a 1 k 2", {"before_on_key": {b"k": DELETED}}, b"k"),
        (
            "after: {command: DEL}, keys: a",
            "MSET a 1 k 2",
            {"before_on_key": {b"k": DELETED}},
            False,
        ),
        ("after: {command: DEL}", "PING", {"before": DELETED}, False),
        ("after: {command: DEL, same: connection}", "PING", {"before": DELETED}, True),
        ("after: {command: DEL, same: connection}", "GET k", {"before": DELETED}, b"k"),
        ("after: {command: DEL, same: connection}", "GET k", {}, False),
    ],
)
def test_after(match, text, around, held):
    """What came before it, on any of its keys or on its connection."""
    assert holds(match, text, **around) == held


@pytest.mark.parametrize(
    ("match", "kind", "channel", "held"),
    [
        ("push: {kind: message}", "message", "news", b"news"),
        ("push: {kind: message}", "pmessage", "news", False),
        ("push: {channel: 'n*'}", "message", "news", b"news"),
        ("push: {channel: ['a*', 'n*']}", "message", "news", b"news"),
        ("push: {channel: 'x*'}", "message", "news", False),
        ("push: {kind: message}, db: 1", "message", "news", False),
    ],
)
def test_a_push(match, kind, channel, held):
    """A frame nobody asked for: its kind, its channel, the connection it comes on."""
    frame = exchange("PING", push=True)
    frame.command = Command((kind.encode(), channel.encode()), b"", None, kind, (1,))
    found, key = compiled(match).holds(frame)
    assert (key if found else False) == held


def test_any_push():
    """A fault for pushes without `match: push` is about all of them."""
    rule = profile("- {fault: push, do: drop}").rules[0]
    frame = exchange("PING", push=True)
    frame.command = Command((b"message", b"news"), b"", None, "message", (1,))
    assert CompiledMatch(rule.match, 7, rule.name, {}.get, 1).holds(frame) == (True, b"news")


def test_the_share_of_keys_is_stable():
    """A quarter of all keys, the same ones for one seed and fault name, others for another."""
    keys = [b"key:%d" % n for n in range(4000)]
    mine = {key for key in keys if share_of(b"7/slow/", key) < 0.25}
    assert 900 < len(mine) < 1100
    assert mine == {key for key in keys if share_of(b"7/slow/", key) < 0.25}
    other = {key for key in keys if share_of(b"8/slow/", key) < 0.25}
    assert 150 < len(mine & other) < 350
    chosen = [
        key for key in keys if compiled("key_share: 25%").holds(exchange(f"GET {key.decode()}"))[0]
    ]
    assert 900 < len(chosen) < 1100


def test_slots():
    """A slot is the one the server counts."""
    assert key_slot(b"a") == 15495


@pytest.mark.parametrize(
    ("test", "raw", "held"),
    [
        (ReplyTest(error=b"WRONGTYPE"), "-WRONGTYPE Operation", True),
        (ReplyTest(error=b"WRONGTYPE"), "-ERR Operation", False),
        (ReplyTest(error=b"WRONGTYPE"), "+WRONGTYPE", False),
        (ReplyTest(error=b"ERR"), b"!5\r\nERR x\r\n", True),
        (ReplyTest(error=b"ERR"), b"!5\r\nBAD x\r\n", False),
        (ReplyTest(larger_than=5), '"abc"', True),
        (ReplyTest(larger_than=9), '"abc"', False),
        (ReplyTest(type="null"), "$-1", True),
        (ReplyTest(type="null"), "*-1", True),
        (ReplyTest(type="null"), "_", True),
        (ReplyTest(type="null"), ":-1", False),
        (ReplyTest(type="integer"), ":-1", True),
        (ReplyTest(type="integer"), ":7", True),
        (ReplyTest(type="integer"), "+7", False),
        (ReplyTest(type="bulk"), '""', True),
        (ReplyTest(type="bulk"), "$-1", False),
        (ReplyTest(type="array"), "*[]", True),
        (ReplyTest(type="array"), "*-1", False),
        (ReplyTest(type="map"), "%[:1 :2]", True),
        (ReplyTest(type="set"), "~[:1]", True),
        (ReplyTest(type="double"), ",-1.5", True),
        (ReplyTest(type="boolean"), "#t", True),
        (ReplyTest(type="big_number"), "(-123", True),
        (ReplyTest(type="verbatim"), b"=7\r\ntxt:abc\r\n", True),
        (ReplyTest(type="simple"), "+-1", True),
        (ReplyTest(type="error"), "-1", True),
        (ReplyTest(type="error"), b"!3\r\nERR\r\n", True),
        (ReplyTest(error=b"ERR", type="integer"), "-ERR x", False),
        (ReplyTest(type="bulk", larger_than=100), '"abc"', False),
    ],
)
def test_the_reply(test, raw, held):
    """Its error, its type in either protocol, its size on the wire."""
    assert reply_holds(test, reply(raw)) is held


@pytest.mark.parametrize(
    ("match", "name", "interested"),
    [
        ("", "ANYTHING", True),
        ("commands: GET", "GET", True),
        ("commands: GET", "SET", False),
        ("commands: CONFIG|SET", "CONFIG", True),
        ("commands: CONFIG", "CONFIGX", False),
        ("commands: '@handshake'", "HELLO", True),
        ("commands: '@write'", "SET", True),
        ("commands: '@write'", "GET", False),
        ("commands: '@write'", "NOSUCH", False),
        ("commands: '@admin'", "CONFIG", True),
    ],
)
def test_interest(match, name, interested):
    """What a first argument alone rules out is ruled out once; subcommands count for it."""
    engine = Talk(
        f"- {{fault: latency, match: {{{match}}}, at: after_apply, delay: 1s}}"
    ).world.engine
    assert bool(engine.interest(name)) is interested


def test_matched_by_reply():
    """A rule that looks at the reply counts the replies it holds for, and acts on those only."""
    rule = "- {fault: disconnect, match: {commands: GET, reply: {type: 'null'}}, when: {nth: 2}, at: after_apply}"
    with Talk(rule) as talk:
        talk.handshake("GET a", "$-1")
        talk.handshake("GET b", '"B"')
        talk.client("GET c")
        talk.expect_upstream("GET c")
        talk.upstream("$-1")
        talk.expect_closed("reset")
        assert talk.matched("disconnect") == 2
        assert talk.skipped("disconnect") == ["nth"]


def test_matched_by_what_stands_around():
    """The connection's state, the batch and the command before are those of the moment the command's turn comes."""
    rules = """
- {fault: reply, name: watching, match: {commands: GET, connection: {state: watching}}, at: before_forward, value: w}
- {fault: reply, name: second, match: {commands: GET, batch: {index: 2}}, at: before_forward, value: s}
- {fault: reply, name: after-del, match: {commands: GET, after: {command: DEL}}, at: before_forward, value: d}
- {fault: reply, name: after-ping, match: {commands: GET, after: {command: PING, same: connection}}, at: before_forward, value: p}
"""
    with Talk(rules) as talk, talk.another() as other:
        talk.handshake("GET a", '"A"')
        talk.handshake("WATCH k", "+OK")
        talk.client("GET a")
        talk.expect_client('"w"')
        talk.handshake("UNWATCH", "+OK")
        talk.client("GET a", "GET b", "GET c")
        talk.expect_upstream("GET a", "GET c")
        talk.upstream('"A"', '"C"')
        talk.expect_client('"A"', '"s"', '"C"')
        other.handshake("DEL a b", ":2")
        talk.client("GET b")
        talk.expect_client('"d"')
        talk.handshake("GET b", '"B"')
        talk.handshake("PING", "+PONG")
        talk.client("GET b")
        talk.expect_client('"p"')


def test_the_place_in_a_transaction():
    """Between MULTI and EXEC places are counted among its commands; the last is the one before EXEC."""
    rules = """
- {fault: reply, name: second, match: {batch: {index: 2}}, at: before_forward, value: s}
- {fault: reply, name: last, match: {commands: GET, batch: {index: last}}, at: before_forward, value: l}
"""
    with Talk(rules) as talk:
        talk.handshake("MULTI", "+OK")
        talk.client("GET a", "GET b", "GET c", "GET d", "EXEC")
        for command_ in ("GET a", "GET c"):
            talk.expect_upstream(command_)
            talk.upstream("+QUEUED")
        talk.expect_upstream("EXEC")
        talk.expect_client("+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED")
        talk.upstream('*["A" "C"]')
        talk.expect_client('*["A" "s" "C" "l"]')
