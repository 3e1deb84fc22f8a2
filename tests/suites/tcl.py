"""The test suite that Redis and Valkey have in common, in its external mode: against a server that runs already.

Takes the unpacked source of either; gives the tests that pass, and none may fail.
"""

import os
import re
import shutil
import socket
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

#: The programs that a suite looks for beside the source, by what follows the project's name.
PROGRAMS = ("cli", "benchmark", "server", "check-aof", "check-rdb")
#: Protocol, transactions, pub/sub, tracking, lists, streams, scripts, ACLs, expiry and what is near them: a minute and a half.
UNITS = (
    "unit/protocol", "unit/multi", "unit/pubsub", "unit/pubsubshard", "unit/tracking", "unit/type/list",
    "unit/type/stream", "unit/scripting", "unit/introspection", "unit/introspection-2", "unit/acl", "unit/auth",
    "unit/networking", "unit/expire", "unit/functions", "unit/info", "unit/quit", "unit/other",
)  # fmt: skip


def equip(source: Path, project: str, **instead: Path) -> None:
    """Put programs where the suite looks for its own: Debian's of Redis, or what is said `instead`."""
    for name in PROGRAMS:
        link = source / "src" / f"{project}-{name}"
        link.unlink(missing_ok=True)
        link.symlink_to(instead.get(name) or str(shutil.which(f"redis-{name}")))


def single(units: tuple[str, ...]) -> list[str]:
    """The options for these units and no others."""
    return [word for unit in units for word in ("--single", unit)]


def passed(source: Path, port: int, *options: str) -> Counter[str]:
    """Run a suite against a port, without what is slow; give the names of its tests, all of which must have passed.

    Tests that come from an IPv6 address are left out too: behind the proxy all clients have the proxy's.
    The server must be fresh: the suite changes settings that a second run trips over.
    """
    command = ["./runtest", "--host", "127.0.0.1", "--port", str(port), "--tags", "-slow -ipv6"]
    command += ["--baseport", str(free_range() + 32), "--portcount", "7", *options]
    done = subprocess.run(
        command,
        cwd=source,
        capture_output=True,
        text=True,
        env=os.environ | {"TERM": "dumb"},
        check=False,
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    found = re.findall(r"(?m)^\[(ok|err|exception)\]: (.*?)(?: \(\d+ ms\))?$", text)
    assert "All tests passed without errors!" in text, "\n".join(text.splitlines()[-60:])
    assert [name for outcome, name in found if outcome != "ok"] == []
    return Counter(name for _, name in found)


def free_range(width: int = 40) -> int:
    """Give the first of so many ports in a row that are free now, below those that the kernel hands out by itself."""
    for start in range(20000, 32000, width):
        with ExitStack() as stack:
            try:
                for port in range(start, start + width):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return start
    raise RuntimeError("no range of ports is free")
