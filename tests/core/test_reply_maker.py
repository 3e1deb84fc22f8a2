"""Made replies: what absent keys answer, byte for byte as servers do, and writes' of the right type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core import reply_maker
from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandSpec, CommandTable
from chaosproxy.core.reply_shape import choose
from tests.calls import MISSES, writes
from tests.shapes import fits
from tests.tools.make_command_table import command_reply
from tests.wire import decode, reply_end

TABLE = CommandTable.bundled()


def command(text: str, table: CommandTable = TABLE) -> Command:
    return Command.parse(table, [word.encode() for word in text.split(" ")], b"")


def shaped(reply: str, *args: bytes | None) -> Command:
    """Make a command that is answered in this shape."""
    spec = CommandSpec("X", -1, frozenset(), frozenset(), (), reply, reply)
    return Command((b"X", *args), b"", spec, "X", (1,))


# Redis 6.2 answers these differently from all later servers; the table is the later ones'.
OLD_MISSES = {
    "GEORADIUS k 1 1 1 km STORE d": b"*0\r\n",
    "GEORADIUSBYMEMBER k m 1 km STOREDIST d": b"*0\r\n",
    "GEOSEARCHSTORE d k FROMLONLAT 1 1 BYRADIUS 1 km": b"*0\r\n",
    "LPOP k 2": b"$-1\r\n",
    "RPOP k 2": b"$-1\r\n",
}
# Options that came with 7.2.
NEWER = {"ZRANK k m WITHSCORE", "ZREVRANK k m WITHSCORE"}


@pytest.mark.parametrize("protocol", [2, 3])
def test_misses_are_the_servers_own(any_server, protocol):
    """What a command answers for absent keys is made byte for byte as each live server answers it."""
    live = CommandTable.from_reply(command_reply(any_server), TABLE)
    tried: set[str] = set()
    with any_server.connect(resp=protocol) as client:
        for call in MISSES:
            text = " ".join(call)
            made = command(text, live)
            if made.spec is None or (any_server.version < (7, 2) and text in NEWER):
                continue
            any_server.ask("FLUSHALL")
            real, ours = client.raw(*call), reply_maker.miss(made, protocol)
            tried.add(made.name)
            if any_server.version < (7,) and text in OLD_MISSES and protocol == 2:
                assert real == OLD_MISSES[text]
                assert ours != real
            elif any_server.version < (7,) and "STORE" in text and "GEO" in text:
                assert real == OLD_MISSES[text]
            else:
                assert ours == real, text
    assert {name for name, spec in live.specs.items() if spec.miss} == tried


def test_every_read_of_a_key_has_a_miss():
    """No command that reads keys is without an answer for absent ones, but scripts and what reads none."""
    none = {
        name
        for name, spec in TABLE.specs.items()
        if spec.key_specs and not spec.is_write and not spec.miss
    }
    assert none == {
        *("EVAL_RO", "EVALSHA_RO", "FCALL_RO", "WATCH"),
        *("SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE"),
        # They tell by the data set, not by a key; the oldest is gone since 7.0.
        *("CLUSTERSCAN", "STRALGO"),
    }


@pytest.mark.parametrize("protocol", [2, 3])
def test_plausible_replies_have_the_commands_shape(any_server, protocol):
    """For every write call a reply is made that a client can read and that has the command's shape."""
    nothing = set()
    for call in writes(any_server):
        words = [word if isinstance(word, bytes) else word.encode() for word in call]
        made = Command.parse(TABLE, words, b"")
        raw = reply_maker.plausible(made, protocol, 1_700_000_000_000)
        if raw is None:
            nothing.add(made.name)
            continue
        node = choose(made.spec.reply, made)
        assert node is not None
        assert fits(node, raw, protocol), (call, raw)
    assert nothing == {"EVAL", "EVALSHA", "FCALL", "PFDEBUG"}


@pytest.mark.parametrize(
    ("text", "resp2", "resp3"),
    [
        ("RPUSH l a b c", b":3\r\n", b":3\r\n"),
        ("HSET h a 1 b 2", b":2\r\n", b":2\r\n"),
        ("DEL a b", b":2\r\n", b":2\r\n"),
        ("INCRBY n -5", b":-5\r\n", b":-5\r\n"),
        ("APPEND k abc", b":3\r\n", b":3\r\n"),
        ("INCRBYFLOAT k 1.5", b"$3\r\n1.5\r\n", b"$3\r\n1.5\r\n"),
        ("SET k v", b"+OK\r\n", b"+OK\r\n"),
        ("SET k v GET", b"$-1\r\n", b"_\r\n"),
        ("LPOP k 2", b"*-1\r\n", b"_\r\n"),
        ("SPOP k 2", b"*0\r\n", b"~0\r\n"),
        ("ZINCRBY z 2.5 m", b"$3\r\n2.5\r\n", b",2.5\r\n"),
        ("ZINCRBY z x m", b"$1\r\n0\r\n", b",0\r\n"),
        ("ZADD z INCR 2 m", b"$1\r\n2\r\n", b",2\r\n"),
        ("XADD x * f v", b"$7\r\n12345-0\r\n", b"$7\r\n12345-0\r\n"),
        ("XADD x 7-1 f v", b"$3\r\n7-1\r\n", b"$3\r\n7-1\r\n"),
        ("BITFIELD k GET u8 0 SET u8 0 1", b"*2\r\n:1\r\n:1\r\n", b"*2\r\n:1\r\n:1\r\n"),
        ("HEXPIRE h 9 FIELDS 2 a b", b"*2\r\n:1\r\n:1\r\n", b"*2\r\n:1\r\n:1\r\n"),
        ("VREM v e", b":1\r\n", b"#t\r\n"),
    ],
)
def test_plausible_values(text, resp2, resp3):
    """Numbers, values and lengths follow from the call where they can."""
    assert reply_maker.plausible(command(text), 2, 12345) == resp2
    assert reply_maker.plausible(command(text), 3, 12345) == resp3


def test_none_for_what_is_not_known():
    """A command the table does not know, and one without a shape, get no invented reply."""
    assert reply_maker.plausible(command("NOSUCH a"), 2) is None
    assert reply_maker.miss(command("NOSUCH a"), 2) is None
    assert reply_maker.plausible(command("GET a"), 2) is None
    assert reply_maker.miss(command("SET a b"), 2) is None


def test_pairs_and_maps():
    """A pair is flat in RESP2's arrays and nested in RESP3's, and in a map the other way round."""
    pairs = shaped("[<bulk score>...n1]", b"k")
    assert reply_maker.plausible(pairs, 2) == b"*2\r\n$0\r\n\r\n$1\r\n1\r\n"
    assert reply_maker.plausible(pairs, 3) == b"*1\r\n*2\r\n$0\r\n\r\n,1\r\n"
    mapped = shaped("{<bulk int>...n1}", b"k")
    assert reply_maker.plausible(mapped, 2) == b"*1\r\n*2\r\n$0\r\n\r\n:1\r\n"
    assert reply_maker.plausible(mapped, 3) == b"%1\r\n$0\r\n\r\n:1\r\n"


def test_arguments_in_an_error_stay_on_its_line():
    """A key with a line end in it cannot end the error early."""
    made = reply_maker.miss(shaped("!ERR no {key} and {2}", b"a\r\nb", None), 2)
    assert made == b"-ERR no a  b and \r\n"


def test_a_count_the_client_invented():
    """FIELDS 1000000000 with one field makes no reply of a gigabyte."""
    made = reply_maker.miss(command("HTTL k FIELDS 1000000000 a"), 2)
    assert made is not None
    assert len(decode(made)) <= 5
    assert reply_maker.miss(command("HTTL k FIELDS -1 a"), 2) == b"*0\r\n"
    assert reply_maker.miss(command("HTTL k FIELDS"), 2) == b"*0\r\n"


WORDS = st.sampled_from(
    [b"GET", b"FIELDS", b"IDS", b"STORE", b"COUNT", b"JUSTID", b"1", b"-1", b"x", b""]
)


@given(
    st.sampled_from([name for name, spec in TABLE.specs.items() if spec.reply or spec.miss]),
    st.lists(WORDS | st.none() | st.binary(max_size=3), max_size=8),
    st.sampled_from([2, 3]),
)
def test_any_arguments_make_one_whole_reply(name, args, protocol):
    """Whatever a client sends, a made reply is exactly one reply, and making it raises nothing."""
    made = Command.parse(TABLE, [*name.encode().split(b"|"), *args], b"")
    for raw in (reply_maker.plausible(made, protocol), reply_maker.miss(made, protocol)):
        assert raw is None or reply_end(raw) == len(raw)
