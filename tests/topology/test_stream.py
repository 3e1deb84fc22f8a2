"""Replication streams as real primaries send them, whole and byte by byte: where each piece ends and what it writes."""

import pytest

from chaosproxy.core.command_table import CommandTable
from chaosproxy.topology.stream import Piece, ReplicationStream, Write
from tests.wire import encode

TABLE = CommandTable.bundled()
RUN_ID = b"a" * 40
MARK = b"m" * 40
SELECT, SET, INCR = encode("SELECT", 3), encode("SET", "k", "v"), encode("INCR", "n")
LINK = encode("PING") + encode("REPLCONF", "GETACK", "*")


def steps(data, step):
    return [data[at : at + step] for at in range(0, len(data), step)] if step else [data]


def run(data, *, asked=b"", step=0):
    """Feed a stream; gives it and what it gave."""
    stream = ReplicationStream(TABLE)
    for part in steps(asked, step):
        stream.ask(part)
    pieces = []
    for part in steps(data, step):
        pieces += stream.feed(part)
    return stream, pieces


@pytest.fixture(params=[0, 1, 7])
def step(request):
    """In how many bytes at a time it arrives; 0: all at once."""
    return request.param


HANDSHAKE = b"+PONG\r\n+OK\r\n+OK\r\n"
FULL = HANDSHAKE + b"+FULLRESYNC " + RUN_ID + b" 1000\r\n"
COUNTED = FULL + b"\n\n$9\r\nREDIS*1\r\n"
MARKED = FULL + b"$EOF:" + MARK + b"\r\nREDIS*1" + MARK[:20] + b"x" + MARK
CONTINUED = HANDSHAKE + b"+CONTINUE " + RUN_ID + b"\r\n"
PSYNC = encode("PING") + encode("REPLCONF", "capa", "psync2") + encode("psync", RUN_ID, 1001)


@pytest.mark.parametrize(
    "begin", [COUNTED, MARKED, CONTINUED], ids=["counted", "marked", "continued"]
)
def test_commands(begin, step):
    """However it begins, every byte passes, and each command has the offset behind it, its database and its keys."""
    commands = SELECT + SET + LINK + INCR + encode("MSET", "a", 1, "b", 2)
    stream, pieces = run(begin + commands, asked=PSYNC, step=step)
    assert b"".join(piece.raw for piece in pieces) == begin + commands
    assert all(piece.end is None and not piece.writes for piece in pieces[:-6])
    sizes = [len(SELECT), len(SET), len(encode("PING")), len(LINK) - len(encode("PING")), len(INCR)]
    ends = [1000 + sum(sizes[: index + 1]) for index in range(5)]
    assert [piece.end for piece in pieces[-6:]] == [*ends, 1000 + len(commands)]
    assert [piece.writes for piece in pieces[-6:]] == [
        (),
        (Write(3, "SET", (b"k",)),),
        (),
        (),
        (Write(3, "INCR", (b"n",)),),
        (Write(3, "MSET", (b"a", b"b")),),
    ]
    assert (stream.start, stream.end, stream.db) == (1000, 1000 + len(commands), 3)
    assert stream.synced
    assert not stream.lost


def test_a_transaction_is_one_piece(step):
    """MULTI, what is in it and EXEC cross together or not at all."""
    body = encode("MULTI") + SELECT + SET + INCR + encode("EXEC")
    _, pieces = run(CONTINUED + body + SET, asked=PSYNC, step=step)
    assert pieces[-2] == Piece(
        body, 1000 + len(body), (Write(3, "SET", (b"k",)), Write(3, "INCR", (b"n",)))
    )
    assert pieces[-1] == Piece(SET, 1000 + len(body + SET), (Write(3, "SET", (b"k",)),))


COPY = ("COPY", "q", "q", "DB", 15, "REPLACE")
THERE = ("SELECT", 15)


@pytest.mark.parametrize(
    ("calls", "writes"),
    [
        pytest.param(
            [THERE, ("RPUSH", "l", 1), ("DEL", "l")], [], id="of a key that was not there"
        ),
        pytest.param([COPY, THERE, ("SET", "q", 1), ("DEL", "q")], [], id="of one that was"),
        pytest.param([COPY, THERE, ("SORT", "l", "STORE", "q")], [], id="that has gone by it"),
        pytest.param([THERE, ("RESTORE", "q", 0, "x"), ("SPOP", "q")], [], id="from an image"),
        pytest.param(
            [
                ("SET", "a", 1),
                THERE,
                ("RPUSH", "l", 9),
                ("UNLINK", "l"),
                ("SELECT", 3),
                ("SET", "b", 1),
            ],
            [Write(3, "SET", (b"a",)), Write(3, "SET", (b"b",))],
            id="among a client's",
        ),
        pytest.param(
            [("INCR", "l:chaosproxy:1-1"), ("DEL", "l:chaosproxy:1-1"), ("INCR", "n")],
            [Write(3, "INCR", (b"n",))],
            id="on temporary keys",
        ),
        pytest.param(
            [THERE, ("SET", "a", 1), ("DEL", "b"), ("SWAPDB", 15, 1)],
            [Write(15, "SET", (b"a",)), Write(15, "SWAPDB", ())],
            id="a client's own, there",
        ),
        pytest.param(
            [("COPY", "q", "q", "DB", 14), ("COPY", "q", "r")],
            [Write(3, "COPY", (b"q", b"q")), Write(3, "COPY", (b"q", b"r"))],
            id="other copies",
        ),
    ],
)
def test_what_is_computed_on_copies(calls, writes):
    """It is no write that anybody has made, and none that can be lost; other transactions are, in that database too."""
    commands = b"".join(encode(*each) for each in [("MULTI",), *calls, ("EXEC",)])
    _, pieces = run(CONTINUED + SELECT + commands, asked=PSYNC)
    assert list(pieces[-1].writes) == writes
    assert pieces[-1].raw == commands


def test_before_it_is_complete():
    """A command that is not all here is not passed on: half of one would be lost with the link."""
    stream, pieces = run(CONTINUED + SET[:-1], asked=PSYNC)
    assert b"".join(piece.raw for piece in pieces) == CONTINUED
    assert stream.feed(SET[-1:]) == [Piece(SET, 1000 + len(SET), (Write(0, "SET", (b"k",)),))]


def test_what_is_no_write():
    """What no client has written, and what changes no data, is not counted; what nobody knows is."""
    commands = [encode("PUBLISH", "c", "m"), encode("FLUSHALL"), encode("ACME.FROB", "k")]
    _, pieces = run(CONTINUED + b"".join(commands), asked=PSYNC)
    assert [piece.writes for piece in pieces[-3:]] == [
        (),
        (Write(0, "FLUSHALL", ()),),
        (Write(0, "ACME.FROB", ()),),
    ]


def test_another_connection_goes_on_in_its_database():
    """Where it continues, the primary does not say again which database was selected."""
    stream = ReplicationStream(TABLE, 5)
    stream.ask(PSYNC)
    assert stream.feed(CONTINUED + SET)[-1].writes == (Write(5, "SET", (b"k",)),)
    full = ReplicationStream(TABLE, 5)
    assert full.feed(COUNTED + SET)[-1].writes == (Write(0, "SET", (b"k",)),)


@pytest.mark.parametrize(
    "data",
    [
        b"$9\r\nREDIS*1\r\n" + SET,  # SYNC, as it was before PSYNC
        CONTINUED + SET,  # nobody has asked for it
        FULL + b"?\r\n" + SET,
        FULL + b"$x\r\n" + SET,
        b"x" * 70000,
        FULL + b"x" * 70000,
    ],
)
def test_what_is_not_understood(data, step):
    """It passes as it comes, and nothing is claimed of it."""
    if step == 1 and len(data) > 9999:
        step = 1000
    stream, pieces = run(data, step=step)
    assert stream.lost
    assert not stream.synced
    assert b"".join(piece.raw for piece in pieces) == data
    assert not any(piece.end or piece.writes for piece in pieces)


def test_no_commands():
    """Bytes behind the handshake that are no commands pass too, as does what was held for its end."""
    data = CONTINUED + SET + encode("MULTI") + b"*x\r\nrest"
    stream, pieces = run(data, asked=PSYNC)
    assert stream.lost
    assert b"".join(piece.raw for piece in pieces) == data
    assert stream.feed(b"more") == [Piece(b"more")]


def test_an_empty_snapshot(step):
    """A snapshot of no bytes is over as it begins."""
    stream, pieces = run(FULL + b"$0\r\n" + SET, step=step)
    assert pieces[-1].writes == (Write(0, "SET", (b"k",)),)
    assert stream.synced
