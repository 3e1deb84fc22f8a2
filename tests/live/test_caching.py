"""Clients that cache what they read (CLIENT TRACKING), on real servers: whatever a rule does, they hear of each key once it changes.

Nothing that the proxy asks for itself is taken for what the client reads or writes, or for what its CLIENT CACHING was for.
"""

import pytest

from tests.proxying import serve_proxy

INVALID = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
STALE = "faults:\n- {fault: stale_read, behind: 1, match: {keys: k}}\n"
RUN = "faults:\n- {fault: run, at: before_forward, commands: [%s], match: {commands: %s}}\n"
DROP = "faults:\n- {fault: drop_write, tell: ok, match: {arguments: {contains: lost}}}\n"


@pytest.fixture
def caching(any_server):
    """Give a function: under these rules a client says `before`, which is OK, and `said`; that gives what tells all it has heard since."""
    wires = []

    def says(rules, before, *said):
        proxy = serve_proxy(any_server.url, rules)
        wire = proxy.connect(resp=3)
        wires.append((wire, proxy))
        any_server.ask("SET", "k", "0")
        for text in before:
            assert wire.ask(*text.split()) == "OK"
        for text in said:
            wire.send(*text.split())

        def heard():
            wire.send("PING")
            return b"".join(iter(lambda: wire.read()[0], b"+PONG\r\n"))

        return heard

    yield says
    for wire, proxy in wires:
        wire.close()
        proxy.stop()


@pytest.mark.parametrize("how", ["", " OPTIN", " OPTOUT", " NOLOOP"])
def test_a_read_from_the_past(any_server, caching, how):
    """The old value is cached, and is told of when the key changes."""
    optin = ["CLIENT CACHING YES"] if "OPTIN" in how else []
    before = ["SET k 1", "SET k 2", f"CLIENT TRACKING ON{how}", *optin]
    heard = caching(STALE, before, "GET k")
    assert heard() == b"$1\r\n1\r\n"
    any_server.ask("SET", "k", "3")
    assert heard() == INVALID


def test_a_write_that_is_taken_down(caching):
    """Of a key that it has never read a client hears nothing, though the proxy has looked at it."""
    heard = caching(STALE, ["CLIENT TRACKING ON"], "SET k 1", "INCR k")
    assert heard() == b"+OK\r\n:2\r\n"


def test_what_runs_between_caching_and_its_command(any_server, caching):
    """What is to run before a command does not take its place."""
    heard = caching(
        RUN % ("[SET, j, 1]", "GET"), ["CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES"], "GET k"
    )
    assert heard() == b"$1\r\n0\r\n"
    any_server.ask("SET", "k", "1")
    assert heard() == INVALID


def test_what_is_not_the_clients_own(caching):
    """With NOLOOP a client hears nothing of what it writes; what a rule has written before it does is not that."""
    heard = caching(
        RUN % ("[SET, k, 1]", "ECHO"), ["CLIENT TRACKING ON NOLOOP"], "GET k", "ECHO 1", "SET k 2"
    )
    assert heard() == b"$1\r\n0\r\n" + INVALID + b"$1\r\n1\r\n+OK\r\n"


@pytest.mark.parametrize("transaction", [False, True])
def test_an_own_write_that_is_dropped(any_server, caching, transaction):
    """Either what it has cached is void, or it hears when the key changes: never does it keep a value that is no more."""
    said = ["MULTI", "SET k lost", "EXEC"] if transaction else ["SET k lost"]
    heard = caching(DROP, ["CLIENT TRACKING ON"], "GET k", *said)
    first = heard()
    assert first.replace(INVALID, b"") == (
        b"$1\r\n0\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n" if transaction else b"$1\r\n0\r\n+OK\r\n"
    )
    assert any_server.ask("GET", "k") == b"0"
    any_server.ask("SET", "k", "1")
    assert (first + heard()).count(INVALID) == 1
