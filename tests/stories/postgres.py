"""A real PostgreSQL for a story: a cluster in a folder of its own, on a Unix socket, removed with it.

Takes nothing; gives a running Postgres. The server is Debian's (15 or whichever is installed), and runs as its user where
the tests run as root, which it refuses to be.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import servers

START_TIMEOUT = 60.0
DEBIAN = Path("/usr/lib/postgresql")
#: The account that Debian's package makes.
ACCOUNT = "postgres"
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "40",
    # What would be lost with the machine's power is not what this is about.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "logging_collector": "off",
}


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not a mistake
    """PostgreSQL cannot be had here; the text says how to get it."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server: `dsn` is what psycopg connects to."""

    dsn: str
    pid: int
    folder: Path


def binaries() -> Path:
    """Give the folder with `initdb` and `postgres`, of the newest that is installed. Raises Unavailable."""
    on_path = shutil.which("postgres")
    found = [Path(on_path).parent] if on_path else list(DEBIAN.glob("*/bin"))
    found = [folder for folder in found if (folder / "initdb").exists()]
    if not found:
        raise Unavailable("no PostgreSQL server: apt-get install postgresql")
    return max(found, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))])


@contextmanager
def running() -> Iterator[Postgres]:
    """Make a cluster, start it, wait until it accepts connections; stop and remove it afterwards. Raises Unavailable."""
    programs = binaries()
    folder = Path(tempfile.mkdtemp(prefix="chaosproxy-postgres-"))
    user: dict[str, str] = {}
    try:
        if os.getuid() == 0:
            user = {"user": _account()}
            shutil.chown(folder, ACCOUNT)
        options = ["--auth=trust", "--no-sync", "--no-instructions", "--encoding=UTF8"]
        options += ["--locale=C", "--username=story", f"--pgdata={folder}"]
        _run([programs / "initdb", *options], folder, user)
        yield from _serve(programs, folder, user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> str:
    try:
        return pwd.getpwnam(ACCOUNT).pw_name
    except KeyError:
        raise Unavailable(f"no user {ACCOUNT}: apt-get install postgresql") from None


def _run(command: list[object], folder: Path, user: dict[str, str]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **user)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"


def _serve(programs: Path, folder: Path, user: dict[str, str]) -> Iterator[Postgres]:
    words = [str(programs / "postgres"), "-D", str(folder), "-k", str(folder)]
    words += [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **user
        )
    server = Postgres(f"host={folder} user=story dbname=postgres", process.pid, folder)
    # Whatever becomes of this run, the server ends with it.
    servers._tell_reaper("+", server)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        # Its last line in this file is `ready` once it takes connections.
        while "ready" not in _status(folder):
            assert process.poll() is None, f"it ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"not ready:\n{log.read_text()}"
            time.sleep(0.01)
        yield server
    finally:
        # SIGTERM waits for its clients, SIGINT ends them.
        process.send_signal(2)
        try:
            process.wait(START_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        servers._tell_reaper("-", server)


def _status(folder: Path) -> str:
    try:
        return (folder / "postmaster.pid").read_text().splitlines()[-1]
    except (OSError, IndexError):
        return ""
