"""What is larger than may be held, on real servers: it passes, or is let go, or ends the connection, as README says."""

import itertools
import threading
from pathlib import Path

import pytest

from tests.proxying import serve_proxy, start_proxy, wait_for
from tests.wire import decode, encode

MOST = 64 << 10
BIG = "x" * (3 << 20)
DROP = "faults:\n- {fault: drop_write, match: {keys: 'k*'}, tell: ok}\n"


@pytest.mark.parametrize("resp", [2, 3])
def test_messages(any_server, resp):
    """Messages of 3 MB pass, and what stands between them too, under calm and where a rule looks at each command."""
    for profile in ("calm", "faults:\n- {fault: latency, at: before_forward, delay: 0s}\n"):
        with (
            serve_proxy(any_server.url, profile, max_buffer=MOST) as proxy,
            proxy.connect(resp=resp) as wire,
        ):
            wire.ask("SUBSCRIBE", "c")
            wire.send("PING")
            for text in (BIG, "small", BIG):
                assert any_server.ask("PUBLISH", "c", text) == 1
            wire.send("PING")
            pong = "PONG" if resp == 3 else [b"pong", b""]
            texts = [BIG, "small", BIG]
            messages = [[b"message", b"c", text.encode()] for text in texts]
            heard = [decode(raw) for raw in wire.read(5)]
            assert [each for each in heard if each != pong] == messages
            assert heard.count(pong) == 2


def test_an_exec_that_changes_the_connection(any_server):
    """It passes, and what follows is carried out and understood in the database that it selected."""
    any_server.ask("SET", "big", BIG)
    profile = (
        "faults:\n- {fault: reply, match: {commands: GET, db: 1}, at: after_apply, value: made}\n"
    )
    with serve_proxy(any_server.url, profile, max_buffer=MOST) as proxy, proxy.connect() as wire:
        for command in (("MULTI",), ("STRLEN", "big"), ("GET", "big"), ("SELECT", "1")):
            wire.ask(*command)
        assert wire.ask("EXEC") == [len(BIG), BIG.encode(), "OK"]
        assert wire.ask("GET", "a") == b"made"


def test_a_swallowed_write(any_server):
    """A reply that nobody can hold is not computed: the write passes, and the rule says why."""
    any_server.ask("SET", "k", BIG)
    with serve_proxy(any_server.url, DROP, max_buffer=MOST) as proxy, proxy.connect() as wire:
        assert wire.ask("SET", "k2", "1") == "OK"
        assert any_server.ask("GET", "k2") is None
        assert wire.ask("GETDEL", "k") == BIG.encode()
        assert any_server.ask("GET", "k") is None
        (status,) = proxy.service.status()
        assert (status["matched"], status["fired"]) == (2, 1)
        assert status["skipped"] == {"too_large": 1}
        assert dict(proxy.service.limits.items())["reply"] == 1


def test_an_exec_with_a_swallowed_write(any_server):
    """Its array can neither be given as it is nor be held: an error, the end, and an event that tells it."""
    any_server.ask("SET", "big", BIG)
    with serve_proxy(any_server.url, DROP, max_buffer=MOST) as proxy, proxy.connect() as wire:
        for command in (("MULTI",), ("SET", "k", "1"), ("SET", "a", "1"), ("GET", "big")):
            wire.ask(*command)
        wire.send("EXEC")
        data, end = wire.read_to_end()
        assert data.startswith(b"-CHAOSPROXY EXEC was carried out")
        assert (data.count(b"\r\n"), end) == (1, "FIN")
        assert any_server.ask("MGET", "k", "a") == [None, b"1"]
        (event,) = proxy.wait_events(1)
        assert (event["applied"], event["told"], event["outcome"]) == ("no", "error", "fail")
        assert dict(proxy.service.limits.items())["reply"] == 1


def test_an_answer_on_the_side(redis70, redis62):
    """The same of what is asked on a side connection, where the limit is 16 MiB: to this server, and to its standby."""
    for server in (redis70, redis62):
        server.ask("SET", "k", "x" * (17 << 20))
    rules = f"{DROP}- {{fault: run, match: {{commands: PING}}, at: before_forward, where: standby, commands: [[GET, k]]}}\n"
    with (
        serve_proxy(redis70.url, rules, standby=redis62.url, max_buffer=MOST) as proxy,
        proxy.connect() as wire,
    ):
        assert wire.ask("WATCH", "w") == "OK"
        assert len(wire.ask("GETDEL", "k")) == 17 << 20
        assert redis70.ask("EXISTS", "k") == 0
        assert dict(proxy.service.limits.items())["reply"] == 1
        assert wire.ask("PING") == "PONG"
        assert dict(proxy.service.limits.items())["reply"] == 2
        dropped, ran = proxy.service.status()
        assert dropped["skipped"] == {"too_large": 1}
        assert (ran["matched"], ran["fired"]) == (1, 1)
        (event,) = proxy.events()
        assert (event["fault"], event["applied"], event["told"]) == ("run", "yes", "ok")
        assert event["detail"] == "CHAOSPROXY the answer is too large to be held"


def test_a_client_that_reads_nothing(redis70):
    """Of 100 MB that faults answer it a part is made at a time: it costs little, others are served, and all of it comes in the end."""
    answer = "x" * 20_000
    profile = f"faults:\n- {{fault: reply, match: {{commands: GET}}, at: before_forward, value: {answer}}}\n"
    with (
        start_proxy(redis70.url, profile, "--max-buffer", "256KiB") as proxy,
        proxy.connect() as wire,
        proxy.connect() as other,
    ):
        assert (wire.ask("PING"), other.ask("PING")) == ("PONG", "PONG")
        before = memory(proxy)
        wire.send_bytes(encode("GET", "a") * 5000 + encode("ECHO", "last"))
        proxy.wait_events(10)
        for number in range(50):
            assert other.ask("ECHO", f"{number}") == b"%d" % number
        assert memory(proxy) - before < 32 << 20
        assert len(proxy.events()) < 1000
        whole = b"$20000\r\n" + answer.encode() + b"\r\n"
        heard = bytearray()
        while len(heard) < 5000 * len(whole) + len(b"$4\r\nlast\r\n"):
            heard += wire.socket.recv(1 << 20)
        assert heard == whole * 5000 + b"$4\r\nlast\r\n"


def test_a_client_that_sends_very_much(redis70):
    """Others have their turn between a thousand commands of one and the next, however many have come at once."""
    profile = "faults:\n- {fault: reply, match: {commands: GET}, at: before_forward, error: no}\n"
    number, answer = 30_000, b"-ERR no\r\n"
    with (
        serve_proxy(redis70.url, profile) as proxy,
        proxy.connect() as wire,
        proxy.connect() as other,
    ):
        assert (wire.ask("PING"), other.ask("PING")) == ("PONG", "PONG")
        loop, (rule,) = proxy.service._loop, proxy.service._proxy.world.engine.rules
        turns = []

        def turn():
            # Whoever else waits in the loop has a turn as often as this; how soon a thread has one is the machine's matter.
            turns.append(rule.fired)
            if rule.fired < number:
                loop.loop.call_later(0.001, turn)

        loop.call(turn)
        thread = threading.Thread(target=lambda: wire.send_bytes(encode("GET", "a") * number))
        thread.start()
        assert other.ask("ECHO", "x") == b"x"
        heard = 0
        while heard < number * len(answer):
            heard += len(wire.socket.recv(1 << 20))
        thread.join()
        wait_for(lambda: turns[-1] == number, "the last turn")
        # As the loop goes round there may be a thousand that have just come, and a thousand of those that were left.
        assert max(after - before for before, after in itertools.pairwise(turns)) <= 2000


def memory(proxy) -> int:
    """What a proxy's process holds, in bytes."""
    return int(Path(f"/proc/{proxy.process.pid}/statm").read_text().split()[1]) * 4096
