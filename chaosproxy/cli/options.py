"""The options that start a proxy, declared once for every command that starts one.

Takes words of the command line and environment variables; gives RunOptions.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chaosproxy.cli import logs
from chaosproxy.cli.completing import names_from
from chaosproxy.cli.settings import DEFAULT_PROFILE, DEFAULT_UPSTREAM, RunOptions
from chaosproxy.core import units
from chaosproxy.core.scalar import MOST
from chaosproxy.core.setting import Invalid
from chaosproxy.profile import names

F = TypeVar("F", bound=Callable[..., object])


if TYPE_CHECKING:
    _Type = click.ParamType[int]
else:  # no generic class before click 8.4
    _Type = click.ParamType


class ByteSize(_Type):
    """A number of bytes: `1048576`, `64KiB`, `16MiB`."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it as profiles read sizes."""
        try:
            size: int = units.SIZE.parse(int(value) if str(value).isdecimal() else value)
        except Invalid as error:
            self.fail(error.message, param, ctx)
        return size


def _option(*names: str, help: str, env: bool = True, **more: Any) -> Callable[[F], F]:  # noqa: A002
    """Declare an option; its environment variable is named after it."""
    variable = "CHAOSPROXY_" + names[0].removeprefix("--").replace("-", "_").upper()
    return click.option(
        *names, help=help, envvar=variable if env else None, show_envvar=env, **more
    )


_FILE = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    _option(
        "--upstream",
        metavar="URL",
        default=DEFAULT_UPSTREAM,
        help="The server: redis://[user:pass@]host:port[/db], rediss:// for TLS, unix://path[?db=n], "
        "redis+sentinel://h1,h2/service[/db] (rediss+sentinel:// for TLS): the server that Sentinels call the primary, "
        "redis+cluster://host:port[,…] (rediss+cluster://): a cluster, of which these nodes are asked for the others, or "
        "`embedded`: one is started and removed again. User, password and database are those of the proxy's own connection (what faults do "
        "behind the application's back); clients authenticate and select for themselves.",
    ),
    _option(
        "--standby",
        metavar="URL",
        help="A second server, for faults that need one: a URL as for --upstream. For a `failover` it becomes a replica of the "
        "upstream by way of this machine, at a port that the kernel chooses. `embedded` goes with --upstream embedded: a "
        "replica of it is started too, which is also done without being asked for where the profile makes use of one.",
    ),
    _option(
        "--listen",
        metavar="ADDR",
        default="127.0.0.1:6380",
        help="Where clients connect: host:port, :port for all interfaces, unix:path. Port 0: any free one. A cluster's nodes "
        "listen at this port and those behind it, one a node; with port 0 at any.",
    ),
    _option(
        "--cluster-nodes",
        metavar="N",
        type=click.IntRange(0, 64),
        default=0,
        help="One server appears as a cluster of N primaries, each with a listener and its share of the slots: what a cluster's "
        "clients do about MOVED, ASK, TRYAGAIN and CLUSTERDOWN can be tested without one. 0: it appears as itself.",
    ),
    _option(
        "--announce",
        metavar="HOST[:PORT]",
        help="Where a cluster's clients are told that its nodes are: at this host, the first at this port. Left out: at the "
        "address by which the client has reached the proxy, and where the nodes listen.",
    ),
    _option(
        "--listen-sentinel",
        metavar="ADDR",
        help="With a redis+sentinel:// upstream, or --sentinel-service: where clients find a Sentinel, which tells them of the "
        "proxy's own addresses only: one for each server, with ports that the kernel chooses. "
        "[default: port 26380 at the host of --listen]",
    ),
    _option(
        "--sentinel-service",
        metavar="NAME",
        help="Be a Sentinel for the upstream, under this name, where there is no real one: a `failover` is announced there.",
    ),
    _option(
        "--profile",
        metavar="NAME|FILE",
        multiple=True,
        shell_complete=names_from(names),
        help="A shipped profile's name or a file's path; several are joined (in the variable: with blanks between). "
        f"[default: {DEFAULT_PROFILE}]",
    ),
    _option(
        "--seed",
        type=click.IntRange(0, MOST),
        help="Same seed, same commands: same faults. Wins over the profile's; without either one is drawn.",
    ),
    _option(
        "--set",
        "set_",
        metavar="PATH=VALUE",
        multiple=True,
        env=False,
        help="Override one value of the profile, such as lost-ack.when.nth=3; may be given several times.",
    ),
    _option(
        "--control",
        metavar="ADDR",
        default="127.0.0.1:9380",
        help="Where the control API, its page, /metrics, /healthz and /readyz are, over HTTP: host:port, or `off`. Port 0: any free one. "
        ":port is all interfaces with a token, loopback without.",
    ),
    _option(
        "--control-token",
        metavar="TOKEN",
        help="Wanted as `Authorization: Bearer TOKEN` for all but /healthz, /readyz, /metrics and the page's files, which hold no data. "
        "Needed to answer beyond loopback.",
    ),
    _option("--control-open", is_flag=True, help="Answer beyond loopback without a token."),
    _option(
        "--events",
        metavar="FILE",
        help="Write each fault that fired as a JSON line, as it happens, over what the file held; `-` is stdout.",
    ),
    _option(
        "--replay",
        metavar="FILE",
        type=_FILE,
        help="Fire exactly what an events file says fired, with the delays it says; with its seed and, unless --profile is "
        "given, its profile. What comes differently is told, and the exit status is 1 then.",
    ),
    _option(
        "--ready-file",
        metavar="FILE",
        type=_FILE,
        help="Write listen address, URL, control URL, pid, seed and profile as JSON once clients can connect.",
    ),
    _option(
        "--tls-cert",
        metavar="FILE",
        type=_FILE,
        help="Speak TLS to clients, with this certificate (PEM).",
    ),
    _option(
        "--tls-key", metavar="FILE", type=_FILE, help="Its key, if it is not in the same file."
    ),
    _option(
        "--tls-ca",
        metavar="FILE",
        type=_FILE,
        help="Clients must show a certificate signed by this CA.",
    ),
    _option(
        "--upstream-tls-ca",
        metavar="FILE",
        type=_FILE,
        help="Trust this CA for a rediss:// upstream. [default: the system's]",
    ),
    _option(
        "--upstream-tls-cert",
        metavar="FILE",
        type=_FILE,
        help="Show this certificate to the upstream (PEM).",
    ),
    _option(
        "--upstream-tls-key",
        metavar="FILE",
        type=_FILE,
        help="Its key, if it is not in the same file.",
    ),
    _option(
        "--upstream-tls-insecure", is_flag=True, help="Take any certificate from the upstream."
    ),
    _option(
        "--max-connections",
        type=click.IntRange(1),
        default=8192,
        help="Clients at once; one more is answered as Redis answers it, `ERR max number of clients reached`.",
    ),
    _option(
        "--max-buffer",
        type=ByteSize(),
        default="16MiB",
        help="What faults may hold back of each side of a connection, in bytes or with KiB, MiB, GiB; then it is not read.",
    ),
    _option(
        "--redact-keys",
        is_flag=True,
        help="In events a hash stands for each key, different in each run.",
    ),
    _option(
        "--log-level",
        type=click.Choice(logs.LEVELS),
        default="info",
        help="How much is said on stderr.",
    ),
    _option(
        "--log-format", type=click.Choice(logs.FORMATS), default="text", help="How it is said."
    ),
)


def run_options(function: Callable[..., object]) -> Callable[..., object]:
    """Declare all of them on a click command's function, which gets them as one `options`."""

    @wraps(function)
    def with_options(**given: Any) -> object:
        own = {field.name: given.pop(field.name) for field in fields(RunOptions)}
        return function(options=RunOptions(**own), **given)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return with_options


def with_defaults(**defaults: str) -> Callable[[F], F]:
    """Give options that `run_options` has declared on a function other defaults there."""

    def changed(function: F) -> F:
        for option in getattr(function, "__click_params__", ()):
            option.default = defaults.get(option.name, option.default)
        return function

    return changed
