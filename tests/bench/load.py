"""Throughput under load: redis-benchmark against one port.

Takes a load and a port, gives commands per second and the processor time they cost.
"""

import os
import resource
import subprocess
import time
from dataclasses import dataclass

from tests.bench import usage
from tests.bench.process import HOST, Program

COMMANDS = ("SET", "GET")


class LoadError(Exception):
    """A load that did not run to its end."""


@dataclass(frozen=True, slots=True)
class Load:
    """What redis-benchmark is asked to do.

    Attributes:
        name: The scenario's.
        title: For people.
        clients: Connections at once.
        pipeline: Commands sent together.
        size: Bytes of a value.
        first: Commands of the short run that warms up and tells how many fill the time.

    """

    name: str
    title: str
    clients: int
    pipeline: int
    size: int
    first: int


LOADS = (
    Load("p1", "50 clients, no pipeline, 100 B", 50, 1, 100, 5000),
    Load("p16", "50 clients, pipeline 16, 100 B", 50, 16, 100, 40_000),
    Load("10kb", "10 clients, 10 kB values", 10, 1, 10_000, 2000),
    Load("1mb", "10 clients, 1 MB values", 10, 1, 1_000_000, 40),
)


def parse_rate(text: str, command: str) -> float:
    """Commands per second from redis-benchmark's --csv; LoadError when it has none."""
    for line in text.splitlines():
        cells = [cell.strip('"') for cell in line.strip().split(",")]
        if cells[0].upper() == command and len(cells) > 1:
            return float(cells[1])
    raise LoadError(f"redis-benchmark said {text.strip()[-200:]!r}")


def redis_benchmark(
    program: str, port: int, load: Load, command: str, number: int, limit: float
) -> float:
    """Run it once and give commands per second; LoadError when it fails or takes too long."""
    words = [
        *(program, "-h", HOST, "-p", str(port), "-t", command.lower(), "-n", str(number)),
        *("-c", str(load.clients), "-P", str(load.pipeline), "-d", str(load.size), "--csv"),
    ]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoadError(f"{command}: {number} commands took more than {limit:g} s") from None
    if done.returncode:
        raise LoadError(f"redis-benchmark: {(done.stderr or done.stdout).strip()[-200:]}")
    return parse_rate(done.stdout, command)


def _mine() -> float:
    """Processor seconds of this process and of the load generators it waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in both)


def run(
    program: str,
    port: int,
    load: Load,
    command: str,
    proxy: Program | None,
    redis: Program,
    seconds: float,
) -> dict[str, float]:
    """One sample; LoadError when the peer does not carry the load.

    Args:
        program: redis-benchmark.
        port: Where the load goes.
        load: What it is.
        command: SET or GET.
        proxy: Whose time is measured; None for a direct run.
        redis: The server behind.
        seconds: How long it should take.

    Returns:
        `rate` commands per second; `cpu`, `user` seconds of the proxy per million commands;
        `others` the share of the machine that strangers used meanwhile.

    """
    limit = seconds * 10 + 20
    rate = redis_benchmark(program, port, load, command, load.first, limit)
    number = max(load.first, int(rate * seconds))
    programs = [redis] if proxy is None else [redis, proxy]
    began, busy, mine = time.monotonic(), usage.machine_busy(), _mine()
    before = [each.cpu() for each in programs]
    rate = redis_benchmark(program, port, load, command, number, limit)
    spent = [each.cpu() - was for each, was in zip(programs, before, strict=True)]
    room = (time.monotonic() - began) * (os.cpu_count() or 1)
    strangers = usage.machine_busy() - busy - (_mine() - mine) - sum(cpu.total for cpu in spent)
    sample = {"rate": rate, "others": max(0.0, strangers / room)}
    if proxy is not None:
        sample |= {"cpu": spent[1].total / number * 1e6, "user": spent[1].user / number * 1e6}
    return sample
