"""A dropped write that is told to have worked: the reply is the server's own, and nothing has happened.

Takes every write call there is, on real servers; gives proof in RESP2 and RESP3, alone, in transactions, while
watching, and on a cluster node, where no database but the first can be selected.
"""

from collections import Counter

import pytest

from chaosproxy.core.command_table import CommandTable
from tests import servers
from tests.calls import Call
from tests.live.expected import MADE_UP_FOR, UNCOPIED, Real
from tests.live.more_calls import ACCEPTED, ODD, REFUSED, SCRIPTS, TWICE
from tests.live.places import everywhere
from tests.live.stand import DROP, DROP_BUT_KEPT, Stand
from tests.wire import encode


def common_calls(stand: Stand) -> tuple[Call, ...]:
    """Every write call, with keys that one node of a cluster takes together."""
    calls = stand.tagged((*stand.writes(), *ACCEPTED, *TWICE, *REFUSED, *SCRIPTS))
    return (*calls, ("CLUSTER", "FLUSHSLOT", "7")) if stand.server.cluster else calls


def all_calls(stand: Stand) -> tuple[Call, ...]:
    """Those, and calls with odd keys, as they are."""
    return (*common_calls(stand), *ODD)


@pytest.mark.parametrize("stand", [(name, False) for name in servers.NAMES], indirect=True)
def test_every_write_command_is_called(stand: Stand):
    """What the server's own COMMAND calls a write is called at least once, and not only to be refused."""
    answered = set()
    for call in common_calls(stand):
        command = stand.parse(call)
        if command.name not in answered and stand.real(call, 2).plain[:1] != b"-":
            answered.add(command.name)
    writes_ = {name for name, spec in stand.table.specs.items() if spec.is_write}
    # Before 7.0 a container is said to be a write itself; nobody can call it alone.
    containers = {name.partition("|")[0] for name in stand.table.specs if "|" in name}
    # Slots are flushed on a cluster, where it is called too.
    assert writes_ - answered - containers <= {"CLUSTER|FLUSHSLOT"}
    # And what is excused is there.
    assert set(MADE_UP_FOR) | UNCOPIED <= set(CommandTable.bundled().specs)


@everywhere
def test_each(stand: Stand, resp: int):
    """Outside transactions."""
    stand.use(DROP)
    calls = stand.dropped(all_calls(stand), resp)
    with stand.listening(), stand.proxy.connect(resp=resp) as client:
        for call, real, how in calls:
            with stand.dropping(call, how):
                told = client.raw(*call)
            stand.compare(call, real.plain, told, resp)
    stand.verdict()


@everywhere
def test_each_in_a_transaction_of_its_own(stand: Stand, resp: int):
    """Between MULTI and EXEC, all sent at once: queued as it would be, and its element is the server's."""
    stand.use(DROP)
    calls = stand.dropped(all_calls(stand), resp, queued=True)
    with stand.listening(), stand.proxy.connect(resp=resp) as client:
        for call, real, how in calls:
            with stand.dropping(call, how):
                told = stand.transaction(client, call)
            stand.compare_transaction((call,), (real,), told, resp)
    stand.verdict()


@everywhere
def test_each_among_writes_that_are_done(stand: Stand, resp: int):
    """A transaction of writes that are dropped and writes and reads that are not: each gets its own element.

    What is not dropped is done, and is the only thing that is. A refused command ends all of it, as ever.
    """
    stand.use(DROP_BUT_KEPT)
    common = stand.tagged((("INCR", "number_"), ("GET", "str"), ("RPUSH", "list_", "a")))
    number, text, pushed = common
    done = [Real(b"", b"+QUEUED\r\n", raw) for raw in (b":1\r\n", b"$5\r\nhello\r\n", b":1\r\n")]
    calls = stand.dropped(common_calls(stand), resp, queued=True)
    with stand.listening(), stand.proxy.connect(resp=resp) as client:
        for call, real, how in calls:
            if not stand.parse(call).keys:
                continue
            aborts = real.queued[:1] == b"-"
            with stand.dropping(call, how, how):
                told = stand.transaction(client, number, call, text, call, pushed)
                kept = stand.tell(number, ("DEL", number[1]), pushed, ("DEL", pushed[1]))
            reals = (done[0], real, done[1], real, done[2])
            stand.compare_transaction((number, call, text, call, pushed), reals, told, resp)
            if kept[::2] != ([b":1\r\n"] * 2 if aborts else [b":2\r\n"] * 2):
                stand.fail(call, "what was not to be dropped was not done once", kept)
    stand.verdict()


@everywhere
def test_each_while_watching(stand: Stand, resp: int):
    """A WATCH outlives the write, on the write's own keys too; it ends the transaction only for another's change."""
    stand.use(DROP)
    calls = stand.dropped(common_calls(stand), resp, watching=True)
    (touch,) = stand.tagged((("SET", "watched_", "1"),))
    rest = b"".join(map(encode, ("MULTI", "PING", "EXEC")))
    nothing = b"_\r\n" if resp == 3 else b"*-1\r\n"
    with stand.listening(), stand.proxy.connect(resp=resp) as client:
        for call, real, how in calls:
            watch = encode("WATCH", touch[1], *stand.parse(call).keys) + encode(*call)
            with stand.dropping(call, how, how):
                client.send_bytes(watch + rest)
                replies = client.read(5)
                client.send_bytes(watch)
                again = client.read(2)[1]
                stand.tell(touch)
                client.send_bytes(rest)
                touched = client.read(3)[2]
            stand.compare(call, real.plain, replies[1], resp)
            stand.compare(call, real.plain, again, resp)
            if (replies[4], touched) != (b"*1\r\n+PONG\r\n", nothing):
                stand.fail(call, "EXEC", replies[4], "then", touched)
    stand.verdict()


@everywhere
def test_what_is_left_alone(stand: Stand, resp: int):
    """What cannot be dropped truthfully is done as without the fault, and the reason is counted."""
    stand.use(DROP)
    expected: Counter[str] = Counter()
    after = stand.journal.last
    with stand.proxy.connect(resp=resp) as client:
        for call in all_calls(stand):
            for queued in (False, True):
                reason = stand.reason(call, resp, queued=queued)
                if reason is None:
                    continue
                real = stand.real(call, resp)
                stand.fill()
                if queued:
                    told = stand.transaction(client, call)
                    stand.compare_transaction((call,), (real,), told, resp)
                else:
                    stand.compare(call, real.plain, client.raw(*call), resp)
                expected[reason] += 1
                # MULTI and EXEC match too, and are no writes.
                expected["not_applicable"] += 2 * queued
    assert stand.journal.events(after) == []
    assert stand.skipped() == expected
    stand.verdict()
