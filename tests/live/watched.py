"""A proxy in a process of its own that tells, when asked, all that it holds: what a leak would show in.

Takes the upstream's URL, an events file and a port; a line on stdin asks. Gives lines of JSON: first where it is, then for each line
its tasks, threads, open files, resident bytes, the objects of the package's own classes, by class, and all errors so far.
"""

import asyncio
import ctypes
import gc
import json
import logging
import os
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaosproxy.net.address import parse_address, parse_upstream
from chaosproxy.net.plan import Plan
from chaosproxy.profile import find, load
from chaosproxy.service import Service, Settings

#: What the proxy, or its loop, has said is wrong.
ERRORS: list[str] = []
PAGE = os.sysconf("SC_PAGE_SIZE")


class Errors(logging.Handler):
    """Keeps errors, with their stacks."""

    def emit(self, record: logging.LogRecord) -> None:
        ERRORS.append(self.format(record))


def holdings(service: Service) -> dict[str, Any]:
    """Count everything, what nobody refers to any more collected first."""
    for _ in range(3):
        gc.collect()
    # What is free goes back to the system, so that what is not shows.
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    objects = gc.get_objects()
    classes = Counter(
        f"{type(each).__module__}.{type(each).__qualname__}"
        for each in objects
        if str(type(each).__module__).startswith("chaosproxy.")
    )
    files = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            files.append(str(file.readlink()))
    loop = service._loop
    return {
        "tasks": loop.call(lambda: len(asyncio.all_tasks())),
        "threads": threading.active_count(),
        "files": len(files),
        "sockets": sum(file.startswith("socket:") for file in files),
        "resident": int(Path("/proc/self/statm").read_text().split()[1]) * PAGE,
        "objects": len(objects),
        "classes": classes,
        "errors": ERRORS[:10],
    }


def main(upstream: str, events: str, port: str) -> None:
    logging.getLogger().addHandler(Errors(logging.ERROR))
    settings = Settings(
        plan=Plan(listen=parse_address(f"127.0.0.1:{port}"), upstream=parse_upstream(upstream)),
        profile=load([find("calm")]),
        seed=1,
        control=parse_address("127.0.0.1:0"),
        events=events,
    )
    service = Service(settings)
    print(json.dumps({"port": service.listen.port, "control": service.control_url}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(holdings(service)), flush=True)
    service.stop(1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
