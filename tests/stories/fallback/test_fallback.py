"""The silent fallback: a support bot that answers without its memory, and pods that overwrite each other's.

Takes both bots on LangChain in named versions; gives how often a turn that was acknowledged is not in the memory.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.clients import installs
from tests.stories.counting import VOID_FOR_EACH, Broken, Void
from tests.stories.fallback.scenes import APPS, SCENES, SLOW, STACKS, Customer, Place, Pod
from tests.stories.stage import ROOT

# LangChain may have to be installed first.
pytestmark = pytest.mark.timeout(600)

#: With ConversationBufferMemory the customer sees the error of a turn that is refused: nothing is silent.
TOLD = {("buffer", "refused")}


@pytest.fixture(scope="module")
def pods():
    """Lend two pods of a stack."""
    running = {}

    def lend(stack):
        if stack not in running:
            try:
                install = installs.python(*STACKS[stack])
            except installs.Unavailable as reason:
                pytest.skip(str(reason))
            running[stack] = (Pod(install), Pod(install))
        return running[stack]

    yield lend
    for each in running.values():
        for pod in each:
            pod.close()


def count(tally, pods, stage, stack, app, name, proxy, label, *, breaks):
    """Count runs of a scene, each with a customer of its own."""
    # Nothing may be broken that is as it was: neither may the machine be what breaks it.
    calm = label.startswith("calm") or (app == "buggy" and not breaks)
    place = Place(pods(stack), proxy.url, stage.server.url, calm, proxy.control)

    def run(_):
        SCENES[name].play(app, place)

    tally(f"fallback, {stack}", app, label, run, breaks=breaks)


#: Redis is away for seconds in each run of these.
SLOW_SCENES = {"failover", "restart"}
PLAYED = [
    pytest.param(
        stack,
        name,
        marks=[pytest.mark.stories] if stack == "runnable" and name in SLOW_SCENES else [],
    )
    for stack in STACKS
    for name in SCENES
]


@pytest.mark.parametrize(("stack", "name"), PLAYED)
@pytest.mark.parametrize("app", APPS)
def test_the_profile_brings_it_out(stack, app, name, tally, pods, stage):
    """Under its profile the buggy bot loses what it acknowledged on every run, and the repaired one on none."""
    scene = SCENES[name]
    proxy = stage.proxy(scene.profile, *scene.options)
    breaks = app == "buggy" and (stack, name) not in TOLD
    label = Path(scene.profile).stem
    # The proxy may be that of the other app's test, too.
    before = len(proxy.events())
    count(tally, pods, stage, stack, app, name, proxy, label, breaks=breaks)
    acted = len(proxy.events()) > before
    # A turn that is added needs no SET that could come late.
    assert acted == ((app, name) != ("repaired", "two-requests"))


@pytest.mark.parametrize("scene", ["two-requests", "torn-emoji"])
@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("stack", STACKS)
def test_nobody_sees_it_under_calm(stack, app, scene, tally, pods, stage):
    """At the same pace, and without a fault, both bots remember everything."""
    played = "conversation" if scene == "torn-emoji" else scene
    count(
        tally, pods, stage, stack, app, scene, stage.proxy("calm"), f"calm, {played}", breaks=False
    )


def played(pods, stage, stack, app, name):
    """Play a scene until the machine keeps the pace; gives the customer, and how the memory was broken, if it was."""
    scene = SCENES[name]
    proxy = stage.proxy(scene.profile, *scene.options)
    for _ in range(2 * VOID_FOR_EACH):
        place = Place(pods(stack), proxy.url, stage.server.url, control=proxy.control)
        broken = ""
        try:
            scene.play(app, place)
        except Void:
            continue
        except Broken as found:
            broken = str(found)
        (customer,) = place.seen
        # These have no delay in them.
        if name not in {"invalid-replies", "refused"} or customer.slowest < SLOW:
            return customer, broken
    raise AssertionError("this machine is too busy")


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ["torn-emoji", "invalid-replies"])
def test_what_is_silent(name, stack, pods, stage):
    """The buggy bot's memory raises, its customer sees no error and is taken for a new one."""
    customer, broken = played(pods, stage, stack, "buggy", name)
    assert broken.startswith("taken for a new customer at message")
    assert customer.raised.total() > 0
    assert customer.errors == []


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", ["invalid-replies", "refused"])
def test_what_is_loud(name, stack, pods, stage):
    """Each exception of the repaired bot's memory is an error that the customer sees, of that kind."""
    customer, broken = played(pods, stage, stack, "repaired", name)
    assert broken == ""
    kinds = [error.partition(":")[0] for error in customer.errors]
    assert Counter(each.partition(": ")[2] for each in customer.raised.elements()) == Counter(kinds)
    assert kinds == [{"invalid-replies": "Unreadable", "refused": "OutOfMemoryError"}[name]]
    assert (customer.calls["read"], customer.calls["add"]) == {
        "invalid-replies": (14, 6),
        "refused": (14, 7),
    }[name]


def test_what_runnable_with_message_history_swallows(pods, stage):
    """langchain-core's RunnableWithMessageHistory answers a turn that Redis has refused as if it were stored."""
    customer, broken = played(pods, stage, "runnable", "buggy", "refused")
    assert broken.startswith("10 of 12 messages")
    assert (customer.raised, customer.errors) == ({"write: OutOfMemoryError": 1}, [])
    customer, broken = played(pods, stage, "buffer", "buggy", "refused")
    assert (broken, len(customer.errors)) == ("", 1)


def test_what_a_failover_takes(pods, stage):
    """The turns that the new primary never received: the repaired bot says that they are gone, and to nobody that he is new."""
    customer, broken = played(pods, stage, "buffer", "repaired", "failover")
    assert broken == ""
    assert {error.partition(":")[0] for error in customer.errors} == {"Forgotten"}
    # It has waited for Redis, so the customer saw nothing of the outage itself.
    assert {each.partition(": ")[2] for each in customer.raised} <= {
        "ConnectionError",
        "TimeoutError",
        "BusyLoadingError",
    }


def test_a_slow_machine_proves_nothing(pods, stage):
    """Under calm a memory that took too long voids the run; that what it holds is wrong does not."""
    place = Place(pods("buffer"), stage.proxy("calm").url, stage.server.url, calm=True)
    customer = Customer("buggy", place.url)
    customer.page = ["not there"]
    with pytest.raises(Broken, match="0 of 1 messages, without"):
        place.verdict(customer)
    customer.slowest = 0.4
    with pytest.raises(Void, match=r"0\.40 s"):
        place.verdict(customer)


def test_by_hand(pods, stage):
    """Started by hand it names the proxy's options and says how the memory is afterwards; so does the exit status."""
    pods("buffer")
    scene = SCENES["two-requests"]
    urls = ["--redis-url", stage.proxy(scene.profile).url, "--server-url", stage.server.url]
    command = [sys.executable, "-m", "tests.stories.fallback", *urls]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "chaosproxy run --profile late-writer\n" in done.stdout
    assert "broken: 2 of 4 messages" in done.stdout
