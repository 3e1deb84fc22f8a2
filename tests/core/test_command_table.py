"""The command table agrees with real servers: specs, subcommands, key positions, and odd replies."""

import random
import sys
from types import MappingProxyType

import hiredis
import pytest

from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.key_spec import BeginIndex, FindRange, KeySpec, Unknown
from tests import servers
from tests.calls import KEYS, MISSES, WRITES
from tests.tools import make_command_table
from tests.tools.make_command_table import command_reply
from tests.wire import WireError

TABLE = CommandTable.bundled()
NOTHING = CommandTable(MappingProxyType({}))


def words(text: str) -> list[bytes]:
    return [word.encode() for word in text.split()]


def encoded(call) -> list[bytes]:
    return [word if isinstance(word, bytes) else word.encode() for word in call]


def live_table(server: servers.Server) -> CommandTable:
    return CommandTable.from_reply(command_reply(server), TABLE)


def keys_of(table: CommandTable, args: list[bytes]) -> list[bytes]:
    spec = table.find(args)
    assert spec is not None
    return [args[position] for position in table.key_positions(spec, args)]


# --- the table that ships -------------------------------------------------------------------------


def test_the_file_is_what_the_servers_say():
    """Made anew from the four servers' COMMAND, the file that ships comes out byte for byte."""
    for name in servers.NAMES:
        if reason := servers.available(name):
            pytest.skip(reason)
    made = make_command_table.text_of(make_command_table.union())
    assert made == make_command_table.FILE.read_text()


def test_names_and_listings():
    """What a misspelt word may have meant can be listed."""
    assert {"GET", "CONFIG", "CONFIG|SET", "VADD", "DELIFEQ", "STRALGO"} <= set(TABLE.names)
    assert {"write", "list", "blocking", "pubsub", "transaction"} <= TABLE.categories
    assert {"write", "readonly", "denyoom", "blocking", "no_multi", "movablekeys"} <= TABLE.flags
    assert not any(word.startswith("@") for word in TABLE.categories)
    assert "POST" not in TABLE.specs


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("get k", "GET"),
        ("gEt k", "GET"),
        ("CONFIG SET a b", "CONFIG|SET"),
        ("config sEt a b", "CONFIG|SET"),
        ("config nosuch", "CONFIG"),
        ("config", "CONFIG"),
        ("xgroup create k g 0", "XGROUP|CREATE"),
        ("object encoding k", "OBJECT|ENCODING"),
        ("get encoding", "GET"),
    ],
)
def test_find(text, name):
    """The subcommand's spec where there is one, the container's otherwise, in any case of letters."""
    spec = TABLE.find(words(text))
    assert spec is not None
    assert spec.name == name


@pytest.mark.parametrize(
    "args", [[], [None], [b""], [b"nosuch"], [b"config|set", b"a"], [b"\xff\x00"]]
)
def test_find_nothing(args):
    """A command that is none has no spec; a bar in a name makes no subcommand of it."""
    assert TABLE.find(args) is None


def test_find_without_the_subcommand():
    """A subcommand too large to have been kept is none that is known."""
    spec = TABLE.find([b"CONFIG", None])
    assert spec is not None
    assert spec.name == "CONFIG"


def test_writes():
    """Scripts count as writes by their keys, their read-only forms and PFCOUNT do not."""
    writes = {name for name, spec in TABLE.specs.items() if spec.is_write}
    assert {"SET", "EVAL", "EVALSHA", "FCALL", "XGROUP|CREATE", "FUNCTION|LOAD", "SORT"} <= writes
    reads = {
        "GET",
        "EVAL_RO",
        "FCALL_RO",
        "PFCOUNT",
        "XINFO|STREAM",
        "SPUBLISH",
        "PUBLISH",
        "WATCH",
    }
    assert not writes & (reads | {"XGROUP", "CONFIG|SET", "SELECT"})
    assert not any({"write", "readonly"} <= spec.flags for spec in TABLE.specs.values())


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("TDIGEST.MERGE to 2 a b OVERRIDE", [1, 3, 4]),
        ("CMS.MERGE to 1 a WEIGHTS 1", [1, 3]),
        ("JSON.MGET a b $", [1, 2]),
        ("JSON.SET a $ 1", [1]),
    ],
)
def test_keys_of_modules(text, keys):
    """More than the module says of them, where it says too little."""
    name = text.split()[0].lower().encode()
    entry = [name, -2, [b"write", b"module"], 1, 1, 1, [], [], [], []]
    table = CommandTable.from_reply([entry], TABLE)
    spec = table.find(words(text))
    assert spec is not None
    assert list(table.key_positions(spec, words(text))) == keys


# --- live servers ---------------------------------------------------------------------------------


def test_the_same_keys_as_the_server(any_server):
    """For real calls of every command: the keys are those of COMMAND GETKEYS, by both tables."""
    live = live_table(any_server)
    compared: set[str] = set()
    for call in (*KEYS, *WRITES, *MISSES):
        args = encoded(call)
        spec = live.find(args)
        # Not a command of this version, or not yet with that many arguments.
        if spec is None or (spec.arity > 0 and len(args) != spec.arity):
            continue
        theirs = any_server.ask("COMMAND", "GETKEYS", *args)
        if isinstance(theirs, WireError):
            # That it has no keys is said in several ways; that the call is wrong would be our mistake.
            assert "Invalid command" not in theirs, call
            assert "Invalid number" not in theirs, call
            theirs = []
        assert sorted(keys_of(live, args)) == sorted(theirs), call
        assert sorted(keys_of(TABLE, args)) == sorted(theirs), call
        compared.add(spec.name)
    with_keys = {name for name, spec in live.specs.items() if spec.key_specs}
    # Nothing with keys is left out, but what only this server's own cluster or subscribers use.
    apart = {"RESTORE-ASKING", "PFDEBUG", "SSUBSCRIBE", "SUNSUBSCRIBE"}
    assert with_keys - compared <= apart | CONTAINERS.get(any_server.name, set())


VOCABULARY = words(
    "KEYS STREAMS STORE BY GET LIMIT AUTH AUTH2 COUNT 1 2 3 0 -1 a b k keys store COPY x"
)
# By their words alone these are not to be told from a syntax error: two destinations, or one at the unit's
# place, of which the server takes the last.
LOOSE = {"GEORADIUS", "GEORADIUSBYMEMBER"}
# Without a group Redis 7.0 finds keys all the same, and then refuses the call.
NEEDED = {"XREADGROUP": words("GROUP a b")}


@pytest.mark.servers("redis70", "redis82", "valkey9")
def test_the_same_keys_for_random_arguments(server):
    """Whatever stands in a call that the server finds keys in, we find the same."""
    live = live_table(server)
    # Each server lists its commands in another order each time; the calls are to be the same.
    names = sorted(live.specs.keys() - LOOSE)
    specs = [live.specs[name] for name in names if live.specs[name].key_specs]
    draw = random.Random(7)
    compared = 0
    for _ in range(3000):
        spec = draw.choice(specs)
        args = [*words(spec.name.replace("|", " ")), *NEEDED.get(spec.name, [])]
        more = abs(spec.arity) - len(args) + (draw.randrange(6) if spec.arity < 0 else 0)
        args += [draw.choice([*VOCABULARY, b""]) for _ in range(more)]
        theirs = server.ask("COMMAND", "GETKEYS", *args)
        ours = keys_of(live, args)
        if isinstance(theirs, WireError):
            assert not ours or "no key" not in theirs, args
        else:
            assert sorted(ours) == sorted(theirs), args
            compared += 1
    assert compared > 2000


# A command that takes more or other arguments since.
ARITIES = {
    "redis62": {
        "EXPIRE",
        "EXPIREAT",
        "PEXPIRE",
        "PEXPIREAT",
        "PFDEBUG",
        "XSETID",
        "ZRANK",
        "ZREVRANK",
    },
    "redis70": {
        *("CLUSTER|REPLICATE", "COMMAND|GETKEYS", "COMMAND|GETKEYSANDFLAGS", "SCRIPT|DEBUG"),
        *("ZRANK", "ZREVRANK"),
    },
    "redis82": {"CLUSTER|REPLICATE", "SCRIPT|DEBUG"},
    "valkey9": set(),
}
# Before 7.0 a container speaks for its subcommands.
CONTAINERS = {"redis62": {"MEMORY", "OBJECT", "XGROUP", "XINFO"}}


def test_the_specs_agree(any_server):
    """Where server and table both know a command they agree, but for known changes between versions.

    Arity, where the keys stand, and whether it reads or writes: what differs is exactly what is listed.
    """
    live = live_table(any_server)
    arities, kinds, keys = set(), set(), set()
    for name in live.specs.keys() & TABLE.specs.keys():
        theirs, ours = live.specs[name], TABLE.specs[name]
        if theirs.arity != ours.arity:
            arities.add(name)
        if kind(theirs) != kind(ours):
            kinds.add(name)
        if rules(theirs) != rules(ours):
            keys.add(name)
        assert (theirs.reply, theirs.miss) == (ours.reply, ours.miss)
    containers = CONTAINERS.get(any_server.name, set())
    assert arities == ARITIES[any_server.name]
    assert kinds == containers
    assert keys == containers - {"MEMORY"}
    assert live.specs.keys() - TABLE.specs.keys() <= {"POST", "HOST:"}


def kind(spec: CommandSpec) -> tuple[bool, bool]:
    return spec.is_write, "readonly" in spec.flags


def rules(spec: CommandSpec) -> list[tuple[object, object]]:
    return [(key.begin, key.find) for key in spec.key_specs]


def test_what_a_server_does_not_know_is_not_in_its_table(redis70):
    """A newer command is unknown to an older server's table, and so to whoever asks it."""
    live = live_table(redis70)
    assert live.find([b"DELIFEQ", b"k", b"v"]) is None
    assert live.find([b"CLIENT", b"NO-TOUCH", b"on"]).name == "CLIENT"


def test_before_7_0_the_rest_comes_from_the_base(redis62):
    """A server that tells neither key specs nor subcommands gets the base's; blocking is told by category."""
    live = live_table(redis62)
    assert live.find(words("XGROUP CREATE k g 0")).name == "XGROUP|CREATE"
    assert keys_of(live, words("XREAD STREAMS a b 0 0")) == [b"a", b"b"]
    assert "blocking" in live.specs["BLPOP"].flags
    assert live.specs["EVAL"].is_write
    assert live.specs["SET"].reply == TABLE.specs["SET"].reply
    # Without a base its own words do: first key, last key, step.
    bare = CommandTable.from_reply(command_reply(redis62), NOTHING)
    assert keys_of(bare, words("MSET a 1 b 2")) == [b"a", b"b"]
    assert keys_of(bare, words("GET a")) == [b"a"]
    assert keys_of(bare, words("BLPOP a b 0")) == [b"a", b"b"]


def test_resp3_gives_the_same_table(valkey9):
    """Sets and maps in the reply instead of lists make no difference."""
    with valkey9.connect(resp=3) as client:
        reader = hiredis.Reader()
        reader.feed(client.raw("COMMAND"))
    assert CommandTable.from_reply(reader.gets(), TABLE) == live_table(valkey9)


def test_an_acl_that_forbids_command(redis70):
    """What such a server answers instead is no table: the caller keeps the one it has."""
    redis70.ask("ACL", "SETUSER", "lim", "on", ">pw", "~*", "+@all", "-command")
    with redis70.connect() as client:
        client.ask("AUTH", "lim", "pw")
        reader = hiredis.Reader()
        reader.feed(client.raw("COMMAND"))
    with pytest.raises(ValueError, match=r"not a COMMAND reply.*NOPERM"):
        CommandTable.from_reply(reader.gets(), TABLE)


GET = [b"get", 2, [b"readonly"], 1, 1, 1, [b"@read"], [], [], []]


@pytest.mark.parametrize(
    "reply",
    [
        *(
            None,
            b"",
            5,
            {},
            [],
            [None],
            [[]],
            [b"get"],
            [[b"get"]],
            [[b"get", b"2", [], 1, 1, 1, []]],
        ),
        [[*GET[:2], b"readonly", *GET[3:]]],
        [[*GET[:2], [5], *GET[3:]]],
        [[*GET[:8], [b"no spec"], []]],
        [[*GET[:8], [[b"flags"]], []]],
        [[*GET[:8], [[b"flags", [], b"begin_search", []]], []]],
        [[*GET[:9], [b"no subcommand"]]],
        [hiredis.ReplyError("ERR")],
    ],
)
def test_what_is_no_command_reply(reply):
    """Anything else in the place of COMMAND's reply is a ValueError, whatever it is."""
    with pytest.raises(ValueError, match=r"^not a"):
        CommandTable.from_reply(reply, TABLE)


def test_a_reply_that_is_nested_deeper_than_can_be_shown():
    """It is a ValueError as any other: not every decoder refuses such a one."""
    deep = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^not a COMMAND entry: lists in lists$"):
        CommandTable.from_reply([deep], TABLE)


def test_unknown_names_in_an_answer_to_command_info():
    """COMMAND INFO answers null for a name it does not know; the others count."""
    table = CommandTable.from_reply([None, GET], NOTHING)
    assert table.names == ("GET",)
    assert table.specs["GET"].key_specs == (
        KeySpec(frozenset(), BeginIndex(1), FindRange(0, 1, 0)),
    )


def test_a_key_spec_of_a_later_kind():
    """A way to find keys that is not known yet makes the spec unknown, and costs no other command."""
    spec = [b"flags", [b"RO"], b"begin_search", [b"type", b"oracle", b"spec", [b"x", 1]]]
    spec += [b"find_keys", [b"type", b"range", b"spec", [b"lastkey", b"x"]]]
    table = CommandTable.from_reply([[*GET[:8], [spec], []]], NOTHING)
    (read,) = table.specs["GET"].key_specs
    assert (read.begin, read.find) == (Unknown(), Unknown())
    assert table.key_positions(table.specs["GET"], [b"GET", b"k"]) == ()
