"""`admit` with real connections: refused, reset, kept waiting, told an error, never answered; and let in again."""

import socket
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest

from chaosproxy.net.address import parse_address
from chaosproxy.profile import load
from tests.busy import measured, within
from tests.proxying import at_its_own_port, refused, serve_proxy, source_of, wait_for
from tests.wire import Wire, decode

ALL = "faults:\n- {fault: admit, %s}\n"
#: bullmq#4585: at the second BZPOPMIN everybody is cut off, and nobody gets in for a while.
AWAY = 1.5
NOBODY_GETS_IN = f"""
faults:
- fault: disconnect
  name: crash
  match: {{commands: BZPOPMIN}}
  when: {{nth: 2}}
  at: before_forward
  how: reset
  who: all
- fault: admit
  name: away
  new_connections: refuse
  for: {AWAY}s
  when: {{armed_by: crash}}
"""


def test_refused_for_a_while(redis70):
    """Connecting fails, with whatever address it is tried; those who are in stay; the same port comes back."""
    with at_its_own_port(redis70) as proxy, proxy.connect() as old:
        assert old.ask("PING") == "PONG"
        began = time.monotonic()
        rule = ALL % "new_connections: refuse, for: 500ms"
        assert proxy.in_force(rule, lambda: refused(proxy.port))
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
    with at_its_own_port(redis70, ALL % "new_connections: refuse") as proxy:
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
    with at_its_own_port(redis70) as proxy:
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
                    met[wire.ask("PING")] += 1
            except TimeoutError:
                met["lost"] += 1
            except (OSError, EOFError) as error:
                met[type(error).__name__] += 1
                time.sleep(0.001)

    with at_its_own_port(redis70) as proxy:
        threads = [threading.Thread(target=knock, args=(proxy.port,)) for _ in range(4)]
        for thread in threads:
            thread.start()

        def shut_and_open():
            proxy.use(ALL % "new_connections: refuse, for: 60s")
            time.sleep(0.002)
            proxy.use("calm")
            time.sleep(0.02)
            return met["PONG"] > 20 and met["ConnectionRefusedError"] > 0

        try:
            for _ in range(60):
                shut_and_open()
            # On a busy machine it takes longer until all has been met.
            wait_for(shut_and_open, "some to be let in and some to be refused")
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert met["lost"] == 0, met


def test_two_refusals_in_a_row(redis70):
    """Two rules with their times one after the other."""
    rules = (
        "faults:\n"
        "- {fault: admit, name: a, new_connections: refuse, for: 200ms}\n"
        "- {fault: admit, name: b, new_connections: refuse, for: 200ms, when: {from: 2s}}\n"
    )
    with at_its_own_port(redis70) as proxy:
        # What shuts and opens says so itself: whoever looks now and then can miss a time on a busy machine.
        routes, seen = proxy.service._proxy.routes, []
        shut, reopen = routes.close, routes.open

        def close():
            shut()
            seen.append((time.monotonic() - began, refused(proxy.port)))

        async def open_again():
            await reopen()
            seen.append((time.monotonic() - began, refused(proxy.port)))

        door = proxy.service._proxy.door._all
        door._close, door._listen = close, open_again
        began = time.monotonic()
        proxy.use(rules)
        wait_for(lambda: len(seen) == 4, "both rules")
        assert [is_refused for _, is_refused in seen] == [True, False, True, False]
        _, first, second, end = [at for at, _ in seen]
        assert first > 0.19
        assert second > 1.99
        assert end > 2.19


def test_refused_on_a_unix_socket(redis70, tmp_path):
    """A path that nobody listens on is refused as well, and comes back."""
    path = tmp_path / "proxy.sock"
    listen = parse_address(f"unix://{path}")
    with serve_proxy(redis70.url, listen=listen) as proxy:
        assert path.exists()
        assert proxy.in_force(
            ALL % "new_connections: refuse, for: 300ms", lambda: not path.exists()
        )
        wait_for(path.exists, "the socket")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            assert client.recv(10) == b"+PONG\r\n"


@within(0.5)
def test_everybody_is_cut_off_and_nobody_gets_in(redis70):
    """bullmq#4585: blocked consumers lose their connections at once, and cannot come back for as long as that."""
    with at_its_own_port(redis70) as proxy, measured() as busy:
        proxy.use(NOBODY_GETS_IN)
        wires = [proxy.connect() for _ in range(3)]
        wires[0].send("BZPOPMIN", "jobs", 0)
        wires[1].ask("PING")
        wait_for(lambda: b"cmd=bzpopmin" in redis70.ask("CLIENT", "LIST"), "the first to wait")
        assert wires[0].silent(0.1)
        began = time.monotonic()
        wires[2].send("BZPOPMIN", "jobs", 0)
        ends = [wire.read_to_end() for wire in wires]
        for wire in wires:
            wire.close()
        assert ends == [(b"", "RST")] * 3
        assert refused(proxy.port)
        wait_for(lambda: not refused(proxy.port), "the door")
        assert AWAY - 0.01 < time.monotonic() - began < AWAY + 15 + busy.lost
        # Who still waited there would be given the job.
        wait_for(lambda: b"blocked_clients:0" in redis70.ask("INFO", "clients"), "nobody blocked")
        with proxy.connect() as wire:
            redis70.ask("ZADD", "jobs", 1, "job")
            assert wire.ask("BZPOPMIN", "jobs", 1)[1] == b"job"
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
        before = clients_of(redis70)
        with proxy.connect() as wire:
            wire.send("PING")
            proxy.wait_clients()
            assert wire.silent(0.3)
            assert clients_of(redis70) <= before
            proxy.use("calm")
            assert decode(wire.read()[0]) == "PONG"
        (event,) = proxy.wait_events()
        assert (event["told"], event["detail"]) == ("nothing", "accept_silent")


def clients_of(server):
    """The numbers of a server's clients; those that have just left may still be there."""
    return {line.split()[0] for line in server.ask("CLIENT", "LIST").splitlines()}


@pytest.mark.parametrize("speak", [False, True])
@within(0.5)
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
    """What it says meanwhile is kept, and answered when it is let in; then nothing keeps it any more."""
    with serve_proxy(redis70.url, ALL % "delay: 300ms") as proxy, measured() as busy:
        began = time.monotonic()
        with proxy.connect() as wire:
            assert wire.ask("PING") == "PONG"
            assert 0.29 < time.monotonic() - began < 15 + busy.lost
            took = []
            # One may be late for the server's sake.
            for _ in range(10):
                began = time.monotonic()
                assert wire.ask("PING") == "PONG"
                took.append(time.monotonic() - began)
            assert min(took) < 0.25
        (event,) = proxy.wait_events()
        assert (event["told"], event["delay"], event["outcome"]) == ("late", 0.3, "ok")


def test_left_while_it_was_kept_waiting(redis70):
    """Who leaves before it is let in is written down as that, and the server never hears of it."""
    with serve_proxy(redis70.url, ALL % "delay: 60s, new_connections: reset") as proxy:
        wire = proxy.connect()
        wire.send("PING")
        proxy.wait_clients()
        wire.reset()
        (event,) = proxy.wait_events()
        assert event["detail"] == "reset: the connection ended while it was kept waiting"
        assert 0 < event["delay"] < 20


def test_let_in_by_another_profile(redis70):
    """Who was to be turned away later is let in, and the event says so."""
    with serve_proxy(redis70.url, ALL % "delay: 60s, new_connections: reset") as proxy:
        with proxy.connect() as wire:
            wire.send("PING")
            proxy.wait_clients()
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
                # Who is turned away and has heard so may be late with it.
                with suppress(ConnectionError):
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
def taken(redis70, caplog):
    """A proxy that wants to listen again, on a port that somebody else has taken meanwhile."""
    with at_its_own_port(redis70) as proxy:

        def look():
            assert refused(proxy.port)
            return socket.create_server(("127.0.0.1", proxy.port))

        with proxy.in_force(ALL % "new_connections: refuse, for: 100ms", look) as other:
            other.settimeout(60)
            wait_for(lambda: "cannot listen again" in caplog.text, "an attempt")
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
    with at_its_own_port(redis70, ALL % "new_connections: refuse") as proxy:
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
