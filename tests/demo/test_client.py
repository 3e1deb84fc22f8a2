"""The stories' client: what it asks and hears is what Redis says, and all of it is told."""

import pytest

from chaosproxy.demo import client as client_module
from chaosproxy.demo.client import AnswerError, Client, shown
from tests.proxying import serve_proxy


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def client(redis70, told):
    with Client(("127.0.0.1", redis70.port), "tab A", lambda *said: told.append(said)) as client:
        yield client


def test_answers(client, told, monkeypatch):
    """Text, numbers, lists and nothing come as what they are, and are told with the command and the name."""
    monkeypatch.setattr(client_module, "SLOW", 60.0)
    assert client.ask("GET", "k") is None
    assert client.ask("RPUSH", "l", "Grüße 🙂", "b") == 2
    assert client.ask("LRANGE", "l", "0", "-1") == ["Grüße 🙂", "b"]
    assert told == [
        ("tab A", "GET k → nothing"),
        ("tab A", "RPUSH l Grüße 🙂 b → 2"),
        ("tab A", "LRANGE l 0 -1 → [Grüße 🙂, b]"),
    ]


def test_an_error(client, told):
    """An error is told like any answer, and raised."""
    client.ask("RPUSH", "l", "a")
    with pytest.raises(AnswerError, match="WRONGTYPE"):
        client.ask("GET", "l")
    assert told[-1][1].startswith("GET l → WRONGTYPE")


def test_a_late_answer(redis70, told):
    """An answer that was held back is told with its time."""
    with (
        serve_proxy(redis70.url, "slow-writes") as proxy,
        Client(("127.0.0.1", proxy.port), "a", lambda *said: told.append(said)) as client,
    ):
        client.ask("GET", "k")
        client.ask("SET", "k", "v")
    said = [text.partition("  after ") for _, text in told]
    assert said[1][0] == "SET k v → OK"
    assert float(said[1][2].removesuffix(" s")) >= 0.3


def test_the_end(client, redis70):
    """A connection that ends is an error."""
    client.ask("PING")  # a server may take a connection late, and kills those it has taken
    redis70.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    with pytest.raises(ConnectionError):
        client.ask("PING")


def test_shown():
    """Lists within lists are shown whole."""
    assert shown([[None, 1], "a", []]) == "[[nothing, 1], a, []]"
