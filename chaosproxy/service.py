"""A whole chaosproxy in one object: data side, side connection, journal, metrics, control.

Takes Settings; gives a running proxy that any thread may start, ask, switch and stop.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from threading import Lock
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from chaosproxy import __version__
from chaosproxy.core.replay import Recording
from chaosproxy.core.rule import Profile
from chaosproxy.counts import Gauges
from chaosproxy.journal import Journal
from chaosproxy.net import steer
from chaosproxy.net.address import Address, parse_address, with_credentials
from chaosproxy.net.descriptors import affordable
from chaosproxy.net.door import strangers
from chaosproxy.net.loop import LoopThread, in_time
from chaosproxy.net.plan import Plan
from chaosproxy.net.proxy import Proxy
from chaosproxy.net.survey import Survey
from chaosproxy.profile import ProfileError, Source, load

if TYPE_CHECKING:
    from chaosproxy.control.server import ControlServer
    from chaosproxy.control.timeline import Numbers
    from chaosproxy.metrics import Metrics

#: How long replies on their way are waited for when stopping, in seconds.
GRACE: Final = 5.0
#: How long a question may wait for the loop, in seconds: control answers within one.
_SOON: Final = 0.8
#: How long a change may wait for it: it is worth more patience, and nothing half done is left of it.
_CHANGE: Final = 5.0
#: How often it is looked whether clients have left, in seconds.
_OFTEN: Final = 0.01

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a proxy is started with. `control` None: no HTTP. `events`: a file's path or `-`."""

    plan: Plan
    profile: Profile
    seed: int
    control: Address | None = None
    control_token: str | None = field(default=None, repr=False)
    events: str | None = None
    redact_keys: bool = False
    recording: Recording | None = None


class ServiceError(Exception):
    """It could not start; the text says why."""


class Service:
    """One running proxy: making one starts it, `stop` ends it. Raises ServiceError if it cannot start."""

    def __init__(self, settings: Settings) -> None:
        self.profile, self.seed = settings.profile, settings.seed
        self.generation, self._switching = 1, Lock()
        control, token = settings.control, settings.control_token
        self.journal = Journal(monotonic(), redact=settings.redact_keys)
        self._settings, self.recording = settings, settings.recording
        plan = affordable(settings.plan)
        self._proxy = Proxy(plan, settings.profile, settings.seed, self.journal, settings.recording)
        self.limits = self._proxy.counts.limits
        self._last_gauges = steer.gauges(self._proxy, 0)
        self._control: ControlServer | None = None
        self._open_events()
        self._loop = LoopThread()
        try:
            try:
                #: What the server said it is.
                self.survey: Survey = self._loop.run(self._proxy.start())
            except OSError as error:
                where = error.filename or plan.listen
                raise ServiceError(f"cannot listen on {where}: {_why(error)}") from None
            # What HTTP needs is read in once clients are served.
            from chaosproxy.control import server, timeline, toxiproxy  # noqa: PLC0415

            free = toxiproxy.freely(control, token, plan.listen)
            self.toxiproxy = toxiproxy.Toxiproxy(self, free)
            self._timeline = timeline.Timeline(partial(self._numbers, timeline.Numbers))
            if control is not None:
                try:
                    self._control = server.ControlServer(control, self, token)
                except OSError as error:
                    where = f"cannot listen on {control} for control"
                    raise ServiceError(f"{where}: {_why(error)}") from None
                self._timeline.start()
        except BaseException:
            self.stop(0)
            raise

    def _open_events(self) -> None:
        path = self._settings.events
        if path is None:
            return
        header = {
            "chaosproxy": __version__,
            "seed": self.seed,
            "profile": self.profile.name,
            "profile_sha256": self.profile.sha256,
            **({"redacted": True} if self._settings.redact_keys else {}),
        }
        try:
            self.journal.open(path, header)
        except OSError as error:
            raise ServiceError(f"cannot write events to {path}: {_why(error)}") from None

    @property
    def listen(self) -> Address:
        """Where it listens."""
        return self._proxy.address

    @property
    def url(self) -> str:
        """What a client on this machine is configured with, but for the password: the upstream's database is in it."""
        plan = self._settings.plan
        return self.listen.url(tls=plan.listen_tls is not None, db=plan.upstream.db)

    @property
    def sentinel(self) -> Address | None:
        """Where clients find a Sentinel, None: nowhere."""
        return self._proxy.behind.sentinel

    @property
    def bypassed(self) -> bool:
        """Whether the server sends clients elsewhere, around the proxy, as far as is known."""
        return self.survey.cluster and not self._settings.plan.upstream.cluster

    @property
    def nodes(self) -> dict[str, tuple[Address, Address]]:
        """Where a cluster's nodes listen for clients, and where they are, by the listeners' names; empty without a cluster."""
        if not self._proxy.behind.has_nodes:
            return {}
        routes = self._loop.call(lambda: list(self._proxy.routes))
        return {route.name: (route.address, route.dialler.address) for route in routes}

    @property
    def client_url(self) -> str:
        """The same with the upstream's user and password, as the application needs it: not to be shown."""
        return with_credentials(self.url, self._settings.plan.upstream)

    @property
    def control_url(self) -> str | None:
        """Where HTTP is spoken, None: nowhere."""
        return None if self._control is None else self._control.url

    def use(self, profile: Profile, seed: int, patience: float | None = None) -> int:
        """Put a profile in force; when this returns it is so on every connection. Gives its generation. Raises BusyError."""
        with in_time(self._switching, patience):
            return self._use(profile, seed, patience, ())

    def _use(self, profile: Profile, seed: int, patience: float | None, late: Sequence[str]) -> int:
        self.generation = self._loop.call(lambda: self._proxy.use(profile, seed, late), patience)
        self.profile, self.seed = profile, seed
        return self.generation

    def status(self) -> list[dict[str, object]]:
        """Give per fault of the profile in force its name, type, matched, fired and skipped, and more."""
        return self._proxy.world.engine.status()

    @property
    def of_this_profile(self) -> Callable[[], list[dict[str, object]]]:
        """What gives the same of the profile that is in force now, also when it no longer is."""
        return self._proxy.world.engine.status

    # What the control API asks (control.backend.Backend says it); the data side need not have time for it.

    def in_force(self) -> dict[str, Any]:
        """Give the profile in force, with its seed, generation and what its faults have done."""
        engine = self._proxy.world.engine
        profile, age = engine.profile, monotonic() - engine.since
        return {
            "name": profile.name,
            "seed": engine.seed,
            "generation": engine.generation,
            "since": datetime.fromtimestamp(time() - age, UTC).isoformat(timespec="milliseconds"),
            "age": round(age, 3),
            "description": profile.description,
            "healthy": profile.healthy,
            "faults": engine.status(),
            "yaml": profile.source,
            "sha256": profile.sha256,
        }

    def put(self, profile: Profile, seed: int | None, later: Sequence[str] = ()) -> dict[str, Any]:
        """Put a profile in force on every connection; without a seed with its own, or with the one in force."""
        # Who asks at the same time waits, or each could be told of the other's.
        with in_time(self._switching, _CHANGE):
            if seed is None:
                seed = self.seed if profile.seed is None else profile.seed
            self._use(profile, seed, _CHANGE, later)
            return self.in_force()

    def strangers(self, sources: Sequence[Source], overrides: Sequence[str]) -> list[str]:
        """Give what profiles in force speak of and is not there: commands the server does not know, a listener, a second server."""
        try:
            profile = load(sources, table=self._proxy.world.table, overrides=overrides)
        except ProfileError as error:
            return [problem.render() for problem in error.problems]
        proxy, plan = self._proxy, self._settings.plan
        two = plan.standby is not None or plan.upstream.sentinels
        needed = () if two else profile.on_standby(needed=True)
        found = [f"fault '{name}' needs a second server, and there is none" for name in needed]
        return found + self._ask(lambda: strangers(proxy.world.engine, proxy.routes))

    def trigger(self, name: str) -> dict[str, Any]:
        """Ask a fault to act, and give its status. Raises UnknownFaultError and CannotTriggerError."""
        return self._ask(lambda: steer.trigger(self._proxy, name))

    def enable(self, name: str, enabled: bool) -> dict[str, Any]:
        """Switch a fault on or off, and give its status. Raises UnknownFaultError."""
        return self._ask(lambda: steer.enable(self._proxy, name, enabled))

    def timeline(self) -> list[dict[str, Any]]:
        """Give what has happened in each of the last seconds."""
        return self._timeline.seconds()

    def totals(self) -> list[dict[str, Any]]:
        """Give what each fault of each profile that has been in force has done, also after the end."""
        return self._proxy.counts.totals()

    @property
    def commands(self) -> dict[str, int]:
        """How many commands have come, by name."""
        return {each.name: each.count for each in list(self._proxy.world.tallies.values())}

    def wait_until_left(self, seconds: float) -> None:
        """Wait until no client is connected, nor one on its way in, or for so many seconds."""
        due = monotonic() + seconds
        while monotonic() < due:
            # Who has connected and is not accepted yet is, after a round or two of the loop.
            for _ in range(3):
                self._loop.call(lambda: None)
            if not self._proxy.links:
                return
            sleep(_OFTEN)

    def settle(self) -> None:
        """Wait until what has left is written of, five seconds at most: bytes leave before their event is there."""
        self._loop.settle(_CHANGE)

    def connections(self) -> list[dict[str, Any]]:
        """Give the client connections that are open."""
        return self._ask(lambda: steer.describe(self._proxy))

    def cut(self, connection: int) -> bool:
        """Reset a client's connection; False if there is none of that number."""
        return self._ask(lambda: steer.cut(self._proxy, connection))

    def add_listener(self, name: str, listen: str, upstream: str) -> str:
        """Listen there too, with that server behind; give where. Raises OSError, and ValueError for what is no address."""
        where, server = parse_address(listen), parse_address(upstream)
        return self._loop.run(steer.add_listener(self._proxy, name, where, server), _CHANGE)

    def remove_listener(self, name: str) -> None:
        """Listen there no more, and end who came by it."""
        self._loop.call(lambda: steer.remove_listener(self._proxy, name), _CHANGE)

    def _ask(self, function: Callable[[], T]) -> T:
        """Call a function in the loop. Raises BusyError if that has no time for it within a second."""
        return self._loop.call(function, _SOON)

    def stop(self, grace: float = GRACE) -> None:
        """Accept no more clients, let replies on their way arrive, at most so many seconds, and end everything."""
        try:
            self._loop.run(self._proxy.stop(grace))
        finally:
            self._loop.stop()
            if self._control is not None:
                self._timeline.stop()
                self._control.stop()
            self.journal.close()

    def unready(self) -> str | None:
        """Give why it cannot serve clients now, or None if it can."""
        answers = False
        with suppress(TimeoutError):
            answers = self._loop.run(self._proxy.answers(), _SOON)
        return None if answers else f"{self._settings.plan.upstream.address} does not answer"

    def metrics(self, accept: str) -> tuple[str, bytes]:
        """Give the metrics' content type and text."""
        return self._metrics.render(accept)

    @cached_property
    def _metrics(self) -> "Metrics":
        from chaosproxy.metrics import Metrics  # noqa: PLC0415 - most are never asked, and it is large

        return Metrics(self._proxy.counts, self._proxy.world.tallies, self._gauges)

    def _numbers(self, make: "type[Numbers]") -> "Numbers":
        # Plain numbers, and copies taken at once: no question to the loop.
        engine, delays = self._proxy.world.engine, list(self._proxy.counts.delays.values())
        return make(
            profile=engine.profile.name,
            generation=engine.generation,
            commands=sum(self.commands.values()),
            delayed=sum(sum(each.buckets) for each in delays),
            delay=sum(each.sum for each in delays),
            connections=len(self._proxy.links),
            fired=self._proxy.counts.fired_by_name(),
        )

    def _gauges(self) -> Gauges:
        # A loop that is busy for longer has its last values told again.
        with suppress(TimeoutError):
            lost = self.journal.lost
            self._last_gauges = self._loop.call(lambda: steer.gauges(self._proxy, lost), _SOON)
        return self._last_gauges


def _why(error: OSError) -> str:
    # Loops have texts of their own for what the system says; names that are not found have no errno of the system's.
    number = error.errno or 0
    # What has no number has a text, and no file that it is about.
    return (os.strerror(number) if number > 0 else error.strerror or str(error.args[0])).lower()
