"""Nothing that others say moves a terminal's cursor: not on the proxy's own output, nor in what the commands print."""

import json
import os
import signal
import socketserver
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from chaosproxy.cli import main
from tests.proxying import START_TIMEOUT, wait_for
from tests.wire import Wire

#: Clears the screen and names the window: by escape, by C1 in UTF-8, and text that runs the other way.
EVIL = "\x1b[2J\x1b]0;pwned\x07\x9b2J\u202egnp.exe\x7f"

PROFILE = """\
faults:
  - {fault: reply, name: eaten, at: before_forward, error: ERR no, match: {connection: {nth: 1}}}
"""


def harmless(text: str) -> None:
    assert text
    assert [char for char in text if not (char.isprintable() or char == "\n")] == []


@pytest.mark.parametrize("format_", ["text", "json"])
def test_what_a_client_says(redis70, tmp_path, format_):
    """Commands, keys, requests for the control API: in events on stdout and in the log they are as harmless as they look."""
    profile, ready = tmp_path / "p.yaml", tmp_path / "ready.json"
    profile.write_text(PROFILE)
    words = [
        *("chaosproxy", "run", "--upstream", redis70.url, "--listen", "127.0.0.1:0"),
        *("--control", "127.0.0.1:0", "--profile", str(profile), "--ready-file", str(ready)),
        *("--events", "-", "--log-level", "debug", "--log-format", format_),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUTF8": "1"},
    )
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None, "the ready file")
        said = json.loads(ready.read_text())
        with Wire(int(said["listen"].rpartition(":")[2])) as wire:
            assert wire.raw(EVIL, "x") == b"-ERR no\r\n"
            assert wire.raw("GET", EVIL) == b"-ERR no\r\n"
        with Wire(int(said["control"].rpartition(":")[2])) as wire:
            wire.send_bytes(b"GET /\x1b[2J\x9b2J HTTP/1.1\r\nConnection: close\r\n\r\n")
            assert b" 404 " in wire.read_to_end()[0].splitlines()[0]
        process.send_signal(signal.SIGTERM)
        out, err = (each.decode() for each in process.communicate(timeout=START_TIMEOUT))
    finally:
        process.kill()
        process.wait()
    harmless(out)
    harmless(err)
    events = [json.loads(line) for line in out.splitlines()[1:]]
    assert [event["keys"] for event in events] == [[], [EVIL]]
    assert events[0]["command"] == EVIL.upper()
    assert "2J" in err


class _Liar(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(60)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.request.recv(4096)
        status, value = self.server.said
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.request.sendall(head.encode() + body)


@pytest.fixture
def liar():
    """What answers as a control API would, and means ill; `said` is status and JSON."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Liar) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


FAULT = {"name": EVIL, "type": EVIL, "matched": 1, "fired": 1, "skipped": {EVIL: 1}}
NOW = {"name": EVIL, "seed": EVIL, "generation": EVIL, "since": EVIL, "faults": [FAULT]}
EVENT = {
    "n": 1, "at": EVIL * 3, "fault": EVIL, "command": EVIL, "keys": [EVIL], "applied": EVIL, "told": EVIL, "outcome": EVIL,
}  # fmt: skip
PROBLEM = {
    "file": EVIL, "line": 1, "column": 1, "message": EVIL, "suggestion": EVIL, "source_line": EVIL,
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["status"], (200, NOW | {"connections": []})),
        (["status", "--json"], (200, NOW | {"connections": []})),
        (["calm"], (200, NOW)),
        (["use", "lost-ack"], (200, NOW | {"warnings": [EVIL]})),
        (["trigger", "x"], (200, FAULT | {"requested": 1, "trigger": "manual"})),
        (["events"], (200, {"events": [EVENT]})),
        (["events", "--json"], (200, {"events": [EVENT]})),
        (["use", "lost-ack"], (422, {"error": EVIL, "problems": [PROBLEM]})),
        (["calm"], (500, {"error": EVIL})),
    ],
)
def test_what_a_control_api_says(liar, command, said):
    """Who is not the proxy that was meant can say what it likes: the commands print it harmless."""
    liar.said = said
    url = f"http://127.0.0.1:{liar.server_address[1]}"
    done = CliRunner().invoke(main, command, env={"CHAOSPROXY_CONTROL_URL": url})
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    harmless(done.output)
