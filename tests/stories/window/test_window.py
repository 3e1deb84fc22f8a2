"""The window that eats memory: two appends that trim from a stale view, times that run out, evictions, refusals.

Takes both apps and the scene's profile; gives how often the newest messages that fit are not what is kept.
"""

import asyncio
import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from tests import servers
from tests.stories.counting import VOID_FOR_EACH, Broken, Void
from tests.stories.stage import ROOT
from tests.stories.window.scenes import SCENES, Size, check, memory, new_session
from tests.stories.window.store import APPS, Buggy, Repaired, surplus

#: Every window with every length of message.
SIZES = [Size(*both) for both in itertools.product((2, 4, 16), (12, 200, 5000))]
#: What the repair does instead of LTRIM is nothing that could come late, and what it keeps is not among what may be evicted.
SPARED = {("repaired", "two-tabs"), ("repaired", "eviction")}
#: What each count is made of: every run in sessions of its own, so many at once.
AT_ONCE = 20


def options(scene):
    """The scene's `--set`s and a seed: what is drawn is the same on every run of the tests."""
    sets = [word for each in scene.sets for word in ("--set", each)]
    return *sets, "--seed", "1"


async def count(tally, app, play, url, label, *, breaks):
    """Count runs of a scene, each of the next size."""
    with ThreadPoolExecutor(AT_ONCE) as pool:

        async def run(number):
            size = SIZES[number % len(SIZES)]
            await asyncio.get_running_loop().run_in_executor(pool, play, APPS[app], url, size)

        await tally.many("window", app, label, run, breaks=breaks, at_once=AT_ONCE)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("app", APPS)
async def test_the_profile_brings_it_out(app, name, tally, stage):
    """Under its profile the buggy app loses messages on every run, and the repaired one on none."""
    scene = SCENES[name]
    proxy = stage.proxy(scene.profile, *options(scene))
    play = scene.play_for(APPS[app])
    # The proxy may be that of the other app's test, too.
    before = len(proxy.events(scene.profile))
    await count(tally, app, play, proxy.url, scene.profile, breaks=app == "buggy")
    acted = len(proxy.events(scene.profile)) > before
    assert acted == ((app, name) not in SPARED)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("app", APPS)
async def test_nobody_sees_it_under_calm(app, name, tally, stage):
    """At the same pace, and without a fault, both apps keep what they should: that is why nobody saw it."""
    scene = SCENES[name]
    play = scene.play_for(APPS[app], calm=True)
    await count(tally, app, play, stage.proxy("calm").url, f"calm, {name}", breaks=False)


def in_time(play, *args):
    """Play until the machine keeps the pace; gives how the memory is broken, or ''."""
    for _ in range(2 * VOID_FOR_EACH):
        try:
            play(*args)
        except Void:
            continue
        except Broken as broken:
            return str(broken)
        return ""
    raise AssertionError("this machine is too busy")


@pytest.mark.parametrize("name", ["two-tabs", "eviction", "refused"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_size(size, name, stage):
    """Whatever the window and the messages: the profile breaks the buggy app and not the repaired one."""
    scene = SCENES[name]
    url = stage.proxy(scene.profile, *options(scene)).url
    assert "the newest that fit are" in in_time(scene.play_for(Buggy), Buggy, url, size)
    assert in_time(scene.play_for(Repaired), Repaired, url, size) == ""


@pytest.mark.parametrize("name", ["eviction", "refused"])
def test_as_shipped(name, stage):
    """The profiles as they ship, with nothing set, break the buggy app as well."""
    scene = SCENES[name]
    with pytest.raises(Broken):
        scene.play(Buggy, stage.proxy(scene.profile, "--seed", "1").url, SIZES[0])


def test_what_was_evicted_begins_anew(stage):
    """What may go goes as a whole: an evicted window holds the newest messages since then, in order, and no others."""
    scene, size = SCENES["eviction"], Size(6, 100)
    proxy = stage.proxy(scene.profile, *options(scene))
    before = len(proxy.events())
    sent = [size.message(number) for number in range(60)]
    with (
        memory(Repaired, proxy.url, size) as store,
        redis.Redis.from_url(stage.server.url) as direct,
    ):
        session = new_session()
        for number, message in enumerate(sent, 1):
            store.append(session, message)
            kept = direct.lrange(store.key(session), 0, -1)
            check(session, kept, sent[:number], size, whole=False)
    assert len(proxy.events()) > before, "nothing was evicted"


def test_a_server_that_is_really_full():
    """What the profile does is what a server does: what may expire first goes first, a critical session of the buggy app too."""
    name = "valkey9"
    if reason := servers.available(name):
        pytest.skip(reason)
    size = Size(4, 1000)
    sent = [size.message(number) for number in range(4)]
    policy = ("--maxmemory-policy", "volatile-ttl", "--maxmemory-samples", "64")
    server = servers.start(name, "--maxmemory", "6mb", *policy)
    kept = {}
    try:
        for app in (Buggy, Repaired):
            # At once, not in the background: the next one would find the server still full.
            server.ask("FLUSHALL", "SYNC")
            critical = new_session(critical=True)
            with memory(app, server.url, size) as store:
                for message in sent:
                    store.append(critical, message)
                for _ in range(3000):
                    store.append(new_session(), sent[0] * 4)
                kept[app] = store.read(critical)
        evicted = server.ask("INFO", "stats")
    finally:
        server.stop()
    assert b"evicted_keys:0" not in evicted
    assert kept == {Buggy: [], Repaired: sent}


def test_surplus():
    """As many of the oldest go as must, and not one more; bytes count, not characters."""
    assert surplus([b"aa", b"b", b"cc"], 5) == 0
    assert surplus([b"aa", b"b", b"cc"], 4) == 1
    assert surplus([b"aa", b"b", b"cc"], 2) == 2
    assert surplus(["é".encode(), b"b"], 2) == 1


@pytest.mark.parametrize(
    ("kept", "sent", "whole"),
    [
        ([1, 2], [0, 1, 2], True),
        ([2], [0, 1, 2], False),
        ([0], [0], True),
        ([], [], True),
    ],
)
def test_what_is_right(kept, sent, whole):
    """The newest that fit, or with `whole` false the newest of them."""
    size = Size(2, 10)
    check("s", [*map(size.message, kept)], [*map(size.message, sent)], size, whole=whole)


@pytest.mark.parametrize(
    ("kept", "sent", "whole"),
    [
        ([2], [0, 1, 2], True),
        ([1], [0, 1, 2], False),
        ([0, 2], [0, 1, 2], False),
        ([2, 1], [0, 1, 2], True),
        ([0, 1, 2], [0, 1, 2], True),
        ([], [0], False),
    ],
)
def test_what_is_broken(kept, sent, whole):
    """The check sees a hole, a wrong order, too much, the newest missing, and nothing at all."""
    size = Size(2, 10)
    with pytest.raises(Broken):
        check("s", [*map(size.message, kept)], [*map(size.message, sent)], size, whole=whole)


def test_messages_have_their_length():
    """A message is as many bytes as it should be, whole characters, and tells which one it is."""
    for size in SIZES:
        message = size.message(7)
        assert len(message) == size.length
        assert message.decode().startswith("000007 ")


@pytest.mark.parametrize(("app", "status"), [("buggy", 1), ("repaired", 0)])
def test_by_hand(app, status, stage):
    """Started by hand it says what it plays and how the memory is afterwards; the exit status says it too."""
    url = stage.proxy("late-writer", "--seed", "1").url
    command = [sys.executable, "-m", "tests.stories.window", "--redis-url", url, "--app", app]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    assert ("broken: " in done.stdout) == bool(status), done.stdout
