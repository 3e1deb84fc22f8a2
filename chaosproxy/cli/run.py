"""`chaosproxy run`: the proxy, until it is told to stop.

Takes options and signals; gives a listening proxy, a start block on stderr, a ready file, and exit status 0.
"""

import json
import logging
import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from chaosproxy import __version__
from chaosproxy.cli import logs
from chaosproxy.cli.options import run_options
from chaosproxy.cli.settings import RunOptions
from chaosproxy.net.bypass import advice
from chaosproxy.profile import ProfileError
from chaosproxy.service import Service, ServiceError, Settings
from chaosproxy.telling import printable

_log = logging.getLogger("chaosproxy.run")


@click.command()
@run_options
def command(options: RunOptions) -> None:
    """Run the proxy.

    Point the application at --listen instead of at Redis. SIGTERM and SIGINT stop it once replies on their way have
    arrived (5 s at most); SIGHUP reads the profile again, and keeps the old one if the new one is bad, or in a replay.
    """
    logs.set_up(options.log_level, options.log_format)
    with ExitStack() as stack:
        signals = _Signals()
        settings = options.settings(stack)
        try:
            service = Service(settings)
        except ServiceError as error:
            raise click.ClickException(str(error)) from None
        stack.callback(service.stop)
        _say(options, settings, service)
        if options.ready_file is not None:
            write_whole(options.ready_file, ready(service))
        while signals.wait() == signal.SIGHUP:
            _reload(options, service)
        # The second one does not wait for replies.
        signals.restore()
    _log.info("stopped")
    if lost := service.journal.lost:
        _log.error("%d of %d events could not be written", lost, service.journal.last)
    if service.recording is not None:
        difference = service.recording.verdict()
        if difference is not None:
            raise click.ClickException(f"the replay {difference}")
        _log.info("the replay was the recording, event by event")


class _Signals:
    """SIGTERM, SIGINT and SIGHUP as values, from now on."""

    def __init__(self) -> None:
        # The kernel may give a signal to any thread (this one has another to take, or stands still), and Python wakes this one
        # for none but its own: a byte of each wakes it, whose it ever was.
        self._came, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._woken = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        self._before = {
            number: signal.signal(number, lambda *_: None)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }

    def wait(self) -> int:
        while (number := os.read(self._came, 1)[0]) not in self._before:
            pass
        return number

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken)
        os.close(self._told)
        os.close(self._came)


def _say(options: RunOptions, settings: Settings, service: Service) -> None:
    """Tell what runs, in one block that a person can read, or as one line of JSON."""
    found = service.survey
    upstream = settings.plan.upstream.url
    version = ".".join(map(str, found.server.version))
    server = f"{found.server.product} {version}" if found.answered else "does not answer yet"
    if options.log_format == "json":
        _log.info("started", extra={"more": ready(service) | {"upstream": upstream}})
    else:
        block = {
            "listening": service.url,
            "upstream": f"{upstream} ({server})",
            **({"standby": standby.url} if (standby := settings.plan.standby) else {}),
            **({} if service.sentinel is None else {"sentinel": str(service.sentinel)}),
            **{name: f"{here} → {there}" for name, (here, there) in service.nodes.items()},
            **({"warning": advice(settings.plan.upstream)} if service.bypassed else {}),
            "profile": service.profile.name,
            "seed": service.seed,
            "control": service.control_url or "off",
            "again": options.repeat(service.seed),
        }
        lines = [
            f"chaosproxy {__version__}",
            *(f"  {name:<10} {value}" for name, value in block.items()),
        ]
        # As with all that is logged: no room for a log is no reason to stop.
        with suppress(OSError):
            click.echo("\n".join(map(printable, lines)), err=True)
    if found.answered and not found.table_problem:
        for problem in options.strangers(found.table):
            _log.warning("this server does not know it all: %s", problem)


def ready(service: Service) -> dict[str, object]:
    """What the ready file says."""
    return {
        "listen": str(service.listen),
        "url": service.url,
        "control": service.control_url,
        "pid": os.getpid(),
        "seed": service.seed,
        "profile": service.profile.name,
        **({} if service.sentinel is None else {"sentinel": str(service.sentinel)}),
        **({"nodes": nodes} if (nodes := _nodes(service)) else {}),
    }


def _nodes(service: Service) -> dict[str, str]:
    """Where a cluster's clients find its nodes."""
    return {name: str(here.to_connect()) for name, (here, _) in service.nodes.items()}


def write_whole(path: Path, value: object) -> None:
    """Write a file that is there whole or not at all."""
    import tempfile  # noqa: PLC0415 - it brings many others along, and hardly anybody wants such a file

    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            file.write(json.dumps(value) + "\n")
            file.flush()
            os.fchmod(file.fileno(), 0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _reload(options: RunOptions, service: Service) -> None:
    """Read the profile again. What is wrong with it is told, and the old one stays; so does the one of a recording."""
    if service.recording is not None:
        _log.error("a replay keeps the profile that was recorded")
        return
    try:
        profile = options.load_profile()
    except ProfileError as error:
        for problem in error.problems:
            _log.error("%s", problem.render())
        _log.error("profile %s stays as it is", service.profile.name)
        return
    seed = service.seed if profile.seed is None else options.choose_seed(profile)
    generation = service.use(profile, seed)
    _log.info("profile %s, seed %d, generation %d", profile.name, seed, generation)
