"""The lowest versions that pyproject allows: what they are is tried, as whoever has them pinned gets nothing newer."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("fast", "embedded", "pytest")
APPLICATION = """
import os, redis
memory = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
try:
    memory.rpush("chat:1", "Hello")
except redis.ConnectionError:
    print("lost", memory.lrange("chat:1", 0, -1))
"""
TEST = """
import pytest, redis

@pytest.mark.chaos("lost-ack")
def test_lost(chaosproxy):
    memory = redis.Redis.from_url(chaosproxy.url)
    with pytest.raises(redis.ConnectionError):
        memory.rpush("chat:1", "Hello")
    assert [event["told"] for event in chaosproxy.events()] == ["reset"]
"""


def lowest():
    """Give each package that our users get, pinned to the lowest version we say is enough."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [
        each for extra in EXTRAS for each in project["optional-dependencies"][extra]
    ]
    pairs = [re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in wanted]
    assert all(pairs), f"not all of {wanted} name the lowest version they need, and nothing else"
    return [f"{pair[1]}=={pair[2]}" for pair in pairs]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Give an environment that has these versions."""
    folder = tmp_path_factory.mktemp("lowest")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    what = f"{ROOT}[{','.join(EXTRAS)}]"
    install = [folder / "bin/pip", "install", "-q", "--disable-pip-version-check", what]
    subprocess.run([*install, "redis==8.1.0", *lowest()], check=True)
    return folder


@pytest.fixture
def run(environment, tmp_path):
    """Give what runs a program of that environment, and fails with all that it said if it does not end with 0."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("CHAOSPROXY_")}

    def program(*words):
        done = subprocess.run(
            [environment / "bin" / words[0], *words[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=clean,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return program


@pytest.mark.install
@pytest.mark.timeout(600)
def test_every_command_starts(run):
    """Each command is there and says what it does; every shipped profile is right."""
    commands = re.findall(r"^  ([a-z]+)  ", run("chaosproxy", "--help"), re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        assert run("chaosproxy", command, "--help").startswith(f"Usage: chaosproxy {command}")
    assert run("chaosproxy", "check", "calm").startswith("calm: ok")
    names = re.findall(r"^([a-z-]+)", run("chaosproxy", "profiles"), re.MULTILINE)
    assert len(names) >= 12
    run("chaosproxy", "check", *names)


@pytest.mark.install
@pytest.mark.timeout(600)
def test_a_fault_fires(run, environment, tmp_path):
    """A whole run: server, proxy, client, events and report."""
    script = tmp_path / "application.py"
    script.write_text(APPLICATION)
    report = tmp_path / "report"
    options = ("--upstream", "embedded", "--profile", "lost-ack", "--report", report)
    out = run("chaosproxy", "exec", *options, "--", environment / "bin/python", script)
    assert "lost ['Hello']" in out
    lines = map(json.loads, (report / "events.jsonl").read_text().splitlines())
    assert [each["fault"] for each in lines if "fault" in each] == ["lost-ack"]


@pytest.mark.install
@pytest.mark.timeout(600)
def test_the_pytest_plugin(run, tmp_path):
    """The fixture and the marker do what they do."""
    (tmp_path / "test_chat.py").write_text(TEST)
    out = run("pytest", "-q", "--rootdir", tmp_path, tmp_path / "test_chat.py")
    assert "1 passed" in out
