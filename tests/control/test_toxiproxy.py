"""Toxiproxy's proxies as listeners: made, changed, ended; and toxics that are one profile, as long as it is in force."""

import threading

import pytest

from chaosproxy.control import toxiproxy as toxiproxy_module
from chaosproxy.control.answer import Refused
from chaosproxy.control.toxiproxy import Toxiproxy, freely
from chaosproxy.net.address import parse_address
from chaosproxy.net.loop import BusyError
from chaosproxy.profile import find, load
from tests.control.asking import Backend

LATENCY = {"type": "latency", "attributes": {"latency": 5}}


@pytest.fixture
def behind():
    return Backend()


@pytest.fixture
def toxiproxy(behind):
    return behind.toxiproxy


def make(toxiproxy, name="redis", **more):
    return toxiproxy.create({"name": name, "upstream": "127.0.0.1:6379"} | more)


def refused(ask):
    with pytest.raises(Refused) as caught:
        ask()
    assert caught.value.more["status"] == caught.value.status
    return int(caught.value.status), str(caught.value)


def test_made_and_ended(toxiproxy, behind):
    """A proxy is a listener while it is enabled; the kernel's port stays its own."""
    made = make(toxiproxy, listen="localhost:0")
    assert made == {
        "name": "redis",
        "listen": "127.0.0.1:40000",
        "upstream": "127.0.0.1:6379",
        "enabled": True,
        "toxics": [],
    }
    assert behind.listeners == {"redis-1": ("127.0.0.1:40000", "127.0.0.1:6379")}
    assert not toxiproxy.update("redis", {"enabled": False})["enabled"]
    assert behind.listeners == {}
    assert toxiproxy.update("redis", {"enabled": True})["listen"] == "127.0.0.1:40000"
    assert toxiproxy.proxies() == {"redis": made}
    toxiproxy.delete("redis")
    assert (behind.listeners, toxiproxy.proxies()) == ({}, {})


def test_names(toxiproxy, behind):
    """Any name will do; what a profile cannot say is called otherwise there."""
    make(toxiproxy, "shop: redis/1", enabled=False)
    assert behind.listeners == {}
    toxiproxy.update("shop: redis/1", {"enabled": True})
    assert list(behind.listeners) == ["toxiproxy-1"]


def test_changed(toxiproxy, behind):
    """Another upstream or port is another listener; what is as it was stays."""
    make(toxiproxy, listen="127.0.0.1:7000")
    toxiproxy.update("redis", {"listen": "127.0.0.1:7000", "upstream": "127.0.0.1:6380"})
    assert behind.listeners == {"redis-1": ("127.0.0.1:7000", "127.0.0.1:6380")}
    toxiproxy.update("redis", {"listen": "127.0.0.1:7001"})
    assert behind.listeners == {"redis-1": ("127.0.0.1:7001", "127.0.0.1:6380")}


def test_populate(toxiproxy):
    """One that is there as asked for stays, with its toxics; another is made anew."""
    body = {"name": "a", "upstream": "127.0.0.1:1", "listen": "127.0.0.1:0"}
    toxiproxy.populate([body, {**body, "name": "b"}])
    toxiproxy.add_toxic("a", LATENCY)
    first, second = toxiproxy.populate([body, {**body, "name": "b", "upstream": "127.0.0.1:2"}])
    assert len(first["toxics"]) == 1
    assert (second["upstream"], second["toxics"]) == ("127.0.0.1:2", [])


def test_toxics(toxiproxy, behind):
    """They are in force together, for all proxies, and each for its own listener."""
    make(toxiproxy, "a")
    make(toxiproxy, "b")
    toxiproxy.add_toxic("a", LATENCY)
    toxiproxy.add_toxic(
        "b", {"type": "drop_write", "name": "lose it", "attributes": {"tell": "ok"}}
    )
    assert behind.profile.name == "toxiproxy"
    assert [(rule.name, rule.match.connection.listener) for rule in behind.profile.rules] == [
        ("a-1-latency_downstream-0", "a-1"),
        ("a-1-latency_downstream-0-2", "a-1"),
        ("b-2-lose-it-0", "b-2"),
    ]
    assert toxiproxy.toxic("a", "latency_downstream")["attributes"]["latency"] == 5
    toxiproxy.update_toxic("a", "latency_downstream", {"attributes": {"latency": 7}})
    assert "seconds=0.007" in repr(behind.profile.rules[0])
    toxiproxy.delete_toxic("a", "latency_downstream")
    assert len(behind.profile.rules) == 1
    toxiproxy.delete("b")
    assert behind.profile.rules == ()


def test_names_alike(toxiproxy, behind):
    """Toxics whose names become one in a profile are two all the same."""
    make(toxiproxy)
    for name in ("a b", "a/b", "x" * 90, "x" * 91):
        toxiproxy.add_toxic("redis", {**LATENCY, "name": name})
    assert len({rule.name for rule in behind.profile.rules}) == 8


def test_reset(toxiproxy, behind):
    """All enabled, no toxics; where there are none nothing is put in force."""
    make(toxiproxy, enabled=False)
    toxiproxy.reset()
    assert (len(behind.listeners), behind.generation) == (1, 1)
    toxiproxy.add_toxic("redis", LATENCY)
    toxiproxy.reset()
    assert toxiproxy.proxy("redis")["toxics"] == []
    assert behind.profile.rules == ()


def test_another_profile_ends_them(toxiproxy, behind):
    """What is told is in force: toxics end with the profile that they are."""
    make(toxiproxy)
    toxiproxy.add_toxic("redis", LATENCY)
    behind.put(load([find("calm")]), None)
    assert toxiproxy.proxies()["redis"]["toxics"] == []
    assert refused(lambda: toxiproxy.toxic("redis", "latency_downstream"))[0] == 404
    assert toxiproxy.update("redis", {"enabled": True})["toxics"] == []
    toxiproxy.delete("redis")
    assert behind.profile.name == "calm"


def test_refused(toxiproxy, behind):
    """As Toxiproxy refuses; what is refused changes nothing."""
    make(toxiproxy)
    toxiproxy.add_toxic("redis", LATENCY)
    for status, said, ask in (
        (409, "proxy already exists", lambda: make(toxiproxy)),
        (409, "toxic already exists", lambda: toxiproxy.add_toxic("redis", LATENCY)),
        (404, "proxy not found", lambda: toxiproxy.proxy("x")),
        (404, "proxy not found", lambda: toxiproxy.delete("x")),
        (404, "proxy not found", lambda: toxiproxy.add_toxic("x", LATENCY)),
        (404, "toxic not found", lambda: toxiproxy.delete_toxic("redis", "x")),
        (404, "toxic not found", lambda: toxiproxy.update_toxic("redis", "x", {})),
        (400, "missing required field: name", lambda: toxiproxy.create({})),
        (400, "missing required field: upstream", lambda: toxiproxy.create({"name": "x"})),
        (400, "x: expected HOST:PORT", lambda: toxiproxy.create({"name": "x", "upstream": "x"})),
        (400, "address already in use", lambda: make(toxiproxy, "x", listen="127.0.0.1:1")),
        (400, "127.0.0.1:2: no answer in time", lambda: make(toxiproxy, "x", listen="127.0.0.1:2")),
        (400, "name: expected up to", lambda: make(toxiproxy, "x" * 101)),
        (400, "listen: expected host:port", lambda: make(toxiproxy, "x", listen=7)),
        (400, "missing required field: upstream", lambda: toxiproxy.update("redis", {"upstream": 7})),
        (400, "a unix socket", lambda: make(toxiproxy, "x", listen="unix:/x")),
        (400, "a unix socket", lambda: make(toxiproxy, "x", upstream="unix:/run/x.sock")),
        (400, "enabled: expected true or false", lambda: make(toxiproxy, "x", enabled="yes")),
        (400, "invalid toxic type: 'x'", lambda: toxiproxy.add_toxic("redis", {"type": "x"})),
        (400, "slicer: ", lambda: toxiproxy.add_toxic("redis", {"type": "slicer", "stream": "upstream"})),
        (400, "at: ", lambda: toxiproxy.add_toxic("redis", {"type": "reply", "attributes": {"at": "x"}})),
        (400, "match: ", lambda: toxiproxy.add_toxic("redis", {"type": "reply", "attributes": {"match": "x"}})),
        (400, "when: ", lambda: toxiproxy.add_toxic("redis", {"type": "reply", "toxicity": 0.5, "attributes": {"when": [1]}})),
    ):  # fmt: skip
        found = refused(ask)
        assert found[0] == status
        assert found[1].startswith(said), found
    assert list(toxiproxy.proxies()) == ["redis"]
    assert [toxic["name"] for toxic in toxiproxy.proxy("redis")["toxics"]] == ["latency_downstream"]
    assert len(behind.profile.rules) == 2


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0", "10.0.0.1:0", "example:0"])
def test_beyond_loopback(behind, listen):
    """Where anybody on this machine may ask, nobody gets a listener that others reach; else whoever may ask does."""
    shut, opened = Toxiproxy(behind, freely=False), Toxiproxy(behind, freely=True)
    status, said = refused(lambda: make(shut, listen=listen))
    assert status == 400
    assert "--control-token" in said
    assert shut.proxies() == behind.listeners == {}
    make(opened, listen=listen)
    assert list(behind.listeners)
    # One that was made elsewhere may not move there, nor be enabled there.
    make(shut, "moves", enabled=False)
    assert refused(lambda: shut.update("moves", {"listen": listen, "enabled": True}))[0] == 400


@pytest.mark.parametrize(
    ("control", "token", "listen", "free"),
    [
        ("127.0.0.1:1", None, "127.0.0.1:2", False),
        ("127.0.0.1:1", None, "unix:/x", False),
        ("127.0.0.1:1", "token", "127.0.0.1:2", True),
        ("0.0.0.0:1", None, "127.0.0.1:2", True),
        ("127.0.0.1:1", None, "0.0.0.0:2", True),
    ],
)
def test_who_may_listen_anywhere(control, token, listen, free):
    """Who has a token, or asks what was opened to others, or whose proxy others reach anyway."""
    assert freely(parse_address(control), token, parse_address(listen)) is free
    assert freely(None, None, parse_address("127.0.0.1:1")) is False


def test_so_many_and_no_more(behind, monkeypatch):
    """Each is a listener: of these there can be so many, which is counted, and one that goes makes room."""
    monkeypatch.setattr(toxiproxy_module, "MOST_PROXIES", 2)
    toxiproxy = Toxiproxy(behind, freely=False)
    make(toxiproxy, "a")
    make(toxiproxy, "b")
    assert refused(lambda: make(toxiproxy, "c")) == (400, "there are 2 proxies already")
    assert dict(behind.limits.items())["toxiproxy"] == 1
    toxiproxy.delete("a")
    make(toxiproxy, "c")
    assert list(toxiproxy.proxies()) == ["b", "c"]


def test_an_upstream_that_is_no_text(behind):
    """Whatever JSON there is in place of an address is refused, as a new one and as a change."""
    toxiproxy = Toxiproxy(behind, freely=False)
    make(toxiproxy)
    for wrong in (5, {"a": 1}, [1], True):
        assert refused(lambda wrong=wrong: toxiproxy.update("redis", {"upstream": wrong}))[0] == 400
        assert (
            refused(lambda wrong=wrong: toxiproxy.create({"name": "x", "upstream": wrong}))[0]
            == 400
        )


def test_busy(toxiproxy, behind, monkeypatch):
    """What the data side has no time for changes nothing, and can be asked for again."""
    make(toxiproxy, "a", listen="127.0.0.1:4000")
    make(toxiproxy, "off", enabled=False)
    toxiproxy.add_toxic("a", LATENCY)
    before, listening, generation = toxiproxy.proxies(), dict(behind.listeners), behind.generation
    changes = (
        lambda: make(toxiproxy, "b"),
        lambda: toxiproxy.update("a", {"enabled": False}),
        lambda: toxiproxy.update("a", {"listen": "127.0.0.1:4001"}),
        lambda: toxiproxy.update("off", {"enabled": True}),
        lambda: toxiproxy.add_toxic("a", LATENCY | {"name": "more"}),
        lambda: toxiproxy.delete_toxic("a", "latency_downstream"),
        lambda: toxiproxy.delete("a"),
        toxiproxy.reset,
    )
    for change in changes:
        behind.busy = True
        with pytest.raises(BusyError):
            change()
        behind.busy = False
        assert toxiproxy.proxies() == before
        assert (behind.listeners, behind.generation) == (listening, generation)
    toxiproxy.reset()
    assert toxiproxy.proxy("off")["enabled"]
    assert toxiproxy.proxy("a")["toxics"] == []
    toxiproxy.delete("a")
    assert list(toxiproxy.proxies()) == ["off"]


def test_one_after_the_other(toxiproxy, monkeypatch):
    """Whoever asks while another one is at it waits, but not for ever."""
    monkeypatch.setattr(toxiproxy_module, "_PATIENCE", 0.01)
    told = []

    def ask():
        with pytest.raises(BusyError):
            toxiproxy.proxies()
        told.append(True)

    with toxiproxy._lock:
        other = threading.Thread(target=ask)
        other.start()
        other.join()
    assert told == [True]
    assert toxiproxy.proxies() == {}
