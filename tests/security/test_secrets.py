"""Passwords and tokens are in nothing that is written, said or shown, whoever sent them and whatever became of them."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaosproxy.cli import main
from chaosproxy.testing import running
from tests import servers
from tests.proxying import start_proxy
from tests.wire import Wire, encode

#: Each stands for a secret of its own, so that a leak says whose it is.
UPSTREAM, TOKEN, CLIENT = "hunter2-upstream", "hunter2-token", "hunter2-client"
#: What is stored is nobody's business either.
VALUE = "hunter2-value"
SECRETS = (UPSTREAM, TOKEN, CLIENT, VALUE)

#: Every command with a secret in it, that servers have.
COMMANDS = (
    ("AUTH", CLIENT),
    ("AUTH", "user", CLIENT),
    ("aUtH", CLIENT),
    ("HELLO", 2, "AUTH", "user", CLIENT),
    ("HELLO", 3, "SETNAME", "me", "AUTH", "user", CLIENT),
    ("ACL", "SETUSER", "x", "on", f">{CLIENT}"),
    ("ACL", "DELUSER", "x"),
    ("CONFIG", "SET", "masterauth", CLIENT),
    ("CONFIG", "SET", "masterauth", ""),
    ("CONFIG", "SET", "nosuch", CLIENT),
    ("MIGRATE", "127.0.0.1", 1, "k", 0, 10, "AUTH", CLIENT),
    ("MIGRATE", "127.0.0.1", 1, "", 0, 10, "AUTH2", "user", CLIENT, "KEYS", "k1", "k2"),
    ("SENTINEL", "SET", "m", "auth-pass", CLIENT),
    ("SET", "k", VALUE),
    ("GET", "k"),
    ("RPUSH", "l", VALUE),
    ("LRANGE", "l", 0, -1),
    ("HSET", "h", "field", VALUE),
    ("PUBLISH", "c", VALUE),
    ("EVAL", "return ARGV[1]", 1, "k", VALUE),
    ("XADD", "x", "*", "field", VALUE),
    ("INCR", "l"),
    ("NOSUCH", VALUE),
    ("GET", "k", VALUE),
    ("MODULE", "LOADEX", "/x.so", "CONFIG", "x.password", CLIENT),
)
#: What one line and a broken one say of them.
INLINE = (
    f"AUTH {CLIENT}\r\n",
    f"auth user '{CLIENT}\r\n",
    f"*2\r\n$4\r\nAUTH\r\n$x\r\n{CLIENT}\r\n",
)

#: Faults that touch all of them, each at another place and with something of its own to tell.
PROFILES = {
    "calm": "faults: []\n",
    "answered": """\
faults:
  - {fault: reply, match: {commands: '@handshake'}, at: before_forward, error: ERR no}
  - {fault: reply, name: others, at: before_forward, error: ERR no}
""",
    "late": """\
faults:
  - {fault: latency, match: {commands: '@handshake'}, at: before_forward, delay: 1ms}
  - {fault: latency, name: others, at: after_apply, delay: 1ms}
""",
    "cut": """\
faults:
  - {fault: disconnect, match: {commands: '@handshake'}, at: mid_reply, bytes: 2}
  - {fault: disconnect, name: others, at: after_apply}
""",
}


def leaks(text: str | bytes) -> list[str]:
    """Give the secrets that are in it, whole or as their bytes in hexadecimal or Base64."""
    said = text.encode() if isinstance(text, str) else text
    return [secret for secret in SECRETS if any(each in said for each in written(secret))]


def written(secret: str) -> list[bytes]:
    """A secret in each way that it may stand in a text; in Base64 behind any number of bytes."""
    raw = secret.encode()
    coded = []
    for before in range(3):
        # The letters at either end have bits of what is around it.
        text = b64encode(bytes(before) + raw).rstrip(b"=")
        coded.append(text[-(-before * 8 // 6) : len(text) - ((before + len(raw)) % 3 != 0)])
    return [raw, raw.hex().encode(), *coded]


def test_how_a_secret_is_found():
    """Whole, and as bytes in hexadecimal or Base64, wherever it stands in them."""
    for before in range(4):
        for after in range(4):
            raw = b"x" * before + TOKEN.encode() + b"y" * after
            for text in (raw, raw.hex().encode(), b64encode(raw)):
                assert leaks(text) == [TOKEN]
    assert leaks(b"hunter2" + b64encode(b"hunter2")) == []


@pytest.fixture(scope="module")
def locked():
    """A server that wants a password."""
    server = servers.start("valkey9")
    server.ask("CONFIG", "SET", "requirepass", UPSTREAM)
    yield server
    server.stop()


def ask_everything(port: int) -> None:
    """Send all of them, each on a connection of its own that the server knows, and one that it does not."""
    for first in ([], [("AUTH", UPSTREAM)]):
        for raw in (*(encode(*words) for words in COMMANDS), *(line.encode() for line in INLINE)):
            with Wire(port) as wire:
                try:
                    for words in first:
                        wire.raw(*words)
                    wire.send_bytes(raw)
                    wire.finish()
                    wire.read_to_end()
                except (EOFError, OSError):
                    continue


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_written_or_told(locked, profile):
    """Events, log at its most talkative, start block, ready file, every route of the control API, what the commands print."""
    env = {
        "CHAOSPROXY_CONTROL_TOKEN": TOKEN,
        "CHAOSPROXY_UPSTREAM": f"redis://:{UPSTREAM}@127.0.0.1:{locked.port}",
        "CHAOSPROXY_LOG_LEVEL": "debug",
    }
    # The options that the helper gives would win over variables: the same again.
    with start_proxy(env["CHAOSPROXY_UPSTREAM"], PROFILES[profile], env=env) as proxy:
        ask_everything(proxy.port)
        if profile != "calm":
            assert len(proxy.wait_events(len(COMMANDS))) >= len(COMMANDS)
        told = [(proxy.folder / name).read_text() for name in ("events.jsonl", "ready.json")]
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        paths = json.loads(proxy.get("/openapi.json", **bearer)[1])["paths"]
        told += [
            proxy.get(path, **bearer)[1]
            for path, methods in paths.items()
            if "get" in methods and path != "/events/stream"
        ]
        told += [proxy.get("/profile", Authorization="Bearer wrong")[1]]
        asked = {"CHAOSPROXY_CONTROL_URL": proxy.control, "CHAOSPROXY_CONTROL_TOKEN": TOKEN}
        for words in (["status"], ["status", "--json"], ["events"], ["events", "--json"]):
            done = CliRunner().invoke(main, words, env=asked)
            assert done.exit_code == 0
            told.append(done.output)
    told.append(proxy.stderr)
    assert "GET /profile" in proxy.stderr
    assert [found for text in told if (found := leaks(text))] == []


def test_the_report(locked, tmp_path):
    """What `exec` says and leaves has none of them; the command itself finds the password in its environment, and there only."""
    program = tmp_path / "app.py"
    program.write_text(
        "import os, sys\n"
        "from urllib.parse import urlsplit\n"
        "from tests.security.test_secrets import UPSTREAM, ask_everything\n"
        "url = urlsplit(os.environ['REDIS_URL'])\n"
        "assert url.password == UPSTREAM\n"
        "ask_everything(url.port)\n"
    )
    profile = tmp_path / "p.yaml"
    profile.write_text(PROFILES["answered"])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "chaosproxy", "exec", "--profile", str(profile)),
            *("--report", str(tmp_path / "report"), "--log-level", "debug", "--"),
            *(sys.executable, str(program)),
        ],
        env=os.environ
        | {
            "CHAOSPROXY_UPSTREAM": f"redis://:{UPSTREAM}@127.0.0.1:{locked.port}",
            "CHAOSPROXY_CONTROL_TOKEN": TOKEN,
            "GITHUB_STEP_SUMMARY": str(tmp_path / "report" / "summary.md"),
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = {path.name: path.read_bytes() for path in (tmp_path / "report").iterdir()}
    assert set(written) == {
        "events.jsonl", "report.json", "report.html", "junit.xml", "summary.md"
    }  # fmt: skip
    assert {name: leaks(text) for name, text in written.items() if leaks(text)} == {}
    assert leaks(done.stdout + done.stderr) == []


def test_digests(locked):
    """An event's digest stands for the request, and of a short secret it would give it away: there it is of the name alone."""
    with start_proxy(f"redis://:{UPSTREAM}@127.0.0.1:{locked.port}", PROFILES["answered"]) as proxy:
        with proxy.connect() as wire:
            secretive = [words for words in COMMANDS if VALUE not in words]
            for words in secretive:
                for secret in (CLIENT, "another"):
                    wire.raw(*(str(word).replace(CLIENT, secret) for word in words))
        events = proxy.wait_events(2 * len(secretive))
    for one, two in zip(events[::2], events[1::2], strict=True):
        assert one["command"] == two["command"]
        assert one["digest"] == two["digest"], one["command"]


def test_a_test_suite(locked):
    """What the pytest plugin says of a test has none of them."""
    with running(f"redis://:{UPSTREAM}@127.0.0.1:{locked.port}") as proxy:
        proxy.use(yaml=PROFILES["answered"])
        ask_everything(proxy.service.listen.port)
        assert leaks(proxy.told()) == []
        assert leaks(repr(proxy.service._settings)) == []
