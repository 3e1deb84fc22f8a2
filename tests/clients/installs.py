"""Client libraries in the versions that tests name, each set of them in a folder of its own in the user's cache.

Takes requirements as pip or npm write them, gives an Install that runs programs with these and nothing else.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

INSTALL_TIMEOUT = 600.0
RUN_TIMEOUT = 120.0
#: A registry may be away for a moment: so often an installation is tried, with so many seconds in between.
TRIES, AGAIN = 3, 5.0
#: What Debian calls it, and the oldest that all npm packages of the tests run on.
NODE = 18


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not a mistake
    """These versions cannot be had or run here; the text says why, and how to get what is missing."""


class ScriptError(AssertionError):
    """A program did not end well, or gave no result; the text is all it wrote."""


@dataclass(frozen=True, slots=True)
class Install:
    """A folder with libraries in it, and the command that runs a program with them."""

    folder: Path
    interpreter: tuple[str, ...]

    def start(
        self, script: Path, *args: object, env: dict[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a program; its input and output are piped."""
        return subprocess.Popen(
            [*self.interpreter, str(script), *map(str, args)],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )

    def run(self, script: Path, *args: object, timeout: float = RUN_TIMEOUT) -> Any:
        """Run a program to its end; its last line of output is its result, in JSON. Raises ScriptError."""
        return result(self.start(script, *args), timeout)


def result(process: "subprocess.Popen[str]", timeout: float = RUN_TIMEOUT) -> Any:
    """Wait for a started program's end and give its result. Raises ScriptError."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise ScriptError(f"not done after {timeout} s:\n{out}{err}") from None
    if process.returncode:
        raise ScriptError(f"ended with {process.returncode}:\n{out}{err}")
    try:
        return json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        raise ScriptError(f"no result in its last line:\n{out}{err}") from None


@cache
def python(*requirements: str) -> Install:
    """Give an environment of this Python with these requirements, `redis==5.2.1`, and no others. Raises Unavailable."""
    version = f"py{sys.version_info[0]}{sys.version_info[1]}"

    def install(folder: Path) -> None:
        # Without pip of its own an environment is made in a moment.
        _call([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        interpreter = str(folder / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", interpreter, "install"]
        options = ["--quiet", "--disable-pip-version-check", "--no-input"]
        _call([*pip, *options, *requirements])

    folder = _cached(version, requirements, install)
    # Nothing of the user's; what stands beside a program it may have.
    return Install(folder, (str(folder / "bin" / "python"), "-E", "-s"))


@cache
def npm(*packages: str) -> Install:
    """Give a folder with these packages, `ioredis@5.3.0`; programs find them there. Raises Unavailable."""
    node, client = shutil.which("node"), shutil.which("npm")
    if node is None or client is None:
        raise Unavailable(f"needs Node {NODE} or newer and npm: apt-get install nodejs npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < NODE:
        raise Unavailable(f"needs Node {NODE} or newer; {node} is {version.strip()}")

    def install(folder: Path) -> None:
        folder.mkdir()
        (folder / "package.json").write_text('{"private": true}')
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        _call([client, "install", *options, *packages], cwd=folder)

    return Install(_cached("npm", packages, install), (node,))


def _cached(kind: str, what: tuple[str, ...], install: Callable[[Path], None]) -> Path:
    """Give the folder for these, made now if it is not there yet, by one of all test workers."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chaosproxy-tests"
    digest = hashlib.sha256("\n".join(what).encode()).hexdigest()[:8]
    name = re.sub(r"[^a-z0-9.]+", "-", what[0].lower()).strip("-")
    folder = base / f"{kind}-{name}-{digest}"
    base.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(folder.suffix + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = folder / "whole"
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            whole.write_text("\n".join(what) + "\n")
    return folder


def _call(command: list[str], cwd: Path | None = None) -> None:
    """Run a command of an installation, again where it fails. Raises Unavailable with its last words."""
    for _ in range(TRIES - 1):
        with suppress(Unavailable):
            return _call_once(command, cwd)
        time.sleep(AGAIN)
    return _call_once(command, cwd)


def _call_once(command: list[str], cwd: Path | None) -> None:
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=INSTALL_TIMEOUT,
                check=False,
            )
            status = f"ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            status = f"not done after {INSTALL_TIMEOUT} s"
        else:
            if done.returncode == 0:
                return
        output.seek(0)
        last = " ".join(output.read().strip().splitlines()[-3:])
    raise Unavailable(f"`{' '.join(map(str, command[1:]))}` {status}: {last}")
