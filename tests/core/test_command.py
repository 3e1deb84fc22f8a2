"""A Command: name, keys and digest of what a client sent; hash slots as the server computes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaosproxy.core.command import SLOTS, Command, key_slot
from chaosproxy.core.command_table import CommandTable
from tests import servers
from tests.wire import encode

TABLE = CommandTable.bundled()


def parse(*args: bytes | None) -> Command:
    return Command.parse(TABLE, args, encode(*(arg or b"" for arg in args)))


def test_a_known_command():
    """Its name is the table's, its keys stand where the key specs say, its arguments are as sent."""
    command = parse(b"mSet", b"a", b"1", b"b", b"2")
    assert command.name == "MSET"
    assert command.args[0] == b"mSet"
    assert command.key_positions == (1, 3)
    assert command.keys == (b"a", b"b")
    assert command.spec is TABLE.specs["MSET"]
    assert parse(b"config", b"set", b"a", b"b").name == "CONFIG|SET"


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ((b"nosuch", b"k"), "NOSUCH"),
        ((b"\xff\n",), "\\xff\n"),
        ((b"",), ""),
        ((None, b"k"), ""),
        ((), ""),
    ],
)
def test_an_unknown_command(args, name):
    """It is called as it was sent, in upper case, and has no keys."""
    command = parse(*args)
    assert command.spec is None
    assert command.name == name
    assert command.keys == ()


def test_a_key_too_large_to_be_kept():
    """Its position is known, its bytes are not."""
    command = parse(b"MGET", b"a", None)
    assert command.key_positions == (1, 2)
    assert command.keys == (b"a",)


def test_digest():
    """The same bytes have the same digest, others another: 16 hex digits of SHA-256."""
    assert parse(b"GET", b"k").digest() == "d39b81acbc6fc58b"
    assert parse(b"GET", b"k").digest() == parse(b"GET", b"k").digest()
    assert parse(b"GET", b"k").digest() != parse(b"get", b"k").digest()


@pytest.mark.parametrize(
    "args",
    [
        (b"AUTH", b"%s"),
        (b"auth", b"user", b"%s"),
        (b"HELLO", b"3", b"AUTH", b"user", b"%s"),
        (b"ACL", b"SETUSER", b"u", b">%s"),
        (b"CONFIG", b"SET", b"requirepass", b"%s"),
        (b"MIGRATE", b"h", b"1", b"k", b"0", b"9", b"AUTH", b"%s"),
    ],
)
def test_digests_give_no_password_away(args):
    """Two passwords have one digest, so trying words against it tells nothing."""
    one, two = (parse(*(arg.replace(b"%s", word) for arg in args)) for word in (b"a", b"b"))
    assert one.digest() == two.digest()


@given(st.lists(st.none() | st.binary(max_size=9), max_size=6))
def test_never_raises(args):
    """Whatever a client sends is a Command."""
    command = parse(*args)
    assert command.args == tuple(args)
    assert all(0 < position < len(args) for position in command.key_positions)


KEYS = [
    *(b"", b"foo", b"123456789", b"{user1000}.following", b"{user1000}.followers", b"foo{}{bar}"),
    *(
        b"foo{{bar}}zap",
        b"foo{bar}{zap}",
        b"}{a}",
        b"{a",
        b"a}",
        b"{}",
        b"\x00\xff{\xc3\xa9}",
        b"k" * 999,
    ),
]


def test_slots_are_the_servers():
    """CLUSTER KEYSLOT of a real node says the same of every kind of key."""
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    server = servers.start("valkey9", cluster=True)
    try:
        for key in KEYS:
            assert key_slot(key) == server.ask("CLUSTER", "KEYSLOT", key), key
    finally:
        server.stop()


@given(st.binary(max_size=20), st.binary(max_size=20).filter(lambda tag: tag and b"}" not in tag))
def test_a_tag_decides_the_slot(key, tag):
    """Keys with one tag are in one slot, and every slot is one of the cluster's."""
    rest = key.replace(b"{", b"")
    assert key_slot(b"%s{%s}%s" % (rest, tag, key)) == key_slot(b"{%s}" % tag)
    assert 0 <= key_slot(key) < SLOTS
