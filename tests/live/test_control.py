"""The control API of a whole proxy: in force means on every connection, it answers whatever stalls, and secrets stay in."""

import json
import socket
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from time import monotonic

import pytest

from chaosproxy.net.descriptors import allow_connections
from tests.proxying import start_proxy, wait_for
from tests.wire import Wire, encode

HOLD = """
faults:
- {fault: latency, name: hold, match: {commands: GET}, at: after_apply, delay: 60s}
- {fault: latency, name: wait, match: {commands: SET}, at: before_forward, delay: 60s}
- {fault: disconnect, name: cut, match: {commands: INCR}, when: {trigger: manual}, at: after_apply}
"""
MANY = 1000
SECRET = "pa55w0rd-that-nobody-may-see"


def ask(proxy, method, path, body=None):
    """Ask, and again where the data side is busy, as that says; gives status, text and how long the last one took in seconds."""
    for _ in range(30):
        status, text, took = ask_once(proxy, method, path, body)
        if status != 503:
            break
    return status, text, took


def ask_once(proxy, method, path, body=None):
    """Ask once; gives status, text and how long it took in seconds."""
    began = monotonic()
    with closing(HTTPConnection(proxy.control.partition("//")[2], timeout=60)) as link:
        headers = {} if body is None else {"Content-Type": "application/json"}
        link.request(method, path, None if body is None else json.dumps(body), headers)
        answer = link.getresponse()
        text = answer.read().decode()
    return answer.status, text, monotonic() - began


@pytest.fixture
def proxy(redis70):
    with start_proxy(redis70.url) as proxy:
        yield proxy


def test_in_force_on_every_connection(proxy):
    """When PUT is answered the very next command of every open connection meets the new profile, or the old one no more."""
    with ExitStack() as stack:
        clients = [stack.enter_context(proxy.connect()) for _ in range(20)]
        for client in clients:
            assert client.ask("PING") == "PONG"
        for number in range(1, 6):
            error = {"yaml": f"faults: [{{fault: reply, at: before_forward, error: ERR {number}}}]"}
            status, text, _ = ask(proxy, "PUT", "/profile", error)
            assert (status, json.loads(text)["generation"]) == (200, 2 * number)
            for client in clients:
                assert client.raw("PING") == b"-ERR %d\r\n" % number
            assert ask(proxy, "DELETE", "/profile")[0] == 200
            for client in clients:
                assert client.ask("PING") == "PONG"


def test_what_was_held_is_let_go(proxy):
    """Requests and replies that the old profile held go on at once, in order."""
    assert ask(proxy, "PUT", "/profile", {"yaml": HOLD})[0] == 200
    with proxy.connect() as reader, proxy.connect() as writer:
        reader.send("GET", "k")
        writer.send("SET", "k", "v")
        writer.send("PING")
        wait_for(lambda: proxy.metric("held_commands") == 2, "both to be held")
        assert ask(proxy, "DELETE", "/profile")[0] == 200
        assert reader.read() == [b"$-1\r\n"]
        assert writer.read(2) == [b"+OK\r\n", b"+PONG\r\n"]


def test_a_bad_profile_changes_nothing(proxy):
    """422 with all problems, and what was in force goes on."""
    assert ask(proxy, "PUT", "/profile", {"name": "lost-ack", "seed": 3})[0] == 200
    status, text, _ = ask(proxy, "PUT", "/profile", {"yaml": "faults: [{fault: x}, {fault: y}]"})
    assert (status, len(json.loads(text)["problems"])) == (422, 2)
    now = json.loads(ask(proxy, "GET", "/profile")[1])
    assert (now["name"], now["seed"], now["generation"]) == ("lost-ack", 3, 2)
    with proxy.connect() as client:
        client.send("RPUSH", "l", "x")
        assert client.read_to_end() == (b"", "RST")
    (fault,) = json.loads(ask(proxy, "GET", "/profile")[1])["faults"]
    assert (fault["name"], fault["matched"], fault["fired"], fault["skipped"]) == (
        "lost-ack",
        1,
        1,
        {},
    )
    (event,) = json.loads(ask(proxy, "GET", "/events?wait=20s")[1])["events"]
    assert (event["fault"], event["generation"], event["applied"]) == ("lost-ack", 2, "yes")


def test_warns_of_what_this_server_does_not_know(proxy):
    """A command that only newer servers have is no problem of the profile, and is told."""
    text = (
        "faults: [{fault: latency, match: {commands: [GET, HEXPIRE]}, at: after_apply, delay: 1ms}]"
    )
    status, said, _ = ask(proxy, "PUT", "/profile", {"yaml": text})
    (warning,) = json.loads(said)["warnings"]
    assert (status, "HEXPIRE" in warning) == (200, True)


def test_trigger_and_switch(proxy):
    """By hand: one act a request; switched off nothing; what cannot be done is said."""
    ask(proxy, "PUT", "/profile", {"yaml": HOLD})
    assert ask(proxy, "POST", "/faults/cut/trigger")[0] == 200
    assert ask(proxy, "POST", "/faults/hold/trigger")[0] == 409
    assert ask(proxy, "POST", "/faults/nosuch/trigger")[0] == 404
    with proxy.connect() as client:
        client.send("INCR", "n")
        assert client.read_to_end() == (b"", "RST")
    assert ask(proxy, "PATCH", "/faults/hold", {"enabled": False})[0] == 200
    with proxy.connect() as client:
        assert client.ask("INCR", "n") == 2
        assert client.ask("GET", "n") == b"2"


@pytest.mark.timeout(300)
def test_a_thousand_stalled_connections(redis70):
    """Every route is answered within a second while a thousand clients wait; a switch lets all of them go."""
    if allow_connections(MANY) < MANY:
        pytest.skip("needs 2,064 open files: ulimit -n 4096")
    routes = [
        ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/profiles"), ("GET", "/profile"),
        ("GET", "/events"), ("GET", "/connections"), ("POST", "/faults/cut/trigger"), ("GET", "/openapi.json"),
    ]  # fmt: skip
    with start_proxy(redis70.url) as proxy, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 60))
            for _ in range(MANY)
        ]
        best = dict.fromkeys([*routes, ("PUT", "/profile"), ("DELETE", "/profile")], 60.0)
        # On a machine that does much else one answer may be late for that reason: then all are asked for again.
        for _ in range(6):
            status, _, took = ask(proxy, "PUT", "/profile", {"yaml": HOLD})
            assert status == 200
            best["PUT", "/profile"] = min(best["PUT", "/profile"], took)
            for number, client in enumerate(clients):
                client.sendall(encode("GET", "k") if number % 2 else encode("SET", "k", "v"))
            wait_for(lambda: proxy.metric("held_commands") == MANY, "all to wait", 60)
            for method, path in routes:
                status, text, took = ask(proxy, method, path)
                assert status == 200, text
                best[method, path] = min(best[method, path], took)
            assert len(json.loads(ask(proxy, "GET", "/connections")[1])["connections"]) == MANY
            status, _, took = ask(proxy, "DELETE", "/profile")
            best["DELETE", "/profile"] = min(best["DELETE", "/profile"], took)
            for client in clients:
                assert client.recv(100) in (b"+OK\r\n", b"$-1\r\n", b"$1\r\nv\r\n")
            if max(best.values()) < 1:
                break
        assert {route: took for route, took in best.items() if took >= 1} == {}


def test_secrets_stay_in(redis70, tmp_path):
    """What AUTH and HELLO carry is in no event, no log, no metric and no answer, even where faults act on just them."""
    rules = """
description: Everything acts.
faults:
- {fault: latency, name: greet, match: {commands: "@handshake"}, at: after_apply, delay: 1ms}
- {fault: latency, name: all, match: {commands: [AUTH, HELLO, GET]}, at: before_forward, delay: 1ms}
- {fault: reply, name: no, match: {commands: AUTH}, when: {nth: 2}, at: after_apply, error: WRONGPASS}
"""
    with start_proxy(
        redis70.url, rules, "--log-level", "debug", "--control-token", SECRET
    ) as proxy:
        with Wire(proxy.port) as client:
            client.raw("HELLO", "2", "AUTH", "default", SECRET)
            client.raw("AUTH", SECRET)
            client.raw("GET", "k")
            client.raw("AUTH", "default", SECRET)
            headers = {"Authorization": f"Bearer {SECRET}"}
            wait_for(lambda: len(proxy.events()) >= 6, "the events")
            said = [
                proxy.get(path, **headers)[1]
                for path in ("/events", "/connections", "/profile", "/metrics", "/openapi.json")
            ]
        said.append((proxy.folder / "events.jsonl").read_text())
        proxy.stop()
    said.append(proxy.stderr)
    assert '"command": "AUTH"' in said[0]
    assert "GET /connections" in said[-1]
    assert [text for text in said if SECRET in text] == []
