"""The second server of a proxy: left alone as long as no rule is about failovers, and attached as soon as one is."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaosproxy.net import standby
from chaosproxy.net.address import Address
from chaosproxy.net.pair_error import PairError
from chaosproxy.net.standby import holds_back
from tests import servers
from tests.conversation import profile
from tests.net.pairs import AT_ONCE, info, nothing, two_servers
from tests.proxying import refused, serve_proxy, wait_for
from tests.wire import encode

CALLED = "\nfaults:\n- {fault: failover, when: {trigger: manual}, style: %s}\n"


@pytest.fixture(scope="module")
def running():
    with two_servers("redis70", *AT_ONCE) as two:
        yield two


@pytest.fixture
def two(running):
    """A primary, and an empty server beside it."""
    for server in running:
        server.reset()
    return running


def at_one_port(two, rules):
    """A proxy before them at a port that nobody else is given while its door is shut."""
    listen = Address("127.0.0.1", servers.free_port())
    return serve_proxy(two[0].url, rules, standby=two[1].url, listen=listen)


@pytest.mark.parametrize(
    ("settings", "lag", "keep"),
    [
        ("", 0.0, 0),
        (", lag: 300ms", 0.3, 0),
        (", lose: {for: 2s}", 2.0, 0),
        (", lose: {for: 2s}, lag: 3s", 3.0, 0),
        (", lose: {writes: 3}", 0.0, 3),
        (", lose: {writes: 3}, lag: 1s", 1.0, 3),
    ],
)
def test_what_is_held_back(settings, lag, keep):
    """The longer of what is said of time, and so many writes."""
    (rule,) = profile(f"- {{fault: failover, style: managed{settings}}}").rules
    assert holds_back(rule.fault) == (lag, keep)


def test_attached_when_it_is_needed(two, either_loop):
    """A profile without a failover, or with a restart, leaves both servers as they are; one that is put in force later does not."""
    with serve_proxy(two[0].url, standby=two[1].url) as proxy:
        proxy.use(CALLED % "restart")
        assert info(two[1])["role"] == "master"
        proxy.use(CALLED % "managed")
        wait_for(lambda: info(two[1]).get("master_link_status") == "up", "the copy")
        proxy.use("calm")
        with proxy.connect() as client:
            assert client.ask("SET", "k", 1) == "OK"
        wait_for(lambda: two[1].ask("EXISTS", "k") == 1, "the write")
    assert info(two[1])["role"] == "master"


def test_ready_before_clients_come(two, either_loop):
    """A proxy that starts with a failover lets nobody in before its standby has a copy."""
    two[0].ask("SET", "k", 1)
    with serve_proxy(two[0].url, CALLED % "managed", standby=two[1].url):
        assert two[1].ask("GET", "k") == b"1"


def test_a_restart_is_emulated(two, either_loop):
    """The same server comes back, though there is another one, and what it forgets is undone."""
    with serve_proxy(
        two[0].url, CALLED % "restart, lose: {writes: 1}", standby=two[1].url
    ) as proxy:
        with proxy.connect() as client:
            assert client.ask("SET", "k", 1) == "OK"
        proxy.service.trigger("failover")
        wait_for(lambda: proxy.metric("failovers_total") == 1, "the failover")
        assert proxy.events()[-1]["detail"] == "switched, 1 writes undone: SET x1"
    assert two[0].ask("EXISTS", "k") == 0


def test_one_profile_after_the_other(two, either_loop):
    """A failover that left the old primary alone: the next profile that has one makes it the standby first."""
    with serve_proxy(two[0].url, CALLED % "managed", standby=two[1].url) as proxy:
        for count in (1, 2, 3):
            with proxy.connect() as client:
                assert client.ask("INCR", "n") == count
            proxy.service.trigger("failover")
            wait_for(lambda now=count: proxy.metric("failovers_total") == now, "the failover")
            proxy.use(CALLED % "managed")
        assert two[1].ask("GET", "n") == b"3"


def test_two_failovers_at_once(two, either_loop):
    """The one that comes second finds an old primary in the standby's place: it is called off, and nothing that was lost comes back."""
    rules = (
        "\nfaults:\n"
        "- {fault: failover, name: first, style: managed, lag: 60s, outage: 10ms, when: {trigger: manual}}\n"
        "- {fault: failover, name: second, style: managed, outage: 1s, when: {trigger: manual}}\n"
    )
    with at_one_port(two, rules) as proxy:
        with proxy.connect() as client:
            assert client.ask("SET", "k", 1) == "OK"
            proxy.service.trigger("first")
            proxy.service.trigger("second")
            wait_for(
                lambda: "called off" in proxy.events("second")[-1].get("detail", ""),
                "the second one",
            )
        assert proxy.events("first")[-1]["detail"] == "switched, 1 writes lost: SET x1"
        assert proxy.metric("failovers_total") == 1
        with newcomer(proxy) as client:
            assert client.ask("ROLE")[0] == b"master"
            assert client.ask("GET", "k") is None


def newcomer(proxy):
    """A new connection, as soon as somebody accepts it."""
    wait_for(lambda: not refused(proxy.port), "somebody to accept")
    return proxy.connect()


def test_a_standby_that_is_repaired(two, either_loop):
    """What was wrong with it when one profile came into force need not be with the next."""
    two[1].ask("SET", "mine", 1)
    with serve_proxy(two[0].url, CALLED % "managed", standby=two[1].url) as proxy:
        two[1].ask("FLUSHALL")
        proxy.use(CALLED % "managed")
        proxy.service.trigger("failover")
        wait_for(lambda: proxy.metric("failovers_total") == 1, "the failover")


def test_a_link_that_is_thawed(two, either_loop):
    """A failover whose profile goes before its switch: the standby gets everything after all."""
    steps = "steps, lag: 60s, steps: [{wait: 60s}, switch]"
    with (
        serve_proxy(two[0].url, CALLED % steps, standby=two[1].url) as proxy,
        proxy.connect() as client,
    ):
        assert client.ask("SET", "k", 1) == "OK"
        proxy.service.trigger("failover")
        wait_for(lambda: len(proxy.events()) >= 1, "its beginning")
        proxy.use("calm")
        wait_for(lambda: two[1].ask("EXISTS", "k") == 1, "the write")


def test_what_faults_had_to_do_with_who_is_left_behind(two, either_loop):
    """It is written down as they are let go: each match has fired, or was skipped."""
    with at_one_port(two, CALLED % "managed") as proxy:
        matched = lambda: proxy.metric("faults_matched_total")  # noqa: E731
        with proxy.connect() as old:
            assert old.ask("PING") == "PONG"
            proxy.service.trigger("failover")
            wait_for(lambda: proxy.metric("failovers_total") == 1, "the failover")
            before = matched()
            # What is refused waits behind what is not answered.
            old.send_bytes(encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$") + encode("SET", "k", 1))
            wait_for(lambda: matched() > before, "the refusal")
            proxy.use("calm")
            assert old.read_to_end() == (b"", "FIN")
        assert proxy.metric("faults_fired_total") == matched()
        assert len(proxy.events()) == matched()


def test_a_switch_before_there_is_a_copy(two, either_loop):
    """The old primary that another failover has just told to join again does not take over: it has what was lost."""
    with serve_proxy(two[0].url, CALLED % "managed", standby=two[1].url) as proxy:
        pair = proxy.service._proxy.behind._standby

        async def switch():
            relay = pair._pair.relay
            relay.retarget(relay._dialler)
            await pair.switch(nothing)

        with pytest.raises(PairError, match="does not copy"):
            proxy.service._loop.run(switch(), 60)


@contextmanager
def stopped(server) -> Iterator[None]:
    """It does nothing at all, as long as it lasts."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_another_profile_in_the_middle_of_a_switch(two, either_loop):
    """The switch is made to its end, and nobody is left with a server that is the primary no more."""
    with at_one_port(two, CALLED % "managed, lag: 60s") as proxy:
        pair = proxy.service._proxy.behind._standby
        with proxy.connect() as old:
            assert old.ask("SET", "k", 1) == "OK"
            with stopped(two[1]):
                proxy.service.trigger("failover")
                wait_for(pair._switching.locked, "the switch")
                proxy.use(CALLED % "managed")
            assert old.read_to_end() == (b"", "FIN")
        assert proxy.events()[-1]["detail"] == "switched, 1 writes lost: SET x1"
        with newcomer(proxy) as client:
            assert client.ask("GET", "k") is None
            assert client.ask("SET", "k", 2) == "OK"
        # Its profile has a failover too.
        wait_for(lambda: two[0].ask("GET", "k") == b"2", "the old primary to be the standby")


def test_another_profile_while_the_standby_is_waited_for(two, either_loop, monkeypatch):
    """That failover goes no further: nobody is held up by it any longer, and the standby gets everything once it is back."""
    monkeypatch.setattr(standby, "LINK_PATIENCE", 600.0)
    with (
        serve_proxy(two[0].url, CALLED % "managed, lag: 60s", standby=two[1].url) as proxy,
        proxy.connect() as client,
    ):
        relay = proxy.service._proxy.behind._standby._pair.relay
        with stopped(two[1]):
            two[0].ask("CLIENT", "KILL", "TYPE", "replica")
            wait_for(lambda: not relay.synced, "the link to be down")
            proxy.service.trigger("failover")
            wait_for(proxy.events, "its beginning")
            proxy.use("calm")
            assert client.ask("SET", "k", 1) == "OK"
        wait_for(lambda: two[1].ask("EXISTS", "k") == 1, "the write")
