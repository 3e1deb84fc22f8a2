"""What clients do around a dropped write: send much at once, want no replies, block, are many, know no password.

Takes real servers; gives proof that each still gets its own replies, in its order, and that nothing happens.
"""

import threading
from collections import Counter

import pytest

from tests.live.expected import IN_SCRATCH, MADE_UP, ON_KEYS
from tests.live.more_calls import BIG_SETUP, LARGE, SOME
from tests.live.places import commonly, with_databases
from tests.live.stand import DROP, Stand
from tests.live.test_drop_write_exact import common_calls
from tests.proxying import serve_proxy
from tests.wire import decode, encode

NO_REPLY = "no reply was asked for"


@commonly
@pytest.mark.parametrize("resp", [2, 3])
def test_all_at_once(stand: Stand, resp: int):
    """Every write in one packet, reads among them: each reply is the one to its request, in order."""
    stand.use(DROP)
    calls = stand.dropped(common_calls(stand), resp)
    (read,) = stand.tagged((("GET", "str"),))
    with stand.proxy.connect(resp=resp) as client:
        stand.fill()
        stand._before = stand.state()
        with stand.dropping("all at once", *(how for _, _, how in calls)):
            client.send_bytes(b"".join(encode(*call) + encode(*read) for call, _, _ in calls))
            told = client.read(2 * len(calls))
    assert set(told[1::2]) == {b"$5\r\nhello\r\n"}
    for (call, real, _), reply in zip(calls, told[::2], strict=True):
        stand.compare(call, real.plain, reply, resp)
    stand.verdict()


@commonly
def test_a_transaction_of_all_writes(stand: Stand):
    """Hundreds of writes between one MULTI and EXEC: as many elements, each its command's."""
    stand.use(DROP)
    calls = [
        each
        for each in stand.dropped(common_calls(stand), 2, queued=True)
        if each[1].queued == b"+QUEUED\r\n"
    ]
    commands, reals, hows = zip(*calls, strict=True)
    with stand.proxy.connect() as client, stand.dropping("all in one transaction", *hows):
        told = stand.transaction(client, *commands)
    stand.compare_transaction(commands, reals, told, 2)
    stand.verdict()


@commonly
def test_large_ones(stand: Stand):
    """A megabyte as value and as key, a thousand keys: outside and inside transactions, and while watching."""
    stand.use(DROP)
    calls = stand.tagged(LARGE)
    setup = stand.tagged(BIG_SETUP)
    with stand.server.connect() as direct, stand.proxy.connect() as client:
        for call in calls:
            if stand.reason(call, 2):
                continue
            stand.fill(*setup)
            plain = direct.raw(*call)
            stand.fill(*setup)
            stand._before = stand.state()
            how = stand.how(call)
            with stand.dropping(call, how, how, how):
                told = client.raw(*call)
                in_transaction = stand.transaction(client, call)
                client.send_bytes(encode("WATCH", "watched_") + encode(*call) + encode("UNWATCH"))
                watching = client.read(3)[1]
            for raw in (told, watching, in_transaction[1].removeprefix(b"*1\r\n")):
                stand.compare(call, plain, raw, 2)
    stand.verdict()


@commonly
@pytest.mark.parametrize("resp", [2, 3])
def test_clients_that_want_no_replies(stand: Stand, resp: int):
    """CLIENT REPLY OFF and SKIP: dropped without a word, and what follows gets the replies that it should."""
    stand.use(DROP)
    calls = stand.tagged(SOME)
    (read,) = stand.tagged((("GET", "str"),))
    number = len(calls)
    with stand.proxy.connect(resp=resp) as client:
        with stand.dropping("OFF", *[NO_REPLY] * number):
            client.send("CLIENT", "REPLY", "OFF")
            client.send_bytes(b"".join(encode(*call) for call in calls))
            assert client.raw("CLIENT", "REPLY", "ON") == b"+OK\r\n"
            assert client.ask(*read) == b"hello"
        with stand.dropping("SKIP", *[NO_REPLY] * number):
            for call in calls:
                client.send("CLIENT", "REPLY", "SKIP")
                client.send(*call)
                assert client.ask(*read) == b"hello"
        # Nothing of ours can go ahead of that MULTI: that the scratch database is empty is not known.
        with stand.dropping("SKIP before MULTI", ON_KEYS):
            client.send("CLIENT", "REPLY", "SKIP")
            client.send("MULTI")
            assert client.raw(*calls[0]) == b"+QUEUED\r\n"
            assert client.raw("EXEC") == b"*1\r\n:8\r\n"
        with stand.dropping("OFF around a transaction", NO_REPLY):
            client.send("CLIENT", "REPLY", "OFF")
            for call in (("MULTI",), calls[0], ("EXEC",)):
                client.send(*call)
            assert client.raw("CLIENT", "REPLY", "ON") == b"+OK\r\n"
            assert client.ask(*read) == b"hello"
    stand.verdict()


@with_databases
def test_a_command_that_blocks_waits_for_the_real_thing(stand: Stand):
    """A pop that would have waited is done once there is something; one that would not have waited is dropped."""
    stand.use(DROP)
    stand.fill()
    stand._before = stand.state()
    with stand.proxy.connect() as client:
        with stand.dropping("BLPOP of what is there", IN_SCRATCH):
            assert client.ask("BLPOP", "l", "0") == [b"l", b"a"]
        before = stand.skipped()
        client.send("BLPOP", "later", "0")
        while b"cmd=blpop" not in stand.server.ask("CLIENT", "LIST"):
            pass
        assert client.silent(0.05)
        stand.tell(("RPUSH", "later", "now"))
        assert client.read() == [b"*2\r\n$5\r\nlater\r\n$3\r\nnow\r\n"]
        assert stand.skipped() - before == Counter(blocking=1)
        # As a script cannot wait, neither does a transaction.
        with stand.dropping("BLPOP in a transaction", IN_SCRATCH):
            assert stand.transaction(client, ("BLPOP", "later", "0"))[1] == b"*1\r\n*-1\r\n"
    stand.verdict()


@commonly
@pytest.mark.parametrize("place", ["scratch", "keys"])
def test_many_clients_at_once(stand: Stand, place: str):
    """Twenty clients with writes to the same keys, in and out of transactions: none sees another's copies."""
    stand.use(DROP)
    calls = stand.tagged(
        (("INCR", "n"), ("RPUSH", "l", "x"), ("LPOP", "l"), ("DEL", "str", "none"))
    )
    stand.fill()
    if place == "keys" and not stand.server.cluster:
        stand.tell(("SELECT", "15"), ("SET", "taken", "yes"), ("SELECT", "0"))
    stand._before = stand.state()
    plain = [b":8\r\n", b":5\r\n", b"$1\r\na\r\n", b":1\r\n"]
    array = b"*4\r\n" + b"".join(plain)
    wrong: list[object] = []

    def work() -> None:
        with stand.proxy.connect() as client:
            for _ in range(10):
                client.send_bytes(b"".join(encode(*call) for call in calls))
                replies = client.read(4)
                result = stand.transaction(client, *calls)[-1]
                if replies != plain or result != array:
                    wrong.append((replies, result))

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    how = ON_KEYS if place == "keys" or stand.server.cluster else IN_SCRATCH
    with stand.proxy.connect() as client, stand.dropping("one more", how):
        assert client.raw(*calls[0]) == b":8\r\n"
    stand.verdict()


@commonly
def test_clients_that_know_a_password_and_those_that_do_not(stand: Stand):
    """Who is not let in is told so; who is gets replies computed on its own connection, though the proxy knows no password.

    While it watches, only a connection of the proxy's own could compute: the reply is made up, and the event says why.
    """
    increment, flush = stand.tagged((("INCR", "n"), ("FLUSHALL",)))
    how = stand.how(increment)
    stand.tell(("CONFIG", "SET", "requirepass", "secret"))
    try:
        with serve_proxy(stand.server.url, DROP) as proxy:
            outside = Stand(stand.server, proxy, stand.table)
            with stand.server.connect() as direct, proxy.connect() as client:
                for call in (increment, flush):
                    with outside.told(call):
                        assert client.raw(*call) == direct.raw(*call)
                assert client.raw("AUTH", "secret") == b"+OK\r\n"
                with outside.dropping(increment, how):
                    assert client.ask(*increment) == 8
                with outside.dropping(increment, how):
                    assert stand.transaction(client, increment)[1] == b"*1\r\n:8\r\n"
                with outside.dropping(increment, f"{MADE_UP}: NOAUTH Authentication required."):
                    client.raw("WATCH", increment[1])
                    assert client.ask(*increment) == 1
                    assert stand.transaction(client, ("PING",))[1] == b"*1\r\n+PONG\r\n"
                with outside.dropping(flush, MADE_UP):
                    assert client.raw(*flush) == b"+OK\r\n"
            outside.verdict()
    finally:
        stand.tell(("CONFIG", "SET", "requirepass", ""))


@with_databases
def test_large_replies(stand: Stand):
    """A reply that only the proxy waits for is read to its end, up to what may be held: nothing stands still."""
    value = b"0123456789abcdef" * (3 << 16)
    stand.fill(("SET", "big", value))
    stand._before = stand.state()
    reply = b"$%d\r\n%s\r\n" % (len(value), value)
    with serve_proxy(stand.server.url, DROP) as proxy:
        held = Stand(stand.server, proxy, stand.table, _before=stand._before)
        with proxy.connect() as client:
            with held.dropping("GETDEL", IN_SCRATCH):
                assert client.raw("GETDEL", "big") == reply
            with held.dropping("GETDEL in a transaction", IN_SCRATCH):
                assert held.transaction(client, ("GETDEL", "big"))[1] == b"*1\r\n" + reply
            with held.dropping("SET GET, twice, before a read", IN_SCRATCH, IN_SCRATCH):
                call = encode("SET", "big", "v", "GET")
                client.send_bytes(call + call + encode("GET", "n"))
                assert client.read(3) == [reply, reply, b"$1\r\n7\r\n"]
        held.verdict()


@commonly
def test_messages_in_between(stand: Stand):
    """Messages that arrive all the while come through, each once and in order, and no reply is taken for another."""
    stand.use(DROP)
    calls = stand.dropped(stand.tagged(SOME), 3)
    heard: list[bytes] = []
    with stand.proxy.connect(resp=3) as client, stand.server.connect() as speaker:
        client.raw("CLIENT", "TRACKING", "ON", "BCAST")
        client.raw("SUBSCRIBE", "news")
        number = 0
        for call, real, how in calls * 3:
            with stand.dropping(call, how):
                client.send_bytes(encode(*call))
                for _ in range(20):
                    speaker.raw("PUBLISH", "news", f"{number}")
                    number += 1
                while (frame := client.read()[0])[:1] == b">":
                    heard.append(frame)
            stand.compare(call, real.plain, frame, 3)
        client.send("PING")
        while (frame := client.read()[0])[:1] == b">":
            heard.append(frame)
        assert frame == b"+PONG\r\n"
    messages = [decode(frame)[2] for frame in heard if b"message" in frame]
    assert messages == [b"%d" % n for n in range(number)]
    stand.verdict()


@commonly
@pytest.mark.parametrize("resp", [2, 3])
def test_a_transaction_that_watches(stand: Stand, resp: int):
    """With dropped writes in it EXEC still fails for another client's change of a watched key, and only for that."""
    stand.use(DROP)
    calls = stand.dropped(stand.tagged(SOME), resp, queued=True)
    (touch,) = stand.tagged((("SET", "watched_", "1"),))
    nothing = b"_\r\n" if resp == 3 else b"*-1\r\n"
    aborted = 0
    with stand.proxy.connect(resp=resp) as client:
        for call, real, how in calls:
            watch = ("WATCH", touch[1], *stand.parse(call).keys)
            with stand.dropping(call, how):
                assert client.raw(*watch) == b"+OK\r\n"
                told = stand.transaction(client, call)
            stand.compare_transaction((call,), (real,), told, resp)
            refused = real.queued[:1] == b"-"
            # The write's reply in EXEC is never seen; one that is refused, or made up, was told of before.
            early = refused or (stand.server.cluster and not stand.parse(call).keys)
            aborted += not early
            with stand.dropping(call, *[how] * early):
                client.send_bytes(b"".join(encode(*each) for each in (watch, ("MULTI",), call)))
                queued = client.read(3)[2]
                stand.tell(touch)
                result = client.raw("EXEC")
            if (queued, result) != (real.queued, told[-1] if refused else nothing):
                stand.fail(call, "queued", queued, "EXEC", result)
        assert stand.skipped()["aborted"] == aborted
    stand.verdict()
