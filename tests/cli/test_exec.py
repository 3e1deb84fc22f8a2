"""`exec`: the command's status, the gate, the report, the server that is started, what the command finds, the last lines."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree as ET

import pytest

from chaosproxy.embedded import EmbeddedError, find_server
from tests.servers import free_port

EXEC = (sys.executable, "-m", "chaosproxy", "exec")
#: Twice RPUSH on a raw socket: the first one's answer is lost with `lost-ack`, and it is sent again.
APP = """
import os, socket, urllib.parse
url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
for _ in range(2):
    with socket.create_connection((url.hostname, url.port)) as link:
        if url.password:
            link.sendall(f"AUTH {url.password}\\r\\n".encode())
            assert link.recv(100) == b"+OK\\r\\n"
        link.sendall(b"RPUSH l x\\r\\n")
        try:
            print(link.recv(100), flush=True)
        except ConnectionResetError:
            print("reset", flush=True)
"""


def run_exec(*args, command=("true",), **more):
    return subprocess.run(
        [*EXEC, *args, "--", *command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        **more,
    )


@pytest.fixture
def lost(redis70):
    """Options for a run with `lost-ack` over a server."""
    return "--upstream", redis70.url, "--profile", "lost-ack"


@pytest.fixture
def app(tmp_path):
    """The words that run APP."""
    path = tmp_path / "app.py"
    path.write_text(APP)
    return sys.executable, str(path)


def test_fired(lost, app):
    """The command passed, the fault fired: 0; the last lines say what, how often, the seed, and how to have it again."""
    done = run_exec(*lost, "--seed", "7", command=app)
    assert (done.returncode, done.stdout) == (0, "reset\nb':2\\r\\n'\n")
    lines = done.stderr.splitlines()
    assert lines[0] == "chaosproxy: profile lost-ack, seed 7, 2 commands, exit status 0"
    assert lines[1].endswith("lost-ack  RPUSH l  -> applied, told reset: unknown")
    assert lines[3].split() == ["lost-ack", "disconnect", "2", "1", "nth", "1"]
    again = f"again: chaosproxy exec --seed 7 --profile lost-ack {' '.join(lost[:2])} -- "
    assert lines[4].startswith(again)
    assert len(lines) == 5


def test_again_is_again(lost, app):
    """The command that it names does the same: its words are a shell's, and nothing has to be added."""
    done = run_exec(*lost, "--env", "CACHE_URL", "--require-fired", "all", command=app)
    again = done.stderr.splitlines()[-1].removeprefix("again: ")
    words = shlex.split(again)
    assert words[:2] == ["chaosproxy", "exec"]
    assert words[words.index("--env") + 1] == "CACHE_URL"
    assert words[words.index("--require-fired") + 1] == "all"
    end = words.index("--")
    once_more = run_exec(*words[2:end], command=words[end + 1 :])
    assert once_more.stdout == "reset\nb':4\\r\\n'\n"


def test_never_fired(lost):
    """The command passed and the fault never fired: 3, and why."""
    done = run_exec(*lost)
    assert done.returncode == 3
    assert "lost-ack never fired: nothing that it matches ever came" in done.stderr
    assert "0 commands, exit status 3 (the command's own is 0)" in done.stderr


def test_other_commands_came(lost, app):
    """Where the fault met none of its commands, those that came are named: one of them may be what was meant."""
    done = run_exec(*lost, "--set", "lost-ack.match.commands=LPUSH", command=app)
    assert done.returncode == 3
    why = "lost-ack never fired: nothing that it matches ever came; most that came: RPUSH 2"
    assert why in done.stderr.splitlines()


def test_without_a_dash(lost):
    """What stands behind the command is its own, whatever it is called, also where no `--` says so."""
    words = (
        *EXEC,
        *lost,
        "--require-fired",
        "none",
        "sh",
        "-c",
        'echo "$@"',
        "--seed",
        "x",
        "--help",
    )
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "x --help\n")


@pytest.mark.parametrize(
    ("args", "command", "status"),
    [
        ((), ("sh", "-c", "exit 7"), 7),
        (("--require-fired", "none"), ("true",), 0),
        (("--require-fired", "nosuch"), ("true",), 2),
        (("--set", "lost-ack.when.chance=50%"), ("true",), 0),
        (("--set", "lost-ack.when.chance=50%", "--require-fired", "all"), ("true",), 3),
        (("--set", "lost-ack.when.chance=50%", "--require-fired", "lost-ack"), ("true",), 3),
        (("--set", "lost-ack.when.trigger=manual"), ("true",), 0),
        ((), ("no-such-command",), 127),
        (("--env", "A=B"), ("true",), 2),
        (("--env", ""), ("true",), 2),
        (("--profile", "nosuch"), ("true",), 2),
        ((), (), 2),
    ],
)
def test_status(lost, args, command, status):
    """The command's own where it is not 0; what is required decides otherwise; bad usage is 2."""
    assert run_exec(*lost, *args, command=command).returncode == status


def test_several_profiles_from_a_variable(redis70):
    """They stand with blanks between, and are one profile."""
    env = os.environ | {"CHAOSPROXY_PROFILE": "lost-ack cache-miss", "CHAOSPROXY_SEED": "7"}
    done = run_exec("--upstream", redis70.url, "--require-fired", "none", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("chaosproxy: profile lost-ack+cache-miss, seed 7, ")


def test_calm_requires_nothing(redis70):
    """Where there is no fault none has to fire."""
    done = run_exec("--upstream", redis70.url)
    assert done.returncode == 0
    assert "no faults" in done.stderr


def test_what_the_command_finds(lost):
    """The proxy's URL in REDIS_URL and in what it is asked to be in; the control API's; and its token."""
    code = """if True:
        import os, urllib.request
        assert os.environ["REDIS_URL"] == os.environ["CACHE"] == os.environ["QUEUE"]
        url = os.environ["CHAOSPROXY_CONTROL_URL"] + "/profile"
        headers = {"Authorization": "Bearer " + os.environ["CHAOSPROXY_CONTROL_TOKEN"]}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            assert b'"lost-ack"' in answer.read()
    """
    done = run_exec(
        *lost,
        "--env",
        "CACHE",
        "--env",
        "QUEUE",
        "--control-token",
        "t",
        command=(sys.executable, "-c", code),
    )
    assert done.returncode == 3, done.stderr


def test_ready_file(lost, tmp_path):
    """It is there when the command begins, and says what `run` says."""
    path = tmp_path / "ready.json"
    done = run_exec(*lost, "--ready-file", str(path), command=("cat", str(path)))
    said = json.loads(done.stdout)
    assert said["url"] == f"redis://{said['listen']}"
    assert (said["profile"], said["seed"]) == ("lost-ack", json.loads(path.read_text())["seed"])
    assert run_exec(*lost, "--ready-file", str(tmp_path / "x" / "y")).returncode == 1


def test_control_off(lost):
    """Without a control API there is none to be found."""
    code = "import os; raise SystemExit('CHAOSPROXY_CONTROL_URL' in os.environ)"
    done = run_exec(*lost, "--control", "off", command=(sys.executable, "-c", code))
    assert done.returncode == 3


def test_password(redis70):
    """The upstream's password is in the URL that the command gets, and in nothing that is told."""
    with redis70.connect() as client:
        client.ask("CONFIG", "SET", "requirepass", "p@ss/word")
    url = redis70.url.replace("://", "://:p%40ss%2Fword@")
    try:
        code = APP.replace("url.password}", "urllib.parse.unquote(url.password)}")
        done = run_exec(
            "--upstream", url, "--profile", "lost-ack", command=(sys.executable, "-c", code)
        )
    finally:
        with redis70.connect() as client:
            client.ask("AUTH", "p@ss/word")
            client.ask("CONFIG", "SET", "requirepass", "")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "reset")
    assert "p@ss" not in done.stderr
    assert "p%40ss" not in done.stderr


def test_embedded_where_none_answers(monkeypatch):
    """Without --upstream and with nobody at the default address a real server is started, and gone afterwards."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    code = "from chaosproxy.cli import options; from chaosproxy.cli.exec import command"
    code += "; upstream = next(each for each in command.params if each.name == 'upstream')"
    code += f"; upstream.default = 'redis://127.0.0.1:{free_port()}'; command()"
    asking = (
        "import os, socket, urllib.parse; url = urllib.parse.urlsplit(os.environ['REDIS_URL'])\n"
    )
    asking += "with socket.create_connection((url.hostname, url.port)) as link:\n"
    asking += "  link.sendall(b'INFO server\\r\\n'); text = link.recv(100000).decode()\n"
    asking += "  print(text.partition('process_id:')[2].split()[0])"
    done = subprocess.run(
        [sys.executable, "-c", code, "--", sys.executable, "-c", asking],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{int(done.stdout)}"):  # noqa: PTH110
        assert time.monotonic() < deadline, "the server stays"
        time.sleep(0.01)


def test_report(lost, tmp_path, app):
    """Four files: the events, all of it for programs, a page, and a case for the fault that must fire."""
    folder = tmp_path / "a" / "report"
    done = run_exec(*lost, "--seed", "7", "--report", str(folder), command=app)
    assert done.returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl", "junit.xml", "report.html", "report.json",
    ]  # fmt: skip
    header, event = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    assert (header["seed"], event["fault"]) == (7, "lost-ack")
    told = json.loads((folder / "report.json").read_text())
    assert (told["seed"], told["profile"], told["command_status"], told["exit_status"]) == (
        7,
        "lost-ack",
        0,
        0,
    )
    assert [fault["fired"] for fault in told["faults"]] == [1]
    (suite,) = ET.fromstring((folder / "junit.xml").read_bytes())
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert "RPUSH l" in (folder / "report.html").read_text()
    replay = shlex.split(done.stderr.splitlines()[-1].removeprefix("replay: "))
    assert replay[replay.index("--replay") + 1] == str(folder / "events.jsonl")
    # The replay that it names is one: other options are as they were.
    once_more = run_exec(*lost[:2], *replay[2 : replay.index("--")], command=app)
    assert (once_more.returncode, once_more.stdout.splitlines()[0]) == (0, "reset")
    assert "the replay was the recording, event by event" in once_more.stderr
    assert "the replay" not in done.stderr


def test_report_of_a_failure(lost, tmp_path):
    """What never fired is a failed case; an events file of one's own is copied."""
    events = tmp_path / "mine.jsonl"
    done = run_exec(*lost, "--report", str(tmp_path), "--events", str(events))
    assert done.returncode == 3
    (suite,) = ET.fromstring((tmp_path / "junit.xml").read_bytes())
    assert suite.get("failures") == "1"
    assert (tmp_path / "events.jsonl").read_text() == events.read_text()


def test_report_that_cannot_be_written(lost, tmp_path):
    """Told before anything runs, with status 1; events on stdout do not go with it, nor what keeps none."""
    (tmp_path / "file").write_text("")
    done = run_exec(*lost, "--report", str(tmp_path / "file" / "x"), command=("echo", "ran"))
    assert (done.returncode, done.stdout) == (1, "")
    os.mkfifo(tmp_path / "fifo")
    for events in ("-", str(tmp_path / "fifo"), "/dev/null"):
        done = run_exec(
            *lost, "--report", str(tmp_path), "--events", events, command=("echo", "ran")
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert f"leave out --events {events}" in done.stderr
    none = "x" * 300
    done = run_exec(*lost, "--report", str(tmp_path), "--events", none, command=("echo", "ran"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot write events to {none}: file name too long\n"


def test_events_of_a_report(lost, tmp_path, app):
    """The file that they are written to may be the report's own, however it is called, or another one."""
    (tmp_path / "link").symlink_to(tmp_path / "r")
    for number, events in enumerate(
        (f"{tmp_path}/r/../r/events.jsonl", f"{tmp_path}/link/events.jsonl", f"{tmp_path}/other")
    ):
        done = run_exec(*lost, "--report", str(tmp_path / "r"), "--events", events, command=app)
        assert done.returncode == 0, done.stderr
        assert len((tmp_path / "r" / "events.jsonl").read_text().splitlines()) == 2, number


def test_replay_that_goes_otherwise(lost, tmp_path, app):
    """A replay whose commands are others fails with 1, and says where."""
    run_exec(*lost, "--events", str(tmp_path / "e"), command=app)
    done = run_exec(*lost[:2], "--replay", str(tmp_path / "e"), "--report", str(tmp_path / "r"))
    assert done.returncode == 1
    assert "the replay diverges: recorded was event 1: lost-ack" in done.stderr
    assert "replay: " not in done.stderr


SWITCHES = """
import json, os, urllib.request
url = os.environ["CHAOSPROXY_CONTROL_URL"] + "/profile"
body = json.dumps({"name": "lost-ack"}).encode()
request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="PUT")
urllib.request.urlopen(request, timeout=60).close()
"""


@pytest.mark.parametrize(("more", "before"), [(("--redact-keys",), ""), ((), SWITCHES)])
def test_no_replay_where_there_is_none(lost, tmp_path, app, more, before):
    """Events without their keys, or of a profile that came later, are no recording: no line says that they are, and it is told."""
    folder = tmp_path / "r"
    code = before + (tmp_path / "app.py").read_text()
    done = run_exec(*lost, *more, "--report", str(folder), command=(sys.executable, "-c", code))
    assert len((folder / "events.jsonl").read_text().splitlines()) == 2, done.stderr
    assert "replay: " not in done.stderr
    again = run_exec(*lost[:2], "--replay", str(folder / "events.jsonl"), "--profile", "lost-ack")
    assert again.returncode == 2
    assert "--replay" in again.stderr
    assert ("--redact-keys" in again.stderr) == bool(more)


def test_job_summary(lost, tmp_path, app):
    """Where GitHub Actions wants a summary it gets one."""
    path = tmp_path / "summary.md"
    run_exec(*lost, command=app, env=os.environ | {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.read_text().startswith("### chaosproxy: lost-ack, passed")
    gone = {"GITHUB_STEP_SUMMARY": str(tmp_path / "gone" / "summary.md")}
    done = run_exec(*lost, command=app, env=os.environ | gone)
    assert done.returncode == 1
    assert f"cannot write {tmp_path}/gone/summary.md: No such file" in done.stderr
    assert "\nagain: " in done.stderr


def test_what_is_sent_last(redis70):
    """What the command sent and did not wait for reaches Redis, as it would without a proxy."""
    code = """if True:
        import os, socket, urllib.parse
        url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
        link = socket.create_connection((url.hostname, url.port))
        link.sendall(b"SET last word\\r\\n")
        os._exit(0)
    """
    assert run_exec("--upstream", redis70.url, command=(sys.executable, "-c", code)).returncode == 0
    with redis70.connect() as client:
        assert client.ask("GET", "last") == b"word"


def test_signals(lost):
    """A signal ends the command; the report of what happened is written all the same."""
    with subprocess.Popen(
        [*EXEC, *lost, "--", "sh", "-c", "echo ready; exec sleep 60"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 143
    assert "exit status 143" in said
    assert "again: " in said
