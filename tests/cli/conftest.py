"""Fixtures of the command line's tests.

Takes nothing; gives certificates as files, and a proxy that is asked by commands.
"""

import pytest
from click.testing import CliRunner

from chaosproxy.cli import main
from tests.net import certificates as certificates_module
from tests.proxying import serve_proxy


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """An authority, a server's certificate and a client's, as PEM files."""
    return certificates_module.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def asked(redis70):
    """A proxy in this process, and a function that runs a command which asks it."""
    with serve_proxy(redis70.url) as proxy:
        yield (
            proxy,
            lambda *args: CliRunner().invoke(
                main, args, env={"CHAOSPROXY_CONTROL_URL": proxy.control}
            ),
        )
