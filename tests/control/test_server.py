"""The HTTP server: its address and its token."""

import pytest

from chaosproxy.control.server import ControlServer
from tests.control.asking import request


def test_token(serve):
    """With a token all but the three open routes want it."""
    server = serve(token="secret")
    for path in ("/healthz", "/readyz", "/metrics"):
        assert request(server, "GET", path).status == 200
    assert request(server, "GET", "/profile").status == 401
    assert request(server, "GET", "/nowhere").status == 401
    assert request(server, "GET", "/profile", Authorization="Bearer wrong").status == 401
    assert request(server, "GET", "/profile", Authorization="Bearer secret").status == 200


def test_url_and_address(serve):
    """The port is the kernel's, and the URL one that this machine can ask; there any name will do."""
    server = serve(host="0.0.0.0")
    assert server.address.port > 0
    assert server.url == f"http://127.0.0.1:{server.address.port}"
    assert request(server, "GET", "/profile", Host="chaosproxy:9380").status == 200


def test_ipv6(serve):
    """IPv6 where there is one."""
    try:
        server = serve(host="::1")
    except OSError as error:
        pytest.skip(f"needs IPv6: {error}")
    assert server.url == f"http://[::1]:{server.address.port}"


def test_port_taken(serve, backend):
    """A port that is taken is an error."""
    with pytest.raises(OSError, match="in use"):
        ControlServer(serve().address, backend, None)
