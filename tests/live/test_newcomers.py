"""`admit` with real connections: refused, reset, kept waiting, told an error, never answered; and let in again."""

import socket
import threading
import time
from collections import Counter

import pytest

from chaosproxy.profile import load
from tests.proxying import TURNED_AWAY, serve_proxy, source_of, wait_for
from tests.wire import Wire, decode

ALL = "faults:\n- {fault: admit, %s}\n"
#: bullmq#4585: at the second BZPOPMIN everybody is cut off, and nobody gets in for a while.
NOBODY_GETS_IN = """
faults:
- fault: disconnect
  name: crash
  match: {commands: BZPOPMIN}
  when: {nth: 2}
  at: before_forward
  how: reset
  who: all
- fault: admit
  name: away
  new_connections: refuse
  for: 700ms
  when: {armed_by: crash}
"""


def refused(port):
    """Whether connecting itself fails."""
    try:
        socket.create_connection(("127.0.0.1", port), 10).close()
    except TURNED_AWAY:
        return True
    return False


def test_refused_for_a_while(redis70):
    """Connecting fails, with whatever address it is tried; those who are in stay; the same port comes back."""
    with serve_proxy(redis70.url) as proxy, proxy.connect() as old:
        assert old.ask("PING") == "PONG"
        began = time.monotonic()
        proxy.use(ALL % "new_connections: refuse, for: 500ms")
        assert refused(proxy.port)
        assert old.ask("PING") == "PONG"
        wait_for(lambda: not refused(proxy.port), "the door")
        assert time.monotonic() - began >= 0.49
        with proxy.connect() as new:
            assert new.ask("PING") == "PONG"
        event = proxy.wait_events()[0]
        assert (event["command"], event["applied"], event["told"]) == ("(connect)", "no", "reset")
        assert event["outcome"] == "fail"


def test_refused_until_another_profile(redis70):
    """Without `for` nobody gets in until another profile is in force."""
    with serve_proxy(redis70.url, ALL % "new_connections: refuse") as proxy:
        time.sleep(0.2)
        assert refused(proxy.port)
        proxy.use("calm")
        wait_for(lambda: not refused(proxy.port), "the door")
        proxy.use(ALL % "new_connections: refuse")
        assert refused(proxy.port)
        # One refusing profile after the other: nobody gets in between.
        proxy.use(ALL % "new_connections: refuse, for: 60s")
        time.sleep(0.1)
        assert refused(proxy.port)


def test_shut_and_opened_again_and_again(redis70):
    """Switches that come quickly leave the door as the last one says, and nobody listens twice."""
    with serve_proxy(redis70.url) as proxy:
        for _ in range(20):
            proxy.use(ALL % "new_connections: refuse, for: 20ms")
            proxy.use("calm")
        wait_for(lambda: not refused(proxy.port), "the door")
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"
        proxy.use(ALL % "new_connections: refuse, for: 60s")
        time.sleep(0.1)
        assert refused(proxy.port)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nobody_is_lost_at_the_door(redis70, monkeypatch, loop):
    """Whoever comes at the very moment is answered or turned away: nobody is left with a connection and no answer."""
    monkeypatch.setenv("CHAOSPROXY_LOOP", loop)
    met, over = Counter(), threading.Event()

    def knock(port):
        while not over.is_set():
            try:
                with Wire(port) as wire:
                    wire.socket.settimeout(5)
                    met[wire.ask("PING")] += 1
            except TimeoutError:
                met["lost"] += 1
            except (OSError, EOFError) as error:
                met[type(error).__name__] += 1
                time.sleep(0.001)

    with serve_proxy(redis70.url) as proxy:
        threads = [threading.Thread(target=knock, args=(proxy.port,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            proxy.use(ALL % "new_connections: refuse, for: 60s")
            time.sleep(0.002)
            proxy.use("calm")
            time.sleep(0.02)
        over.set()
        for thread in threads:
            thread.join(20)
        assert met["lost"] == 0, met
        assert met["PONG"] > 20
        assert met["ConnectionRefusedError"] > 0


def test_two_refusals_in_a_row(redis70):
    """Two rules with their times one after the other."""
    rules = (
        "faults:\n"
        "- {fault: admit, name: a, new_connections: refuse, for: 200ms}\n"
        "- {fault: admit, name: b, new_connections: refuse, for: 200ms, when: {from: 2s}}\n"
    )
    with serve_proxy(redis70.url) as proxy:
        began = time.monotonic()
        proxy.use(rules)
        assert refused(proxy.port)
        wait_for(lambda: not refused(proxy.port), "the door")
        assert 0.19 < time.monotonic() - began < 2
        wait_for(lambda: refused(proxy.port), "the second rule")
        assert time.monotonic() - began > 1.99
        wait_for(lambda: not refused(proxy.port), "the door")
        assert time.monotonic() - began > 2.19


def test_refused_on_a_unix_socket(redis70, tmp_path):
    """A path that nobody listens on is refused as well, and comes back."""
    from chaosproxy.net.address import parse_address

    path = tmp_path / "proxy.sock"
    listen = parse_address(f"unix://{path}")
    with serve_proxy(redis70.url, listen=listen) as proxy:
        assert path.exists()
        proxy.use(ALL % "new_connections: refuse, for: 300ms")
        assert not path.exists()
        wait_for(path.exists, "the socket")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            assert client.recv(10) == b"+PONG\r\n"


def test_everybody_is_cut_off_and_nobody_gets_in(redis70):
    """bullmq#4585: blocked consumers lose their connections at once, and cannot come back for as long as that."""
    with serve_proxy(redis70.url, NOBODY_GETS_IN) as proxy:
        wires = [proxy.connect() for _ in range(3)]
        wires[0].send("BZPOPMIN", "jobs", 0)
        wires[1].ask("PING")
        assert wires[0].silent(0.1)
        wires[2].send("BZPOPMIN", "jobs", 0)
        ends = [wire.read_to_end() for wire in wires]
        began = time.monotonic()
        for wire in wires:
            wire.close()
        assert ends == [(b"", "RST")] * 3
        assert refused(proxy.port)
        wait_for(lambda: not refused(proxy.port), "the door")
        assert 0.5 < time.monotonic() - began < 3
        with proxy.connect() as wire:
            redis70.ask("ZADD", "jobs", 1, "job")
            assert wire.ask("BZPOPMIN", "jobs", 1)[1] == b"job"
        wait_for(lambda: b"blocked_clients:0" in redis70.ask("INFO", "clients"), "nobody blocked")
        assert [event["fault"] for event in proxy.wait_events(2)] == ["crash", "away"]


@pytest.mark.parametrize("what", ["reset", "refuse"])
def test_reset(redis70, what):
    """Where something picks among connections each is taken in, and reset."""
    with serve_proxy(redis70.url, ALL % f"new_connections: {what}, when: {{nth: [1, 3]}}") as proxy:
        ends = []
        for _ in range(4):
            try:
                with proxy.connect() as wire:
                    ends.append(wire.ask("PING"))
            except (ConnectionResetError, BrokenPipeError):
                ends.append("RST")
        assert ends == ["RST", "PONG", "RST", "PONG"]
        assert [event["connection"] for event in proxy.wait_events(2)] == [1, 3]
        wait_for(lambda: b"connected_clients:2\r" in redis70.ask("INFO", "clients"), "nobody left")


def test_never_answered(redis70):
    """Taken in, and then nothing; the server never hears of it, and another profile lets it in with all it said."""
    with serve_proxy(redis70.url, ALL % "new_connections: accept_silent") as proxy:
        before = redis70.ask("INFO", "clients").split(b"\r\n")[1]
        with proxy.connect() as wire:
            wire.send("PING")
            assert wire.silent(0.3)
            assert redis70.ask("INFO", "clients").split(b"\r\n")[1] == before
            proxy.use("calm")
            assert decode(wire.read()[0]) == "PONG"
        (event,) = proxy.wait_events()
        assert (event["told"], event["detail"]) == ("nothing", "accept_silent")


@pytest.mark.parametrize("speak", [False, True])
def test_told_an_error(redis70, speak):
    """The error comes before the client has said anything, then the end; what it says is not answered."""
    with (
        serve_proxy(redis70.url, ALL % "new_connections: {error: MAXCLIENTS}") as proxy,
        proxy.connect() as wire,
    ):
        if speak:
            wire.send("PING")
        assert wire.read_to_end() == (b"-ERR max number of clients reached\r\n", "FIN")


def test_kept_waiting(redis70):
    """What it says meanwhile is kept, and answered when it is let in."""
    with serve_proxy(redis70.url, ALL % "delay: 300ms") as proxy:
        began = time.monotonic()
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"
            assert 0.29 < time.monotonic() - began < 2
            began = time.monotonic()
            assert wire.ask("PING") == "PONG"
            assert time.monotonic() - began < 0.25
        (event,) = proxy.wait_events()
        assert (event["told"], event["delay"], event["outcome"]) == ("late", 0.3, "ok")


def test_left_while_it_was_kept_waiting(redis70):
    """Who leaves before it is let in is written down as that, and the server never hears of it."""
    with serve_proxy(redis70.url, ALL % "delay: 60s, new_connections: reset") as proxy:
        wire = proxy.connect()
        wire.send("PING")
        time.sleep(0.1)
        wire.reset()
        (event,) = proxy.wait_events()
        assert event["detail"] == "reset: the connection ended while it was kept waiting"
        assert 0 < event["delay"] < 20


def test_let_in_by_another_profile(redis70):
    """Who was to be turned away later is let in, and the event says so."""
    with serve_proxy(redis70.url, ALL % "delay: 60s, new_connections: reset") as proxy:
        with proxy.connect() as wire:
            wire.send("PING")
            assert wire.silent(0.1)
            proxy.use("calm")
            assert decode(wire.read()[0]) == "PONG"
        (event,) = proxy.wait_events()
        assert (event["detail"], event["told"]) == ("reset: let in at a switch", "late")


def test_limit(redis70):
    """While there are three nobody gets in; those turned away count for nothing, and one who leaves makes room."""
    with serve_proxy(redis70.url, ALL % "limit: 3, new_connections: {error: MAXCLIENTS}") as proxy:
        wires = [proxy.connect() for _ in range(3)]
        assert [wire.ask("PING") for wire in wires] == ["PONG"] * 3
        # They read nothing and stay: they are turned away, and no longer there.
        turned_away = [proxy.connect() for _ in range(5)]
        proxy.wait_events(5)
        wires.pop().close()
        wait_for(lambda: b"connected_clients:4\r" in redis70.ask("INFO", "clients"), "room")
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"
            with proxy.connect() as other:
                assert other.read_to_end()[0].startswith(b"-ERR max number")
        for wire in wires + turned_away:
            wire.close()


def test_next(redis70):
    """The next two are turned away, the third gets in."""
    with serve_proxy(redis70.url) as proxy:
        proxy.use(ALL % "new_connections: {error: go away}, next: 2")
        for _ in range(2):
            with proxy.connect() as wire:
                assert wire.read_to_end() == (b"-ERR go away\r\n", "FIN")
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"


def test_many_at_once(redis70):
    """A crowd at the door: exactly as many are turned away as was said, whoever they are."""
    with serve_proxy(redis70.url, ALL % "new_connections: {error: go away}, next: 20") as proxy:
        heard = []

        def knock():
            with Wire(proxy.port) as wire:
                wire.send("PING")
                heard.append(decode(wire.read()[0]))

        threads = [threading.Thread(target=knock) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(heard) == ["ERR go away"] * 20 + ["PONG"] * 30
        assert len(proxy.wait_events(20)) == 20


@pytest.fixture
def taken(redis70):
    """A proxy that wants to listen again, on a port that somebody else has taken meanwhile."""
    with serve_proxy(redis70.url) as proxy:
        proxy.use(ALL % "new_connections: refuse, for: 100ms")
        assert refused(proxy.port)
        with socket.create_server(("127.0.0.1", proxy.port)) as other:
            other.settimeout(5)
            time.sleep(0.3)
            with socket.create_connection(("127.0.0.1", proxy.port), 10):
                other.accept()[0].close()
            yield proxy, other


def answers(proxy):
    try:
        with proxy.connect() as wire:
            return wire.ask("PING") == "PONG"
    except (OSError, EOFError):
        return False


def test_somebody_else_takes_the_port_meanwhile(taken):
    """A port that is taken while nobody listens is waited for."""
    proxy, other = taken
    other.close()
    wait_for(lambda: answers(proxy), "the port")


def test_shut_while_the_port_is_waited_for(taken):
    """Who is to refuse again meanwhile no longer waits; who is then not to after all does."""
    proxy, other = taken
    proxy.use(ALL % "new_connections: refuse")
    time.sleep(0.2)
    other.close()
    assert refused(proxy.port)
    proxy.use("calm")
    wait_for(lambda: answers(proxy), "the port")


def test_shut_for_a_moment_while_the_port_is_waited_for(taken):
    """A refusal that ends before anybody woke up changes nothing: it is waited for once, not twice."""
    proxy, other = taken
    shut = load([source_of(ALL % "new_connections: refuse")])
    calm = load([source_of("calm")])
    both = lambda: [proxy.service._proxy.use(profile, 1) for profile in (shut, calm)]  # noqa: E731
    proxy.service._loop.call(both)
    other.close()
    wait_for(lambda: answers(proxy), "the port")
    with proxy.connect() as wire:
        assert wire.ask("PING") == "PONG"


def test_shut_while_it_begins_to_listen(redis70):
    """A door that is to be shut again before it is open ends up shut."""
    shut = load([source_of(ALL % "new_connections: refuse")])
    calm = load([source_of("calm")])
    with serve_proxy(redis70.url, ALL % "new_connections: refuse") as proxy:
        assert refused(proxy.port)
        both = lambda: [proxy.service._proxy.use(profile, 1) for profile in (calm, shut)]  # noqa: E731
        proxy.service._loop.call(both)
        time.sleep(0.3)
        assert refused(proxy.port)
        proxy.use("calm")
        wait_for(lambda: answers(proxy), "the door")


def test_the_end_while_the_port_is_waited_for(taken):
    """A proxy that still waits for its port ends like any other."""
    proxy, other = taken
    proxy.stop()
    other.close()
    time.sleep(0.2)
    assert refused(proxy.port)
