"""The servers that options name, started where they are embedded.

Takes the options that a proxy is started with, and its profile; gives where its servers are, or a usage error.
"""

import ssl
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from chaosproxy.core.rule import Profile
from chaosproxy.net.address import Upstream, parse_upstream
from chaosproxy.net.tls import upstream_context

if TYPE_CHECKING:
    from chaosproxy.cli.settings import RunOptions
    from chaosproxy.embedded import Embedded

EMBEDDED = "embedded"
#: A replica that comes is served at once, not with those that may come within the next five seconds.
_PRIMARY = ("--repl-diskless-sync-delay", "0")


@dataclass(frozen=True, slots=True)
class Servers:
    """Where they are; `standby` None: there is none. One TLS context serves both. `disposable`: they were started here."""

    upstream: Upstream
    standby: Upstream | None
    tls: ssl.SSLContext | None
    disposable: bool = False

    @property
    def upstream_tls(self) -> ssl.SSLContext | None:
        """The context for the upstream, None: no TLS."""
        return self.tls if self.upstream.tls else None

    @property
    def standby_tls(self) -> ssl.SSLContext | None:
        """The same for the standby."""
        return self.tls if self.standby is not None and self.standby.tls else None


def find_servers(options: "RunOptions", profile: Profile, stack: ExitStack) -> Servers:
    """Read what the options say of servers, and start those that are embedded, for as long as `stack` is open.

    Raises click.UsageError and click.ClickException.
    """
    embedded = options.upstream == EMBEDDED
    upstream = _read("redis://" if embedded else options.upstream, "--upstream")
    if options.sentinel_service and upstream.sentinels:
        raise click.UsageError(
            "--sentinel-service: there are Sentinels already, and the URL has the service's name"
        )
    standby = _standby(options, profile, upstream)
    wanted = upstream.tls or (standby is not None and standby.tls)
    tls = upstream_tls(options, wanted=wanted)
    if embedded:
        primary = _start(stack, _PRIMARY)
        upstream = parse_upstream(primary.url)
        # One server that appears as a cluster has nodes to fail over to already.
        used = options.standby is None and profile.on_standby() and not options.cluster_nodes
        if options.standby == EMBEDDED or used:
            replica = _start(stack, (*_PRIMARY, "--replicaof", f"127.0.0.1 {primary.port}"))
            standby = parse_upstream(replica.url)
    return Servers(upstream, standby, tls, embedded)


def _standby(options: "RunOptions", profile: Profile, upstream: Upstream) -> Upstream | None:
    """Read where the standby is, None: there is none, or it is embedded. Raises click.UsageError."""
    embedded = options.upstream == EMBEDDED
    if options.standby == EMBEDDED:
        if not embedded:
            raise click.UsageError(
                "--standby embedded is a replica of --upstream embedded; for another upstream give a server's URL"
            )
        return None
    if options.standby is None:
        if not embedded and (rules := profile.on_standby(needed=True)):
            raise click.UsageError(
                f"fault '{rules[0]}' of profile {profile.name} needs a second server: give --standby URL, or "
                "--upstream embedded, which then starts one"
            )
        return None
    standby = _read(options.standby, "--standby")
    if standby.sentinels or upstream.sentinels:
        raise click.UsageError(
            "--standby: where there are Sentinels, they say which servers there are"
        )
    if upstream.cluster or standby.cluster:
        raise click.UsageError("--standby: a cluster has its own replicas")
    if standby.address == upstream.address and not embedded:
        raise click.UsageError(
            f"--standby {standby.url}: this is the upstream; a standby is another server"
        )
    return standby


def _start(stack: ExitStack, options: tuple[str, ...]) -> "Embedded":
    # Most proxies stand before a server that is there.
    from chaosproxy.embedded import Embedded, EmbeddedError  # noqa: PLC0415

    try:
        return stack.enter_context(Embedded(options))
    except EmbeddedError as error:
        raise click.ClickException(str(error)) from None


def _read(url: str, option: str) -> Upstream:
    try:
        return parse_upstream(url)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None


def upstream_tls(options: "RunOptions", *, wanted: bool) -> ssl.SSLContext | None:
    """Give the TLS context of the proxy's way to its servers, None if none is wanted."""
    ca, certificate, key = (
        options.upstream_tls_ca,
        options.upstream_tls_cert,
        options.upstream_tls_key,
    )
    if not wanted:
        if ca or certificate or key or options.upstream_tls_insecure:
            raise click.UsageError("--upstream-tls-… needs an upstream that begins with rediss://")
        return None
    if key is not None and certificate is None:
        raise click.UsageError("--upstream-tls-key needs --upstream-tls-cert")
    try:
        return upstream_context(ca, certificate, key, insecure=options.upstream_tls_insecure)
    except ValueError as error:
        raise click.UsageError(
            f"--upstream-tls-ca, --upstream-tls-cert, --upstream-tls-key: {error}"
        ) from None
