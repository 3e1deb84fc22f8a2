"""A program under measurement: started in a session of its own, watched, and stopped.

Takes a command line and the port it is to listen on, gives its CPU time and memory.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.bench import usage

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[2]


class StartError(Exception):
    """A program that ended at once or did not listen in time."""


def free_port() -> int:
    """A loopback port that the kernel has just called free."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.005) -> bool:
    """Whether the condition came true within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


class Program:
    """A running program and all that it forked.

    Args:
        words: The command line.
        log: Where its output goes.

    """

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            # A session of its own: that is how its children are found, and nobody else is signalled.
            self._process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=ROOT,
            )
        self.pid = self._process.pid

    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def pids(self) -> list[int]:
        """It and its children."""
        return [process.pid for process in usage.processes(self.pid)]

    def cpu(self) -> usage.Cpu:
        """Its processor time so far, its children's included."""
        return sum((process.cpu for process in usage.processes(self.pid)), usage.Cpu())

    def resident(self) -> int:
        """Bytes it has in memory now."""
        return usage.memory(self.pids(), "VmRSS")

    def peak(self) -> int:
        """Bytes it had in memory at most since `forget_peak`."""
        return usage.memory(self.pids(), "VmHWM")

    def forget_peak(self) -> None:
        """Let `peak` start again from now."""
        usage.forget_peak(self.pids())

    def wait_listening(self, port: int, seconds: float = 15.0) -> None:
        """Return when the port accepts; StartError with the log's end when it will not."""

        def accepts() -> bool:
            if not self.alive():
                raise StartError(f"ended with status {self._process.returncode}: {self._said()}")
            try:
                socket.create_connection((HOST, port), timeout=1).close()
            except OSError:
                return False
            return True

        if not until(accepts, seconds):
            raise StartError(f"did not listen within {seconds:g} s: {self._said()}")

    def settle(self, seconds: float = 10.0) -> None:
        """Return when it has done nothing for a third of a second, or the time is over."""
        seen = [(self.cpu(), self.resident())]

        def still() -> bool:
            seen.append((self.cpu(), self.resident()))
            return len(seen) > 3 and seen[-1] == seen[-2] == seen[-3] == seen[-4]

        until(still, seconds, pause=0.11)

    def stop(self) -> None:
        """End it and what it forked: asked first, then made to."""
        for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
            if until(lambda: not self.pids(), 1.0):
                break
        self._process.wait()

    def _said(self) -> str:
        """The last line of its output, which most often says why."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "no output"


def start(words: Callable[[int], Sequence[str]], log: Path) -> tuple[Program, int]:
    """Start a program on a free port and wait until it listens; StartError when it never does.

    Between the kernel's word that a port is free and the program's use of it somebody else may
    take it, so it is tried three times.
    """
    problem = StartError("not tried")
    for _ in range(3):
        port = free_port()
        program = Program(words(port), log)
        try:
            program.wait_listening(port)
        except StartError as error:
            problem = error
            program.stop()
        except BaseException:
            program.stop()
            raise
        else:
            return program, port
    raise problem
