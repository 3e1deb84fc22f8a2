"""`chaosproxy exec`: a command with a proxy between it and Redis, for as long as it runs.

Takes `run`'s options and a command; gives the command's exit status, or 3 where a fault that must fire never did, or 1 where
something else is not as it should be.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from socket import create_connection
from sys import stderr
from time import monotonic
from typing import Any

import click
from click.core import ParameterSource

from chaosproxy import __version__
from chaosproxy.cli import child, logs
from chaosproxy.cli.options import run_options, with_defaults
from chaosproxy.cli.progress import Progress
from chaosproxy.cli.run import ready, write_whole
from chaosproxy.cli.servers import EMBEDDED
from chaosproxy.cli.settings import RunOptions
from chaosproxy.net.address import parse_upstream
from chaosproxy.report import files
from chaosproxy.service import Service, ServiceError, Settings
from chaosproxy.telling import event_line, fault_table, printable, shell_words
from chaosproxy.verdict import NoSuchFaultError, Run, required_faults

#: How often the progress is told, in seconds.
_TICK = 0.5
#: How long the last of what the command sent is waited for, in seconds: a fault may hold it for ever.
_LAST = 2.0
#: So many events are told one by one in the end.
_TOLD = 10


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What `exec` is asked for beside what `run` is."""

    command: tuple[str, ...]
    env: tuple[str, ...]
    require_fired: tuple[str, ...]
    report: Path | None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The command has ended, and the proxy too."""

    service: Service
    status: int
    started: str
    seconds: float


@click.command(context_settings={"allow_interspersed_args": False})
@with_defaults(listen="127.0.0.1:0", control="127.0.0.1:0")
@run_options
@click.option(
    "--env",
    metavar="NAME",
    multiple=True,
    help="A variable that COMMAND finds the proxy's URL in, beside REDIS_URL; may be given several times.",
)
@click.option(
    "--require-fired",
    metavar="all|NAME|none",
    multiple=True,
    help="Faults that must fire, else the exit status is 3; may be given several times. "
    "[default: all but those with `chance` or `trigger`]",
)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write events.jsonl, report.json, report.html and junit.xml there.",
)
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, options: RunOptions, **given: Any) -> None:
    """Run COMMAND with a proxy between it and Redis.

    COMMAND finds the proxy in REDIS_URL, and its control API in CHAOSPROXY_CONTROL_URL. Where no --upstream is given and no
    server answers at the default one, a real server is started and removed again. Signals go to COMMAND.

    The exit status is COMMAND's own where it is not 0. Where it passed: 1 if a replay went otherwise, or the events or the
    report are not complete; 3 if a fault that must fire never did; else 0. Options come first: what stands behind COMMAND, or behind
    --, is COMMAND's own.
    """
    wanted = _Wanted(**given)
    for name in wanted.env:
        if not name or set(name) & {"=", "\0"}:
            raise click.UsageError(f"--env {name!r}: expected a variable's name")
    logs.set_up(options.log_level, options.log_format)
    anything = ctx.get_parameter_source("upstream") is ParameterSource.DEFAULT
    if anything and not _answers(options.upstream):
        options = replace(options, upstream=EMBEDDED)
    options = _with_events(options, wanted.report)
    with ExitStack() as stack:
        settings = options.settings(stack)
        try:
            required = required_faults(settings.profile, wanted.require_fired)
        except NoSuchFaultError as error:
            raise click.UsageError(f"--require-fired: {error}") from None
        stack.enter_context(child.Signals())
        outcome = _run(settings, options, wanted)
        run = _told(outcome, settings, options, wanted, required)
        left = _leave_report(run, wanted.report, options)
        status = run.exit_status or (0 if left else 1)
        _say(run, status, replayed=options.replay is not None)
    ctx.exit(status)


def _run(settings: Settings, options: RunOptions, wanted: _Wanted) -> _Outcome:
    """Run the command under a proxy, to the end of both."""
    try:
        service = Service(settings)
    except ServiceError as error:
        raise click.ClickException(str(error)) from None
    started, began = datetime.now(UTC).isoformat(timespec="milliseconds"), monotonic()
    progress = Progress(stderr, lambda: (sum(service.commands.values()), _fired(service)))
    try:
        if options.ready_file is not None:
            write_whole(options.ready_file, ready(service))
        environment = os.environ | _variables(service, settings, wanted.env)
        status = child.run(wanted.command, environment, progress.tick, _TICK)
    except child.ChildError as error:
        click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(error.status) from None
    finally:
        progress.end()
        seconds = monotonic() - began
        # What it sent last goes to Redis, also if it did not wait for that; what became of it is an event then.
        service.wait_until_left(_LAST)
        service.stop(0)
    return _Outcome(service, status, started, round(seconds, 3))


def _fired(service: Service) -> dict[str, int]:
    fired: dict[str, int] = {}
    for fault in service.totals():
        fired[fault["name"]] = fired.get(fault["name"], 0) + fault["fired"]
    return fired


def _variables(service: Service, settings: Settings, names: Sequence[str]) -> Mapping[str, str]:
    """What the command finds in its environment: where to connect, with whose password."""
    found = dict.fromkeys(("REDIS_URL", *names), service.client_url)
    if service.control_url is not None:
        found["CHAOSPROXY_CONTROL_URL"] = service.control_url
        if settings.control_token is not None:
            found["CHAOSPROXY_CONTROL_TOKEN"] = settings.control_token
    return found


def _answers(url: str) -> bool:
    """Whether anybody is there."""
    address = parse_upstream(url).address
    try:
        create_connection((address.host, address.port), 1).close()
    except OSError:
        return False
    return True


def _with_events(options: RunOptions, report: Path | None) -> RunOptions:
    """Have the events written where the report wants them, unless they are written elsewhere."""
    if report is None:
        return options
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot write to {report}: {error.strerror}") from None
    if options.events == "-" or _is_no_file(options.events):
        raise click.UsageError(
            f"--report keeps the events in a file: leave out --events {options.events}"
        )
    return options if options.events else replace(options, events=str(report / files.EVENTS))


def _is_no_file(path: str | None) -> bool:
    """Whether there is something that keeps nothing: a pipe, a device."""
    # One that cannot be looked at is for who writes it to tell of.
    with suppress(OSError):
        return path is not None and Path(path).exists() and not Path(path).is_file()
    return False


def _told(
    outcome: _Outcome,
    settings: Settings,
    options: RunOptions,
    wanted: _Wanted,
    required: tuple[str, ...],
) -> Run:
    """All that is known of it."""
    service, profile = outcome.service, settings.profile
    divergence = None if service.recording is None else service.recording.verdict()
    words = [word for name in wanted.env for word in ("--env", name)]
    words += [word for name in wanted.require_fired for word in ("--require-fired", name)]
    words += ["--", *wanted.command]
    again = f"{options.repeat(settings.seed, 'exec')} {shell_words(words)}"
    replay = ""
    if wanted.report is not None and options.replay is None and _is_whole(service, options):
        same = replace(options, replay=wanted.report / files.EVENTS)
        replay = f"{same.repeat(settings.seed, 'exec')} {shell_words(words)}"
    return Run(
        version=__version__,
        profile=profile.name,
        profile_sha256=profile.sha256,
        description=profile.description,
        healthy=profile.healthy,
        seed=settings.seed,
        upstream=settings.plan.upstream.url,
        command=wanted.command,
        status=outcome.status,
        started=outcome.started,
        seconds=outcome.seconds,
        commands=sum(service.commands.values()),
        came=service.commands,
        faults=service.totals(),
        required=required,
        events=service.journal.events(),
        recorded=service.journal.last,
        lost=service.journal.lost,
        timeline=service.timeline(),
        again=again,
        replay=replay,
        divergence=str(divergence or ""),
    )


def _is_whole(service: Service, options: RunOptions) -> bool:
    """Whether the events that were written can be replayed: all of them, of one profile, with their keys."""
    journal = service.journal
    return not (journal.lost or options.redact_keys) and journal.generation <= 1


def _leave_report(run: Run, report: Path | None, options: RunOptions) -> bool:
    """Write the report, and the job's summary where CI asks for one. What cannot be written is told: False."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    try:
        if report is not None:
            # However it is spelt, it may be the one that the report has.
            with suppress(shutil.SameFileError):
                shutil.copyfile(str(options.events), report / files.EVENTS)
            files.write(report, run)
        if summary:
            files.add_summary(Path(summary), run)
    except OSError as error:
        where = error.filename2 or error.filename
        click.echo(f"Error: cannot write {where}: {error.strerror}", err=True)
        return False
    return True


def _say(run: Run, status: int, *, replayed: bool) -> None:
    """The last lines: what fired how often, the seed, and how to have it again."""
    happened = f"{run.commands} commands, exit status {status}"
    if status != run.status:
        happened += f" (the command's own is {run.status})"
    lines = [f"chaosproxy: profile {run.profile}, seed {run.seed}, {happened}"]
    lines += [event_line(event) for event in run.events[:_TOLD]]
    if run.recorded > _TOLD:
        lines.append(f"and {run.recorded - _TOLD} more")
    lines += fault_table(run.faults)
    lines += [f"{name} never fired: {run.why_missing(name)}" for name in run.missing]
    if run.divergence:
        lines.append(f"the replay {run.divergence}")
    elif replayed:
        lines.append("the replay was the recording, event by event")
    if run.lost:
        lines.append(run.incomplete)
    lines.append(f"again: {run.again}")
    if run.replay:
        lines.append(f"replay: {run.replay}")
    click.echo("\n".join(map(printable, lines)), err=True)
