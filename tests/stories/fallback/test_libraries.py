"""What people move to from RedisChatMessageHistory, as it is: LangGraph's Redis checkpointer and the OpenAI Agents SDK's session.

Takes both in named versions, under the profiles of this story; gives what each does with a turn: kept, refused aloud, or lost.
"""

import pytest

from tests import modules
from tests.clients import installs
from tests.stories.counting import VOID_FOR_EACH, Broken, Void
from tests.stories.fallback.scenes import BOT, SCENES, Place, Pod, Scene, conversation
from tests.stories.stage import Stage

# They bring a hundred packages, and are not ours to repair.
pytestmark = [pytest.mark.stories, pytest.mark.timeout(900)]

AGENTS = ("agents_bot.py", ("openai-agents[redis]==0.24.0", "redis==8.1.0"))
LANGGRAPH = (
    "langgraph_bot.py",
    (
        "langgraph-checkpoint-redis==0.5.2",
        "langgraph==1.2.24",
        "langchain-core==1.8.3",
        "redis==8.1.0",
    ),
)
#: As shipped: every reply with an emoji in it is torn.
TORN = Scene(conversation, "torn-emoji")


@pytest.fixture(scope="module")
def plays():
    """Lend a function that plays a scene with a library; gives its customer, how it was broken, and what fired."""
    running = {}

    def play(library, scene, calm=False):
        program, requirements = library
        try:
            install = installs.python(*requirements)
            words = modules.options() if library is LANGGRAPH else []
        except installs.Unavailable as reason:
            pytest.skip(str(reason))
        if program not in running:
            stage = Stage(modules.SERVER, *words)
            running[program] = stage, [Pod(install, BOT.with_name(program)) for _ in range(2)]
        stage, pods = running[program]
        proxy = stage.proxy(scene.profile, *scene.options)
        place = Place(tuple(pods), proxy.url, stage.server.url, calm, proxy.control)
        for _ in range(2 * VOID_FOR_EACH):
            broken = ""
            try:
                scene.play("library", place)
            except Void:
                continue
            except Broken as found:
                broken = str(found)
            return place.seen[-1], broken, proxy.events()
        raise AssertionError("this machine is too busy")

    yield play
    for stage, pods in running.values():
        for pod in pods:
            pod.close()
        stage.__exit__()


LIBRARIES = pytest.mark.parametrize(
    "library", [AGENTS, LANGGRAPH], ids=["openai-agents", "langgraph"]
)


@LIBRARIES
def test_calm(library, plays):
    """Without a fault either keeps every turn, from whichever pod it comes."""
    customer, broken, fired = plays(library, Scene(conversation, "calm"))
    assert (broken, customer.errors, fired) == ("", [], [])


@LIBRARIES
def test_torn_emoji(library, plays):
    """Texts that arrive torn are read as they were written, byte for byte."""
    customer, broken, fired = plays(library, TORN)
    assert (broken, customer.errors) == ("", [])
    # The SDK's session writes emoji as ASCII: there is nothing to tear.
    assert bool(fired) == (library is LANGGRAPH)


@LIBRARIES
def test_invalid_replies(library, plays):
    """A reply that cannot be read is an error that the customer sees, once; nothing is lost or made up."""
    customer, broken, _ = plays(library, SCENES["invalid-replies"])
    assert (broken, len(customer.errors)) == ("", 1)
    assert customer.raised.total() == 1


def test_two_pods_of_the_agents_sdk(plays):
    """RedisSession adds with RPUSH in a transaction: two pods at once keep both turns."""
    customer, broken, _ = plays(AGENTS, SCENES["two-requests"], calm=True)
    assert (broken, customer.errors) == ("", [])


def test_two_pods_of_langgraph(plays):
    """The checkpointer stores the state as a whole: of two turns at once the later one's is all there is, and nobody is told."""
    customer, broken, fired = plays(LANGGRAPH, SCENES["two-requests"])
    assert broken.startswith("2 of 4 messages")
    assert (customer.errors, customer.raised.total()) == ([], 0)
    assert {event["command"] for event in fired} == {"JSON.SET", "SET"}


@LIBRARIES
@pytest.mark.parametrize("name", ["failover", "restart"])
def test_redis_goes_away(library, name, plays):
    """The outage is told, every time; the acknowledged writes that went with it are not: neither finds that turns are missing."""
    customer, broken, fired = plays(library, SCENES[name])
    assert customer.errors
    assert "undone" in {event["applied"] for event in fired}
    assert "of 12 messages, without" in broken or broken.startswith("taken for a new customer")
