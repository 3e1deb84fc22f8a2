"""Toxiproxy's own clients, in named versions, switch by changing a URL: they meet what they expect.

Takes the clients as pip and npm bring them; gives what each saw of a chaosproxy's control API.
"""

from pathlib import Path

import pytest

from tests.clients import installs
from tests.proxying import start_proxy

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture
def proxy(redis70):
    with start_proxy(redis70.url) as proxy:
        yield proxy


def test_python(proxy, redis70):
    """toxiproxy-python 0.1.1: proxies, toxics, down, its three exceptions, populate and reset."""
    try:
        client = installs.python("toxiproxy-python==0.1.1", "requests==2.32.3", "future==1.0.0")
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    host, _, port = proxy.control.partition("//")[2].rpartition(":")
    seen = client.run(PROGRAMS / "toxiproxy_client.py", host, port, f"127.0.0.1:{redis70.port}")
    assert seen.pop("late") >= 0.29
    assert "chaosproxy" in seen.pop("version")
    assert seen == {
        "running": True,
        "plain": "+PONG\r\n",
        "toxic": {"latency": 300, "jitter": 10},
        "toxics": [],
        "down": "refused",
        "up": "+PONG\r\n",
        "again": "ProxyExists",
        "invalid": "InvalidToxic",
        "missing": "NotFound",
        "proxies": ["other", "redis"],
        "left": [],
    }


def test_node(proxy, redis70):
    """toxiproxy-node-client 4.1.0: proxies, toxics, updates, populate and reset."""
    try:
        client = installs.npm("toxiproxy-node-client@4.1.0")
    except installs.Unavailable as reason:
        pytest.skip(str(reason))
    seen = client.run(PROGRAMS / "toxiproxy_client.cjs", proxy.control, f"127.0.0.1:{redis70.port}")
    assert seen.pop("late") >= 0.29
    assert "chaosproxy" in seen.pop("version")
    assert seen == {
        "plain": "+PONG\r\n",
        "updated": {"latency": 1, "jitter": 0},
        "found": "late",
        "down": False,
        "refused": "ECONNREFUSED",
        "up": "+PONG\r\n",
        "again": "Request failed with status code 409",
        "proxies": ["other", "redis"],
        "left": [],
    }
