"""Where the server cannot be asked as usual, a dropped write is still one: nothing happens, and the event says how it was told.

Takes servers whose scratch database is taken, whose users may do little, that refuse writes, clients that want no
replies, send all at once or are many; gives proof that no copy stays behind and no transaction is spoiled.
"""

import pytest

from tests.calls import Call
from tests.live.expected import IN_SCRATCH, ON_KEYS
from tests.live.more_calls import SCRIPTS, SOME
from tests.live.places import commonly, with_databases
from tests.live.stand import DROP, DROP_BUT_KEPT, Stand
from tests.wire import encode


def scripted(stand: Stand, calls: tuple[Call, ...]) -> tuple[Call, ...]:
    return tuple(call for call in calls if stand.parse(call).name != "EVAL")


# -- the scratch database


@with_databases
@pytest.mark.parametrize("resp", [2, 3])
def test_a_scratch_database_that_holds_something_is_left_alone(stand: Stand, resp: int):
    """Keys in it, of the same names too, stay as they are; temporary keys serve instead, scripts pass."""
    stand.use(DROP)
    calls = scripted(stand, SOME)
    reals = [stand.real(call, resp) for call in calls]
    stand.fill()
    stand.tell(("SELECT", "15"), ("SET", "n", "mine"), ("RPUSH", "l", "my own"), ("SELECT", "0"))
    stand._before = stand.state()
    with stand.proxy.connect(resp=resp) as client:
        for call, real in zip(calls, reals, strict=True):
            how = stand.how(call, refused=real.queued[:1] == b"-")
            how = ON_KEYS if how == IN_SCRATCH else how
            with stand.dropping(call, how):
                told = client.raw(*call)
            stand.compare(call, real.plain, told, resp)
        for call, real in zip(calls, reals, strict=True):
            if not stand.parse(call).keys:
                continue
            with stand.dropping(call, ON_KEYS):
                told = stand.transaction(client, call)
            stand.compare_transaction((call,), (real,), told, resp)
            with stand.dropping(call, ON_KEYS):
                client.send_bytes(encode("WATCH", "watched_") + encode(*call) + encode("UNWATCH"))
                told = client.read(3)
            stand.compare(call, real.plain, told[1], resp)
        before = stand.skipped()["unknown_reply"]
        assert client.ask(*SCRIPTS[0]) == 8
        assert stand.skipped()["unknown_reply"] == before + 1
    stand.verdict()


@with_databases
def test_a_client_in_the_scratch_database(stand: Stand):
    """Its own database is not taken for a scratch one, empty or not, nor is it once it has been in it."""
    stand.use(DROP)
    stand.fill()
    stand._before = stand.state()
    with stand.proxy.connect() as client:
        client.raw("SELECT", "15")
        with stand.dropping("INCR in 15", ON_KEYS):
            assert client.ask("INCR", "n") == 1
        with stand.dropping("INCR in 15, in a transaction", ON_KEYS):
            assert stand.transaction(client, ("INCR", "n"))[1] == b"*1\r\n:1\r\n"
        with stand.dropping("INCR in 15, while watching", ON_KEYS):
            client.raw("WATCH", "n")
            assert client.ask("INCR", "n") == 1
            client.raw("UNWATCH")
        with stand.dropping("SELECT 0 and INCR in a transaction", ON_KEYS):
            told = stand.transaction(client, ("SELECT", "0"), ("INCR", "n"), ("SELECT", "15"))
            assert told[3] == b"*3\r\n+OK\r\n:8\r\n+OK\r\n"
        client.raw("SELECT", "0")
        with stand.dropping("INCR in 0", IN_SCRATCH):
            assert client.ask("INCR", "n") == 8
        assert client.ask("GET", "n") == b"7"
    stand.verdict()


@with_databases
def test_a_transaction_that_goes_to_the_scratch_database(stand: Stand):
    """What it does there itself is not overwritten, nor removed with the copies."""
    stand.use(DROP_BUT_KEPT)
    stand.fill()
    stand._before = stand.state()
    script = ("EVAL", "redis.call('SET', 'n', 'mine') return 1", "1", "key_")
    with stand.proxy.connect() as client:
        there, back = ("SELECT", "15"), ("SELECT", "0")
        with stand.dropping("INCR", ON_KEYS):
            told = stand.transaction(client, there, script, back, ("INCR", "n"))
            assert told[4] == b"*4\r\n+OK\r\n:1\r\n+OK\r\n:8\r\n"
            assert stand.tell(there, ("GET", "n"), ("DEL", "n"), back)[1:3] == [
                b"$4\r\nmine\r\n",
                b":1\r\n",
            ]
    stand.verdict()


@with_databases
@pytest.mark.parametrize("state", ["alone", "transaction", "watching"])
def test_what_scripts_leave_is_removed(stand: Stand, state: str):
    """A script that writes keys it does not declare leaves no trace, and the event says that it did."""
    stand.use(DROP)
    stand.fill()
    stand._before = stand.state()
    script = (
        "EVAL",
        "for n = 1, 300 do redis.call('SET', KEYS[1] .. n, n) end return redis.call('INCR', KEYS[1])",
        "1",
        "n",
    )
    how = IN_SCRATCH + ", where the script wrote keys that it did not declare"
    with stand.proxy.connect() as client:
        for _ in range(2):  # the second time the database is empty again
            with stand.dropping(script[:1], how):
                if state == "transaction":
                    assert stand.transaction(client, script)[1] == b"*1\r\n:8\r\n"
                elif state == "watching":
                    client.raw("WATCH", "n")
                    assert client.ask(*script) == 8
                    assert client.raw("UNWATCH") == b"+OK\r\n"
                else:
                    assert client.ask(*script) == 8
                # Whoever removes them, has done so when the next command is answered.
                assert client.ask("GET", "n") == b"7"
    stand.verdict()


# -- what the server refuses


STATES: dict[str, tuple[tuple[Call, ...], tuple[Call, ...]]] = {
    "OOM": ((("CONFIG", "SET", "maxmemory", "1"),), (("CONFIG", "SET", "maxmemory", "0"),)),
    "NOREPLICAS": (
        (("CONFIG", "SET", "min-replicas-to-write", "1"),),
        (("CONFIG", "SET", "min-replicas-to-write", "0"),),
    ),
    "READONLY": ((("REPLICAOF", "127.0.0.1", "1"),), (("REPLICAOF", "NO", "ONE"),)),
    "MASTERDOWN": (
        (("CONFIG", "SET", "replica-serve-stale-data", "no"), ("REPLICAOF", "127.0.0.1", "1")),
        (("REPLICAOF", "NO", "ONE"), ("CONFIG", "SET", "replica-serve-stale-data", "yes")),
    ),
}


@commonly
@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("state", STATES)
def test_a_server_that_refuses_writes(stand: Stand, state: str, resp: int):
    """Its own error is what the client gets, also in a transaction, which is aborted as ever; what it takes is dropped."""
    enter, leave = STATES[state]
    if stand.server.cluster and enter[-1][0] == "REPLICAOF":
        return  # a cluster says itself who replicates whom
    stand.use(DROP)
    refused = 0
    text = "-READONLY" if state == "MASTERDOWN" else f"-{state}"
    calls = stand.tagged(call for call in SOME if call[0] != "EVAL")
    with stand.server.connect(resp=resp) as direct, stand.proxy.connect(resp=resp) as client:
        for call in calls:
            stand.fill()
            stand.tell(*enter)
            plain = direct.raw(*call)
            stand.tell(*leave)
            stand.fill()
            stand.tell(*enter)
            queued, element = stand.transaction(direct, call)
            stand.tell(*leave)
            refused += plain.startswith(text.encode())
            with stand.told(call) as events:
                stand.tell(*enter)
                told = client.raw(*call)
                stand.tell(*leave)
            stand.excused(call, plain, told, events, resp)
            if stand.server.cluster and not stand.parse(call).keys:
                continue  # nothing can stand in for it in a transaction
            with stand.told(call) as events:
                stand.tell(*enter)
                told_queued, told_element = stand.transaction(client, call)
                stand.tell(*leave)
            stand.excused(call, queued, told_queued, [], resp)
            if element[:1] == b"*":
                stand.excused(call, element[4:], told_element[4:], events, resp)
            elif told_element != element:
                stand.fail(call, "EXEC", element, "told", told_element)
    assert refused >= 8
    stand.verdict()
