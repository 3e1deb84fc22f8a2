"""The control API as its own description tells it: schemathesis asks everything there is to ask, and every answer is one of those told.

Takes `/openapi.json` as a running proxy serves it; gives proof that no answer is a mistake of ours (5xx), none is undocumented, each
has the shape, the type and the headers that are told, wrong methods and wrong tokens are refused as they should be, and that
clients' commands go on meanwhile.
"""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Self
from urllib.request import Request, urlopen

import pytest

from tests.proxying import start_proxy
from tests.wire import Wire, WireError

TOKEN = "open-sesame"
PROFILE = """
faults:
- {fault: latency, name: slow, match: {commands: GET}, at: after_apply, delay: 1ms}
- {fault: reply, name: refuse, match: {commands: INCR}, when: {trigger: manual}, at: before_forward, error: ERR no}
"""
#: What would wait for a minute is not asked to, and what is there is asked for as well as what is not.
CONFIG = """
[parameters]
"query.wait" = "5ms"

[[operations]]
include-path-regex = "^/faults/"
parameters = { "path.name" = ["slow", "refuse", "other"] }

[[operations]]
include-path-regex = "^/profiles/"
parameters = { "path.name" = ["calm", "lost-ack", "calmer"] }

[[operations]]
include-path-regex = "^/proxies/"
parameters = { "path.proxy" = ["redis", "other"], "path.toxic" = ["latency_downstream", "other"] }
"""


class Traffic:
    """One client after the other, asking all the time: how many answers there were, and whether one was another one's."""

    def __init__(self, port: int) -> None:
        self.answers = self.lost = 0
        self.wrong: list[object] = []
        self._port = port
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with Wire(self._port) as wire:
                    # Some profiles answer never: then another one is in force by the next time.
                    wire.socket.settimeout(2)
                    self._ask(wire)
            except (OSError, EOFError):
                # A fault of some profile that was put in force, or /connections/{id} was deleted.
                self.lost += 1

    def _ask(self, wire: Wire) -> None:
        while not self._over.is_set():
            text = f"text {self.answers}"
            said = wire.ask("ECHO", text)
            if said == text.encode():
                self.answers += 1
            elif isinstance(said, WireError):
                self.lost += 1
            else:
                self.wrong.append(said)
            self._over.wait(0.005)


def ask(tmp_path: Path, redis_url: str, *how: str, patience: float) -> tuple[str, Traffic, str]:
    """Let schemathesis ask a proxy of its own; gives what it says, what its clients met meanwhile, and its log."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    with (
        start_proxy(redis_url, PROFILE, "--control-token", TOKEN) as proxy,
        Traffic(proxy.port) as traffic,
    ):
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-W",
                    "ignore",
                    "-c",
                    "from schemathesis.cli import *; schemathesis()",
                ),
                *("--config-file", str(config), "run", f"{proxy.control}/openapi.json"),
                *("-H", f"Authorization: Bearer {TOKEN}"),
                # It never ends, which is what it is for; tests/control/test_events.py has it.
                *("--exclude-path", "/events/stream"),
                # What is of the right shape may still mean nothing: no such profile, no such address.
                *("--exclude-checks", "positive_data_acceptance"),
                *("--suppress-health-check", "all", "--request-timeout", "30", "--no-color"),
                *("--continue-on-failure", *how),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            timeout=patience,
            check=False,
        )
        told = f"ended with {done.returncode}\n{done.stdout}"
        # It has survived: it answers, and so does what is behind it, once what is in force is not what was put there last.
        calm = Request(f"{proxy.control}/profile", method="DELETE")
        calm.add_header("Authorization", f"Bearer {TOKEN}")
        with urlopen(calm, timeout=20) as answer:
            assert answer.status == 200
        with Wire(proxy.port) as wire:
            assert wire.ask("PING") == "PONG", told
    return told, traffic, proxy.stderr


def check(told: str, traffic: Traffic, log: str) -> None:
    assert told.startswith("ended with 0\n"), told
    assert not traffic.wrong, traffic.wrong[:9]
    assert traffic.answers > 100, told
    assert "mistake" not in log


@pytest.mark.timeout(400)
def test_everything_is_as_told(redis70, tmp_path):
    """Every operation with its boundary values, left-out and wrong parts, and a few drawn requests, the same in each run."""
    how = ("--phases", "coverage,fuzzing", "--max-examples", "2", "--seed", "7")
    check(*ask(tmp_path, redis70.url, *how, "--generation-deterministic", patience=380))


@pytest.mark.fuzz
@pytest.mark.timeout(0)
def test_for_minutes(redis70, tmp_path, fuzz_seconds):
    """The same with as many drawn requests, and sequences of them, as fit."""
    how = ("--phases", "coverage,fuzzing,stateful", "--max-examples", "100000")
    limit = ("--max-time", str(fuzz_seconds), "--generation-database", "none")
    check(*ask(tmp_path, redis70.url, *how, *limit, patience=fuzz_seconds + 600))
