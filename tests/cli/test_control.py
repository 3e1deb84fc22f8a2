"""How commands find a proxy that runs: the URL, the token, and what is said where there is none."""

import pytest
from click.testing import CliRunner

from chaosproxy.cli import main
from tests.proxying import serve_proxy

ASKING = (["status"], ["events"], ["calm"], ["use", "calm"], ["trigger", "x"])


@pytest.mark.parametrize("args", ASKING)
def test_nobody_there(args):
    """No proxy at that address: status 1, and where it was looked for."""
    done = CliRunner().invoke(main, [*args, "--control", "127.0.0.1:1"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: no chaosproxy answers at http://127.0.0.1:1: ")


@pytest.mark.parametrize("args", ASKING)
def test_token(redis70, args):
    """A token that is wanted and not given is asked for, and a wrong one is told from none; from the environment it does as well."""
    with serve_proxy(redis70.url, control_token="secret") as proxy:
        where = ["--control", proxy.control]
        done = CliRunner().invoke(main, [*args, *where])
        assert done.exit_code == 1
        assert done.stderr == "Error: a token is needed; give --control-token\n"
        done = CliRunner().invoke(main, [*args, *where, "--control-token", "secrets"])
        assert done.exit_code == 1
        assert done.stderr == "Error: that is not the token; give --control-token\n"
        variables = {"CHAOSPROXY_CONTROL_URL": proxy.control, "CHAOSPROXY_CONTROL_TOKEN": "secret"}
        done = CliRunner().invoke(main, args, env=variables)
        assert done.exit_code == (1 if args[0] == "trigger" else 0), done.output


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6380", "http://", "127.0.0.1:x"])
def test_no_url(url):
    """What is no such URL is bad usage."""
    done = CliRunner().invoke(main, ["status", "--control", url])
    assert done.exit_code == 2
    assert "--control" in done.stderr
