"""How many files this process may open, and what happens where it may open no more: clients that are here go on, others are turned away.

Takes a plan; gives it with as many clients as there can be. Takes clients as they come, and what the loop fails to accept; gives
whether one may stay, and counts those that may not. It is said each time.
"""

import asyncio
import dataclasses
import logging
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from chaosproxy.net.plan import Plan

#: So many of the descriptors that there may be are not for new clients: what is here already may need one yet.
SPARE: Final = 8

_log = logging.getLogger("chaosproxy.descriptors")


def affordable(plan: Plan) -> Plan:
    """Have this process's limit of open files raised as far as a plan's clients need it and may be; give it with as many as there can be."""
    most = allow_connections(plan.max_connections)
    if most == plan.max_connections:
        return plan
    _log.warning(
        "at most %d clients instead of %d: this process may open no more files",
        most,
        plan.max_connections,
    )
    return dataclasses.replace(plan, max_connections=most)


def allow_connections(count: int) -> int:
    """Raise this process's limit of open files as far as `count` clients need it and may be.

    Each client takes two. Gives how many clients there can be: `count`, or fewer.
    """
    spare = 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * count + spare
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return count if soft == resource.RLIM_INFINITY else max(1, min(count, (soft - spare) // 2))


class Descriptors:
    """The files that this process may have open. `turned_away` is called for each client that there is none for."""

    def __init__(self, turned_away: Callable[[], None]) -> None:
        self._turned_away = turned_away
        self._out = False

    def are_scarce(self) -> bool:
        """Whether so few are left that a client who has just come is to be turned away."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        scarce = most != resource.RLIM_INFINITY and _lowest_free() >= most - SPARE
        if scarce:
            self._say()
        else:
            self._out = False
        return scarce

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say it in our words where a loop fails to accept; it waits a second then, and so do new clients."""
        loop.set_exception_handler(self._failed)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # asyncio has no better name for it; uvloop closes who comes, and says nothing.
        if str(context.get("message", "")).startswith("socket.accept() out of system resource"):
            self._say()
        else:
            loop.default_exception_handler(context)

    def _say(self) -> None:
        self._turned_away()
        if not self._out:
            self._out = True
            _log.warning(
                "this process may open no more files (ulimit -n): new clients are turned away"
            )


def _lowest_free() -> float:
    """The number that the next file gets that is opened; infinity if there is none."""
    try:
        number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return float("inf")
    os.close(number)
    return number
