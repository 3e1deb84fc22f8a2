"""The side connection: right replies in order, its own login, and an answer whatever happens."""

import asyncio
import socket
import threading
from contextlib import suppress

import pytest

from chaosproxy.core.passing import TOO_LARGE
from chaosproxy.core.resp import encode_command
from chaosproxy.counts import Limits
from chaosproxy.net.address import Address
from chaosproxy.net.dial import Dialler
from chaosproxy.net.side import MOST, Side
from tests.servers import free_port

PING_ = (b"PING",)
PING = encode_command(*PING_)


@pytest.fixture
def side_of(loop):
    """Make a Side for a port; all are closed in the end."""
    made = []

    def make(port, username=None, password=None, patience=10.0, **how):
        dialler = Dialler(Address("127.0.0.1", port), None, 5.0)
        how = {"most": MOST, "limits": Limits(), **how}
        side = loop.call(lambda: Side(dialler, username, password, patience, **how))
        made.append(side)
        return side

    yield make
    for side in made:
        loop.call(side.close)


def ask(loop, side, *commands, db=0, protocol=2):
    """Ask, and give the replies."""

    async def go():
        future = asyncio.get_running_loop().create_future()
        side.ask(
            [encode_command(*command) for command in commands], db, protocol, future.set_result
        )
        assert not future.done(), "answered from inside the call"
        return await future

    return loop.run(go(), 20)


def test_replies_in_order(loop, side_of, redis70):
    """One raw reply a request, in the order they were asked, errors too."""
    side = side_of(redis70.port)
    replies = ask(loop, side, (b"SET", b"k", b"1"), (b"INCR", b"k"), (b"LPUSH", b"k", b"x"))
    assert replies[:2] == [b"+OK\r\n", b":2\r\n"]
    assert replies[2].startswith(b"-WRONGTYPE")
    assert loop.run(side.request(b"GET", b"k"), 10) == b"$1\r\n2\r\n"


def test_database_and_protocol(loop, side_of, redis70):
    """Each database and protocol has a connection of its own that stays in it."""
    side = side_of(redis70.port)
    ask(loop, side, (b"HSET", b"h", b"f", b"v"), db=3)
    assert ask(loop, side, (b"HGETALL", b"h"), db=3, protocol=3) == [
        b"%1\r\n$1\r\nf\r\n$1\r\nv\r\n"
    ]
    assert ask(loop, side, (b"HGETALL", b"h"), db=3) == [b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n"]
    assert ask(loop, side, (b"EXISTS", b"h")) == [b":0\r\n"]
    names = redis70.ask("CLIENT", "LIST").decode().count(" name=chaosproxy ")
    assert names == 3


@pytest.mark.parametrize("protocol", [2, 3])
def test_login(loop, side_of, redis70, protocol):
    """User and password are those of the URL; without a user name it is the default user. A user may have no password."""
    redis70.ask("ACL", "SETUSER", "proxy", "on", ">secret", "~*", "+@all")
    redis70.ask("ACL", "SETUSER", "free", "on", "nopass", "~*", "+@all")
    redis70.ask("CONFIG", "SET", "requirepass", "default-secret")
    for user, password, name in (
        ("proxy", "secret", b"$5\r\nproxy\r\n"),
        (None, "default-secret", b"$7\r\ndefault\r\n"),
        ("free", "", b"$4\r\nfree\r\n"),
    ):
        side = side_of(redis70.port, user, password)
        assert ask(loop, side, (b"ACL", b"WHOAMI"), protocol=protocol) == [name]
    assert ask(loop, side_of(redis70.port, "proxy", "wrong"), (b"PING",), protocol=protocol) is None


def test_server_is_down(loop, side_of):
    """Nobody there: None, and once there is, the next question is answered."""
    port = free_port()
    side = side_of(port)
    assert ask(loop, side, (b"PING",)) is None
    with socket.create_server(("127.0.0.1", port)) as server:
        threading.Thread(target=serve, args=(server, b"+OK\r\n+PONG\r\n"), daemon=True).start()
        assert ask(loop, side, (b"PING",)) == [b"+PONG\r\n"]


def serve(server, answer):
    """Accept one connection, send `answer`, and read until it ends."""
    connection, _ = server.accept()
    with connection, suppress(OSError):  # who has no more patience may have hung up by then
        connection.recv(1000)
        connection.sendall(answer)
        while connection.recv(1000):
            pass


def test_a_failure_is_said_once(loop, side_of, redis70, caplog):
    """Not with each question: again only once it has worked meanwhile."""
    redis70.ask("ACL", "SETUSER", "proxy", "on", ">secret", "~*", "+@all")
    side = side_of(redis70.port, "proxy", "wrong")
    for _ in range(3):
        assert ask(loop, side, (b"PING",)) is None
    assert caplog.text.count("WRONGPASS") == 1
    redis70.ask("ACL", "SETUSER", "proxy", ">wrong")
    assert ask(loop, side, (b"PING",)) == [b"+PONG\r\n"]
    redis70.ask("ACL", "DELUSER", "proxy")
    assert ask(loop, side, (b"PING",), db=1) is None
    assert caplog.text.count("WRONGPASS") == 2


def test_connection_lost(loop, side_of, redis70):
    """A connection the server has closed is made anew."""
    side = side_of(redis70.port)
    assert ask(loop, side, (b"PING",)) == [b"+PONG\r\n"]
    assert ask(loop, side, (b"QUIT",), (b"GET", b"k")) is None
    assert ask(loop, side, (b"PING",)) == [b"+PONG\r\n"]


def test_an_answer_that_is_too_long(loop, side_of, redis70, caplog):
    """It is not held, which is told, said and counted; the next question is answered. Where more than the last one is missing, nothing is."""
    limits = Limits()
    side = side_of(redis70.port, most=100_000, limits=limits)
    redis70.ask("SET", "long", "x" * 200_000)
    redis70.ask("SET", "short", "x" * 60_000)
    assert ask(loop, side, (b"GET", b"long")) == [TOO_LARGE]
    assert ask(loop, side, PING_, (b"GET", b"long")) == [b"+PONG\r\n", TOO_LARGE]
    assert ask(loop, side, (b"GET", b"long"), PING_) is None
    assert ask(loop, side, (b"GET", b"short")) == [b"$60000\r\n%s\r\n" % (b"x" * 60_000)]
    assert ask(loop, side, *[(b"GET", b"short")] * 50) is None
    assert "connection to the server: an answer of more than 100000 bytes" in caplog.text
    assert dict(limits.items())["reply"] == 4


def test_what_is_asked_behind_one_with_a_long_answer(loop, side_of, redis70):
    """Its connection ends, so that others that were asked on it are not answered: it is not known what became of them."""
    side = side_of(redis70.port, most=1000)
    redis70.ask("SET", "long", "x" * 200_000)

    async def go():
        loops = asyncio.get_running_loop()
        first, second = loops.create_future(), loops.create_future()
        side.ask([encode_command(b"GET", b"long")], 0, 2, first.set_result)
        side.ask([PING], 0, 2, second.set_result)
        assert await second is None
        return first.result()

    assert loop.run(go(), 20) == [TOO_LARGE]


def test_another(loop, side_of, redis70, redis62):
    """One to another server, and as somebody else, has the same limit, and counts with the first."""
    redis62.ask("ACL", "SETUSER", "proxy", "on", ">secret", "~*", "+@all")
    redis62.ask("SET", "k", "there")
    redis62.ask("SET", "long", "x" * 2000)
    limits = Limits()
    side = side_of(redis70.port, most=1000, limits=limits)
    there = Dialler(Address("127.0.0.1", redis62.port), None, 5.0)
    other = loop.call(lambda: side.another(there, "proxy", "secret"))
    try:
        found = ask(loop, other, (b"GET", b"k"), (b"ACL", b"WHOAMI"))
        assert found == [b"$5\r\nthere\r\n", b"$5\r\nproxy\r\n"]
        assert ask(loop, side, (b"GET", b"k")) == [b"$-1\r\n"]
        assert ask(loop, other, (b"GET", b"long")) == [TOO_LARGE]
        assert dict(limits.items())["reply"] == 1
    finally:
        loop.call(other.close)


@pytest.mark.parametrize(
    "answer",
    [b"", b"+OK\r\n", b"+OK\r\n$100\r\n", b"+OK\r\nwhat?\r\n"],
    ids=["silent", "set-up", "half", "odd"],
)
def test_an_answer_that_does_not_come(loop, side_of, answer):
    """A server that goes quiet, or talks nonsense, costs patience and no more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server, answer), daemon=True).start()
        side = side_of(server.getsockname()[1], patience=0.3)
        assert ask(loop, side, (b"PING",)) is None


def test_push_is_no_reply(loop, side_of):
    """What the server pushes in between answers nothing."""
    answer = b"+HELLO\r\n+OK\r\n>2\r\n+invalidate\r\n_\r\n+PONG\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server, answer), daemon=True).start()
        side = side_of(server.getsockname()[1])
        assert ask(loop, side, (b"PING",), protocol=3) == [b"+PONG\r\n"]


def test_forbidden_name(loop, side_of, redis70):
    """An ACL that forbids CLIENT SETNAME forbids nothing else."""
    redis70.ask("ACL", "SETUSER", "proxy", "on", ">secret", "~*", "+get")
    side = side_of(redis70.port, "proxy", "secret")
    assert ask(loop, side, (b"GET", b"k")) == [b"$-1\r\n"]


def test_closed(loop, side_of, redis70):
    """What is asked when it is closed is answered with None."""
    side = side_of(redis70.port)

    async def go():
        future = asyncio.get_running_loop().create_future()
        side.ask([PING], 0, 2, future.set_result)
        side.close()
        return await future

    assert loop.run(go(), 10) is None
