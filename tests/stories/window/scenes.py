"""What people do with the memory, and what it must hold afterwards.

Takes an app's class, a proxy's URL and a Size; each scene returns if the memory is right, and raises Broken if it is not.
Every scene has sessions of its own, so that any number of them play at once.
"""

import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import redis

from tests.stories.counting import Broken, Void
from tests.stories.window.store import CRITICAL, Buggy, Repaired, surplus

#: The person's pace: the second tab sends so many seconds after the first.
SECOND_TAB = 0.2
#: Somebody reads on, every so many seconds, for so long; `ttl-lapse` makes a week two seconds.
READS_EVERY, READS_FOR, LAPSE = 0.4, 2.6, 2.0
#: How often somebody sends a message again that the memory refused.
TRIES = 200
#: At least so many messages count at the end of a scene with chance in it.
ENOUGH = 60

App = type[Buggy] | type[Repaired]


@dataclass(frozen=True, slots=True)
class Size:
    """How many messages fit into the window, and how many bytes each of them has."""

    window: int
    length: int

    @property
    def budget(self) -> int:
        return self.window * self.length

    def __str__(self) -> str:
        return f"{self.window} x {self.length} B"

    def message(self, number: int) -> bytes:
        """Give a message of that length that no other is the same as; most of it are characters of several bytes."""
        text = f"{number:06d} ".encode() + "🙂é".encode() * (self.length // 6)
        # Filled up from what ends on a whole character.
        text = text[: self.length].decode(errors="ignore").encode()
        return text + b"." * (self.length - len(text))


@contextmanager
def memory(app: App, url: str, size: Size):
    """Lend the app with a connection of its own, as each pod has it."""
    with redis.Redis.from_url(url, socket_timeout=60) as client:
        yield app(client, size.budget)


def new_session(critical: bool = False) -> str:
    """Give an id that nobody has had."""
    return (CRITICAL if critical else "") + uuid.uuid4().hex


def check(
    session: str, kept: list[bytes], sent: list[bytes], size: Size, *, whole: bool = True
) -> None:
    """Compare what is kept with what was acknowledged: exactly the newest that fit, in order.

    With `whole` false older ones may be missing, but not one between two that are there, nor the newest.
    """
    if sum(map(len, kept)) > size.budget:
        raise Broken(f"{session}: {sum(map(len, kept))} bytes kept, budget {size.budget}")
    wanted = sent[surplus(sent, size.budget) :]
    if kept != wanted and (whole or not kept or kept != sent[-len(kept) :]):
        names = [[int(text.split(b" ")[0]) for text in texts] for texts in (kept, wanted)]
        raise Broken(f"{session}: kept are {names[0]}, the newest that fit are {names[1]}")


def send(store: Buggy | Repaired, session: str, message: bytes) -> None:
    """Send until it is acknowledged, as somebody does who sees an error."""
    for _ in range(TRIES):
        try:
            store.append(session, message)
        except redis.RedisError:
            continue
        return
    raise Broken(f"{session}: refused {TRIES} times")


def two_tabs(app: App, url: str, size: Size, *, prompt: bool = False) -> None:
    """The window is full, and two tabs append to it, the second a moment after the first.

    `prompt`: the first must be done by then, as it is when nothing is in the way.
    """
    session = new_session()
    sent = [size.message(number) for number in range(size.window + 2)]
    with (
        memory(app, url, size) as first,
        memory(app, url, size) as second,
        ThreadPoolExecutor(1) as tab,
    ):
        for message in sent[:-2]:
            send(first, session, message)
        # Both are connected; what is measured below is Redis.
        second.read(session)
        began = time.monotonic()
        appended = tab.submit(first.append, session, sent[-2])
        time.sleep(SECOND_TAB)
        early, late = appended.done(), time.monotonic() - began - SECOND_TAB
        second.append(session, sent[-1])
        appended.result()
        if late > SECOND_TAB or (prompt and not early):
            raise Void(f"the second tab was {late:.2f} s late; the first was done by then: {early}")
        check(session, second.read(session), sent, size)


def reads_on(app: App, url: str, size: Size) -> None:
    """Somebody reads a conversation for longer than it lives if nobody renews it; a critical one rests meanwhile."""
    read, resting = new_session(), new_session(critical=True)
    sent = [size.message(number) for number in range(size.window)]
    with memory(app, url, size) as store:
        for message in sent:
            store.append(resting, message)
            # At the earliest: its time may have begun anew long before that is told.
            used = time.monotonic()
            store.append(read, message)
        began = time.monotonic()
        while time.monotonic() - began < READS_FOR:
            time.sleep(READS_EVERY)
            asked = time.monotonic()
            kept = store.read(read)
            gap, used = time.monotonic() - used, asked
            if gap > LAPSE * 0.75:
                raise Void(f"nobody read for {gap:.2f} s")
            check(read, kept, sent, size)
        check(resting, store.read(resting), sent, size)


def many_messages(app: App, url: str, size: Size) -> None:
    """Several conversations at once, one message after the other, twice what fits; each matters."""
    _converse(app, url, size, [new_session(critical=True) for _ in range(_number(size))])


def refused(app: App, url: str, size: Size) -> None:
    """The same with conversations like any other: an error means that the message is sent again."""
    _converse(app, url, size, [new_session() for _ in range(_number(size))])


def _number(size: Size) -> int:
    return -(-ENOUGH // size.window)


def _converse(app: App, url: str, size: Size, sessions: Iterable[str]) -> None:
    sent = [size.message(number) for number in range(size.window * 2)]
    with memory(app, url, size) as store:
        for session in sessions:
            for message in sent:
                send(store, session, message)
        for session in sessions:
            check(session, store.read(session), sent, size)


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene, the shipped profile that brings its bug out, and what of it is set for this app."""

    play: Callable[[App, str, Size], None]
    profile: str
    sets: tuple[str, ...] = ()
    #: How it is played where nothing is in the way, if that differs.
    undisturbed: Callable[[App, str, Size], None] | None = None

    def play_for(self, app: App, *, calm: bool = False) -> Callable[[App, str, Size], None]:
        """Give how this app plays it: what late-writer holds back, the repaired one does not send."""
        return self.undisturbed or self.play if calm or app is Repaired else self.play


SCENES = {
    "two-tabs": Scene(two_tabs, "late-writer", undisturbed=partial(two_tabs, prompt=True)),
    "reads-on": Scene(reads_on, "ttl-lapse"),
    # Redis may take what has a time to live (volatile-lru): all that stands below memory:.
    "eviction": Scene(many_messages, "eviction-storm", ("eviction-storm.match.keys=memory:*",)),
    # In Redis a script that writes is refused too.
    "refused": Scene(
        refused, "out-of-memory", ("out-of-memory.match.commands=['@denyoom', EVAL]",)
    ),
}
