"""Customers of the support bot: one after the other, on whichever pod; and how whole the memory is afterwards.

Takes pods and a proxy's URL; a scene returns if every turn that was acknowledged is there, in order, byte for byte, and raises
Broken if not.
"""

import json
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.clients.installs import Install
from tests.stories.counting import Broken, Void
from tests.stories.failing import trigger, until_it_serves

BOT = Path(__file__).with_name("bot.py")
APPS = ("buggy", "repaired")
#: LangChain as bots were written with it, and as they are now.
STACKS = {
    "buffer": (
        "langchain==0.3.27",
        "langchain-core==0.3.86",
        "langchain-community==0.3.31",
        "redis==5.2.1",
    ),
    "runnable": ("langchain-core==1.8.3", "langchain-community==0.4.2", "redis==8.1.0"),
}
#: Two requests of one customer reach two pods so many seconds apart.
SECOND_REQUEST = 0.2
#: So long the buggy bot waits for Redis, in seconds.
BUGGY_WAITS = 0.5
#: A memory that takes longer than this under calm says something of the machine, in seconds.
SLOW = 0.15
#: How often a customer who sees an error sends the message again, and after how many seconds.
TRIES, AGAIN = 40, 0.2
#: What customers write: every kind of character that takes more than one byte.
TEXTS = [
    "Hello, my order 4711 has not arrived 😢",
    "Grüße aus Köln, naïve café",
    "👩‍👩‍👧‍👦 and 🇩🇪 and é (e with an accent of its own)",
    "注文はまだ届いていません",
    "где мой заказ?",
    "Thanks 🙂🙂🙂",
]


class Pod:
    """A running pod of the bot; a request at a time."""

    def __init__(self, install: Install, program: Path = BOT) -> None:
        self._process = install.start(program)
        self._free = threading.Lock()
        # What it logs is read as it comes: a full pipe would stop it.
        self._log: deque[str] = deque(maxlen=100)
        self._reader = threading.Thread(
            target=self._log.extend, args=(self._process.stderr,), daemon=True
        )
        self._reader.start()
        assert self._line() == "ready\n"

    def ask(self, **request: object) -> dict[str, Any]:
        with self._free:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._line())

    def _line(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            self._reader.join()
            raise AssertionError("the pod has ended:\n" + "".join(self._log))
        return line

    def close(self) -> None:
        """Let it end, which it does at the end of its input."""
        self._process.stdin.close()
        self._process.wait(60)
        self._reader.join()
        self._process.stdout.close()
        self._process.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Refused(Exception):  # noqa: N818 - what a customer is told, again and again
    """The bot answers with an error however often it is asked."""


@dataclass(slots=True)
class Customer:
    """One customer, whose page shows what was acknowledged."""

    app: str
    url: str
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    #: Questions and answers, as the page shows them.
    page: list[str] = field(default_factory=list)
    #: Calls of the memory, the exceptions that came of them, and errors that the customer saw.
    calls: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    slowest: float = 0.0
    #: How long after it was sent a pod began with a request, in seconds.
    latest: float = 0.0

    def say(self, pod: Pod, text: str) -> None:
        """Send a message until it is answered. Raises Refused and Broken."""
        message, knows = uuid.uuid4().hex, len(self.page)
        for _ in range(TRIES):
            said = self.ask(pod, do="turn", id=message, text=text, knows=knows)
            if "error" not in said:
                break
            self.errors.append(said["error"])
            if said["error"].startswith("Forgotten"):
                # That is an answer too.
                raise Refused(said["error"])
            time.sleep(AGAIN)
        else:
            raise Refused(self.errors[-1])
        self.page += [text, said["answer"]]
        if said["held"] == 0 and knows:
            raise Broken(f"taken for a new customer at message {knows}; {self.told()}")

    def told(self) -> str:
        return f"calls {dict(self.calls)}, exceptions {dict(self.raised)}, errors {self.errors}"

    def ask(self, pod: Pod, at: str | None = None, **request: object) -> dict[str, Any]:
        request |= {"app": self.app, "url": at or self.url, "session": self.session}
        said = pod.ask(sent=time.time(), **request)
        self.calls.update(said["calls"])
        self.raised.update(said["raised"])
        self.slowest = max(self.slowest, said["slowest"])
        self.latest = max(self.latest, said["late"])
        return said


@dataclass(frozen=True, slots=True)
class Place:
    """Two pods, the proxy's URL, and the server's own, to see what is there."""

    pods: tuple[Pod, Pod]
    url: str
    direct: str
    #: Whether nothing slow is in the way, so that it is the machine if the memory is slow.
    calm: bool = False
    #: The proxy's control address, for what begins on request.
    control: str = ""
    #: Everybody who came.
    seen: list[Customer] = field(default_factory=list)

    def arrive(self, app: str) -> Customer:
        """Give a customer of this app."""
        self.seen.append(Customer(app, self.url))
        return self.seen[-1]

    def verdict(self, customer: Customer) -> None:
        """Compare what a fresh process reads, from the server itself, with what the customer's page shows."""
        said = customer.ask(self.pods[0], do="reload", at=self.direct)
        if "error" in said:
            raise LookupError(f"nothing can be read at {self.direct}: {said['error']}")
        held = said["texts"]
        if held == customer.page:
            return
        self.void_if_slow(customer)
        missing = [text for text in customer.page if text not in held]
        number = len(customer.page)
        raise Broken(f"{len(held)} of {number} messages, without {missing}; {customer.told()}")

    def void_if_slow(self, customer: Customer) -> None:
        """Under calm it is the machine if the memory took that long."""
        if self.calm and customer.slowest > SLOW:
            raise Void(f"the memory took {customer.slowest:.2f} s") from None


def conversation(app: str, place: Place) -> Customer:
    """Have a conversation, its turns on one pod and the other by turns."""
    customer = place.arrive(app)
    try:
        for number, text in enumerate(TEXTS):
            customer.say(place.pods[number % 2], text)
    except Broken:
        place.void_if_slow(customer)
        raise
    if app == "buggy" and customer.slowest > BUGGY_WAITS and not customer.raised:
        raise Void(
            f"a pod stood still for {customer.slowest:.2f} s, so that nothing was late for it"
        )
    place.verdict(customer)
    return customer


def failover(app: str, place: Place, fault: str, outage: float) -> Customer:
    """Have one, and Redis goes away in its middle; it ends early where the bot says again and again that it cannot go on."""
    until_it_serves(place.url)
    customer = place.arrive(app)
    half = len(TEXTS) // 2
    for number, text in enumerate(TEXTS):
        if number == half and not place.calm:
            trigger(place.control, fault)
            customer.latest = 0.0
        try:
            customer.say(place.pods[number % 2], text)
        except Refused:
            # Aloud, which is what a bot without memory should be.
            return customer
        finally:
            if number == half and customer.latest > outage / 2:
                raise Void(f"a pod began {customer.latest:.2f} s late")
    place.verdict(customer)
    return customer


def two_requests(app: str, place: Place) -> Customer:
    """Send two messages a moment apart; each reaches another pod."""
    customer = place.arrive(app)
    messages = [{"id": uuid.uuid4().hex, "text": text, "knows": 0} for text in TEXTS[:2]]
    with ThreadPoolExecutor(1) as browser:
        began = time.monotonic()
        first = browser.submit(customer.ask, place.pods[0], do="turn", **messages[0])
        time.sleep(SECOND_REQUEST)
        early, late = first.done(), time.monotonic() - began - SECOND_REQUEST
        second = customer.ask(place.pods[1], do="turn", **messages[1])
        answers = [first.result(), second]
    # A turn that is added is not held up: it is the machine if it takes that long.
    prompt = place.calm or app == "repaired"
    if late > SECOND_REQUEST or (prompt and not early):
        raise Void(f"the second was {late:.2f} s late; the first was answered by then: {early}")
    for message, said in zip(messages, answers, strict=True):
        if "error" in said and said["slowest"] > SLOW:
            # Longer than the second request takes to release the first one.
            raise Void(f"the memory took {said['slowest']:.2f} s")
        assert "error" not in said, said
        customer.page += [message["text"], said["answer"]]
    place.verdict(customer)
    return customer


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene, its profile, and what of it is set."""

    play: Callable[[str, Place], Customer]
    profile: str
    sets: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """What `chaosproxy run` is given besides the profile."""
        return [word for each in self.sets for word in ("--set", each)]


SCENES = {
    "two-requests": Scene(two_requests, "late-writer"),
    # Half a second is what the buggy bot waits for Redis.
    "torn-emoji": Scene(
        conversation,
        "torn-emoji",
        (
            "torn-emoji.gap=750ms",
            "torn-emoji.most=1",
            "torn-emoji.match={commands: [GET, LRANGE]}",
            "torn-emoji.when={nth: 4, per: key}",
        ),
    ),
    # Redis says no to the second turn, once.
    "refused": Scene(
        conversation,
        "out-of-memory",
        (
            "out-of-memory.match={commands: [SET, EVAL]}",
            "out-of-memory.when={nth: 2, per: key}",
        ),
    ),
    # They begin in the middle of each conversation, instead of once with the tenth write.
    "failover": Scene(
        partial(failover, fault="sentinel-failover", outage=1.5),
        "sentinel-failover",
        ("sentinel-failover.when={trigger: manual}", "sentinel-failover.match={}"),
    ),
    "restart": Scene(
        partial(failover, fault="redis-restart", outage=1.0),
        "redis-restart",
        (
            "redis-restart.when={trigger: manual}",
            "redis-restart.match={}",
            "redis-restart.loading=500ms",
        ),
    ),
    "invalid-replies": Scene(conversation, str(Path(__file__).with_name("invalid-replies.yaml"))),
}
