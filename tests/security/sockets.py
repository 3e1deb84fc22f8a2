"""Where a process listens, and which ones it has started, as the kernel says it.

Takes a process id; gives the addresses of its TCP sockets that accept connections. Run as a program it tells that of its parent.
"""

import ipaddress
import os
import sys
from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]]:
    """Give host and port of each."""
    own, lines = set(), []
    # Who has ended meanwhile listens nowhere.
    with suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                own.add(str(fd.readlink()))
        for name, order in (("tcp", 4), ("tcp6", 16)):
            text = Path(f"/proc/{pid}/net/{name}").read_text()
            lines += [(order, line) for line in text.splitlines()[1:]]
    found = set()
    for order, line in lines:
        words = line.split()
        host, _, port = words[1].partition(":")
        if words[3] == _LISTEN and f"socket:[{words[9]}]" in own:
            found.add((_address(host, order), int(port, 16)))
    return found


def family(pid: int) -> set[int]:
    """Give the process ids of a process and of all that it has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _address(text: str, size: int) -> str:
    """The kernel writes an address as words in its own byte order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4][:: 1 if sys.byteorder == "big" else -1] for at in range(0, size, 4)]
    return str(ipaddress.ip_address(b"".join(words)))


if __name__ == "__main__":
    print(*sorted(host for host, _ in listening(os.getppid())))
