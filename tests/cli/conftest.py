"""Fixtures of the command line's tests.

Takes nothing; gives certificates as files.
"""

import pytest

from tests.net import certificates as certificates_module


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """An authority, a server's certificate and a client's, as PEM files."""
    return certificates_module.make(tmp_path_factory.mktemp("tls"))
