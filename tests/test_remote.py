"""A proxy asked from elsewhere: each question, what refuses, and servers that are none of ours."""

import json
import socket
import threading

import pytest

from chaosproxy.remote import Remote, RemoteError
from tests.proxying import serve_proxy

RULES = (
    "faults:\n- {fault: reply, name: lie, match: {commands: GET}, at: before_forward, value: 1}\n"
)


@pytest.fixture
def proxy(redis70):
    with serve_proxy(redis70.url, control_token="sécret") as proxy:
        yield proxy


@pytest.fixture
def remote(proxy):
    return Remote(proxy.control, "sécret")


def test_profiles(remote):
    """Put in force, asked for, and gone again."""
    assert remote.use(name="lost-ack", seed=5, set=None)["generation"] == 2
    now = remote.profile()
    assert (now["name"], now["seed"], now["faults"][0]["name"]) == ("lost-ack", 5, "lost-ack")
    assert remote.calm()["name"] == "calm"


def test_problems(remote):
    """A bad profile's problems come along."""
    with pytest.raises(RemoteError, match="the profile has 1 problem") as caught:
        remote.use(yaml="faults: [{fault: latncy}]")
    assert (caught.value.status, caught.value.problems[0]["suggestion"]) == (422, "latency")


def test_trigger(remote):
    """A fault by its name, whatever is in that."""
    with pytest.raises(RemoteError, match="is called 'a/b ü'") as caught:
        remote.trigger("a/b ü")
    assert caught.value.status == 404


def test_events(proxy, remote):
    """Those there are, those that come, and one after the other for ever."""
    remote.use(yaml=RULES)
    assert remote.events(wait=0.01) == []
    with proxy.connect() as client:
        client.ask("GET", "a")
        assert [event["keys"] for event in remote.events(wait=60)] == [["a"]]
        following = remote.follow()
        assert next(following)["n"] == 1
        client.ask("GET", "b")
        assert next(following)["keys"] == ["b"]
        assert [link["id"] for link in remote.connections()] == [1]


def test_events_of_another_run(redis70):
    """A proxy that was started anew has numbers of its own: all of its events are told, and none of them left out."""
    with serve_proxy(redis70.url, RULES) as first, first.connect() as client:
        remote = Remote(first.control)
        following = remote.follow()
        for number, key in enumerate("ab", 1):
            client.ask("GET", key)
            event = next(following)
            assert (event["n"], event["keys"]) == (number, [key])
    with serve_proxy(redis70.url, RULES) as second, second.connect() as client:
        remote._port = Remote(second.control)._port  # as if it were at the same address
        for key in "cde":
            client.ask("GET", key)
        second.wait_events(3)
        found = [next(following) for _ in range(3)]
        assert [(event["n"], event["keys"]) for event in found] == [
            (1, ["c"]),
            (2, ["d"]),
            (3, ["e"]),
        ]


def test_token(proxy):
    """Without its token nothing is said, but which of the two is wrong."""
    for token, why in ((None, "a token is needed"), ("wrong", "that is not the token")):
        with pytest.raises(RemoteError, match=why) as caught:
            Remote(proxy.control, token).profile()
        assert caught.value.status == 401


@pytest.mark.parametrize("url", ["ftp://x", "http://", "redis://127.0.0.1", "127.0.0.1:port"])
def test_no_url(url):
    """What is no URL of its kind."""
    with pytest.raises(ValueError, match=r".+"):
        Remote(url)


@pytest.mark.parametrize(
    "said",
    [b"", b"+PONG\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
     b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnone", b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}",
     b'HTTP/1.1 422 No\r\nContent-Length: 28\r\n\r\n{"error": 1, "problems": []}',
     b'HTTP/1.1 422 No\r\nContent-Length: 32\r\n\r\n{"error": "x", "problems": [{}]}'],
)  # fmt: skip
def test_somebody_else(said):
    """Who answers something else is told apart from a proxy, and from nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RemoteError, match=url):
            Remote(url).profile()
        thread.join()


EVENT = {"n": 1, "at": "", "fault": "", "command": "", "applied": "", "told": "", "outcome": ""}
#: What has lists where a proxy's answers have them, of something else.
FOREIGN = [
    {"name": "", "seed": 1, "generation": 1, "since": "", "faults": items, "warnings": [1]}
    | {"events": items, "connections": [1]}
    for items in (
        *([1], [None], [[]], [{}]),
        *([EVENT | change] for change in ({"n": "1"}, {"at": 1}, {"delay": "1"}, {"keys": [1]})),
        *([EVENT | {"keys_b64": wrong}] for wrong in (1, [1], ["A"], ["\u00e4"])),
        [{"name": "", "type": "", "matched": 1, "fired": 1, "skipped": []}],
    )
]


@pytest.mark.parametrize(
    "said",
    ["[]", "{}", '"x"', '{"faults": 1, "events": {}, "connections": 2}', *map(json.dumps, FOREIGN)],
)
def test_something_else_in_json(said):
    """What is no answer of a proxy's is told as such, to whatever was asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            for _ in range(6):
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(said)}\r\n\r\n"
                    client.sendall(head.encode() + said.encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        remote = Remote(f"http://127.0.0.1:{server.getsockname()[1]}")
        for ask in (
            remote.profile,
            remote.calm,
            remote.connections,
            remote.events,
            lambda: remote.use(name="calm"),
            lambda: remote.trigger("x"),
        ):
            with pytest.raises(RemoteError, match="answered 200, and not as chaosproxy does"):
                ask()
        thread.join()


def test_nobody():
    """Nobody there: where, and why."""
    with pytest.raises(
        RemoteError, match=r"no chaosproxy answers at http://127\.0\.0\.1:1: .*refused"
    ):
        Remote("127.0.0.1:1").profile()
