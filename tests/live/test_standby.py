"""A second server beside the upstream: what runs on it runs there and nowhere else."""

from collections.abc import Iterator

import pytest

from tests import servers
from tests.proxying import RunningProxy, serve_proxy, start_proxy, wait_for

THERE = """
faults:
- {fault: run, name: there, match: {commands: SET}, at: %s, commands: [[INCR, seen], [SET, '{key}:there', 1]], where: standby}
"""


@pytest.fixture
def standby(serve, redis70) -> Iterator[servers.Server]:
    """A server of its own, no replica of anything."""
    if reason := servers.available("valkey9"):
        pytest.skip(reason)
    server = servers.start("valkey9")
    yield server
    server.stop()


@pytest.fixture
def before(redis70, standby):
    """Give a function that starts a proxy with that standby; stopped in the end."""
    started: list[RunningProxy] = []

    def start(profile: str, **plan) -> RunningProxy:
        started.append(serve_proxy(redis70.url, profile, standby=standby.url, **plan))
        return started[-1]

    yield start
    for proxy in started:
        proxy.stop()


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("at", ["before_forward", "after_apply", "after_reply"])
def test_run_on_the_standby(before, redis70, standby, at, resp):
    """Commands run on the standby, in the client's database and at their position; the upstream sees none of them."""
    proxy = before(THERE % at)
    with proxy.connect(resp=resp) as client:
        assert client.ask("SELECT", 3) == "OK"
        assert client.ask("SET", "k", "v") == "OK"
        if at != "after_reply":
            standby.ask("SELECT", 3)
            assert standby.ask("GET", "k:there") == b"1"
        (event,) = proxy.wait_events()
    standby.ask("SELECT", 3)
    assert standby.ask("MGET", "seen", "k:there", "k") == [b"1", b"1", None]
    assert (event["fault"], event["applied"], event["position"]) == ("there", "yes", at)
    redis70.ask("SELECT", 3)
    try:
        assert redis70.ask("KEYS", "*") == [b"k"]
    finally:
        redis70.ask("SELECT", 0)
    assert standby.ask("CLIENT", "LIST").count(b"name=chaosproxy") == 1


def test_in_a_transaction(before, redis70, standby):
    """A command that is queued waits for the standby before it is sent on, or has it asked after EXEC."""
    proxy = before(THERE % "before_forward")
    with proxy.connect() as client:
        assert client.ask("MULTI") == "OK"
        assert client.ask("SET", "k", "v") == "QUEUED"
        assert standby.ask("GET", "seen") == b"1"
        assert redis70.ask("GET", "k") is None
        assert client.ask("EXEC") == ["OK"]
        (event,) = proxy.wait_events()
    assert (event["command"], event["applied"]) == ("SET", "yes")


def test_errors_are_told(before, standby):
    """What the standby says to a command that it refuses stands in the event."""
    proxy = before(THERE % "after_apply")
    standby.ask("SET", "seen", "no number")
    with proxy.connect() as client:
        assert client.ask("SET", "k", "v") == "OK"
    (event,) = proxy.wait_events()
    assert event["detail"] == "ERR value is not an integer or out of range"


def test_a_standby_that_is_gone(before, standby):
    """The client's command goes on, and the rule is skipped, saying why; a standby that comes back is used again."""
    proxy = before(THERE % "after_apply")
    standby.stop()
    with proxy.connect() as client:
        assert client.ask("SET", "k", "v") == "OK"
    wait_for(
        lambda: proxy.metric("faults_skipped_total", reason="side_connection") == 1, "the skip"
    )
    assert not proxy.events()


def test_no_standby(redis70):
    """A profile that is put in force where there is no standby is skipped each time, for that reason."""
    with serve_proxy(redis70.url, THERE % "before_forward") as proxy, proxy.connect() as client:
        assert client.ask("SET", "k", "v") == "OK"
        wait_for(lambda: proxy.metric("faults_skipped_total", reason="no_standby") == 1, "the skip")
        assert not proxy.events()


def test_with_a_password(before, redis70, standby):
    """The standby has its own user and password, those of its URL."""
    standby.ask("ACL", "SETUSER", "there", "on", ">secret", "~*", "&*", "+@all")
    url = standby.url.replace("//", "//there:secret@")
    with serve_proxy(redis70.url, THERE % "after_apply", standby=url) as proxy:
        with proxy.connect() as client:
            assert client.ask("SET", "k", "v") == "OK"
        assert b"user=there" in standby.ask("CLIENT", "LIST")
        assert standby.ask("GET", "k:there") == b"1"


def test_the_command_line(redis70, standby):
    """`--standby` is said in the start block, its password masked."""
    url = standby.url.replace("//", "//default:secret@")
    proxy = start_proxy(redis70.url, THERE % "after_apply", "--standby", url)
    with proxy:
        standby.ask("CONFIG", "SET", "requirepass", "secret")
        with proxy.connect() as client:
            assert client.ask("SET", "k", "v") == "OK"
        assert proxy.wait_events()[0]["fault"] == "there"
    assert f"  standby    redis://default:***@127.0.0.1:{standby.port}\n" in proxy.stderr
    assert "secret" not in proxy.stderr
