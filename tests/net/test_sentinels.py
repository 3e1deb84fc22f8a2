"""Sentinels are asked again and again: one that does not answer is passed over, and what is new is told at once."""

import socket

import pytest

from chaosproxy.net import sentinels as sentinels_module
from chaosproxy.net.address import parse_upstream
from chaosproxy.net.sentinels import SentinelError, Sentinels, UnsureError
from chaosproxy.topology.sentinel import Place
from tests.net.scripted import UNKNOWN, ScriptedSentinel
from tests.proxying import wait_for
from tests.servers import free_port

TIMEOUT = 30.0


@pytest.fixture
def sentinel():
    sentinel = ScriptedSentinel(("127.0.0.1", 7001), (7002, 7003))
    yield sentinel
    sentinel.close()


@pytest.fixture
def ask(loop, monkeypatch):
    """Give a function that begins to ask Sentinels at these ports; gives them and what they have told."""
    # Who answers is waited for, however long a busy machine keeps it from that.
    monkeypatch.setattr(sentinels_module, "PATIENCE", TIMEOUT)
    started = []

    def start(*ports, query="", patience=TIMEOUT):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        told = []
        upstream = parse_upstream(f"redis+sentinel://{hosts}/mine{query}")
        sentinels = loop.call(lambda: Sentinels(upstream, None, TIMEOUT, told.append))
        started.append(sentinels)
        return sentinels, told, loop.run(sentinels.watch(patience), TIMEOUT)

    yield start
    for sentinels in started:
        loop.call(sentinels.close)


def places(*ports):
    return tuple(Place(b"127.0.0.1", port) for port in ports)


def test_what_is_known(ask, sentinel):
    """The primary first, then all the others; it is told once, not each time it is asked."""
    sentinels, told, known = ask(sentinel.port)
    assert known.primary == Place(b"127.0.0.1", 7001)
    assert known.places == places(7001, 7002, 7003)
    wait_for(lambda: len(sentinel.asked) > 8, "more questions")
    assert told == [known]
    assert sentinels.diallers[0].address == sentinels.address


def test_what_is_new(ask, sentinel, monkeypatch):
    """As soon as the Sentinel says that something has changed it is asked, whenever its turn would have been."""
    monkeypatch.setattr(sentinels_module, "POLL", 600.0)
    _, told, _ = ask(sentinel.port)
    sentinel.primary, sentinel.replicas = ("127.0.0.1", 7002), (7001,)
    sentinel.push("message", "+switch-master", "mine 127.0.0.1 7001 127.0.0.1 7002")
    wait_for(lambda: told[-1].places == places(7002, 7001), "the news")


@pytest.mark.parametrize(
    "how",
    [
        "refuses",
        "knows nothing",
        "talks nonsense",
        "says an error",
        "is silent",
        "no replies",
        "goes",
        "goes on and on",
    ],
)
def test_one_that_is_of_no_use(ask, sentinel, how, caplog, monkeypatch):
    """Another one is asked, and it is said once what was wrong."""
    other = ScriptedSentinel(("127.0.0.1", 1))
    try:
        port, why = other.port, ""
        match how:
            case "refuses":
                port = free_port()
                why = "refused"
            case "knows nothing":
                other.answers["SENTINEL GET-MASTER-ADDR-BY-NAME"] = UNKNOWN
                why = "knows no service mine"
            case "talks nonsense":
                other.answers["SENTINEL GET-MASTER-ADDR-BY-NAME"] = b"*2\r\n:x\r\n:y\r\n"
                why = "knows no service mine"
            case "says an error":
                other.answers["HELLO"] = b"-NOAUTH no\r\n"
                why = "says NOAUTH no"
            case "is silent":
                monkeypatch.setattr(sentinels_module, "PATIENCE", 2.0)
                other.answers["SENTINEL REPLICAS"] = b""
                why = "does not answer"
            case "no replies":
                other.answers["SENTINEL REPLICAS"] = b"?\r\n"
                why = "has closed the connection"
            case "goes on and on":
                monkeypatch.setattr(sentinels_module, "LONGEST", 1000)
                other.answers["SENTINEL REPLICAS"] = b"$5000\r\n" + b"x" * 2000
                why = "has closed the connection"
            case _:
                other.answers["SENTINEL REPLICAS"] = lambda: other.hang_up() or b""
                why = "has closed the connection"
        sentinels, _, known = ask(port, sentinel.port)
        assert known.places == places(7001, 7002, 7003)
        assert sentinels.address.port == sentinel.port
        assert why.lower() in caplog.text.lower()
        assert "answers" in caplog.text
    finally:
        other.close()


def test_none_answers_in_time(ask):
    """The start does not wait for ever; it goes on being asked."""
    port = free_port()
    _, told, known = ask(port, patience=0.1)
    assert known is None
    assert told == []


def test_one_that_comes_back(ask, sentinel):
    """A connection that is lost is made again."""
    _, told, _ = ask(sentinel.port)
    wait_for(lambda: len(sentinel.asked) >= 5, "the first answers")
    sentinel.hang_up()
    sentinel.primary = ("127.0.0.1", 7003)
    wait_for(lambda: told[-1].primary.port == 7003, "the news")


def test_their_own_credentials(ask, sentinel):
    """What a Sentinel is told is what the URL has for it."""
    ask(sentinel.port, query="?sentinel_username=u&sentinel_password=p")
    assert sentinel.asked[0] == b"HELLO 3 AUTH u p"
    ask(sentinel.port, query="?sentinel_password=q")
    assert b"HELLO 3 AUTH default q" in sentinel.asked


def test_a_mistake_of_ours(ask, sentinel, monkeypatch, caplog):
    """It is logged once, and Sentinels are asked all the same."""
    monkeypatch.setattr(sentinels_module, "POLL", 0.01)
    _, told, _ = ask(sentinel.port)
    read = sentinels_module.master_of
    monkeypatch.setattr(sentinels_module, "master_of", lambda reply: 1 / 0)
    hellos = lambda: sum(each.startswith(b"HELLO") for each in sentinel.asked)  # noqa: E731
    wait_for(lambda: hellos() >= 4, "more attempts")
    monkeypatch.setattr(sentinels_module, "master_of", read)
    sentinel.primary = ("127.0.0.1", 7002)
    wait_for(lambda: told[-1].primary.port == 7002, "the news")
    assert caplog.text.count("ZeroDivisionError") == 1


def test_a_failover(loop, ask, sentinel):
    """It is asked for, and over once there is another primary."""
    sentinels, _, _ = ask(sentinel.port)

    def begin():
        sentinel.primary = ("127.0.0.1", 7002)
        return b"+OK\r\n"

    sentinel.answers["SENTINEL FAILOVER"] = begin
    known = loop.run(sentinels.fail_over(TIMEOUT), TIMEOUT)
    assert known.primary.port == 7002
    assert b"SENTINEL FAILOVER mine" in sentinel.asked


def test_a_failover_that_fails(loop, ask, sentinel):
    """What the Sentinel says against it is told, and that there is no other primary in time."""
    sentinels, _, _ = ask(sentinel.port)
    sentinel.answers["SENTINEL FAILOVER"] = b"-NOGOODSLAVE No suitable replica to promote\r\n"
    with pytest.raises(SentinelError, match="NOGOODSLAVE No suitable replica"):
        loop.run(sentinels.fail_over(TIMEOUT), TIMEOUT)

    def hang_up():
        sentinel.hang_up()
        return b""

    sentinel.answers["SENTINEL FAILOVER"] = hang_up
    with pytest.raises(UnsureError):
        loop.run(sentinels.fail_over(TIMEOUT), TIMEOUT)
    sentinel.answers["SENTINEL FAILOVER"] = b"+OK\r\n"
    with pytest.raises(UnsureError, match=r"no other primary within 0\.1 s"):
        loop.run(sentinels.fail_over(0.1), TIMEOUT)


def test_a_server_that_is_no_sentinel(ask, caplog, monkeypatch):
    """Whoever listens there and says nothing is not waited for long."""
    monkeypatch.setattr(sentinels_module, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        _, _, known = ask(nobody.getsockname()[1], patience=0.1)
        assert known is None
        wait_for(lambda: "does not answer" in caplog.text, "what is wrong")
