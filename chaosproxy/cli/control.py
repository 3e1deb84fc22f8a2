"""How commands speak to a proxy that runs: `--control URL` and its token, declared once.

Takes the words of the command line; gives a Remote, and turns what it cannot do into exit statuses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from chaosproxy.cli.problems import leave
from chaosproxy.profile import Problem
from chaosproxy.remote import Remote, RemoteError
from chaosproxy.telling import printable


def control_options(function: Callable[..., object]) -> Callable[..., object]:
    """Declare them on a click command's function, which gets them as one `remote`."""

    @click.option(
        "--control",
        metavar="URL",
        default="http://127.0.0.1:9380",
        envvar="CHAOSPROXY_CONTROL_URL",
        show_envvar=True,
        help="Where the proxy's control API is, as `run` says it at its start.",
    )
    @click.option(
        "--control-token",
        metavar="TOKEN",
        envvar="CHAOSPROXY_CONTROL_TOKEN",
        show_envvar=True,
        help="The token it wants, if it wants one.",
    )
    @wraps(function)
    def with_remote(*, control: str, control_token: str | None, **given: Any) -> object:
        try:
            remote = Remote(control, control_token)
        except ValueError as error:
            raise click.UsageError(f"--control {error}") from None
        return function(remote=remote, **given)

    return with_remote


@contextmanager
def asking(file: str = "") -> Iterator[None]:
    """End with status 1 and what was said where the proxy refuses; with 2 and all problems where a profile is bad.

    `file` is what messages are to call the profile that was sent.
    """
    try:
        yield
    except RemoteError as error:
        if error.problems:
            leave([_problem(problem, file) for problem in error.problems])
        hint = "; give --control-token" if error.status == 401 else ""
        raise click.ClickException(printable(f"{error}{hint}")) from None


def _problem(said: Any, file: str) -> Problem:
    overridden = said["file"] == "--set"
    return Problem(
        said["file"] if overridden or not file else file,
        said["line"],
        said["column"],
        said["message"],
        said["suggestion"],
        said["source_line"],
    )
