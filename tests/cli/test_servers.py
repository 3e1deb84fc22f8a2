"""Which servers options name, and which are started for them."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from chaosproxy.embedded import EmbeddedError, find_server
from tests.cli.test_settings import read
from tests.proxying import wait_for
from tests.wire import Wire

ON_STANDBY = """
faults:
- {fault: run, name: there, match: {commands: SET}, at: after_apply, commands: [[PING]], where: standby}
"""


@pytest.fixture
def profile(tmp_path):
    """The path of a profile that can do nothing without a standby."""
    path = tmp_path / "there.yaml"
    path.write_text(ON_STANDBY)
    return str(path)


def test_none():
    """Without being asked for there is no standby, and nothing is started."""
    plan = read().plan
    assert (plan.standby, plan.standby_tls) == (None, None)


def test_a_standby(certificates):
    """Where it is; TLS is each server's own matter, with one set of files."""
    plan = read("--standby", "redis://u:p@10.0.0.2:7/1").plan
    assert (plan.standby.url, plan.standby_tls) == ("redis://u:***@10.0.0.2:7/1", None)
    ca = str(certificates.ca)
    plan = read("--standby", "rediss://10.0.0.2", "--upstream-tls-ca", ca).plan
    assert plan.upstream_tls is None
    assert plan.standby_tls is not None
    plan = read(env={"CHAOSPROXY_STANDBY": "unix:///tmp/there"}).plan
    assert plan.standby.address.path == "/tmp/there"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--standby", "10.0.0.2"],
            "--standby: 10.0.0.2: an upstream URL begins with one of",
        ),
        (
            ["--standby", "redis://127.0.0.1:6379"],
            "--standby redis://127.0.0.1:6379: this is the upstream; a standby is another server",
        ),
        (
            ["--standby", "embedded"],
            "--standby embedded is a replica of --upstream embedded; for another upstream give a server's URL",
        ),
    ],
)
def test_usage_errors(args, message):
    """Each has status 2 and says what would be right."""
    status, said = read(*args)
    assert status == 2
    assert said.startswith(f"Error: {message}")


def test_a_service_that_has_sentinels():
    """The proxy is a Sentinel where there is none, and nowhere else."""
    assert read("--sentinel-service", "mine").plan.sentinel_service == "mine"
    status, said = read("--upstream", "redis+sentinel://h/m", "--sentinel-service", "mine")
    assert (status, said) == (
        2,
        "Error: --sentinel-service: there are Sentinels already, and the URL has the service's name",
    )
    status, said = read("--upstream", "redis+sentinel://h/m", "--standby", "redis://h")
    assert said == "Error: --standby: where there are Sentinels, they say which servers there are"


def test_a_profile_that_needs_one(profile):
    """It does not start without: nothing it says could happen."""
    said = "fault 'there' of profile there needs a second server: give --standby URL, or --upstream embedded, which then starts one"
    assert read("--profile", profile) == (2, f"Error: {said}")
    assert read("--profile", profile, "--standby", "redis://10.0.0.2").plan.standby is not None


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "by the profile"])
def test_embedded(profile, asked):
    """A replica of the embedded server is started where one is asked for, or the profile makes use of one; both end."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    with ExitStack() as stack:
        options = ["--standby", "embedded"] if asked else ["--profile", profile]
        plan = read("--upstream", "embedded", *options, stack=stack).plan
        ports = plan.upstream.address.port, plan.standby.address.port
        primary, standby = (stack.enter_context(Wire(port)) for port in ports)
        assert primary.ask("SET", "k", "v") == "OK"
        wait_for(lambda: standby.ask("GET", "k") == b"v", "the write on the replica")
        pids = [
            int(each.ask("INFO", "server").partition(b"process_id:")[2].split()[0])
            for each in (primary, standby)
        ]
        stack.close()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the servers' end")


def test_embedded_alone():
    """A profile that has no use for a standby gets none."""
    try:
        find_server()
    except EmbeddedError as reason:
        pytest.skip(str(reason))
    assert read("--upstream", "embedded", "--profile", "lost-ack").plan.standby is None
