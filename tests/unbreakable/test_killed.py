"""chaosproxy is ended by SIGKILL, wherever it has started servers, at any moment.

Takes each command that starts servers, in a process of its own with a folder for its files; gives proof that neither a
server nor a file is left.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from chaosproxy.embedded import Embedded
from tests.test_pytest_plugin import PLUGIN
from tests.unbreakable.stand import environ, own, running, until

ROOT = Path(__file__).resolve().parent.parent.parent

TEST = """
import time

import pytest


@pytest.mark.parametrize("n", range(2))
def test_waits(chaosproxy, n):
    time.sleep(60)
"""
#: Commands, and how many servers each of them starts.
COMMANDS = {
    "run": (["run", "--upstream", "embedded", "--listen", "127.0.0.1:0", "--control", "off"], 1),
    "run-json": (["run", "--upstream", "embedded", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--log-format", "json"], 1),
    "standby": (["run", "--upstream", "embedded", "--standby", "embedded", "--listen", "127.0.0.1:0", "--control", "off"], 2),
    "failover": (["run", "--upstream", "embedded", "--standby", "embedded", "--profile", "sentinel-failover", "--listen", "127.0.0.1:0", "--control", "off"], 2),
    "cluster": (["run", "--upstream", "embedded", "--cluster-nodes", "3", "--listen", "127.0.0.1:0", "--control", "off"], 1),
    "exec": (["exec", "--upstream", "embedded", "--", "sleep", "60"], 1),
    "demo": (["demo", "refresh"], 1),
}  # fmt: skip


def servers_of(pid: int) -> list[int]:
    """The servers that a process has started, by way of their watchdogs."""
    return [child for child in own(pid) if "server" in _name(child)]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Killed:
    """A process of chaosproxy's that is to be killed; what it started is remembered."""

    def __init__(self, command: list[str], temp: Path) -> None:
        self.temp = temp
        self.started: set[int] = set()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environ(TMPDIR=str(temp), PYTHONPATH=str(ROOT)),
        )

    def look(self) -> set[int]:
        """Every process that it has started so far."""
        self.started.update(own(self.process.pid))
        return self.started

    def kill(self) -> None:
        """SIGKILL, and nothing is left, but for a command of somebody else's that `exec` was given."""
        self.look()
        self.process.kill()
        self.process.wait()
        for pid in self.started:
            if _name(pid) == "sleep\n":
                os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(running, self.started)), "all that it started to be gone")
        until(lambda: not list(self.temp.iterdir()), "all files to be gone")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.mark.parametrize("what", COMMANDS)
def test_a_command(tmp_path, what):
    """With its servers running, each command that starts any leaves nothing when it is killed."""
    words, count = COMMANDS[what]
    with Killed([sys.executable, "-m", "chaosproxy", *words], tmp_path) as killed:
        until(lambda: len(servers_of(killed.process.pid)) == count, f"{count} servers")
        assert list(tmp_path.iterdir())
        killed.kill()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.soak)])
def test_a_test_run(tmp_path, workers):
    """So do pytest's own processes: the run's, which its workers do not outlive, and a worker's."""
    test, temp = tmp_path / "test_it.py", tmp_path / "temp"
    test.write_text(TEST)
    temp.mkdir()
    words = [
        "-q",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
        "-n",
        str(workers),
        f"--basetemp={tmp_path}/base",
    ]
    command = [sys.executable, "-m", "pytest", *words, str(test)]
    with Killed(command, temp) as killed:
        until(lambda: len(servers_of(killed.process.pid)) == max(1, workers), "the servers")
        killed.kill()


def test_as_pid_1(tmp_path, monkeypatch, namespace):
    """A container's first process takes all others with it: no server is left, and the next one to be started removes their files."""
    words, count = COMMANDS["standby"]
    with Killed([*namespace, sys.executable, "-m", "chaosproxy", *words], tmp_path) as killed:
        until(lambda: len(servers_of(killed.process.pid)) == count, f"{count} servers")
        first, *others = own(killed.process.pid)
        killed.look()
        # A process that ends closes its files before the kernel ends the others: the watchdogs could begin to remove theirs.
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        os.kill(first, signal.SIGKILL)
        killed.process.wait()
        until(lambda: not any(map(running, killed.started)), "all that it started to be gone")
    assert len(list(tmp_path.iterdir())) == count
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Embedded() as server:
        assert list(tmp_path.iterdir()) == [server._run.folder]
    assert list(tmp_path.iterdir()) == []


#: How many seconds after its start it is killed: before anything is there, and up to when all is.
EARLY = [0.0, 0.2, 0.4]


@pytest.mark.parametrize(
    "seconds",
    [*EARLY, *(pytest.param(n / 100, marks=pytest.mark.soak) for n in range(1, 100, 2))],
)
def test_as_it_starts(tmp_path, seconds):
    """At whatever moment of its start."""
    words = [*COMMANDS["standby"][0]]
    with Killed([sys.executable, "-m", "chaosproxy", *words], tmp_path) as killed:
        due = time.monotonic() + seconds
        while time.monotonic() < due:
            killed.look()
            time.sleep(random.uniform(0, 0.005))
        killed.kill()
