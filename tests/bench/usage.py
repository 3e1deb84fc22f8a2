"""What the kernel says about processes: processor time and memory, from /proc.

Takes the text of /proc files or process ids, gives seconds and bytes.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Cpu:
    """Processor time used so far, in seconds.

    Attributes:
        user: In the program's own code.
        system: In the kernel, on the program's behalf.

    """

    user: float = 0.0
    system: float = 0.0

    @property
    def total(self) -> float:
        """User and system time together."""
        return self.user + self.system

    def __add__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user + other.user, self.system + other.system)

    def __sub__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.user - other.user, self.system - other.system)


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as /proc/PID/stat gives it.

    Attributes:
        pid: Its id.
        session: The session it belongs to: what a program forks stays in it.
        cpu: Its own time and that of its children that have ended and were waited for.

    """

    pid: int
    session: int
    cpu: Cpu


def parse_stat(text: str) -> Process:
    """Read one /proc/PID/stat line (proc_pid_stat(5)); ValueError when it is not one."""
    pid, _, rest = text.partition(" (")
    # The name stands in brackets and may hold spaces and brackets itself: only the last one counts.
    _, bracket, tail = rest.rpartition(")")
    fields = tail.split()
    if not bracket or len(fields) < 15:
        raise ValueError(f"not a stat line: {text[:80]!r}")
    user, system, children_user, children_system = (int(word) for word in fields[11:15])
    return Process(
        pid=int(pid),
        session=int(fields[3]),
        cpu=Cpu((user + children_user) / TICKS, (system + children_system) / TICKS),
    )


def parse_status(text: str, field: str) -> int:
    """Bytes of a `VmRSS:   1234 kB` line of /proc/PID/status; 0 for a process that has none left."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


def parse_busy(text: str) -> float:
    """Seconds that all cores together have been busy, from /proc/stat's first line."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(word) for word in text.split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / TICKS


def processes(session: int) -> Iterator[Process]:
    """The living processes of one session; one that ends meanwhile is left out."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                found = parse_stat((entry / "stat").read_text(errors="replace"))
                if found.session == session:
                    yield found


def memory(pids: Iterable[int], field: str) -> int:
    """Bytes of VmRSS (resident now) or VmHWM (resident at most), summed over the processes."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            total += parse_status((PROC / str(pid) / "status").read_text(), field)
    return total


def forget_peak(pids: Iterable[int]) -> None:
    """Make VmHWM start again from what is resident now (proc_pid_clear_refs(5))."""
    for pid in pids:
        (PROC / str(pid) / "clear_refs").write_text("5")


def machine_busy() -> float:
    """Seconds that all cores together have been busy since the machine started."""
    return parse_busy((PROC / "stat").read_text())
