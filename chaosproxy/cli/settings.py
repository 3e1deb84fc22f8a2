"""What the options that start a proxy mean together.

Takes them as click has read them; gives Settings, or a usage error that says what would be right.
"""

import logging
import secrets
import shlex
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from chaosproxy.cli.problems import leave
from chaosproxy.cli.servers import EMBEDDED, find_servers
from chaosproxy.core.command_table import CommandTable
from chaosproxy.core.rule import Profile
from chaosproxy.net.address import Address, Upstream, parse_address, parse_upstream
from chaosproxy.net.plan import Plan
from chaosproxy.net.tls import server_context
from chaosproxy.profile import ProfileError, find, load
from chaosproxy.recording import RecordedRun, RecordingError, read_recording
from chaosproxy.service import Settings

_log = logging.getLogger("chaosproxy.settings")

T = TypeVar("T")
DEFAULT_PROFILE = "calm"
DEFAULT_UPSTREAM = "redis://127.0.0.1:6379"
#: The port of the proxy's Sentinel: beside a real one's, as 6380 is beside 6379.
SENTINEL = 26380


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options as given."""

    # What may have a password in it stands in no representation.
    upstream: str = field(repr=False)
    standby: str | None = field(repr=False)
    listen: str
    cluster_nodes: int
    announce: str | None
    listen_sentinel: str | None
    sentinel_service: str | None
    profile: tuple[str, ...]
    seed: int | None
    set_: tuple[str, ...]
    control: str
    control_token: str | None = field(repr=False)
    control_open: bool
    events: str | None
    replay: Path | None
    ready_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    upstream_tls_ca: Path | None
    upstream_tls_cert: Path | None
    upstream_tls_key: Path | None
    upstream_tls_insecure: bool
    max_connections: int
    max_buffer: int
    redact_keys: bool
    log_level: str
    log_format: str

    # What they mean together.

    def load_profile(
        self, table: CommandTable | None = None, *, recorded: RecordedRun | None = None
    ) -> Profile:
        """Read the profiles as one, checked against the commands that servers know. Raises ProfileError."""
        default = recorded.profile.split("+") if recorded is not None else [DEFAULT_PROFILE]
        sources = [find(name) for name in self.profile or default]
        return load(sources, table=table or CommandTable.bundled(), overrides=self.set_)

    def strangers(self, table: CommandTable) -> list[str]:
        """Give what the profile speaks of and this very server does not know."""
        try:
            self.load_profile(table)
        except ProfileError as error:
            return [problem.render() for problem in error.problems]
        return []

    def settings(self, stack: ExitStack) -> Settings:
        """Read and check everything, and start the embedded server if it is asked for, for as long as `stack` is open.

        Raises click.UsageError and click.ClickException; ends with status 2 for a bad profile.
        """
        self._forget_ready_file()
        recorded = self._recorded()
        try:
            profile = self.load_profile(recorded=recorded)
        except ProfileError as error:
            leave(error)
        if recorded is not None and recorded.profile_sha256 != profile.sha256:
            raise click.UsageError(
                f"--replay {self.replay}: it was recorded with profile {recorded.profile} as it was then (sha256 "
                f"{recorded.profile_sha256[:12]}…), not with this one ({profile.name}, {profile.sha256[:12]}…)"
            )
        listen = _read(parse_address, self.listen, "--listen")
        listen_tls = self._listen_tls()
        control = self._control()
        servers = find_servers(self, profile, stack)
        return Settings(
            plan=Plan(
                listen=listen,
                listen_tls=listen_tls,
                announce=self._announced(servers.upstream, listen),
                cluster_nodes=self.cluster_nodes,
                upstream=servers.upstream,
                upstream_tls=servers.upstream_tls,
                standby=servers.standby,
                standby_tls=servers.standby_tls,
                disposable=servers.disposable,
                sentinel_service=self.sentinel_service or "",
                listen_sentinel=self._sentinel(listen),
                max_connections=self.max_connections,
                max_buffer=self.max_buffer,
            ),
            profile=profile,
            seed=recorded.seed if recorded is not None else self.choose_seed(profile),
            recording=recorded.recording if recorded is not None else None,
            control=control,
            control_token=self.control_token,
            events=self.events,
            redact_keys=self.redact_keys,
        )

    def _forget_ready_file(self) -> None:
        """Whoever waits for it takes one that an earlier run has left for this one's."""
        try:
            if self.ready_file is not None and self.ready_file.is_file():
                self.ready_file.unlink()
        except OSError as error:
            message = f"cannot write {self.ready_file}: {error.strerror}"
            raise click.ClickException(message) from None

    def _sentinel(self, listen: Address) -> Address:
        """Where clients find a Sentinel, if there is one."""
        if self.listen_sentinel is None:
            return Address(listen.host or "127.0.0.1", SENTINEL)
        return _read(parse_address, self.listen_sentinel, "--listen-sentinel")

    def _announced(self, upstream: Upstream, listen: Address) -> Address | None:
        """What a cluster's clients are told; port 0: where the nodes listen."""
        if self.cluster_nodes and (upstream.cluster or upstream.sentinels or self.standby):
            raise click.UsageError(
                "--cluster-nodes makes a cluster of one server, not of a cluster, a service of Sentinel's or a pair"
            )
        cluster = upstream.cluster or bool(self.cluster_nodes)
        if cluster and listen.path:
            raise click.UsageError("--listen: a cluster's clients cannot be sent to a unix socket")
        if self.announce is None:
            return None
        if not cluster:
            raise click.UsageError(
                "--announce needs a cluster: an upstream that begins with redis+cluster://, or --cluster-nodes"
            )
        bare = self.announce.endswith("]") or ":" not in self.announce
        text = f"{self.announce}:0" if bare else self.announce
        announced = _read(parse_address, text, "--announce")
        if announced.path or self.announce.startswith(":"):
            raise click.UsageError(f"--announce {self.announce}: expected HOST or HOST:PORT")
        if announced.port and not listen.port:
            raise click.UsageError(
                f"--announce {self.announce}: a port is announced for one that is known: give --listen a port too"
            )
        return announced

    def _recorded(self) -> RecordedRun | None:
        """What is to be replayed. Its seed is part of it."""
        if self.replay is None:
            return None
        try:
            recorded = read_recording(self.replay)
        except RecordingError as error:
            raise click.UsageError(f"--replay {error}") from None
        if self.seed not in (None, recorded.seed):
            raise click.UsageError(
                f"--seed {self.seed}: the recording was made with seed {recorded.seed}, and a replay needs that one"
            )
        if recorded.missing > 0:
            _log.warning(
                "%s lacks %d events: what they did is not done again", self.replay, recorded.missing
            )
        return recorded

    def choose_seed(self, profile: Profile) -> int:
        """Give the seed: what was asked for, else the profile's, else one that is drawn."""
        if self.seed is not None:
            return self.seed
        return secrets.randbelow(1_000_000) if profile.seed is None else profile.seed

    def repeat(self, seed: int, command: str = "run") -> str:
        """Give the command that does the same again, as a shell reads it: what decides which faults there are, and what stands behind.

        A password is masked, and has to be put in its place.
        """
        upstream = None if self.upstream == DEFAULT_UPSTREAM else _shown(self.upstream)
        standby = None if self.standby is None else _shown(self.standby)
        given = [
            ("--seed", str(seed)),
            *(("--profile", name) for name in self.profile),
            *(("--set", override) for override in self.set_),
            ("--upstream", upstream),
            ("--standby", standby),
            ("--cluster-nodes", str(self.cluster_nodes) if self.cluster_nodes else None),
            ("--sentinel-service", self.sentinel_service),
            ("--replay", None if self.replay is None else str(self.replay)),
        ]
        words = [word for option, value in given if value is not None for word in (option, value)]
        return shlex.join(["chaosproxy", command, *words])

    def _control(self) -> Address | None:
        if self.control == "off":
            return None
        if self.control_token is not None and not self.control_token.strip():
            raise click.UsageError("--control-token: an empty one would let anybody in, or nobody")
        free = self.control_token is not None or self.control_open
        address = _read(parse_address, self.control, "--control")
        if self.control.startswith(":") and not free:
            address = Address("127.0.0.1", address.port)
        if address.path:
            raise click.UsageError("--control: HTTP is not spoken on a unix socket")
        if not (free or address.is_local):
            raise click.UsageError(
                f"--control {self.control}: whoever reaches it could switch profiles; give --control-token, "
                "or say --control-open"
            )
        return address

    def _listen_tls(self) -> ssl.SSLContext | None:
        if self.tls_cert is None:
            if self.tls_key is not None or self.tls_ca is not None:
                raise click.UsageError("--tls-key and --tls-ca need --tls-cert")
            return None
        try:
            return server_context(self.tls_cert, self.tls_key or self.tls_cert, self.tls_ca)
        except ValueError as error:
            raise click.UsageError(f"--tls-cert, --tls-key, --tls-ca: {error}") from None


def _shown(url: str) -> str:
    """A server's URL without a password."""
    return url if url == EMBEDDED else parse_upstream(url).url


def _read(parse: Callable[[str], T], text: str, option: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
