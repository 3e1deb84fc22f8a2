"""A proxy as a test drives it: profiles for a while, seeds, what has fired since the test began."""

import asyncio
import threading
import time

import pytest

from chaosproxy.core.steering import UnknownFaultError
from chaosproxy.net.address import parse_upstream
from chaosproxy.profile import ProfileError, Source, load
from chaosproxy.testing import running
from tests.wire import Wire

LIE = "faults: [{fault: reply, name: lie, match: {commands: GET}, at: before_forward, value: 1}]"
MANUAL = LIE.replace("name: lie,", "name: lie, when: {trigger: manual},")


@pytest.fixture
def proxy(redis70):
    with running(redis70.url, drawn=11) as proxy:
        yield proxy


def client(proxy):
    return Wire(parse_upstream(proxy.url).address.port)


def get(proxy):
    with client(proxy) as wire:
        return wire.ask("GET", "k")


def test_addresses(proxy, redis70):
    """Where it is, where its control API is, and what is behind it."""
    assert proxy.url.startswith("redis://127.0.0.1:")
    assert proxy.control_url.startswith("http://127.0.0.1:")
    assert proxy.upstream_url == redis70.url
    assert get(proxy) is None


def test_for_a_while(proxy):
    """As a context manager a profile is in force inside, and the one before it afterwards."""
    with proxy.use(yaml=LIE) as same:
        assert same is proxy
        assert get(proxy) == 1
        with proxy.use("calm"):
            assert get(proxy) is None
        assert get(proxy) == 1
    assert get(proxy) is None


def test_for_good(proxy):
    """As a plain call it is from then on, until it is calm."""
    proxy.use(yaml=LIE)
    assert get(proxy) == 1
    proxy.calm()
    assert get(proxy) is None


def test_names_and_values(proxy):
    """Shipped ones, several, and single values."""
    proxy.use("lost-ack", "slow-redis", set={"lost-ack.when.nth": [2]})
    assert proxy.service.profile.name == "lost-ack+slow-redis"
    assert proxy.service.profile.rules[0].when.nth == (2,)


def test_a_file(proxy, tmp_path):
    """A path is a profile of one's own."""
    path = tmp_path / "mine.yaml"
    path.write_text(LIE)
    proxy.use(str(path))
    assert get(proxy) == 1


def test_what_is_no_profile(proxy):
    """Every problem is told, and what was in force stays; neither or both is no call."""
    with pytest.raises(ProfileError, match="did you mean 'latency'"):
        proxy.use(yaml="faults: [{fault: latncy}]")
    with pytest.raises(ProfileError, match="no shipped profile"):
        proxy.use("nosuch")
    for call in (proxy.use, lambda: proxy.use("calm", yaml=LIE)):
        with pytest.raises(TypeError, match="takes the names of profiles, or yaml="):
            call()
    assert proxy.service.profile.name == "calm"


@pytest.mark.parametrize(
    ("given", "own", "asked", "seed"),
    [(None, "", None, 11), (None, "seed: 5\n", None, 5), (3, "seed: 5\n", None, 3), (3, "", 4, 4)],
)
def test_seeds(redis70, given, own, asked, seed):
    """What is asked for, what the run was given, what the profile has, what was drawn; one test's is not the next one's."""
    with running(redis70.url, seed=given, drawn=11) as proxy:
        proxy.use("calm", seed=99)
        proxy.use(yaml=own + LIE, seed=asked)
        assert proxy.seed == seed


def test_what_came_before_shifts_nothing(proxy):
    """With one seed a profile does the same whenever it comes into force, also where it counts per connection."""
    rolled = LIE.replace("name: lie,", "name: lie, when: {chance: 50%, per: connection},")

    def fell():
        with proxy.use(yaml=rolled, seed=7), client(proxy) as first, client(proxy) as second:
            return [[each.ask("GET", "k") for _ in range(20)] for each in (first, second)]

    assert fell() == fell()


def test_trigger(proxy):
    """By hand."""
    proxy.use(yaml=MANUAL)
    assert get(proxy) is None
    proxy.trigger("lie")
    assert get(proxy) == 1
    with pytest.raises(UnknownFaultError):
        proxy.trigger("nosuch")


def test_what_fired(proxy):
    """Events and counts since the test began, of one fault or of all; the counts outlive a switch."""
    proxy.use(yaml=LIE)
    get(proxy)
    proxy.begin()
    assert (proxy.events(), proxy.fired("lie")) == ([], 0)
    get(proxy)
    proxy.use(yaml=LIE.replace("value: 1", "value: 2"))
    assert [event["fault"] for event in proxy.events("lie")] == ["lie"]
    assert proxy.events("other") == []
    assert get(proxy) == 2
    proxy.calm()
    assert proxy.fired("lie") == 2


def write_down_late(proxy, monkeypatch, seconds):
    """Have each event written down so much later than its reply left."""
    record = proxy.service.journal.record

    def late(*args):
        time.sleep(seconds)
        record(*args)

    monkeypatch.setattr(proxy.service.journal, "record", late)


def test_what_a_client_was_told_has_fired(proxy, monkeypatch):
    """Who has the reply finds the event, and the count, though they are written down after it; the next test finds neither."""
    write_down_late(proxy, monkeypatch, 0.1)
    proxy.use(yaml=LIE)
    assert get(proxy) == 1
    assert len(proxy.events("lie")) == 1
    assert get(proxy) == 1
    assert proxy.fired("lie") == 2
    assert get(proxy) == 1
    proxy.begin()
    assert (proxy.events(), proxy.fired("lie")) == ([], 0)
    # And later it is as it was.
    proxy.service._loop.call(lambda: None)
    assert (proxy.events(), proxy.fired("lie")) == ([], 0)


def test_what_a_busy_machine_writes_down_late(proxy, monkeypatch):
    """Who has the reply finds the event also where the loop had no time for it for more than a second."""
    write_down_late(proxy, monkeypatch, 1.5)
    proxy.use(yaml=LIE)
    assert get(proxy) == 1
    assert len(proxy.events("lie")) == 1


def test_a_name_that_no_fault_had(proxy):
    """A misspelt name is no 0: a test that expects nothing would pass for ever."""
    with pytest.raises(LookupError, match="there were none"):
        proxy.fired("lie")
    proxy.use(yaml=LIE)
    with pytest.raises(LookupError, match="did you mean 'lie'"):
        proxy.fired("lei")


def test_waiting(proxy):
    """Until it has fired so often; what has not is told with what did."""
    proxy.use(yaml=LIE)
    timer = threading.Timer(0.05, lambda: (get(proxy), get(proxy)))
    timer.start()
    events = proxy.wait_fired("lie", times=2, timeout=60)
    timer.join()
    assert [event["match"] for event in events] == [1, 2]
    with pytest.raises(AssertionError) as caught:
        proxy.wait_fired("lie", times=3, timeout=0.01)
    assert str(caught.value).startswith(
        "lie fired 2 of 3 times within 0.01 s\nprofile test, seed 11\n#1  "
    )


async def test_waiting_in_a_coroutine(proxy):
    """Awaited, the loop goes on: what makes the fault fire may run in it."""
    proxy.use(yaml=LIE)

    async def application():
        await asyncio.sleep(0.05)
        port = parse_upstream(proxy.url).address.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET k\r\n")
        assert await reader.readline() == b":1\r\n"
        writer.close()
        await writer.wait_closed()

    task = asyncio.create_task(application())
    assert len(await proxy.wait_fired_async("lie", timeout=60)) == 1
    await task


def test_missing(proxy):
    """What must have fired, by default or by name, and has not."""
    proxy.use(yaml=LIE)
    assert proxy.missing(True) == ["lie"]
    assert proxy.missing("none") == []
    get(proxy)
    assert proxy.missing(["lie"]) == []
    proxy.use(yaml=MANUAL)
    proxy.begin()
    assert proxy.missing(True) == []
    assert proxy.missing("all") == ["lie"]


def test_told(proxy):
    """Profile, seed, events as far as there is room, and a row a fault."""
    proxy.use(yaml=LIE)
    with client(proxy) as wire:
        for _ in range(25):
            wire.ask("GET", "k")
    lines = proxy.told().splitlines()
    assert lines[0] == "profile test, seed 11"
    assert lines[1].startswith("#1  ")
    assert lines[21] == "and 5 more"
    assert lines[-1].split() == ["lie", "reply", "25", "25", "-"]


def test_told_of_what_is_no_longer_in_force(proxy):
    """Each profile that the test has had, with its seed, and what its faults did in all the times that it was in force."""
    proxy.begin(fixtures=True)
    assert (proxy.told().splitlines()[0], proxy.used) == ("profile calm, seed 11", False)
    for _ in range(2):
        with proxy.use(yaml=LIE, seed=3):
            get(proxy)
            with proxy.use("lost-ack"):
                pass
    lines = proxy.told().splitlines()
    assert lines[:2] == ["profile test, seed 3", "profile lost-ack, seed 11"]
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["lie", "reply", "2", "2"],
        ["lost-ack", "disconnect", "0", "0"],
    ]
    proxy.begin()
    assert proxy.used
    proxy.begin(fixtures=True)
    assert not proxy.used


def test_told_of_what_another_has_put_in_force(proxy):
    """By way of the control address, say."""
    proxy.service.put(load([Source("other", LIE.encode(), "yaml")]), 5)
    assert proxy.used
    assert proxy.told().splitlines()[0] == "profile other, seed 5"
    with proxy.use("calm"):
        assert get(proxy) is None
    assert get(proxy) == 1


def test_what_ends_with_a_test(proxy):
    """All but what is in force for a `with` that somebody has begun before, and has not ended."""
    wide, other = LIE.replace("value: 1", "value: 2"), LIE.replace("value: 1", "value: 3")
    proxy.begin(fixtures=True)
    with proxy.use(yaml=wide):
        for _ in range(2):
            proxy.begin()
            assert get(proxy) == 2
            proxy.use(yaml=LIE)
            proxy.use(yaml=other).__enter__()  # its end is forgotten
            assert get(proxy) == 3
            proxy.end()
            assert get(proxy) == 2
            proxy.use(yaml=LIE)  # a fixture that ends leaves it
            proxy.end(fixtures=True)
            assert get(proxy) == 2
            proxy.begin(fixtures=True)
    assert get(proxy) is None
    proxy.use(yaml=LIE)
    proxy.end(fixtures=True)
    assert get(proxy) is None
    proxy.use("calm", seed=99)
    proxy.end()
    assert proxy.seed == 11


def test_a_test_counts_anew(proxy):
    """What goes on around tests counts the matches of each from the first one on."""
    with proxy.use(yaml=LIE.replace("name: lie,", "name: lie, when: {nth: 2},")):
        for _ in range(2):
            proxy.begin(fixtures=True)
            proxy.begin()
            assert [get(proxy) for _ in range(3)] == [None, 1, None]
            proxy.end()
            proxy.end(fixtures=True)


def test_which_seed_it_was(redis70):
    """Given for all; or drawn, and then not for profiles that have one of their own, if the test has had such."""
    with running(redis70.url, seed=3, drawn=11) as proxy:
        proxy.use(yaml="seed: 5\n" + LIE)
        assert proxy.seeded() == (3, False)
    with running(redis70.url, drawn=11) as proxy:
        proxy.use(yaml=LIE, seed=4)
        assert proxy.seeded() == (11, False)
        proxy.use(yaml="seed: 5\n" + LIE)
        proxy.use(yaml=LIE)
        assert proxy.seeded() == (11, True)


def test_no_url():
    """What is no URL is refused before anything starts."""
    with pytest.raises(ValueError, match="begins with one of"), running("http://x"):
        pass
