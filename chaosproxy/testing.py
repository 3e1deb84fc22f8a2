"""A proxy in this process, as a test drives it: what the pytest fixture gives, and any other test runner can have.

Takes a real server's URL, or starts one; gives the proxy's URL, profiles put in force, and what has fired.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import Any, Final

from chaosproxy.asked import read_profile, read_required
from chaosproxy.core.rule import Profile
from chaosproxy.core.scalar import closest
from chaosproxy.embedded import Embedded
from chaosproxy.net.address import parse_address, parse_upstream
from chaosproxy.net.loop import in_a_thread
from chaosproxy.net.plan import Plan
from chaosproxy.profile import find, load
from chaosproxy.service import Service, Settings
from chaosproxy.telling import event_line, fault_table
from chaosproxy.verdict import required_faults

EMBEDDED: Final = "embedded"
#: So many events stand in a failing test's report.
_TOLD: Final = 20
#: How long a fault that must have fired is waited for after the test, in seconds: what became of it is known a little later.
_LATE: Final = 1.0
#: How long replies on their way are waited for in the end, in seconds.
_GRACE: Final = 1.0


@dataclass(slots=True)
class _Used:
    """A profile that was put in force. `own`: with the seed that stands in it. `faults` tells what they have done by now.

    `owner`: the fixture that has it in force for its `with`.
    """

    profile: Profile
    seed: int
    own: bool
    generation: int = 0
    faults: Callable[[], list[dict[str, Any]]] = list
    owner: str = ""


class InForce:
    """A profile that is in force. As a context manager it is until the end of it; then the one before is again."""

    def __init__(self, proxy: "ChaosProxy", used: _Used, before: _Used) -> None:
        self._proxy = proxy
        self._used = used
        self._before = before

    def __enter__(self) -> "ChaosProxy":
        """It is in force already."""
        proxy = self._proxy
        self._used.owner = proxy.within[-1] if proxy.within else ""
        proxy._open.append(self._used)  # noqa: SLF001 - two halves of one thing
        return proxy

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put back what was in force before."""
        proxy = self._proxy
        proxy._open = [each for each in proxy._open if each is not self._used]  # noqa: SLF001 - as above
        proxy._put(replace(self._before))  # noqa: SLF001 - as above


class ChaosProxy:
    """A running proxy, driven by a test.

    `seed` goes before a profile's own, `drawn` is for those that have none. What `events` and `fired` tell begins with the test.
    """

    def __init__(
        self, service: Service, upstream_url: str, *, seed: int | None = None, drawn: int = 0
    ) -> None:
        self.service = service
        #: The server behind it, for what has to go past the proxy.
        self.upstream_url = upstream_url
        self._seed, self._drawn = seed, drawn
        self._first = 0
        self._before: Counter[str] = Counter()
        #: What was in force since the test and its fixtures began, the last of it now.
        self._used: list[_Used] = []
        #: The fixtures that are being set up, the innermost last: what begins is theirs.
        self.within: list[str] = []
        #: Whose `with` is not over; how many of them were begun before the test's own fixtures, and before the test itself.
        self._open: list[_Used] = []
        self._wide = self._around = 0
        self._names: Collection[str] = ()
        self.calm()

    @property
    def url(self) -> str:
        """What the application is configured with."""
        return self.service.client_url

    @property
    def control_url(self) -> str:
        """The control API, for what runs in another process."""
        return self.service.control_url or ""

    @property
    def seed(self) -> int:
        """The seed in force."""
        return self.service.seed

    def use(
        self,
        *names: str | PathLike[str],
        yaml: str | None = None,
        seed: int | None = None,
        set: Mapping[str, object] | None = None,  # noqa: A002 - as the command line and the control API call it
    ) -> InForce:
        """Put a profile in force: shipped ones' names or files' paths, or a text. When this returns, it is.

        `set` overrides single values: {"lost-ack.when.nth": 3}. Without a `seed`: --chaos-seed, the profile's, or the one drawn for the run.
        Raises ProfileError with everything that is wrong, TypeError for what is none of these.
        """
        profile = read_profile(names, yaml, seed, set)
        before = self._in_force()
        used = _Used(profile, *self._choose(seed, profile))
        self._put(used)
        return InForce(self, used, before)

    def calm(self) -> None:
        """No fault, and nothing held, from now on."""
        self.use("calm")

    def trigger(self, name: str) -> None:
        """Have a fault with `when: {trigger: manual}` act on its next match."""
        self.service.trigger(name)

    def events(self, fault: str | None = None) -> list[dict[str, Any]]:
        """What has fired in this test, or what one fault did: all that clients have been told by now, too."""
        self.service.settle()
        events = self.service.journal.events(self._first)
        return [event for event in events if fault in {None, event["fault"]}]

    def fired(self, name: str) -> int:
        """How often a fault has fired in this test. Raises LookupError if no profile had one of that name."""
        known = self._fired()
        if name not in known:
            there = f"there were {', '.join(known) or 'none'}"
            meant = f"did you mean '{near}'?" if (near := closest(name, known)) else there
            raise LookupError(f"no fault is called '{name}'; {meant}")
        return known[name] - self._before[name]

    def wait_fired(self, name: str, times: int = 1, timeout: float = 5.0) -> list[dict[str, Any]]:
        """Wait until a fault has fired so often in this test, and give its events. Raises AssertionError after `timeout` seconds.

        In a coroutine await `wait_fired_async`: this one stops the loop that the application may be running in.
        """
        due = monotonic() + timeout
        while (count := self.fired(name)) < times:
            left = due - monotonic()
            if left <= 0:
                raise AssertionError(
                    f"{name} fired {count} of {times} times within {timeout:g} s\n{self.told()}"
                )
            # Woken by each event, which is counted before it is written.
            self.service.journal.events(self.service.journal.last, min(left, 0.05))
        return self.events(name)

    async def wait_fired_async(
        self,
        name: str,
        times: int = 1,
        timeout: float = 5.0,  # noqa: ASYNC109 - as wait_fired has it
    ) -> list[dict[str, Any]]:
        """`wait_fired`, while the loop goes on."""
        return await in_a_thread(lambda: self.wait_fired(name, times, timeout))

    # What a test run asks.

    def begin(self, names: Collection[str] = (), *, fixtures: bool = False) -> None:
        """A test begins, or its `fixtures` do, which are `names`: what fired before is not its own, nor what is in force for others."""
        was, self._names = self._base(), names
        if fixtures:
            self._wide = len(self._open)
            # It counts anew, so that a test that runs alone meets the same.
            base = self._base()
            self._return(base, anew=base is not None)
            self._used = [self._in_force()]
        elif self._is(was):
            # One that was there already was asked for as others ran.
            self._return(self._base())
        self._around = len(self._open)
        self._before = self._fired()
        self._first = self.service.journal.last

    def end(self, *, fixtures: bool = False) -> None:
        """A test is over, or its `fixtures` are too: what was in force for it is no more, but for a `with` that goes on."""
        if not fixtures:
            del self._open[self._around :]
        self._wide = len(self._open)
        self._return(self._base(), anew=not (fixtures or self._open))

    def _base(self) -> _Used | None:
        """What a fixture of this test had in force before it began, or whoever is none; None: calm."""
        begun = reversed(self._open[: self._wide])
        return next((each for each in begun if not each.owner or each.owner in self._names), None)

    def _is(self, base: _Used | None) -> bool:
        now = self._in_force()
        same = base is not None and now.profile is base.profile and now.seed == base.seed
        return same or (base is None and not now.profile.rules)

    def _return(self, base: _Used | None, *, anew: bool = False) -> None:
        if anew or not self._is(base):
            self.calm() if base is None else self._put(replace(base))

    @property
    def used(self) -> bool:
        """Whether any faults were in force since the test and its fixtures began."""
        self._in_force()
        return any(each.profile.rules for each in self._used)

    def seeded(self) -> tuple[int, bool]:
        """Give the seed for which this test has to be run again to meet the same faults; whether only profiles without one have it."""
        if self._seed is not None:
            return self._seed, False
        return self._drawn, any(each.own and each.profile.rules for each in self._used)

    def told(self) -> str:
        """What has happened in this test, for people."""
        self._in_force()
        used = ([each for each in self._used if each.profile.rules] or self._used)[-_TOLD:]
        events = self.events()
        profiles = [f"profile {each.profile.name}, seed {each.seed}" for each in used]
        lines = [*dict.fromkeys(profiles), *map(event_line, events[:_TOLD])]
        if len(events) > _TOLD:
            lines.append(f"and {len(events) - _TOLD} more")
        return "\n".join([*lines, *fault_table(_together(used))])

    def missing(self, required: bool | str | Sequence[str]) -> list[str]:
        """The faults of the profile in force that must have fired in this test and have not, even a moment later."""
        if (asked := read_required(required)) is None:
            return []
        names = required_faults(self.service.profile, asked)
        due = monotonic() + _LATE
        while missing := [name for name in names if not self.fired(name)]:
            if monotonic() >= due:
                break
            self.service.journal.events(self.service.journal.last, 0.05)
        return missing

    def _choose(self, seed: int | None, profile: Profile) -> tuple[int, bool]:
        """Give a profile's seed, and whether it is the one that stands in it."""
        for each in (seed, self._seed):
            if each is not None:
                return each, False
        return (self._drawn, False) if profile.seed is None else (profile.seed, True)

    def _put(self, used: _Used) -> None:
        self._in_force()
        self.service.use(used.profile, used.seed)
        self._note(used)

    def _in_force(self) -> _Used:
        """What is in force, also where another one than this object has put it so."""
        service = self.service
        if not self._used or self._used[-1].generation != service.generation:
            self._note(_Used(service.profile, service.seed, own=False))
        return self._used[-1]

    def _note(self, used: _Used) -> None:
        used.generation, used.faults = self.service.generation, self.service.of_this_profile
        self._used.append(used)

    def _fired(self) -> Counter[str]:
        self.service.settle()
        found: Counter[str] = Counter()
        for fault in self.service.totals():
            found[fault["name"]] += fault["fired"]
        return found


def _together(used: Sequence[_Used]) -> list[dict[str, Any]]:
    """What the faults of each profile have done in all the times that it was in force."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in used:
        for fault in each.faults():
            first = found.setdefault((each.profile.name, fault["name"]), fault)
            if first is not fault:
                for what in ("matched", "fired"):
                    first[what] += fault[what]
                first["skipped"] = Counter(first["skipped"]) + Counter(fault["skipped"])
    return list(found.values())


@contextmanager
def running(
    upstream: str = EMBEDDED, *, seed: int | None = None, drawn: int | None = None
) -> Iterator[ChaosProxy]:
    """Give a proxy that runs until the end of the context, on free ports, before this server or one that is started for it.

    Raises EmbeddedError, ServiceError, and ValueError for what is no URL.
    """
    with ExitStack() as stack:
        url = stack.enter_context(Embedded()).url if upstream == EMBEDDED else upstream
        anywhere = parse_address("127.0.0.1:0")
        drawn = secrets.randbelow(1_000_000) if drawn is None else drawn
        settings = Settings(
            plan=Plan(listen=anywhere, upstream=parse_upstream(url)),
            profile=load([find("calm")]),
            seed=drawn,
            control=anywhere,
        )
        service = Service(settings)
        stack.callback(service.stop, _GRACE)
        yield ChaosProxy(service, url, seed=seed, drawn=drawn)
