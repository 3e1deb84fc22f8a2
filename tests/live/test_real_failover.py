"""Real failovers: two servers, of which one copies the other by way of the proxy; what never crossed is gone, and named."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaosproxy.embedded import EmbeddedError, find_server
from chaosproxy.net.address import Address
from tests import servers
from tests.net.pairs import AT_ONCE, info, two_servers
from tests.proxying import TURNED_AWAY, RunningProxy, serve_proxy, start_proxy, wait_for
from tests.wire import Wire, encode

FAILOVER = """
faults:
- {fault: failover, name: gone, when: {trigger: manual}, %s}
"""


@pytest.fixture(params=["redis70", "valkey9"])
def two(request) -> Iterator[list[servers.Server]]:
    """A primary, and an empty server beside it."""
    with two_servers(request.param, *AT_ONCE) as two:
        yield two


def serve(two: list[servers.Server], settings: str) -> RunningProxy:
    """A proxy before the two, at a port that nobody else is given while it keeps everybody out."""
    listen = Address("127.0.0.1", servers.free_port())
    return serve_proxy(two[0].url, FAILOVER % settings, standby=two[1].url, listen=listen)


@pytest.fixture
def before(two):
    """Give a function that starts a proxy before the two with such a failover, which has to be asked for."""
    started: list[RunningProxy] = []

    def start(settings: str) -> RunningProxy:
        proxy = serve(two, settings)
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.stop()


def trigger(proxy: RunningProxy) -> None:
    assert proxy.service is not None
    proxy.service.trigger("gone")


def details(proxy: RunningProxy) -> list[str]:
    return [event.get("detail", "") for event in proxy.events("gone")]


def wait_detail(proxy: RunningProxy, begin: str) -> str:
    wait_for(lambda: any(each.startswith(begin) for each in details(proxy)), begin)
    return next(each for each in details(proxy) if each.startswith(begin))


def lost(proxy: RunningProxy) -> Counter[tuple[str, str]]:
    """What the events of the switch name: how many writes of each command to each key."""
    found: Counter[tuple[str, str]] = Counter()
    for event in proxy.events("gone"):
        writes = event.get("writes", [])
        assert (
            not writes
            or f", {sum(each['count'] for each in writes)} writes lost: " in event["detail"]
        )
        for each in writes:
            found[each["command"], " ".join(each["keys"])] += each["count"]
    return found


def newcomer(proxy: RunningProxy) -> Wire:
    """A new connection, as soon as somebody accepts it: the door opens a moment after the switch."""
    found: list[Wire] = []

    def comes() -> bool:
        try:
            found.append(proxy.connect())
        except TURNED_AWAY:
            return False
        return True

    wait_for(comes, "somebody to accept")
    return found[0]


def pid(wire: Wire) -> int:
    return int(wire.ask("INFO", "server").partition(b"process_id:")[2].split()[0])


def test_sentinel(before, two):
    """Connections are reset, nobody accepts, then the other server does, without what the link had not let through."""
    proxy = before("style: sentinel, lag: 60s, outage: 300ms")
    with proxy.connect() as client:
        assert client.ask("MSET", "a", 1, "b", 2) == "OK"
        assert client.ask("INCR", "n") == 1
        trigger(proxy)
        assert client.read_to_end() == (b"", "RST")
    wait_detail(proxy, "switched")
    with newcomer(proxy) as client:
        assert pid(client) == two[1].pid
        assert client.ask("ROLE")[0] == b"master"
        assert client.ask("DBSIZE") == 0
        assert client.ask("SET", "new", 1) == "OK"
    assert wait_detail(proxy, "switched") == "switched, 2 writes lost: MSET x1, INCR x1"
    event = next(
        each for each in proxy.events("gone") if each.get("detail", "").startswith("switched")
    )
    assert (event["keys"], event["applied"], event["outcome"]) == (
        ["a", "b", "n"],
        "undone",
        "false_ok",
    )
    assert two[0].ask("MGET", "a", "b", "n", "new") == [b"1", b"2", b"1", None]
    assert proxy.metric("failovers_total") == 1


def test_kept_connections(before, two):
    """Who stays is with the old primary: what it reads is old, what it writes is refused; who comes meets the new one."""
    proxy = before("style: managed, lag: 60s, rejoin: 8s")
    with proxy.connect() as old:
        assert old.ask("SET", "k", "lost") == "OK"
        trigger(proxy)
        wait_detail(proxy, "switched, 1 writes lost")
        assert old.ask("SET", "k", "x").startswith("READONLY")
        assert old.ask("GET", "k") == b"lost"
        assert pid(old) == two[0].pid
        with newcomer(proxy) as new:
            assert pid(new) == two[1].pid
            assert new.ask("GET", "k") is None
            assert new.ask("SET", "k", "new") == "OK"
        wait_detail(proxy, "the old primary is a replica now, 1 connections")
        assert old.read_to_end() == (b"", "FIN")
    wait_for(lambda: info(two[0])["role"] == "slave", "its new role")


def test_nothing_is_lost(before, two):
    """Without a lag all that was acknowledged is there."""
    proxy = before("style: sentinel, outage: 50ms")
    with proxy.connect() as client:
        for number in range(300):
            assert client.ask("RPUSH", "l", number) == number + 1
        trigger(proxy)
        assert client.read_to_end() == (b"", "RST")
    assert wait_detail(proxy, "switched") == "switched, nothing lost"
    with newcomer(proxy) as client:
        assert client.ask("LLEN", "l") == 300
        assert pid(client) == two[1].pid


def test_so_many_writes(before, two):
    """The last three, whatever time they had to cross; a transaction goes as a whole, in its database."""
    proxy = before("style: managed, lose: {writes: 3}")
    with proxy.connect() as client:
        assert client.ask("SET", "kept", 1) == "OK"
        client.send_bytes(
            encode("MULTI") + encode("INCR", "n") + encode("INCR", "m") + encode("EXEC")
        )
        client.read(4)
        assert client.ask("SELECT", 3) == "OK"
        assert client.ask("RPUSH", "l", "x") == 1
        trigger(proxy)
    wait_detail(proxy, "switched")
    assert lost(proxy) == {("INCR", "n"): 1, ("INCR", "m"): 1, ("RPUSH", "l"): 1}
    with newcomer(proxy) as client:
        assert client.ask("KEYS", "*") == [b"kept"]


def test_what_is_computed_on_copies_is_no_write(before, two):
    """A write that is dropped, and a read from the past, are neither lost nor named, and do not count."""
    proxy = before(
        "style: managed, lose: {writes: 2}}\n"
        "- {fault: drop_write, tell: ok, match: {commands: RPUSH}}\n"
        "- {fault: stale_read, behind: 1, match: {commands: GET}"
    )
    with proxy.connect() as client:
        for number in range(4):
            assert client.ask("SET", f"k{number % 2}", number) == "OK"
        assert client.ask("RPUSH", "l", "x") == 1
        assert client.ask("GET", "k0") == b"0"
        client.send_bytes(encode("MULTI") + encode("RPUSH", "l", "x") + encode("EXEC"))
        assert client.read(3)[-1] == b"*1\r\n:1\r\n"
        trigger(proxy)
    assert wait_detail(proxy, "switched") == "switched, 2 writes lost: SET x2"
    with newcomer(proxy) as client:
        assert client.ask("MGET", "k0", "k1") == [b"0", b"1"]


def test_there_and_back(before, two):
    """Once the old primary has joined again it can fail over the other way."""
    proxy = before("style: sentinel, lag: 60s, outage: 50ms, rejoin: 100ms")
    trigger(proxy)
    wait_detail(proxy, "the old primary is a replica now")
    # What is written before it has its copy is in that.
    wait_for(lambda: two[0].ask("ROLE")[3:4] == [b"connected"], "its copy")
    with newcomer(proxy) as client:
        assert pid(client) == two[1].pid
        assert client.ask("SET", "k", 1) == "OK"
    trigger(proxy)
    wait_for(lambda: proxy.metric("failovers_total") == 2, "the second one")
    with newcomer(proxy) as client:
        assert pid(client) == two[0].pid
        assert client.ask("EXISTS", "k") == 0
    assert lost(proxy) == {("SET", "k"): 1}


def test_blocked_clients(before, two):
    """Who waits in BLPOP is told, and waits for the new primary's list then."""
    proxy = before("style: managed, lag: 60s")
    with proxy.connect() as waiting:
        waiting.send("BLPOP", "l", 0)
        wait_for(lambda: b"cmd=blpop" in two[0].ask("CLIENT", "LIST"), "the wait")
        trigger(proxy)
        data, end = waiting.read_to_end()
        assert data.startswith(b"-UNBLOCKED")
        assert end == "FIN"


def test_another_profile(before, two):
    """Who stayed with an old primary is let go with the profile: it would write to a server that is none any more."""
    proxy = before("style: managed, lag: 60s")
    with proxy.connect() as old, proxy.connect() as idle:
        assert idle.ask("PING") == "PONG"
        assert old.ask("SET", "k", 1) == "OK"
        trigger(proxy)
        wait_detail(proxy, "switched")
        proxy.use("calm")
        for each in (old, idle):
            assert each.read_to_end() == (b"", "FIN")
        with newcomer(proxy) as new:
            assert new.ask("SET", "k", 2) == "OK"
    assert (two[0].ask("GET", "k"), two[1].ask("GET", "k")) == (b"1", b"2")


def test_a_standby_that_is_none(two, caplog):
    """Nothing of it is begun, and the event says why; the standby's own data stays."""
    two[1].ask("SET", "mine", 1)
    with serve(two, "style: sentinel, lag: 1s") as proxy:
        assert "has data of its own" in caplog.text
        with proxy.connect() as client:
            assert client.ask("SET", "k", 1) == "OK"
            trigger(proxy)
            wait_detail(proxy, "called off: the standby")
            assert client.ask("GET", "k") == b"1"
    assert two[1].ask("KEYS", "*") == [b"mine"]


def test_a_standby_that_dies(before, two):
    """A failover to a server that is gone is called off, and everybody stays where they are."""
    proxy = before("style: managed, lag: 1s")
    two[1].stop()
    with proxy.connect() as client:
        assert client.ask("SET", "k", 1) == "OK"
        trigger(proxy)
        wait_detail(proxy, "called off: ")
        assert client.ask("SET", "k", 2) == "OK"


@contextmanager
def started_anew(two: list[servers.Server], number: int) -> Iterator[None]:
    """One of the servers, which may be gone already, is another one now, at its port: it is empty and copies nobody."""
    two[number].stop()
    two[number] = servers.start_on(two[number].port, two[number].name, *AT_ONCE)
    try:
        yield
    finally:
        two[number].stop()


def test_a_standby_that_was_started_anew(before, two):
    """It knows of no primary any more, is told so as a failover begins, and takes over with all there is by then; the next one loses."""
    proxy = before("style: managed, rejoin: 10ms, lose: {writes: 1}")
    with started_anew(two, 1):
        with proxy.connect() as client:
            assert client.ask("SET", "k", 1) == "OK"
        trigger(proxy)
        wait_detail(proxy, "switched, nothing lost")
        wait_detail(proxy, "the old primary is a replica now")
        with newcomer(proxy) as new:
            assert (pid(new), new.ask("GET", "k")) == (two[1].pid, b"1")
            wait_for(lambda: b"state=online" in new.ask("INFO", "replication"), "its copy")
            assert new.ask("SET", "k", 2) == "OK"
        trigger(proxy)
        wait_detail(proxy, "switched, 1 writes lost: SET x1")
        with newcomer(proxy) as new:
            assert (pid(new), new.ask("GET", "k")) == (two[0].pid, b"1")
        proxy.stop()


def test_an_old_primary_that_was_started_anew(before, two):
    """It could not become a replica as it was to, and does as the next failover begins."""
    proxy = before("style: managed, rejoin: 3s")
    trigger(proxy)
    wait_detail(proxy, "switched")
    two[0].stop()
    with newcomer(proxy) as client:
        assert client.ask("SET", "k", 1) == "OK"
    wait_detail(proxy, "called off")
    with started_anew(two, 0):
        trigger(proxy)
        wait_for(lambda: details(proxy).count("switched, nothing lost") == 2, "it to take over")
        with newcomer(proxy) as new:
            assert (pid(new), new.ask("GET", "k")) == (two[0].pid, b"1")
        proxy.stop()


def test_everything_is_put_back(two):
    """With the proxy the first primary is one again, with all that was written since, and the other nobody's replica."""
    with serve(two, "style: managed, lag: 60s") as proxy:
        with proxy.connect() as client:
            assert client.ask("SET", "lost", 1) == "OK"
        trigger(proxy)
        wait_detail(proxy, "switched")
        with newcomer(proxy) as client:
            assert client.ask("SET", "kept", 1) == "OK"
    assert [info(each)["role"] for each in two] == ["master", "master"]
    assert [each.ask("KEYS", "*") for each in two] == [[b"kept"], [b"kept"]]


# -- exactly those that the event lists

CLIENTS = 4


def burst(
    proxy: RunningProxy, number: int, writes: int, acknowledged: Counter, stopped: threading.Event
) -> None:
    """Write as long as it is acknowledged; a list of its own, and counters that all share."""
    with proxy.connect() as client:
        try:
            for turn in range(writes):
                if turn % 2:
                    word, key = "RPUSH", f"list-{number}"
                    reply = client.ask(word, key, turn)
                else:
                    word, key = "INCR", f"n-{turn % 7}"
                    reply = client.ask(word, key)
                if not isinstance(reply, int):
                    break
                acknowledged[word, key] += 1
        except (OSError, EOFError):
            pass
        finally:
            stopped.set()


def missing(server: servers.Server, acknowledged: Counter) -> Counter[tuple[str, str]]:
    """What was acknowledged and is not on this server."""
    found: Counter[tuple[str, str]] = Counter()
    for (word, key), count in acknowledged.items():
        there = server.ask("LLEN", key) if word == "RPUSH" else int(server.ask("GET", key) or 0)
        found[word, key] = count - there
    return +found


def run_once(proxy: RunningProxy, two: list[servers.Server], writes: int) -> None:
    """One failover in the middle of writes from four connections."""
    acknowledged = [Counter() for _ in range(CLIENTS)]
    stopped = [threading.Event() for _ in range(CLIENTS)]
    threads = [
        threading.Thread(
            target=burst, args=(proxy, number, writes, acknowledged[number], stopped[number])
        )
        for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(map(Counter.total, acknowledged)) > writes, "writes")
    trigger(proxy)
    wait_detail(proxy, "switched")
    for thread in threads:
        thread.join(30)
    total = sum(acknowledged, Counter())
    named, gone = lost(proxy), missing(two[1], total)
    assert gone, "nothing was lost, so nothing is proved"
    assert named == gone, f"named but not gone: {named - gone}, gone but not named: {gone - named}"


@pytest.mark.parametrize("style", ["managed", "sentinel"])
def test_what_is_lost_is_what_is_named(before, two, style):
    """Four connections write all the time: the writes missing on the new primary are those in the events, none else."""
    proxy = before(f"style: {style}, lag: 1s")
    run_once(proxy, two, 600)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", range(10))
@pytest.mark.parametrize("style", ["managed", "sentinel"])
def test_what_is_lost_is_what_is_named_in_many_runs(before, two, style, run):
    """The same with 300 ms of lag and 5,000 writes, ten times."""
    proxy = before(f"style: {style}, lag: 300ms")
    run_once(proxy, two, 5000)


def test_embedded():
    """`--upstream embedded` with a failover brings both servers, and the failover is a real one."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    profile = FAILOVER.replace("when: {trigger: manual}, ", "match: {commands: DEL}, ")
    profile %= "style: sentinel, lose: {writes: 2}, outage: 100ms"
    listen = f"127.0.0.1:{servers.free_port()}"
    proxy = start_proxy("embedded", profile, "--listen", listen)
    with proxy:
        with proxy.connect() as client:
            first = pid(client)
            for number in range(5):
                assert client.ask("SET", f"k{number}", 1) == "OK"
            client.send("DEL", "k0")
            assert client.read_to_end() == (b"", "RST")
        wait_detail(proxy, "switched, 2 writes lost: SET x2")
        with newcomer(proxy) as client:
            assert pid(client) != first
            assert client.ask("DBSIZE") == 3
    assert "  standby    redis://127.0.0.1:" in proxy.stderr
