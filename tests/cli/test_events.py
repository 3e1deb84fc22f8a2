"""`events`: what has fired, and what fires from now on."""

import json
import signal
import subprocess
import sys

RULES = (
    "faults:\n- {fault: reply, name: lie, match: {commands: GET}, at: before_forward, value: 1}\n"
)


def fire(proxy, *keys):
    with proxy.connect() as client:
        for key in keys:
            client.ask("GET", key)


def test_events(asked):
    """A line an event, after the number that is known."""
    proxy, run = asked
    proxy.use(RULES)
    fire(proxy, "a", "b")
    proxy.wait_events(2)
    lines = run("events").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["#1", "#2"]
    assert lines[0].endswith("lie  GET a  -> not applied, told ok: ok")
    assert run("events", "--after", "1").stdout.splitlines() == lines[1:]


def test_as_json(asked):
    """As `run --events` writes them."""
    proxy, run = asked
    proxy.use(RULES)
    fire(proxy, "a")
    assert json.loads(run("events", "--json").stdout) == proxy.wait_events()[0]


def test_follow(asked):
    """They come as they happen; Ctrl-C is the end, and no failure."""
    proxy, _ = asked
    proxy.use(RULES)
    fire(proxy, "a")
    command = [sys.executable, "-m", "chaosproxy", "events", "--follow", "--json"]
    with subprocess.Popen(
        [*command, "--control", proxy.control], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert json.loads(process.stdout.readline())["keys"] == ["a"]
            fire(proxy, "b")
            assert json.loads(process.stdout.readline())["keys"] == ["b"]
            process.send_signal(signal.SIGINT)
            assert (process.wait(60), process.stderr.read()) == (0, b"")
        finally:
            process.kill()
