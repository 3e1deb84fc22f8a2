"""Clients that leave while they wait at the server, on real servers: nothing is taken for them any more, whatever rules look at behind that."""

import pytest

from tests.proxying import serve_proxy, wait_for
from tests.wire import encode

RULES = "faults:\n- {%s, match: {commands: SET}}\n"


@pytest.mark.parametrize(
    "rule",
    ["fault: drop_write, tell: ok", "fault: expire_key, mode: now", "fault: duplicate", "fault: stale_read, lag: 1s"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["close", "finish"])
def test_nothing_is_taken_for_nobody(any_server, rule, end):
    """A client blocks, has sent more behind that, and goes: as without the proxy the list keeps what comes, and nothing else happens."""
    any_server.ask("SET", "k", "v")
    with serve_proxy(any_server.url, RULES % rule) as proxy, proxy.connect() as wire:
        wire.ask("PING")
        wire.send_bytes(encode("BLPOP", "q", 0) + encode("SET", "k", "w") + encode("SET", "k", "x"))
        wait_for(lambda: b"blocked_clients:1\r" in any_server.ask("INFO", "clients"), "it to block")
        getattr(wire, end)()
        wait_for(lambda: b"blocked_clients:0\r" in any_server.ask("INFO", "clients"), "it to go")
        assert any_server.ask("RPUSH", "q", "1") == 1
        assert any_server.ask("GET", "k") == b"v"
        proxy.wait_clients(0)
        matched = proxy.metric("faults_matched_total")
        fired, skipped = proxy.metric("faults_fired_total"), proxy.metric("faults_skipped_total")
        assert matched == fired + skipped


SILENCES = [
    "what: reply", "what: connection", "what: connection, for: 60s", "what: connection, direction: to_client",
    "what: connection, direction: to_upstream",
]  # fmt: skip


@pytest.mark.parametrize("silence", SILENCES)
@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("end", ["close", "finish"])
def test_nothing_is_taken_for_nobody_in_a_silence(any_server, silence, resp, end):
    """A client that waits and hears nothing goes: its end reaches the server, which gives its element to nobody, and it is counted no more."""
    rules = (
        f"faults:\n- {{fault: blackhole, match: {{commands: GET}}, at: after_apply, {silence}}}\n"
    )
    with serve_proxy(any_server.url, rules) as proxy, proxy.connect(resp=resp) as wire:
        wire.ask("PING")
        wire.send_bytes(encode("GET", "k") + encode("BRPOPLPUSH", "q", "taken", 0))
        wait_for(lambda: b"blocked_clients:1\r" in any_server.ask("INFO", "clients"), "it to block")
        wait_for(lambda: proxy.metric("faults_fired_total") == 1, "the silence")
        wire.send_bytes(encode("SET", "held", 1) * 3)
        getattr(wire, end)()
        wait_for(lambda: b"blocked_clients:0\r" in any_server.ask("INFO", "clients"), "it to go")
        proxy.wait_clients(0)
        assert proxy.metric("connections") == 0
        assert any_server.ask("RPUSH", "q", "1") == 1
        assert any_server.ask("EXISTS", "held", "taken") == 0


def test_all_is_done_that_would_have_been(any_server):
    """One that has not had to wait has all carried out that it has sent before its end."""
    rules = RULES % "fault: duplicate"
    with serve_proxy(any_server.url, rules) as proxy, proxy.connect() as wire:
        for number in range(20):
            any_server.ask("RPUSH", "q", number)
        wire.send_bytes(
            b"".join(encode("BLPOP", "q", 0) + encode("SET", f"k{n}", n) for n in range(20))
        )
        wire.finish()
        wait_for(lambda: any_server.ask("GET", "k19") == b"19", "the last one")
        assert any_server.ask("EXISTS", "q") == 0
        proxy.wait_clients(0)


def test_what_is_to_come_after_its_last_reply(any_server):
    """A client that ends as soon as it has its reply has had it: its stack, which acknowledges late, has done so with that end."""
    rules = "faults:\n- {fault: run, match: {commands: SET}, at: after_reply, commands: [[INCR, ran]]}\n"
    with serve_proxy(any_server.url, rules) as proxy:
        for number in range(10):
            with proxy.connect() as wire:
                # Only a connection's first few segments are acknowledged at once.
                for _ in range(40):
                    wire.ask("GET", "k")
                wire.ask("SET", "k", number)
        wait_for(lambda: any_server.ask("GET", "ran") == b"10", "all of them")
        proxy.wait_clients(0)
        assert proxy.metric("faults_fired_total") == proxy.metric("faults_matched_total") == 10
