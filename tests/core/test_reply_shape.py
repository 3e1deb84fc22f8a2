"""Shape codes: they are read whole or refused, their cases are told apart, real replies have them."""

import pytest

from chaosproxy.core.command import Command
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.reply_shape import Case, Either, Leaf, Many, argument, choose, parse, words_of
from tests import servers
from tests.calls import set_up, writes
from tests.shapes import fits
from tests.tools.make_command_table import command_reply

TABLE = CommandTable.bundled()


def command(text: str) -> Command:
    return Command.parse(TABLE, [word.encode() for word in text.split(" ")], b"")


def test_every_code_of_the_table_can_be_read():
    """No code that ships is malformed."""
    codes = {code for spec in TABLE.specs.values() for code in (spec.reply, spec.miss) if code}
    assert len(codes) > 60
    for code in codes:
        assert parse(code)


def test_reads_choices_and_aggregates():
    """Every part of the code has its node."""
    (case,) = parse('nil[]|[bulk (id...) {"a" [int...@FIELDS]}]|<bulk score=@2>')
    assert case == Case(
        "",
        Either(
            (
                Leaf("nil[]"),
                Many(
                    "array",
                    (
                        Leaf("bulk"),
                        Many("set", (Leaf("id"),), ""),
                        Many("map", (Leaf('"a"'), Many("array", (Leaf("int"),), "@FIELDS"))),
                    ),
                ),
                Many("pair", (Leaf("bulk"), Leaf("score", "@2"))),
            )
        ),
    )


@pytest.mark.parametrize(
    "code",
    [
        "[",
        "[int",
        "int]",
        "int|",
        "|",
        "...",
        "int int",
        "x y: int",
        "",
        "(]",
        "int=x",
        "[nil...2]",
    ],
)
def test_refuses_what_is_none(code):
    """A malformed code is found when it is read, not when a client waits for the reply."""
    with pytest.raises(ValueError):  # noqa: PT011 - any message
        parse(code)


def kind(code: str, text: str) -> str:
    node = choose(code, command(text))
    assert isinstance(node, Leaf)
    return node.kind


def test_cases():
    """The first case whose condition holds counts: a word from a place on, a length, an argument's value."""
    assert kind("GET@3: nil; OK", "set k v get") == "nil"
    assert kind("GET@3: nil; OK", "set k GET") == "OK"
    assert kind("STORE,STOREDIST@5: 0; 1", "georadius k 1 1 1 km storedist d") == "0"
    assert kind("3+: 0; 1", "lpop k 2") == "0"
    assert kind("3+: 0; 1", "lpop k") == "1"
    assert kind("2=0: 0; -1", "bitpos k 0") == "0"
    assert kind("2=0: 0; -1", "bitpos k 1 0") == "-1"
    assert choose("", command("get k")) is None
    assert choose("9+: 0", command("get k")) is None


def test_arguments_too_large_to_be_kept():
    """They are no words, and asking for one gives None."""
    big = Command.parse(TABLE, [b"SET", b"k", None, b"get"], b"")
    assert list(words_of(big, 2)) == [b"GET"]
    assert argument(big, 2) is None
    assert argument(big, 9) is None


def test_every_write_has_its_shape(any_server):
    """Each write command the live server knows answers as the table says, in RESP2 and RESP3.

    Every command of the server's own COMMAND that is a write has a call that it does not refuse.
    """
    live = CommandTable.from_reply(command_reply(any_server), TABLE)
    answered: set[str] = set()
    for call in writes(any_server):
        made = Command.parse(live, [encoded(word) for word in call], b"")
        if made.spec is None or not made.spec.is_write:
            continue
        for protocol in (2, 3):
            set_up(any_server)
            with any_server.connect(resp=protocol) as client:
                raw = client.raw(*call)
            node = choose(made.spec.reply, made)
            assert node is not None, call
            assert fits(node, raw, protocol), (call, protocol, raw)
            answered.add(made.name)
    written = {name for name, spec in live.specs.items() if spec.is_write}
    # Before 7.0 a container is said to be a write itself; nobody can call it alone.
    containers = {name.partition("|")[0] for name in live.specs if "|" in name}
    assert written - answered - containers <= {"CLUSTER|FLUSHSLOT"}


def test_flush_of_a_slot():
    """The one write that needs a cluster."""
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    server = servers.start_cluster_node("valkey9")
    try:
        assert isinstance(
            node := choose(TABLE.specs["CLUSTER|FLUSHSLOT"].reply, command("x")), Leaf
        )
        assert fits(node, server.control.raw("CLUSTER", "FLUSHSLOT", 7), 2)
    finally:
        server.stop()


def encoded(word: str | bytes) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


WRONG = [
    ("OK", b"+QUEUED\r\n"),
    ("int", b"$1\r\n1\r\n"),
    ("nil", b"*-1\r\n"),
    ("nil[]", b"$-1\r\n"),
    ("[int...]", b"*1\r\n$1\r\na\r\n"),
    ("[int int]", b"*1\r\n:1\r\n"),
    ("[<bulk score>...]", b"*1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n"),
    ("[<bulk score>...]", b"*1\r\n$1\r\na\r\n"),
    ("id", b"$1\r\n1\r\n"),
    ("int", b":1\r\n:1\r\n"),
]


@pytest.mark.parametrize(("code", "raw"), WRONG)
def test_the_test_of_shapes_can_fail(code, raw):
    """The comparison above tells a reply of another shape."""
    (case,) = parse(code)
    assert not fits(case.node, raw, 2)
