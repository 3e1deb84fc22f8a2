"""A failover in a running proxy: by the clock and on request, its steps in their times, what waits, what is undone in order."""

import threading
import time

import pytest

from chaosproxy.net import steer
from chaosproxy.net.pair_error import PairError, UnsurePairError
from tests.busy import within
from tests.proxying import TURNED_AWAY, at_its_own_port, serve_proxy, wait_for
from tests.wire import connected

READONLY = "READONLY You can't write against a read only replica."
PROFILE = "faults:\n- {{fault: failover, name: fo, {}}}\n"


@pytest.fixture
def proxy(either_loop, redis70):
    with at_its_own_port(redis70) as proxy:
        yield proxy


def details(proxy):
    return [event.get("detail", "") for event in proxy.events("fo")]


def switched(proxy):
    wait_for(lambda: any("switched" in detail for detail in details(proxy)), "the switch")


def test_by_the_clock(proxy):
    """Nobody sends anything: it begins in its time, is counted, and who was connected is with the old primary."""
    with proxy.connect() as old:
        old.ask("SET", "k", "1")
        proxy.use(PROFILE.format("style: managed, when: {from: 200ms}"))
        assert old.ask("GET", "k") == b"1"
        switched(proxy)
        assert proxy.metric("failovers_total") == 1
        assert old.ask("SET", "k", "3") == READONLY
        assert old.ask("GET", "k") == b"1"
        with proxy.connect() as new:
            assert new.ask("SET", "k", "4") == "OK"


def test_on_request(proxy):
    """As often as it is asked, and with it what is armed by it."""
    proxy.use(
        PROFILE.format("style: managed, when: {trigger: manual}")
        + "- {fault: failover, name: second, when: {armed_by: fo}, style: restart}\n"
    )
    with proxy.connect() as old:
        assert old.ask("SET", "k", "1") == "OK"
        proxy.service.trigger("fo")
        switched(proxy)
        assert old.read_to_end()[1] == "RST"
    wait_for(lambda: proxy.metric("failovers_total") == 2, "both")
    proxy.service.trigger("fo")
    wait_for(lambda: proxy.metric("failovers_total") == 3, "the third")


@within(1.0)  # each of its phases is over by itself
def test_the_whole_sequence(either_loop, redis70):
    """Connections are kept, nobody is accepted, then LOADING, then it is there; at rejoin the old ones are closed."""
    with at_its_own_port(redis70) as proxy, connected(proxy.port, 2) as (old, blocked):
        old.ask("PING")
        blocked.send("BLPOP", "q", "0")
        wait_for(lambda: b"blocked_clients:1" in redis70.ask("INFO", "clients"), "it to wait")
        proxy.use(
            PROFILE.format(
                "style: sentinel, when: {from: 100ms}, old_connections: keep, blocked_clients: UNBLOCKED, outage: 3s, "
                "loading: 3s, rejoin: 5s"
            )
        )
        assert blocked.read()[0].startswith(b"-UNBLOCKED force unblock")
        assert blocked.read_to_end() == (b"", "FIN")
        assert old.ask("SET", "k", "1") == READONLY
        with pytest.raises(ConnectionRefusedError):
            proxy.connect()
        switched(proxy)
        with _connect_at_last(proxy) as new:
            assert new.ask("PING").startswith("LOADING")
            assert old.ask("SET", "k", "1") == READONLY
            wait_for(lambda: new.ask("PING") == "PONG", "the new primary")
            assert old.read_to_end() == (b"", "FIN")
            assert new.ask("SET", "k", "2") == "OK"


def _connect_at_last(proxy):
    while True:
        try:
            return proxy.connect()
        except TURNED_AWAY:
            time.sleep(0.01)


def test_new_connections_are_reset(proxy):
    """In such a phase they are accepted and reset."""
    proxy.use(PROFILE.format("style: steps, steps: [{reset_new: 60s}]"))
    wait_for(lambda: details(proxy), "its beginning")
    try:
        with proxy.connect() as new:
            assert new.read_to_end()[1] == "RST"
    except ConnectionResetError:
        pass  # before it knew that it was connected


def test_held(proxy):
    """Commands wait as long as a step says, and are then refused by what has become of the primary."""
    with proxy.connect() as client:
        client.ask("PING")
        began = time.monotonic()
        proxy.use(PROFILE.format("style: steps, steps: [{hold: 300ms}, switch]"))
        assert client.ask("SET", "k", "1") == READONLY
        assert time.monotonic() - began >= 0.3


def test_undone_in_order(proxy):
    """Who reads on a new connection the moment it is accepted sees nothing of what is lost; a swap is taken back as well."""
    with proxy.connect() as client:
        client.ask("SET", "k", "old", "EX", "1000")
        proxy.use(PROFILE.format("style: managed, lose: {for: 60s}, when: {trigger: manual}"))
        client.ask("SET", "k", "new")
        client.ask("DEL", "k")
        client.ask("SADD", "k", "other")
        client.ask("SET", "made", "v")
        client.ask("SWAPDB", "0", "3")
        client.ask("SET", "made", "w")
        assert client.ask("GET", "made") == b"w"
        proxy.service.trigger("fo")
        switched(proxy)
        assert client.ask("GET", "k") == b"old"
        assert 990 < client.ask("TTL", "k") <= 1000
        assert client.ask("GET", "made") is None
        client.ask("SELECT", "3")
        assert client.ask("DBSIZE") == 0
    event = next(event for event in proxy.events("fo") if event["applied"] == "undone")
    assert event["outcome"] == "false_ok"
    assert set(event["keys"]) == {"k", "made"}
    assert proxy.metric("keys_touched_total", fault="fo", how="undone") == 2


def test_without_the_right_to_undo(proxy, redis70):
    """Where the side connection may not put a key back, nothing is called undone."""
    with proxy.connect() as client:
        proxy.use(PROFILE.format("style: managed, lose: {for: 60s}, when: {trigger: manual}"))
        client.ask("SET", "k", "new")
        with redis70.connect() as direct:
            direct.ask("ACL", "SETUSER", "default", "-unlink", "-restore")
            try:
                proxy.service.trigger("fo")
                switched(proxy)
            finally:
                direct.ask("ACL", "SETUSER", "default", "+@all")
        assert client.ask("GET", "k") == b"new"
    assert proxy.metric("faults_skipped_total", fault="fo", reason="refused") == 1
    assert "nothing lost" in details(proxy)[-1]


def test_what_hangs_is_not_waited_for(proxy, redis70):
    """A server that does not answer holds nothing up for ever: after a while the failover goes on."""
    with connected(proxy.port, 2) as (busy, other):
        other.ask("PING")
        with redis70.connect() as direct:
            direct.ask("CLIENT", "PAUSE", "30000", "WRITE")
            busy.send("SET", "k", "1")
            wait_for(lambda: b"blocked_clients:1" in direct.ask("INFO", "clients"), "it to wait")
            began = time.monotonic()
            proxy.use(PROFILE.format("style: sentinel"))
            assert other.read_to_end()[1] == "RST"
            assert 1.9 < time.monotonic() - began < 20
            direct.ask("CLIENT", "UNPAUSE")


def test_another_profile_in_the_middle(proxy):
    """It ends there: nothing waits, nobody is refused any more."""
    with proxy.connect() as client:
        client.ask("PING")
        proxy.use(PROFILE.format("style: steps, steps: [{hold: 60s}, switch]"))
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(client.ask("SET", "k", "1")))
        waiting.start()
        wait_for(lambda: details(proxy), "its beginning")
        proxy.use("calm")
        waiting.join(10)
        assert answers == ["OK"]


def test_the_proxy_ends_in_the_middle(either_loop, redis70):
    """A failover keeps no proxy from ending."""
    with at_its_own_port(redis70) as proxy:
        proxy.use(PROFILE.format("style: steps, steps: [{refuse: 60s}, switch]"))
        wait_for(lambda: details(proxy), "its beginning")
    with serve_proxy(redis70.url) as proxy:
        proxy.use(PROFILE.format("style: managed, when: {from: 60s}"))


def test_what_came_before_the_profile(proxy, redis70):
    """A write that is on its way as the profile comes into force is not lost, and nothing is taken down while it is."""
    with connected(proxy.port, 2) as (early, later):
        later.ask("PING")
        with redis70.connect() as direct:
            direct.ask("CLIENT", "PAUSE", "30000", "WRITE")
            early.send("SET", "k", "before")
            wait_for(lambda: b"blocked_clients:1" in direct.ask("INFO", "clients"), "it to wait")
            proxy.use(PROFILE.format("style: managed, lose: {for: 60s}, when: {trigger: manual}"))
            later.send("SET", "k", "after")
            direct.ask("CLIENT", "UNPAUSE")
            assert later.read() == early.read() == [b"+OK\r\n"]
            proxy.service.trigger("fo")
            switched(proxy)
            assert direct.ask("GET", "k") == b"before"


def test_switched_off(proxy):
    """One that is switched off when its time comes does not begin, and costs nothing; switched on, it begins."""
    inner = proxy.service._proxy
    proxy.in_force(
        PROFILE.format("style: restart, when: {from: 2s}"),
        lambda: steer.enable(inner, "fo", False),
    )
    with proxy.connect() as client:
        began = time.monotonic()
        busy = time.process_time()
        while time.monotonic() - began < 2.5:
            assert client.ask("PING") == "PONG"
            time.sleep(0.05)
        assert time.process_time() - busy < 1
        assert details(proxy) == []
        proxy.service.enable("fo", True)
        assert client.read_to_end()[1] == "RST"


@pytest.mark.parametrize("sure", [True, False])
def test_what_is_said_of_one_that_is_called_off(proxy, monkeypatch, sure):
    """Servers that refuse have not done it; of those that were asked and said nothing nobody knows."""

    async def instead(live):
        del live
        raise (PairError if sure else UnsurePairError)("node-2 does not answer")

    monkeypatch.setattr(type(proxy.service._proxy.behind), "instead", lambda _, live: instead(live))
    proxy.use(PROFILE.format("style: managed, when: {trigger: manual}"))
    proxy.service.trigger("fo")
    event = proxy.wait_events(2)[-1]
    known = "" if sure else ", though it may have been made"
    assert event["detail"] == f"called off{known}: node-2 does not answer"
    assert (event["applied"], event["outcome"]) == (
        ("no", "ok") if sure else ("unknown", "unknown")
    )
    with proxy.connect() as client:
        assert client.ask("PING") == "PONG"


@pytest.mark.parametrize(
    "waiting", ["BLMOVE q t LEFT LEFT 0", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"]
)
def test_who_waits_as_the_profile_comes(proxy, redis70, waiting):
    """Nobody is held up for it, and what it has taken is lost with the write that gave it."""
    with connected(proxy.port, 2) as (writer, blocked):
        writer.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        name, *rest = waiting.split()
        blocked.send(name, *rest)
        wait_for(lambda: b"blocked_clients:1" in redis70.ask("INFO", "clients"), "it to wait")
        began = time.monotonic()
        proxy.use(PROFILE.format("style: managed, lose: {for: 60s}, when: {trigger: manual}"))
        given = ("RPUSH", "q", "x") if name == "BLMOVE" else ("XADD", "s", "1-1", "f", "v")
        assert writer.ask(*given) in {1, b"1-1"}
        assert time.monotonic() - began < 2
        assert blocked.read()
        proxy.service.trigger("fo")
        switched(proxy)
        lost = [each["command"] for event in proxy.events("fo") for each in event.get("writes", ())]
        assert lost == [given[0], name]
        assert redis70.ask("EXISTS", "q", "t") == 0
        assert redis70.ask("XINFO", "GROUPS", "s")[0][5] == 0, "nothing is pending"


def test_what_is_put_back_is_given_to_nobody(proxy, redis70):
    """Who waited at the server, and was told that it is no primary any more, waits there no longer when lost writes are undone."""
    proxy.use(PROFILE.format("style: managed, lose: {writes: 1}, when: {trigger: manual}"))
    with connected(proxy.port, 6) as (writer, *blocked):
        writer.ask("RPUSH", "q", "x")
        assert writer.ask("LPOP", "q") == b"x"
        for each in blocked:
            each.send("BLPOP", "q", "0")
        wait_for(lambda: b"blocked_clients:5" in redis70.ask("INFO", "clients"), "them to wait")
        proxy.service.trigger("fo")
        switched(proxy)
        assert [each.read()[0][:10] for each in blocked] == [b"-UNBLOCKED"] * 5
        assert redis70.ask("LRANGE", "q", 0, -1) == [b"x"]


@within(2.0)  # the step before is over by itself
@pytest.mark.parametrize("before", ["", "unblock, {wait: 3s}, "])
def test_who_waits_as_the_primary_changes(proxy, redis70, before):
    """However the steps are written: a server that becomes a replica tells them, and neither old nor new data is given to them."""
    steps = f"style: steps, steps: [{before}switch], lose: {{writes: 1}}, when: {{trigger: manual}}"
    proxy.use(PROFILE.format(steps))
    with connected(proxy.port, 2) as (writer, blocked):
        writer.ask("RPUSH", "q", "x")
        assert writer.ask("LPOP", "q") == b"x"
        assert blocked.ask("PING") == "PONG"
        if before:
            proxy.service.trigger("fo")
            wait_for(lambda: details(proxy), "its beginning")
        blocked.send("BLPOP", "q", "0")
        wait_for(lambda: b"blocked_clients:1" in redis70.ask("INFO", "clients"), "it to wait")
        if not before:
            proxy.service.trigger("fo")
        assert blocked.read()[0].startswith(b"-UNBLOCKED")
        switched(proxy)
        assert redis70.ask("LRANGE", "q", 0, -1) == [b"x"]
