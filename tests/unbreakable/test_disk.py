"""The disk is full, or nobody reads: for the events, the report and the log.

Takes processes of chaosproxy's whose files may grow only so far, or go nowhere; gives proof that traffic goes on, that what is
lost is counted and said once, and that the verdict and the files say what is missing.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.proxying import RunningProxy, start_proxy
from tests.unbreakable.stand import environ, until
from tests.wire import Wire

LATE = """
faults:
  - {fault: latency, match: {commands: SET}, at: before_forward, delay: 1us}
"""
#: Far fewer events than these fit into the files' limit.
MANY = 60
LIMIT = 8192
#: A command that writes so often, by raw bytes.
APP = f"""
import os, socket, urllib.parse
url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
with socket.create_connection((url.hostname, url.port)) as link:
    for _ in range({MANY}):
        link.sendall(b"SET k v\\r\\n")
        assert link.recv(100) == b"+OK\\r\\n"
"""


def numbers(path) -> list[int]:
    """The events in a file, all of whose lines are whole."""
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line)["n"] for line in text.splitlines()[1:]]


def limit(process: subprocess.Popen, size: int) -> None:
    """Have a process's files grow no further."""
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))


def write(client: Wire, times: int = MANY) -> None:
    for _ in range(times):
        assert client.ask("SET", "k", "v") == "OK"


def counted(proxy: RunningProxy, client: Wire, events: int) -> None:
    """Wait until so many are counted, and are written, or lost, which is done before the next command is answered."""
    until(lambda: proxy.metric("faults_fired_total") == events, "all to be counted")
    assert client.ask("PING") == "PONG"


def test_full_and_room_again(redis70, tmp_path, profile):
    """Commands are answered, memory and counters have every event, the file goes on once there is room, and a replay says so."""
    proxy = start_proxy(redis70.url, profile[1])
    with proxy.connect() as client:
        limit(proxy.process, LIMIT)
        write(client)
        counted(proxy, client, MANY)
        lost = proxy.metric("events_lost_total")
        assert 0 < lost < MANY
        kept = json.loads(proxy.get("/events")[1])["events"]
        assert [event["n"] for event in kept] == list(range(1, MANY + 1))
        limit(proxy.process, resource.RLIM_INFINITY)
        write(client, 5)
        counted(proxy, client, MANY + 5)
        assert proxy.metric("events_lost_total") == lost
        found = numbers(proxy.folder / "events.jsonl")
        assert found[-5:] == list(range(MANY + 1, MANY + 6))
        assert len(found) == MANY + 5 - lost
        shutil.copy(proxy.folder / "events.jsonl", tmp_path)
    proxy.stop()
    assert proxy.stderr.count("events are being lost") == 1
    assert "File too large" in proxy.stderr
    again = run_exec(redis70.url, *profile, "--replay", str(tmp_path / "events.jsonl"))
    assert f"events.jsonl lacks {lost:.0f} events" in again.stderr


def test_full_until_the_end(redis70, tmp_path):
    """The file ends with a whole line, and the log says how many it lacks."""
    path = tmp_path / "mine.jsonl"
    proxy = start_proxy(redis70.url, LATE, "--events", str(path))
    limit(proxy.process, LIMIT)
    with proxy.connect() as client:
        write(client)
    until(lambda: proxy.metric("faults_fired_total") == MANY, "all to be counted")
    proxy.stop()
    found = numbers(path)
    assert found == list(range(1, len(found) + 1))
    assert f"{MANY - len(found)} of {MANY} events could not be written" in proxy.stderr


def run_exec(url, *options, before=None, env=None):
    return subprocess.run(
        [
            *(sys.executable, "-m", "chaosproxy", "exec", "--upstream", url, *options, "--"),
            *(sys.executable, "-c", APP),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
        env=env,
    )


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "late.yaml"
    path.write_text(LATE)
    return "--profile", str(path)


def limited(size):
    """Have the process that is about to begin write files of so much only."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_exec_says_what_its_file_lacks(redis70, tmp_path, profile):
    """The command passed, and the run has failed: its verdict, its status and its report say that the file is not complete."""
    events = tmp_path / "events.jsonl"
    done = run_exec(redis70.url, *profile, "--events", str(events), before=limited(LIMIT))
    lost = MANY - len(numbers(events))
    assert done.returncode == 1
    assert f"\n{lost} of {MANY} events could not be written: their numbers" in done.stderr
    assert done.stderr.count("events are being lost") == 1
    assert "\nreplay: " not in done.stderr


def test_exec_without_room_for_its_report(redis70, tmp_path, profile):
    """What cannot be written is named, and is not there in part; the last lines are said all the same."""
    report = tmp_path / "report"
    done = run_exec(redis70.url, *profile, "--report", str(report), before=limited(700))
    assert done.returncode == 1
    assert f"Error: cannot write {report}/report.json: File too large" in done.stderr
    assert "\nagain: " in done.stderr
    assert [path.name for path in report.iterdir()] == ["events.jsonl"]


def test_exec_without_room_for_a_summary(redis70, profile):
    """The same of the summary that CI asks for."""
    done = run_exec(redis70.url, *profile, env=environ(GITHUB_STEP_SUMMARY="/dev/full"))
    assert done.returncode == 1
    assert "Error: cannot write /dev/full: No space left on device" in done.stderr
    assert "\nagain: " in done.stderr


def test_no_room_at_all(redis70):
    """Where not even the first line can be written it does not start, and says why."""
    done = run_exec(redis70.url, "--events", "/dev/full")
    assert done.returncode == 1
    assert "cannot write events to /dev/full: no space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "profiles", "faults latency", "schema"])
def test_no_room_for_an_answer(words):
    """A command that cannot print says so, and has failed."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chaosproxy", *words.split()],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Error: cannot write all of it: No space left on device\n")
    assert "Traceback" not in done.stderr


def test_no_room_for_the_log(redis70, tmp_path):
    """A log that goes nowhere stops nobody: neither what is said at the start nor a warning later."""
    ready = tmp_path / "ready.json"
    words = ["--upstream", redis70.url, "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    command = [sys.executable, "-m", "chaosproxy", "run", *words, "--ready-file", str(ready)]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(command, stderr=full, stdin=subprocess.DEVNULL)
    try:
        until(lambda: ready.exists() or process.poll() is not None, "the ready file")
        assert process.poll() is None
        said = json.loads(ready.read_text())
        with Wire(int(said["listen"].rpartition(":")[2])) as client:
            assert client.ask("PING") == "PONG"
    finally:
        process.terminate()
    assert process.wait(20) == 0


def test_a_reader_who_has_stopped(redis70):
    """Events go to a pipe that nobody reads any more: clients and the control API are served all the same."""
    reader, writer = os.pipe()
    proxy = start_proxy(redis70.url, LATE, "--events", "-", stdout=writer)
    os.close(writer)
    try:
        with proxy.connect() as client:
            for _ in range(20):
                client.send_bytes(b"SET k v\r\n" * 100)
                assert client.read(100) == [b"+OK\r\n"] * 100
        with urllib.request.urlopen(f"{proxy.control}/healthz", timeout=30) as answer:
            assert answer.status == 200
        proxy.stop()
        assert "events could not be written" in proxy.stderr
    finally:
        os.close(reader)
