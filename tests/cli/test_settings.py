"""What options mean together, and the message for each combination that means nothing."""

import ssl
from contextlib import ExitStack

import click
import pytest
from click.testing import CliRunner

from chaosproxy.cli.options import run_options
from chaosproxy.net.address import SCHEMES, Address

KNOWN = ", ".join(f"{scheme}://" for scheme in SCHEMES)


def read(*args, env=None, stack=None):
    """Read options as `run` does; gives the Settings, or exit status and what was said.

    What is started for them runs for as long as `stack` is open, if there is one.
    """
    found = []

    @click.command()
    @run_options
    def command(options):
        with ExitStack() as own:
            found.append((options, options.settings(stack or own)))

    done = CliRunner().invoke(command, args, env=env)
    if found:
        return found[0][1]
    return done.exit_code, done.stderr.splitlines()[-1]


def test_defaults():
    """What holds when nothing is said."""
    settings = read()
    assert settings.plan.listen == Address("127.0.0.1", 6380)
    assert settings.plan.upstream.url == "redis://127.0.0.1:6379"
    assert settings.control == Address("127.0.0.1", 9380)
    assert settings.profile.name == "calm"
    assert (settings.events, settings.redact_keys) == (None, False)
    assert settings.plan.listen_tls is settings.plan.upstream_tls is None


@pytest.mark.parametrize(
    ("args", "address"),
    [
        ([], Address("127.0.0.1", 26380)),
        (["--listen", ":7"], Address("0.0.0.0", 26380)),
        (["--listen", "unix:/x"], Address("127.0.0.1", 26380)),
        (["--listen-sentinel", "[::1]:0"], Address("::1", 0)),
    ],
)
def test_sentinel(args, address):
    """Where it is said, else at the host of the first listener."""
    assert read(*args).plan.listen_sentinel == address


@pytest.mark.parametrize(
    ("args", "again"),
    [
        ([], ""),
        (["--upstream", "redis://127.0.0.1:6379", "--listen", ":7"], ""),
        (["--upstream", "embedded", "--standby", "embedded"], " --upstream embedded --standby embedded"),
        (["--upstream", "redis://h", "--standby", "redis://u:hunter2@i"],
         " --upstream redis://h:6379 --standby 'redis://u:***@i:6379'"),
        (["--profile", "lost-ack", "--cluster-nodes", "3"], " --profile lost-ack --cluster-nodes 3"),
        (["--sentinel-service", "my service"], " --sentinel-service 'my service'"),
    ],
)  # fmt: skip
def test_repeat(args, again):
    """What decides which faults there are, and what stands behind, is in the command that does it again; no password is."""

    @click.command()
    @run_options
    def command(options):
        click.echo(options.repeat(7))

    assert CliRunner().invoke(command, args).stdout == f"chaosproxy run --seed 7{again}\n"


def test_drawn_seeds_differ():
    """Without any seed one is drawn, each time anew."""
    assert len({read().seed for _ in range(8)}) > 1


@pytest.mark.parametrize(
    ("args", "address"),
    [
        (["--control", "off"], None),
        (["--control", "127.0.0.1:1"], Address("127.0.0.1", 1)),
        (["--control", ":1"], Address("127.0.0.1", 1)),
        (["--control", ":1", "--control-token", "t"], Address("0.0.0.0", 1)),
        (["--control", ":1", "--control-open"], Address("0.0.0.0", 1)),
        (["--control", "10.0.0.1:1", "--control-token", "t"], Address("10.0.0.1", 1)),
    ],
)
def test_control(args, address):
    """Loopback as one likes; beyond it with a token, or when told so."""
    assert read(*args).control == address


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "redis:1"])
def test_control_that_would_be_open(address):
    """Beyond loopback without a token: refused, and it is said what would do."""
    said = "whoever reaches it could switch profiles; give --control-token, or say --control-open"
    assert read("--control", address) == (2, f"Error: --control {address}: {said}")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--listen", "nowhere"],
            "--listen: nowhere: expected HOST:PORT with a port from 0 to 65535, or unix:PATH",
        ),
        (
            ["--upstream", "localhost:6379"],
            f"--upstream: localhost:6379: an upstream URL begins with one of {KNOWN}",
        ),
        (["--control", "unix:/x"], "--control: HTTP is not spoken on a unix socket"),
        (["--tls-key", "k.pem"], "--tls-key and --tls-ca need --tls-cert"),
        (["--tls-ca", "ca.pem"], "--tls-key and --tls-ca need --tls-cert"),
        (
            ["--control", ":1", "--control-token", " "],
            "--control-token: an empty one would let anybody in, or nobody",
        ),
        (
            ["--tls-cert", "gone.pem"],
            "--tls-cert, --tls-key, --tls-ca: gone.pem: no such file or directory",
        ),
        (
            ["--upstream-tls-insecure"],
            "--upstream-tls-… needs an upstream that begins with rediss://",
        ),
        (
            ["--upstream", "rediss://h", "--upstream-tls-key", "k.pem"],
            "--upstream-tls-key needs --upstream-tls-cert",
        ),
        (
            ["--upstream", "rediss://h", "--upstream-tls-ca", "gone.pem"],
            "--upstream-tls-ca, --upstream-tls-cert, --upstream-tls-key: gone.pem: no such file or directory",
        ),
        (
            ["--seed", "-1"],
            "Invalid value for '--seed' (env var: 'CHAOSPROXY_SEED'): -1 is not in the range 0<=x<=1000000000000000.",
        ),
        (
            ["--max-buffer", "much"],
            "Invalid value for '--max-buffer' (env var: 'CHAOSPROXY_MAX_BUFFER'): expected a size such as 64KiB, 10kB or 512B, got 'much'",
        ),
    ],
)
def test_usage_errors(args, message):
    """Each has status 2 and says what would be right."""
    assert read(*args) == (2, f"Error: {message}")


def test_tls(certificates):
    """Files make contexts, on the side they are for."""
    c = certificates
    settings = read("--tls-cert", str(c.cert), "--tls-key", str(c.key), "--tls-ca", str(c.ca))
    assert settings.plan.listen_tls.verify_mode is ssl.CERT_REQUIRED
    settings = read("--upstream", "rediss://h", "--upstream-tls-ca", str(c.ca))
    assert settings.plan.upstream_tls.check_hostname
    settings = read("--upstream", "rediss://h", "--upstream-tls-insecure")
    assert settings.plan.upstream_tls.verify_mode is ssl.CERT_NONE


def test_variables():
    """An option's variable is its name in upper case behind CHAOSPROXY_; several profiles have blanks between."""
    settings = read(
        env={
            "CHAOSPROXY_LISTEN": "127.0.0.1:7",
            "CHAOSPROXY_PROFILE": "slow-redis lost-ack",
            "CHAOSPROXY_REDACT_KEYS": "1",
            "CHAOSPROXY_MAX_BUFFER": "64KiB",
        }
    )
    assert settings.plan.listen == Address("127.0.0.1", 7)
    assert settings.profile.name == "slow-redis+lost-ack"
    assert settings.redact_keys
    assert settings.plan.max_buffer == 65536


def test_override_that_fits_nothing():
    """--set that leads nowhere is a problem of the profile: status 2."""
    status, _ = read("--profile", "lost-ack", "--set", "lost-akc.when.nth=3")
    assert status == 2


CLUSTER = "redis+cluster://127.0.0.1:7000,127.0.0.1:7001"


@pytest.mark.parametrize(
    ("args", "announced"),
    [
        ([], None),
        (["--announce", "proxy.example"], Address("proxy.example", 0)),
        (["--announce", "proxy.example:17000"], Address("proxy.example", 17000)),
        (["--announce", "[::1]"], Address("::1", 0)),
        (["--announce", "[::1]:17000"], Address("::1", 17000)),
    ],
)
def test_a_cluster(args, announced):
    """A cluster's nodes are asked for by several addresses; what is announced is a host, or a host and a port."""
    plan = read("--upstream", CLUSTER, *args).plan
    assert plan.upstream.url == CLUSTER
    assert plan.upstream.cluster
    assert plan.upstream.others == (Address("127.0.0.1", 7001),)
    assert plan.announce == announced
    assert read("--cluster-nodes", "3", *args).plan.announce == announced
    assert read("--cluster-nodes", "3").plan.cluster_nodes == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--announce", "h"],
         "Error: --announce needs a cluster: an upstream that begins with redis+cluster://, or --cluster-nodes"),
        (["--upstream", CLUSTER, "--announce", ":7000"],
         "Error: --announce :7000: expected HOST or HOST:PORT"),
        (["--upstream", CLUSTER, "--announce", "unix:/s"],
         "Error: --announce unix:/s: expected HOST or HOST:PORT"),
        (["--upstream", CLUSTER, "--announce", "h:x"],
         "Error: --announce: h:x: expected HOST:PORT with a port from 0 to 65535, or unix:PATH"),
        (["--upstream", CLUSTER, "--announce", "h:7000", "--listen", "127.0.0.1:0"],
         "Error: --announce h:7000: a port is announced for one that is known: give --listen a port too"),
        (["--upstream", CLUSTER, "--cluster-nodes", "3"],
         "Error: --cluster-nodes makes a cluster of one server, not of a cluster, a service of Sentinel's or a pair"),
        (["--cluster-nodes", "3", "--standby", "redis://127.0.0.1:7001"],
         "Error: --cluster-nodes makes a cluster of one server, not of a cluster, a service of Sentinel's or a pair"),
        (["--cluster-nodes", "3", "--listen", "unix:/s"],
         "Error: --listen: a cluster's clients cannot be sent to a unix socket"),
        (["--cluster-nodes", "65"],
         "Error: Invalid value for '--cluster-nodes' (env var: 'CHAOSPROXY_CLUSTER_NODES'): 65 is not in the range 0<=x<=64."),
        (["--upstream", CLUSTER, "--listen", "unix:/s"],
         "Error: --listen: a cluster's clients cannot be sent to a unix socket"),
        (["--upstream", CLUSTER, "--standby", "redis://127.0.0.1:7001"],
         "Error: --standby: a cluster has its own replicas"),
        (["--standby", CLUSTER], "Error: --standby: a cluster has its own replicas"),
        (["--upstream", "redis+cluster://h:x"],
         "Error: --upstream: redis+cluster://h:***: expected HOST:PORT with a port from 0 to 65535, an IPv6 address in brackets"),
    ],
)  # fmt: skip
def test_a_cluster_that_makes_no_sense(args, message):
    """What cannot be, or would not do what it says, is told."""
    assert read(*args) == (2, message)
